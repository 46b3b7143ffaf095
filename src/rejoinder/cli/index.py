"""`rejoinder index`: writes and changes an index of texts, which `rejoinder search` searches."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

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
from rejoinder.cli.output import (
    asked_for,
    note,
    note_left_out,
    print_json,
    status_line,
)
from rejoinder.cli.progress import encoding_bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.index.indexing import Index

EXAMPLES = epilog(
    "rejoinder index questions.txt --out index/",
    "rejoinder search 'How old are you?' --index index/",
    "rejoinder index slack-export.zip --out index/",
    "rejoinder index more.jsonl --out index/ --add",
    "rejoinder index - --out index/ < result.json",
    "rejoinder index tickets.csv --columns text=subject,id=number --out index/",
    "rejoinder index ids.txt --out index/ --delete",
    "rejoinder index index/ --to duckdb --out index.duckdb",
)


@prints("json")
def index(
    out: Annotated[Path, "Folder of the index. With --to: file or folder to write."],
    texts: Annotated[
        str | None,
        typer.Argument(
            help="File of texts, plain or compressed: one per line, a table (.csv, .tsv, "
            ".parquet) or JSON lines. Or an export of conversations, or a folder of pairs, whose "
            "replies are indexed. "
            "With --delete: a file of ids, one per line. With --to: an index. - is standard input."
        ),
    ] = None,
    columns: ColumnsOption = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    add: Annotated[bool, "Add the texts to the index."] = False,
    update: Annotated[bool, "Add the texts, replacing those with the same ids."] = False,
    delete: Annotated[bool, "Delete the texts with these ids."] = False,
    compact: Annotated[bool, "Free the space of deleted texts, join additions."] = False,
    check: Annotated[bool, "Compare all files of the index with their SHA-256."] = False,
    copy_model: Annotated[bool, "Put the model inside the new index."] = False,
    response: Annotated[
        bool,
        "Encode texts as responses: search finds answers.",
    ] = False,
    recall: Annotated[
        float,
        "Share of the 10 nearest texts that approximate search should find. It is used "
        "for 200,000 texts and more. 1: search is exact.",
    ] = 0.98,
    dtype: Annotated[Literal["float32", "float16"], "Type of the embeddings on disk."] = "float32",
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Write the index TEXTS as a table to OUT, for a database: duckdb, lancedb, "
            "parquet, pgvector or sqlite-vec.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write or change an index of texts, to search them by meaning."""
    changes = {"add": add, "update": update, "delete": delete, "compact": compact, "check": check}
    chosen = [f"--{name}" for name, value in changes.items() if value]
    for_new = {
        "--copy-model": copy_model, "--overwrite": overwrite, "--response": response,
        "--recall": recall != 0.98, "--dtype": dtype != "float32",
    }  # fmt: skip
    if to is not None:
        given = {
            **dict.fromkeys(chosen, True), **for_new, "--columns": columns, "--model": model,
            "--model-sha256": model_sha256,
        }  # fmt: skip
        wrong = [name for name, value in given.items() if value and name != "--overwrite"]
        _write_table(texts, out, to, wrong, overwrite=overwrite)
        return
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} exclude each other; give one.")
    change = chosen[0] if chosen else None
    if (texts is None) != (change in ("--compact", "--check")):
        missing = "a file of texts is needed" if texts is None else f"{change} takes no file"
        raise InputError(f"{missing}.")
    added = change in (None, "--add", "--update")
    if columns is not None and not added:
        raise InputError(f"--columns is for texts to add, and {change} adds none.")
    wrong = [option for option, value in for_new.items() if value and change is not None]
    if wrong:
        raise InputError(f"{' and '.join(wrong)}: only for a new index, and {change} changes one.")
    from rejoinder.index.indexing import Index

    encoder = given_model(model, model_sha256)
    are_texts = added and columns is None
    with as_files([texts or ""], are_texts=are_texts) as [file], encoding_bar() as progress:
        if change is None:
            made = Index.create(
                out, Path(file), encoder, columns=columns,
                response=response, recall=recall, dtype=dtype, copy_model=copy_model,
                overwrite=overwrite, progress=progress,
            )  # fmt: skip
        else:
            made = Index.open(out, encoder)
        if add or update:
            made.add(Path(file), columns=columns, update=update, progress=progress)
        elif delete:
            made.delete(read_lines(file))
        elif compact:
            made.compact()
        elif check:
            made.check()
    if asked_for("json"):
        left_out = {"left_out": dict(made.left_out)} if made.left_out else {}
        typer.echo(json.dumps({"index": str(out), "texts": len(made), **left_out}))
    else:
        status_line(f"{out}: {len(made):,} texts")
    _note(made)


def _write_table(
    index: str | None, out: Path, to: str, wrong: list[str], *, overwrite: bool
) -> None:
    """Writes a table for a database, and prints how to search it."""
    if wrong:
        raise InputError(f"{' and '.join(wrong)}: --to writes an index as it is. Leave it out.")
    if index is None:
        raise InputError("--to writes an index for a database; name the folder of the index.")
    from rejoinder.interfaces.tables import write_table

    written = write_table(index, out, to, overwrite=overwrite)
    facts = {"out": str(out), "to": to, "texts": written.texts, "query": written.query}
    if asked_for("json"):
        print_json(facts)
    else:
        typer.echo(written.query)
        status_line(f"{out}: {written.texts:,} texts")


def _note(made: "Index") -> None:
    """Says what may surprise about an index."""
    from rejoinder.index.lists import LEAST_ROWS

    note_left_out(made.left_out)
    if len(made) >= LEAST_ROWS and made.is_exact and made.manifest.recall < 1:
        note(
            "faiss is not installed, so search compares all texts, which is slow. For fast search: "
            "pip install 'rejoinder[index]', then --compact"
        )
