"""Turns errors and signals into an exit status and one sentence on standard error."""

import codecs
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rejoinder.cli.output import as_options
from rejoinder.errors import OtherWorkerError, RejoinderError, missing_extra
from rejoinder.io.files.storage import TERMINATION_SIGNALS, lacks_memory, storage_cause

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
        return (
            "no more threads can be started; raise the limit of processes (ulimit -u), or of "
            "memory (ulimit -v)."
        )
    if lacks_memory(error):
        return (
            "memory does not suffice; give more of it, or ask for less at a time (smaller batches, "
            "fewer threads, --memory of extract)."
        )
    if path := _not_utf8():
        return (
            f"{path!a} is not UTF-8, and some libraries can't open such paths "
            f"({type(error).__name__}); rename it."
        )
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
