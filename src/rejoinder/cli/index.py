"""`rejoinder index`: writes and changes an index of texts, which `rejoinder search` searches."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from rejoinder.cli.messages import as_files, read_lines
from rejoinder.cli.models import given_model
from rejoinder.cli.options import (
    ColumnsOption,
    ModelOption,
    ModelSha256Option,
    OverwriteOption,
    epilog,
    prints,
)
from rejoinder.cli.output import asked_for, note, note_left_out, print_json, print_rows, status_line
from rejoinder.cli.progress import encoding_bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.index.indexing import Index

EXAMPLES = epilog(
    "rejoinder index questions.txt --out index/",
    "rejoinder search 'How old are you?' --index index/",
    "rejoinder index slack-export.zip --out index/",
    "rejoinder index tickets.csv --columns text=subject,id=number --out index/",
    "rejoinder index add index/ more.jsonl",
    "rejoinder index delete index/ ids.txt",
    "rejoinder index export index/ --to duckdb --out index.duckdb",
)
_TO = "--to"


class _Verbs(TyperGroup):
    """The commands of `rejoinder index`. Without one, as before there were any, texts are indexed.

    `index TEXTS --out INDEX --add` stands for `index add INDEX TEXTS`, and so for the others.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_verb(args))

    def _with_verb(self, args: list[str]) -> list[str]:
        names = [argument.partition("=")[0] for argument in args]
        if not args or args[0] in ("-h", "--help"):
            return args
        if args[0] in self.commands and (args[0] != "export" or _TO in names):
            return args  # without --to, `export` is an export
        verbs = {f"--{name}": name for name in self.commands if name not in ("create", "export")}
        chosen = [flag for flag in (*verbs, _TO) if flag in names]
        if not chosen:
            return ["create", *args]
        if len(chosen) > 1:
            raise InputError(f"{' and '.join(chosen)} exclude each other; give one.")
        [flag] = chosen
        if flag == _TO:
            return ["export", *args]
        return [verbs[flag], *self._of_verb(flag, [one for one in args if one != flag])]

    def _of_verb(self, flag: str, args: list[str]) -> list[str]:
        """Returns the arguments with the index first, which `--out` names."""
        params: list[Any] = self.commands[flag[2:]].params
        taken = {name: param for param in params for name in param.opts if name[:1] == "-"}
        index, options, files, rest = list[str](), list[str](), list[str](), iter(args)
        for argument in rest:
            name, equals, value = argument.partition("=")
            if name == "--out":
                index = [value if equals else next(rest, "")]
            elif name in taken:
                options.append(argument)
                if not equals and not getattr(taken[name], "is_flag", False):
                    options.append(next(rest, ""))
            elif name[:1] == "-" and name not in ("-", "-h", "--help"):
                raise InputError(f"{name}: only for a new index, and {flag} changes one.")
            else:
                files.append(argument)
        if files and len([param for param in params if param.param_type_name == "argument"]) < 2:
            raise InputError(f"{flag} takes no file.")
        return [*index, *files, *options]


