"""`rejoinder index`: writes and changes an index of texts, which `rejoinder search` searches."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from rejoinder.cli import options, output
from rejoinder.cli.progress import encoding_bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.index.folder import TextIndex

EXAMPLES = options.epilog(
    "rejoinder index questions.txt --out index/",
    "rejoinder search 'How old are you?' --index index/",
    "rejoinder index slack-export.zip --out index/",
    "rejoinder index tickets.csv --columns text=subject,id=number --out index/",
    "rejoinder index add index/ more.jsonl",
    "rejoinder index delete index/ ids.txt",
    "rejoinder index export index/ --to duckdb --out index.duckdb",
)


class _Commands(TyperGroup):
    """The commands of `rejoinder index`; without the name of one, `create`.

    An export is often in a folder of that name: with `--out`, but not `--to`, it is not a command.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {argument.partition("=")[0] for argument in args}
        is_file = args[:1] == ["export"] and "--out" in options and "--to" not in options
        named = not args or args[0] in (*self.commands, "-h", "--help")
        return super().parse_args(ctx, args if named and not is_file else ["create", *args])


commands = typer.Typer(
    cls=_Commands,
    help="Write or change an index of texts, to search them by meaning and words.",
    no_args_is_help=True,
    epilog=EXAMPLES,
)

_TEXTS = (
    "File of texts, plain or compressed: one per line, a table (.csv, .tsv, .parquet) or JSON "
    "lines. Or an export of conversations, or a folder of pairs, whose replies are indexed. - is "
    "standard input."
)
TextsArgument = Annotated[str, typer.Argument(help=_TEXTS)]
IndexArgument = Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")]


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def create(
    out: Path,
    texts: Annotated[str | None, typer.Argument(help=_TEXTS)] = None,
    columns: options.ColumnsOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    copy_model: bool = False,
    response: bool = False,
    recall: float = 0.98,
    dtype: Literal["float32", "float16"] = "float32",
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write an index. `rejoinder index TEXTS --out INDEX` does the same.

    Args:
        out: Folder of the index.
        copy_model: Copy the model into the new index.
        response: Encode texts as responses, so that search finds answers.
        recall: Share of the 10 nearest texts that approximate search should find, in indexes of
            200,000 or more texts. 1: search is exact.
        dtype: Type of the embeddings on disk.
    """
    from rejoinder.index.indexing import Index

    if texts is None:
        raise InputError("a file of texts is needed.")
    encoder = options.given_model(model, model_sha256)
    with (
        options.as_files([texts], are_texts=columns is None) as [file],
        encoding_bar() as progress,
    ):
        made = Index.create(
            out, Path(file), encoder, columns=columns,
            response=response, recall=recall, dtype=dtype, copy_model=copy_model,
            overwrite=overwrite, progress=progress,
        )  # fmt: skip
    _print(out, made, made.left_out)


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def add(
    index: IndexArgument,
    texts: TextsArgument,
    columns: options.ColumnsOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
) -> None:
    """Add texts to an index."""
    _add(index, texts, columns, options.given_model(model, model_sha256), update=False)


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def update(
    index: IndexArgument,
    texts: TextsArgument,
    columns: options.ColumnsOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
) -> None:
    """Add texts to an index, replacing those with the same ids."""
    _add(index, texts, columns, options.given_model(model, model_sha256), update=True)


def _add(index: Path, texts: str, columns: str | None, model: Path | None, *, update: bool) -> None:
    from rejoinder.index.indexing import Index

    made = Index.open(index, model)
    with (
        options.as_files([texts], are_texts=columns is None) as [file],
        encoding_bar() as progress,
    ):
        made.add(Path(file), columns=columns, update=update, progress=progress)
    _print(index, made, made.left_out)


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def delete(index: IndexArgument, ids: Annotated[str, typer.Argument()]) -> None:
    """Delete texts by id.

    Args:
        ids: File of ids, one per line. - is standard input.
    """
    _change(index, lambda made: made.delete(options.read_lines(ids)))


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def compact(index: IndexArgument) -> None:
    """Free the space of deleted texts, and merge additions."""
    _change(index, lambda made: made.compact())


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def check(index: IndexArgument) -> None:
    """Compare all files of an index with their SHA-256."""
    _change(index, lambda made: made.check())


def _change(index: Path, work: "Callable[[TextIndex], object]") -> None:
    from rejoinder.index.folder import TextIndex

    made = TextIndex(index)
    work(made)
    _print(index, made)


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def show(index: IndexArgument) -> None:
    """Show what an index contains, and which model made it."""
    from rejoinder.index.folder import TextIndex

    facts = TextIndex(index).facts()
    if not output.printed_json(facts):
        output.print_rows(["index", str(index)], [[*fact] for fact in facts.items()])


@commands.command(epilog=EXAMPLES)
@options.prints("json")
def export(
    index: Annotated[str, typer.Argument(metavar="INDEX")],
    to: Annotated[str, typer.Option(metavar="TARGET")],
    out: Path,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write an index as a table for a database, and print how to search it.

    Args:
        index: Folder of the index.
        to: Database: duckdb, lancedb, parquet, pgvector or sqlite-vec.
        out: File or folder to write.
    """
    from rejoinder.interfaces.tables import write_table

    written = write_table(index, out, to, overwrite=overwrite)
    facts = {"out": str(out), "to": to, "texts": written.texts, "query": written.query}
    if not output.printed_json(facts):
        typer.echo(written.query)
        output.status_line(f"{out}: {written.texts:,} texts")


def _print(
    out: Path, made: "TextIndex", left_out: Mapping[str, int] = MappingProxyType({})
) -> None:
    """Prints how many texts an index has now, and what may surprise about it."""
    from rejoinder.index.lists import LEAST_ROWS

    more = {"left_out": dict(left_out)} if left_out else {}
    if not output.printed_json({"index": str(out), "texts": len(made), **more}):
        output.status_line(f"{out}: {len(made):,} texts")
    output.note_left_out(left_out)
    if len(made) >= LEAST_ROWS and made.is_exact and made.manifest.recall < 1:
        fast = f"pip install 'rejoinder[index]', then rejoinder index compact {out}"
        output.note(f"faiss is not installed, so search is slow; to make it fast: {fast}")
