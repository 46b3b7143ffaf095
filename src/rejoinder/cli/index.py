"""`rejoinder index`: writes and changes an index of texts, which `rejoinder search` searches."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
        if not args or args[0] in ("-h", "--help"):
            return args
        if args[0] in self.commands and args[0] != "export":
            return args
        names = [argument.partition("=")[0] for argument in args]
        if _TO in names:
            files, options, others = self._sorted("export", args)
            if args[0] == "export" and len(files) > 1:  # alone, it is the name of an index
                return args
            if others:
                raise InputError(
                    f"{' and '.join(others)}: --to writes an index as it is. Leave it out."
                )
            if not files:
                raise InputError(
                    "--to writes an index for a database; name the folder of the index."
                )
            return ["export", *files, *options]
        verbs = {f"--{name}": name for name in self.commands if name not in ("create", "export")}
        chosen = [flag for flag in verbs if flag in names]
        if not chosen:
            return ["create", *args]
        if len(chosen) > 1:
            raise InputError(f"{' and '.join(chosen)} exclude each other; give one.")
        [flag] = chosen
        files, options, others = self._sorted(verbs[flag], [one for one in args if one != flag])
        if others:
            raise InputError(
                f"{' and '.join(others)}: only for a new index, and {flag} changes one."
            )
        params: list[Any] = self.commands[verbs[flag]].params
        if len(files) > sum(param.param_type_name == "argument" for param in params):
            raise InputError(f"{flag} takes no file.")
        return [verbs[flag], *files, *options]

    def _sorted(self, verb: str, args: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Returns the files among the arguments, the options that a verb has, and other options.

        The first file is the index that `--out` names, unless that is an option of the verb.
        """
        params: list[Any] = self.commands[verb].params
        own = {name: param for param in params for name in param.opts if name[:1] == "-"}
        files, options, others, rest = list[str](), list[str](), list[str](), iter(args)
        for argument in rest:
            name, equals, value = argument.partition("=")
            if name in own or name[:2] in own:
                options.append(argument)  # -mNAME has its value
                if argument in own and not getattr(own[argument], "is_flag", False):
                    options.append(next(rest, ""))
            elif name == "--out":
                files.insert(0, value if equals else next(rest, ""))
            elif name[:1] == "-" and name not in ("-", "-h", "--help"):
                others.append(name)
            else:
                files.append(argument)
        return files, options, others


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
    with _changed(index, model, model_sha256) as made:
        _add(made, texts, columns, update=False)


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
    with _changed(index, model, model_sha256) as made:
        _add(made, texts, columns, update=True)


def _add(made: "Index", texts: str, columns: str | None, *, update: bool) -> None:
    with as_files([texts], are_texts=columns is None) as [file], encoding_bar() as progress:
        made.add(Path(file), columns=columns, update=update, progress=progress)


@commands.command(epilog=EXAMPLES)
@prints("json")
def delete(
    index: IndexArgument,
    ids: Annotated[str, typer.Argument(help="File of ids, one per line. - is standard input.")],
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
) -> None:
    """Delete the texts with some ids."""
    with _changed(index, model, model_sha256) as made, as_files([ids]) as [file]:
        made.delete(read_lines(file))


@commands.command(epilog=EXAMPLES)
@prints("json")
def compact(
    index: IndexArgument, model: ModelOption = None, model_sha256: ModelSha256Option = None
) -> None:
    """Free the space of deleted texts, and join additions."""
    with _changed(index, model, model_sha256) as made:
        made.compact()


@commands.command(epilog=EXAMPLES)
@prints("json")
def check(
    index: IndexArgument, model: ModelOption = None, model_sha256: ModelSha256Option = None
) -> None:
    """Compare all files of an index with their SHA-256."""
    with _changed(index, model, model_sha256) as made:
        made.check()


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


@contextmanager
def _changed(index: Path, model: str | None, model_sha256: str | None) -> "Iterator[Index]":
    """Opens an index, and prints what it holds afterwards."""
    from rejoinder.index.indexing import Index

    made = Index.open(index, given_model(model, model_sha256))
    yield made
    _print(index, made)


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