commands = typer.Typer(
    cls=_Verbs,
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
@prints("json")
def create(
    out: Annotated[Path, "Folder of the index."],
    texts: Annotated[str | None, typer.Argument(help=_TEXTS)] = None,
    columns: ColumnsOption = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    copy_model: Annotated[bool, "Put the model inside the new index."] = False,
    response: Annotated[bool, "Encode texts as responses: search finds answers."] = False,
    recall: Annotated[
        float,
        "Share of the 10 nearest texts that approximate search should find. It is used "
        "for 200,000 texts and more. 1: search is exact.",
    ] = 0.98,
    dtype: Annotated[Literal["float32", "float16"], "Type of the embeddings on disk."] = "float32",
    overwrite: OverwriteOption = False,
) -> None:
    """Write an index. `rejoinder index TEXTS --out INDEX` does so, too."""
    from rejoinder.index.indexing import Index

    if texts is None:
        raise InputError("a file of texts is needed.")
    encoder = given_model(model, model_sha256)
    with as_files([texts], are_texts=columns is None) as [file], encoding_bar() as progress:
        made = Index.create(
            out, Path(file), encoder, columns=columns,
            response=response, recall=recall, dtype=dtype, copy_model=copy_model,
            overwrite=overwrite, progress=progress,
        )  # fmt: skip
    _print(out, made)


@commands.command(epilog=EXAMPLES)
@prints("json")
def add(
    index: IndexArgument,
    texts: TextsArgument,
    columns: ColumnsOption = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
) -> None:
    """Add texts to an index."""
    _add(index, texts, columns, _opened(index, model, model_sha256), update=False)


@commands.command(epilog=EXAMPLES)
@prints("json")
def update(
    index: IndexArgument,
    texts: TextsArgument,
    columns: ColumnsOption = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
) -> None:
    """Add texts to an index, replacing those with the same ids."""
    _add(index, texts, columns, _opened(index, model, model_sha256), update=True)


def _add(index: Path, texts: str, columns: str | None, made: "Index", *, update: bool) -> None:
    with as_files([texts], are_texts=columns is None) as [file], encoding_bar() as progress:
        made.add(Path(file), columns=columns, update=update, progress=progress)
    _print(index, made)


@commands.command(epilog=EXAMPLES)
@prints("json")
def delete(
    index: IndexArgument,
    ids: Annotated[str, typer.Argument(help="File of ids, one per line. - is standard input.")],
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
) -> None:
    """Delete the texts with some ids."""
    made = _opened(index, model, model_sha256)
    with as_files([ids]) as [file]:
        made.delete(read_lines(file))
    _print(index, made)


@commands.command(epilog=EXAMPLES)
@prints("json")
def compact(
    index: IndexArgument, model: ModelOption = None, model_sha256: ModelSha256Option = None
) -> None:
    """Free the space of deleted texts, and join additions."""
    made = _opened(index, model, model_sha256)
    made.compact()
    _print(index, made)


@commands.command(epilog=EXAMPLES)
@prints("json")
def check(
    index: IndexArgument, model: ModelOption = None, model_sha256: ModelSha256Option = None
) -> None:
    """Compare all files of an index with their SHA-256."""
    made = _opened(index, model, model_sha256)
    made.check()
    _print(index, made)


@commands.command(epilog=EXAMPLES)
@prints("json")
def show(index: IndexArgument) -> None:
    """Show what an index holds, and which model made it."""
    from rejoinder.index.folder import TextIndex

    facts = TextIndex(index).facts()
    if asked_for("json"):
        print_json(facts)
    else:
        print_rows(["index", str(index)], [[*fact] for fact in facts.items()])


@commands.command(epilog=EXAMPLES)
@prints("json")
def export(
    index: Annotated[str, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="TARGET", help="Database: duckdb, lancedb, parquet, pgvector or sqlite-vec."
        ),
    ],
    out: Annotated[Path, "File or folder to write."],
    overwrite: OverwriteOption = False,
) -> None:
    """Write an index as a table for a database, and print how to search it."""
    from rejoinder.interfaces.tables import write_table

    written = write_table(index, out, to, overwrite=overwrite)
    facts = {"out": str(out), "to": to, "texts": written.texts, "query": written.query}
    if asked_for("json"):
        print_json(facts)
    else:
        typer.echo(written.query)
        status_line(f"{out}: {written.texts:,} texts")


def _opened(index: Path, model: str | None, model_sha256: str | None) -> "Index":
    from rejoinder.index.indexing import Index

    return Index.open(index, given_model(model, model_sha256))


def _print(out: Path, made: "Index") -> None:
    """Prints how many texts an index has now, and what may surprise about it."""
    from rejoinder.index.lists import LEAST_ROWS

    left_out: Mapping[str, object] = {"left_out": dict(made.left_out)} if made.left_out else {}
    if asked_for("json"):
        print_json({"index": str(out), "texts": len(made), **left_out})
    else:
        status_line(f"{out}: {len(made):,} texts")
    note_left_out(made.left_out)
    if len(made) >= LEAST_ROWS and made.is_exact and made.manifest.recall < 1:
        note(
            "faiss is not installed, so search compares all texts, which is slow. For fast search: "
            f"pip install 'rejoinder[index]', then rejoinder index compact {out}"
        )
