"""Turns errors and signals into an exit status and one sentence on standard error."""

import codecs
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rejoinder.cli.signals import signals_as_exits
from rejoinder.errors import OtherWorkerError, RejoinderError, missing_extra
from rejoinder.io.files.platform import TERMINATION_SIGNALS, address_space_limit
from rejoinder.io.files.storage import lacks_memory, storage_cause

BAD_INPUT = 2
"""Exit status of misuse, bad input, outputs that can't be written, memory that does not suffice."""
_FAILING = ("strict", "surrogateescape")
"""Ways of streams to handle what their encoding lacks that may raise an error."""
_INTERRUPTED = 128 + signal.SIGINT


def status_of(command: Callable[[], object]) -> int:
    """Runs a command and reports on standard error what stopped it.

    Returns:
        The exit status: 0 for success, also if the reader of the output closed the pipe; 1 for a
        failure; 2 for misuse, bad input, or an output that can't be written; 128 plus the number
        of a signal (130 interrupted, 143 terminated). 2 also where memory does not suffice.
    """
    _prepare_streams()
    try:
        with signals_as_exits():
            status = _run(command)
            sys.stdout.flush()
    except OtherWorkerError:
        status = BAD_INPUT
    except RejoinderError as error:
        status = _report(str(error), BAD_INPUT)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        status = _report(str(missing), BAD_INPUT)
    except BrokenPipeError:
        status = 0
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except Exception as error:
        sentence = _explained(error)
        if sentence is None:
            raise
        status = _report(sentence, BAD_INPUT)
    if status == _INTERRUPTED:
        _report("interrupted", status)
    elif status in (128 + number for number in TERMINATION_SIGNALS):
        _report("terminated", status)
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return status


def _run(command: Callable[[], object]) -> int:
    """Runs a command and returns the status that it exits with."""
    try:
        command()
    except SystemExit as stop:
        if _is_closed_pipe(stop):
            raise BrokenPipeError from None
        if stop.code is None:
            return 0
        return stop.code if isinstance(stop.code, int) else 1
    return 0


def _is_closed_pipe(stop: SystemExit) -> bool:
    """Returns whether a closed pipe caused the exit. Typer and Rich exit with 1 in this case."""
    cause: BaseException | None = stop
    while cause is not None:
        if isinstance(cause, BrokenPipeError):
            return True
        cause = cause.__context__
    return False


def _explained(error: Exception) -> str | None:
    """Returns a sentence on an error of the operating system, or None if too little is known."""
    if address_space_limit() is None and "can't start new thread" in str(error):
        return "no more threads can be started; raise the limit of processes (ulimit -u)."
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


def _drop_output() -> None:
    """Discards buffered output, which Python would otherwise try to write again on exit."""
    with suppress(OSError, ValueError):  # a stream without a file descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _prepare_streams() -> None:
    """Replaces closed standard streams, and makes the others accept any character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, as in `rejoinder info model/ >&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.errors in _FAILING:
            # Python escapes surrogates in UTF-8, and in ASCII where no locale is set
            if codecs.lookup(stream.encoding).name == "utf-8" or stream.errors != "strict":
                # file names are bytes, and are printed as they are
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")
            else:
                stream.reconfigure(errors="replace")


def _report(sentence: str, status: int) -> int:
    """Prints a sentence on standard error and returns `status`."""
    with suppress(OSError):
        sys.stderr.write(f"rejoinder: {sentence}\n")
        sys.stderr.flush()
    return status
