"""How a command ends: its exit status, and one sentence where something stopped it."""

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from rejoinder.errors import RejoinderError
from rejoinder.files.storage import storage_cause

_BAD = 2
_INTERRUPTED = 128 + signal.SIGINT
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP


def status_of(command: Callable[[], object]) -> int:
    """Run a command and return its exit status; what stopped it is said on standard error.

    Returns:
        0 done, also where whoever read the output has gone; 1 failed; 2 misuse, bad input, or an
        output that can't be written; 130 interrupted; 143 terminated.
    """
    _prepare_streams()
    try:
        with _signals_as_exits():
            status = _called(command)
            sys.stdout.flush()
    except RejoinderError as error:
        status = _said(str(error), _BAD)
    except BrokenPipeError:
        status = 0
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except OSError as error:
        sentence = _explained(error)
        if sentence is None:
            raise
        status = _said(sentence, _BAD)
    if status == _INTERRUPTED:
        _said("interrupted", status)
    elif status in (128 + number for number in _SIGNALS):
        _said("terminated", status)
    if not _can_flush():
        _drop_output()
    return status


def _called(command: Callable[[], object]) -> int:
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
    """Whether Typer or Rich, which exit with 1 then, met a reader that has gone."""
    cause: BaseException | None = stop
    while cause is not None:
        if isinstance(cause, BrokenPipeError):
            return True
        cause = cause.__context__
    return False


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Let signals that end the process raise `SystemExit`: `finally` blocks run, files go.

    A command may put handlers of its own in the place of these.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # `nohup` ignores one: so does what it runs
    replaced = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _explained(error: OSError) -> str | None:
    """A sentence on an error of the operating system; none where it says too little."""
    cause = storage_cause(error)
    if error.filename is not None and error.strerror:
        name = os.fsdecode(error.filename)
        return f"{name} can't be read or written: {cause or error.strerror.lower()}."
    # files are written through rejoinder.files, which names them in errors of its own
    return f"standard output can't be written: {cause}." if cause else None


def _can_flush() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _drop_output() -> None:
    """Give up what standard output did not take, which Python would try once more at its end."""
    with suppress(OSError, ValueError):  # nothing of the operating system is behind it
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _prepare_streams() -> None:
    """Streams that take any text: closed ones lead nowhere, and no character is refused."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, as in `rejoinder info model/ >&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            is_utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
            # names of files are bytes, and come out as they went in
            stream.reconfigure(errors="surrogateescape" if is_utf8 else "replace")


def _said(sentence: str, status: int) -> int:
    with suppress(OSError):
        sys.stderr.write(f"rejoinder: {sentence}\n")
        sys.stderr.flush()
    return status
