"""Prints results as tables, TSV or JSON, and notes on standard error.

Turns errors and signals into an exit status and one sentence on standard error.
"""

import codecs
import io
import json
import os
import re
import shutil
import signal
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rejoinder.errors import (
    ForeignTextWarning,
    LeftOutWarning,
    OtherWorkerError,
    RejoinderError,
    missing_extra,
)
from rejoinder.io.files.storage import lacks_memory, storage_cause
from rejoinder.io.files.system import TERMINATION_SIGNALS
from rejoinder.registry import WITHOUT_KERNELS, are_built

if TYPE_CHECKING:
    from rejoinder.inference.encoding import EncodedFile


_ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`]*))?`")
_WITHOUT_QUOTES = str.maketrans("", "", "()'\" ")
_ONE_CELL = str.maketrans("\t\n\r", "   ")
_BEFORE_MATCH = 60
"""Characters that are shown before a match in a long text."""
_READABLE = 24
"""Width, in characters, that columns of text keep as long as other columns can be left out."""
_LEFT_OUT = {
    "system": "by the program", "bot": "by bots", "private": "private", "empty": "without text",
    "malformed": "malformed",
}  # fmt: skip
"""Why messages of an export are left out, in a note."""

_python_shows = warnings.showwarning
_quiet = False
_form = ""
"""`json` or `tsv`, if the command was given `--json` or `--tsv`."""
_foreign = False
"""Whether the command noted that texts are in a language that the model does not know."""
_noted = set[str]()
"""Warnings that the command noted: a folder is looked at more than once."""


def set_output(*, quiet: bool, json: bool = False, tsv: bool = False) -> None:
    """Sets what the functions here do until the next call.

    Args:
        quiet: Print no notes and no progress on standard error.
        json: Print JSON.
        tsv: Print tab-separated lines. By default the terminal decides (`form_of_output`).

    Raises:
        typer.BadParameter: both `json` and `tsv` are asked for.
    """
    global _quiet, _form, _foreign
    if json and tsv:
        raise typer.BadParameter("--json and --tsv exclude each other")
    _quiet, _form, _foreign = quiet, "json" if json else "tsv" if tsv else "", False
    _noted.clear()
    warnings.showwarning = _shown


