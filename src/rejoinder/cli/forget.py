"""`rejoinder forget`: removes messages of a person, or that match a pattern, from folders.

`rejoinder find-personal`: lists mail addresses, phone numbers and keys in messages.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar
from rejoinder.errors import require


@options.prints("json", excludes=[("--author", "--match")])
def forget(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER")],
    author: str | None = None,
    match: str | None = None,
    dry_run: bool = False,
    threads: options.ThreadsOption = None,
) -> None:
    """Remove messages from indexes, explored folders and pairs, and everything with their words.

    Args:
        folders: Folder of `rejoinder index`, `explore` or `extract`; repeatable.
        author: Remove what this author wrote.
        match: Remove messages whose text, id, author, channel or subject matches this regular
            expression (Rust syntax: no look-around).
        dry_run: Only say what would be removed.

    Examples:
        rejoinder forget slack-export.zip.explore --author anna --dry-run
        rejoinder forget slack-export.zip.explore pairs/ --author anna
        rejoinder forget index/ --match '(?i)anna@example[.]org'
    """
    require("explore", "polars", "sklearn", "graspologic_native")
    from rejoinder.conversations.explore import Watch
    from rejoinder.conversations.forget import KINDS
    from rejoinder.conversations.forget import forget as remove

    with Bar("") as bar:
        watch = Watch(lambda stage, done, total: bar.show(stage, done, total, ""))
        found = remove(
            folders, author=author, match=match, dry_run=dry_run, threads=threads, watch=watch
        )
    counts = {**dict.fromkeys(KINDS, 0), **found.removed, "mentions": found.mentions}
    if not output.printed_json(counts):
        verb = "would be removed" if dry_run else "removed"
        told = ", ".join(f"{KINDS[kind]} {count:,}" for kind, count in found.removed.items())
        typer.echo(f"{verb}: {told or 'nothing'}")
    if found.mentions:
        output.note(f"{found.mentions:,} remaining messages name the author; --match removes them")
    for model in found.trained if found.removed else ():
        output.note(f"{model} may have been trained on removed messages; train it again")


@options.prints("json", "tsv")
def find_personal(
    source: Annotated[Path, typer.Argument()], columns: options.ColumnsOption = None
) -> None:
    """List mail addresses, phone numbers, keys and similar data in messages, by kind and id.

    Args:
        source: Export of conversations, file of texts, or folder of `rejoinder index`, `explore` or
            `extract`.

    Examples:
        rejoinder find-personal slack-export.zip
        rejoinder find-personal slack-export.zip.explore --json
    """
    require("extract", "polars", "pyarrow")
    from rejoinder.conversations.forget import Personal
    from rejoinder.conversations.forget import find_personal as look

    with options.as_files([str(source)]) as [file]:
        found = sorted(look(Path(file), columns), key=lambda one: one.kind)
    output.print_rows(Personal._fields, found, f"personal data in {source}")
    counts = Counter(one.kind for one in found)
    told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    output.status_line(f"{told or 'nothing found'}; names of people can't be recognised")