def _shown(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Prints our own warnings as notes, and all others as Python does."""
    global _foreign
    if issubclass(category, ForeignTextWarning | LeftOutWarning):
        _foreign = _foreign or issubclass(category, ForeignTextWarning)
        if str(message) not in _noted:
            _noted.add(str(message))
            note(str(message).rstrip("."))
    else:
        _python_shows(message, category, *place, **more)


def stderr() -> Console:
    """Returns the console for progress and messages. It prints nothing if quiet."""
    return Console(stderr=True, highlight=False, quiet=_quiet)


def status_line(text: str) -> None:
    """Prints a line on standard error, such as `wrote e.npy`, unless quiet."""
    if not _quiet:
        typer.echo(text, err=True)


def duration(seconds: float) -> str:
    """Returns a time as text: seconds, or minutes from two minutes on.

    >>> duration(3.25), duration(150)
    ('3.2 seconds', '2.5 minutes')
    """
    return f"{seconds:.1f} seconds" if seconds < 120 else f"{seconds / 60:.1f} minutes"


def as_options(message: str) -> str:
    """Returns a message of the library that names options instead of arguments in backquotes.

    >>> as_options("`on_too_long` 'x': see `rejoinder encode --help`, or `overwrite=True`.")
    "--on-too-long 'x': see `rejoinder encode --help`, or --overwrite."
    >>> as_options("give `split=(80, 10, 10)`, `engine='spark'` or `spelling=False`")
    'give --split 80,10,10, --engine spark or --no-spelling'
    """
    return _ARGUMENT.sub(_option, message)


def _option(argument: re.Match[str]) -> str:
    name, value = argument[1].replace("_", "-"), argument[2]
    if value in (None, "True"):
        return f"--{name}"
    return f"--no-{name}" if value == "False" else f"--{name} {value.translate(_WITHOUT_QUOTES)}"


def note(sentence: str) -> None:
    """Prints `rejoinder: ` and a sentence on standard error, unless quiet."""
    status_line(f"rejoinder: {sentence}")


def complain(sentence: str) -> None:
    """Prints `rejoinder: ` and a sentence on standard error, even if quiet."""
    typer.echo(f"rejoinder: {sentence}", err=True)


def note_missing_kernels(*, again: bool = False) -> None:
    """Notes that the package was installed without a compiler, unless quiet.

    It is noted once, as a file in the cache says, or `again`.
    """
    if _quiet or WITHOUT_KERNELS or are_built():
        return
    from rejoinder.models.find import cache_folder

    with suppress(OSError, RejoinderError):  # no cache that can be written: noted each time
        said = cache_folder() / "noted-missing-kernels"
        if said.exists() and not again:
            return
        said.parent.mkdir(parents=True, exist_ok=True)
        said.touch()
    note(
        "installed without its C kernels, so encoding takes two to four times as long; install a C "
        "compiler, such as gcc, then reinstall rejoinder"
    )


def note_unknown(unknown: set[str], texts: list[str], name: str, which: str = "") -> None:
    """Notes how many `texts` (`name`, a plural noun) are unknown, unless the language was noted."""
    count = sum(text in unknown for text in texts)
    if count and not _foreign:
        note(f"most words of {count:,} of {len(texts):,} {name} are unknown to the model{which}")


def note_zero(count: int, total: int) -> None:
    """Prints how many sentences have the zero vector, if any."""
    if count:
        note(f"no known word in {count:,} of {total:,} sentences: their vectors are zero")


def note_left_out(counts: Mapping[str, int]) -> None:
    """Prints how many messages of an export were left out, by the reason, if any."""
    if total := sum(counts.values()):
        parts = ", ".join(f"{count:,} {_LEFT_OUT[why]}" for why, count in sorted(counts.items()))
        note(f"messages left out: {total:,} ({parts})")


def print_encoded(written: "EncodedFile", out: Path) -> None:
    """Says which file of embeddings was written to `out`, and how many sentences are zero."""
    if not printed_json({**asdict(written), "path": str(out)}):
        status_line(f"wrote {out}: {written.n} x {written.dim} float32")
    note_left_out(written.left_out)
    note_zero(written.unknown, written.n)


def asked_for(form: str) -> bool:
    """Returns whether the command was given `--json` or `--tsv`, as `form` says."""
    return _form == form


def form_of_output() -> str:
    """Returns the requested form, by default `table` on a terminal and `tsv` elsewhere."""
    return _form or ("table" if sys.stdout.isatty() else "tsv")


def print_json(tree: object) -> None:
    """Prints a tree as a line of JSON on standard output."""
    typer.echo(json.dumps(tree, ensure_ascii=False))


def printed_json(tree: object) -> bool:
    """Prints a tree as a line of JSON if the command was given `--json`; returns whether it did."""
    if asked_for("json"):
        print_json(tree)
    return asked_for("json")


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines on standard output. `typer.echo`, in contrast, flushes after each line."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Prints rows as a `table` with a title, `tsv` with a header, or `json`, a list of objects."""
    form = form_of_output()
    if form == "json":
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif form == "tsv":
        print_lines("\t".join(_in_tsv(value) for value in row) for row in (columns, *rows))
    else:
        print_table(title, columns, rows)


def _in_tsv(value: Any) -> str:
    """Returns a value in one cell; six digits of a number say all that it means."""
    return f"{value:.6g}" if isinstance(value, float) else str(value).translate(_ONE_CELL)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], spare: Sequence[str] = ()
) -> None:
    """Prints a table on standard output, with numbers aligned to the right.

    Text is broken between words; it may have styles (`rich.text.Text`). Where the terminal is too
    narrow, columns are left out in the order of `spare`, and a line below the table names them.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    boundless = console.options.update(width=100_000)
    cells = [[value if isinstance(value, Text) else _cell(value) for value in row] for row in rows]
    ways = [*((left_out, _READABLE) for left_out in range(len(spare) + 1)), (len(spare), 1)]
    for left_out, readable in ways:
        table = Table(
            title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD,
            show_edge=False, pad_edge=False, collapse_padding=True, header_style="bold",
        )  # fmt: skip
        shown = [number for number, name in enumerate(columns) if name not in spare[:left_out]]
        for name, texts in ((columns[n], [str(row[n]) for row in cells]) for n in shown):
            numeric = bool(cells) and all(map(_is_number, texts))
            whole = numeric or name in spare
            width = max(map(cell_len, (name, *texts)))
            table.add_column(
                name,
                justify="right" if numeric else "left",
                no_wrap=whole,
                min_width=width if whole else min(width, readable),
                overflow="fold",
            )
        for row in cells:
            table.add_row(*(row[number] for number in shown))
        if console.measure(table, options=boundless).minimum <= console.width:
            break
    console.print(table)
    if left_out:
        names = ", ".join(spare[:left_out])
        print_wrapped(f"No room for {names}: a wider terminal, a pipe or --json shows them.")


def print_wrapped(text: str) -> None:
    """Prints an indented paragraph on standard output, broken between words."""
    width = shutil.get_terminal_size().columns
    typer.echo(textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    "))


def excerpt(text: str, most: int = 240, match: int = 0) -> str:
    """Returns a text as a line of at most `most` characters, with … where words were cut off.

    It begins with the text or, of a long one, shortly before the place of a `match` in the line.

    >>> excerpt("The bus was late again.", 15)
    'The bus was …'
    >>> excerpt("word " * 100, match=300)[:9], len(excerpt("word " * 100, match=300))
    ('… word wo', 243)
    """
    line = " ".join(text.split())
    begin = line.find(" ", match - _BEFORE_MATCH) + 1 if match > max(0, most - _BEFORE_MATCH) else 0
    shown = line[begin : begin + most]
    if len(line) > begin + most:
        shown = f"{shown.rpartition(' ')[0] or shown} …"
    return f"… {shown}" if begin else shown


def _cell(value: Any) -> str:
    """Returns the text of a value in a table for a terminal."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " ".join(str(value).split())


def _is_number(text: str) -> bool:
    """Returns whether a cell is a number, which tables align to the right.

    >>> _is_number("-1,234.5"), _is_number("<0.01%"), _is_number("two")
    (True, True, False)
    """
    return text.translate(str.maketrans("", "", ",.+-%<")).strip().isdigit()


BAD_INPUT = 2
"""Exit status of misuse, bad input, outputs that can't be written, memory that does not suffice."""
_received: list[int] = []
"""Signals that asked this process to end."""
_SIGNALLED = {128 + signal.SIGINT: "interrupted"} | {
    128 + number: "terminated" for number in TERMINATION_SIGNALS
}
"""Exit statuses of commands that a signal ended."""


def status_of(command: Callable[[], object]) -> int:
    """Runs a command and reports on standard error what stopped it.

    Signals that end the process raise an exception from now on, so that `finally` blocks clean up.

    Returns:
        The exit status: 0 for success, also if the reader of the output closed the pipe; 1 for a
        failure; 2 for misuse, bad input, or an output that can't be written; 128 plus the number
        of a signal (130 interrupted, 143 terminated). 2 also where memory does not suffice.
    """
    _prepare_streams()
    for number in TERMINATION_SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
            signal.signal(number, _exit)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _interrupt)
    status, sentence = 0, ""
    try:
        status = _run(command)
        sys.stdout.flush()
    except BrokenPipeError:
        status = 0
    except OtherWorkerError:
        status = BAD_INPUT
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except BaseException as error:  # Polars panics with a BaseException
        sentence = _explained(error) or ""
        if not sentence:
            raise
        status = BAD_INPUT
    sentence = sentence or _SIGNALLED.get(status, "")
    with suppress(OSError):
        if sentence:
            sys.stderr.write(f"rejoinder: {sentence}\n")
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except OSError:  # Python would try to write the rest again on exit
        with suppress(OSError):  # a stream without a file descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    _received.append(number)
    raise SystemExit(128 + number)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    _received.append(number)
    raise KeyboardInterrupt


def exit_if_signalled() -> None:
    """Exits if a signal came: Python ignores what a handler raises within a callback of C."""
    if _received:
        raise SystemExit(128 + _received[0])


def _run(command: Callable[[], object]) -> int:
    """Runs a command and returns the status that it exits with."""
    try:
        command()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # Typer and Rich exit with 1
            return 0
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _explained(error: BaseException) -> str | None:
    """Returns a sentence on an error that a user can mend; None for others."""
    if isinstance(error, RejoinderError):
        return as_options(str(error))
    if isinstance(error, ModuleNotFoundError):
        missing = missing_extra(error)
        return None if missing is None else str(missing)
    if "can't start new thread" in str(error) or "ThreadPoolBuildError" in str(error):
        return "no more threads can be started; raise the limit of processes (ulimit -u)."
    if lacks_memory(error):
        return "memory does not suffice; give more of it, or ask for fewer threads or texts."
    if path := _not_utf8():
        return f"{path!a} is not UTF-8, and some libraries can't open such paths; rename it."
    if not isinstance(error, OSError):
        return None
    cause = storage_cause(error)
    if error.filename is not None and error.strerror:
        name = os.fsdecode(error.filename)
        return f"{name} can't be read or written: {cause or error.strerror.lower()}."
    # errors on files come from rejoinder.io.files, which names them: this one is on standard output
    return f"standard output can't be written: {cause}." if cause else None


def _not_utf8() -> str | None:
    """Returns the first argument whose bytes are not UTF-8, else the current folder if its are."""
    with suppress(FileNotFoundError):
        for text in (*sys.argv[1:], str(Path.cwd())):
            if any("\ud800" <= sign <= "\udfff" for sign in text):
                return text
    return None


def _prepare_streams() -> None:
    """Replaces closed standard streams, and makes the others accept any character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, as in `rejoinder info model/ >&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # file names are bytes, and are printed as they are, in UTF-8 where no locale is set
            if codecs.lookup(stream.encoding).name == "utf-8" or stream.errors != "strict":
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")
            else:
                stream.reconfigure(errors="replace")
