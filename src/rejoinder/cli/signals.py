"""Signals that end a command: they raise in the main thread, whichever thread the system gave."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from rejoinder.io.files.platform import TERMINATION_SIGNALS

_CAN_WAKE = hasattr(signal, "pthread_kill") and hasattr(signal, "SIGURG")
_PATIENCE = 0.05
"""Seconds until the main thread is woken, and is woken again."""
_END = b"\0"
"""What ends the watcher; a pipe that is closed may still be open in a forked process."""


@contextmanager
def signals_as_exits() -> Iterator[None]:
    """Makes signals that end the process raise `SystemExit`, so that `finally` blocks clean up.

    A command may replace these handlers with its own. Outside the main thread, where no handler
    runs, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # `nohup` ignores SIGHUP, and commands that it runs must, too
    replaced = [n for n in TERMINATION_SIGNALS if signal.getsignal(n) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _exit)
    try:
        with _main_thread_woken():
            yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def _main_thread_woken() -> Iterator[None]:
    """Wakes the main thread for signals that the system gave to another one.

    While the main thread starts a thread, as NumPy's BLAS does on import, all signals are blocked
    in it, and the system may give one to another thread. Python's handlers run in the main thread
    alone, which knows nothing of it and may then wait for its input for ever.
    """
    if not _CAN_WAKE:
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    woken = threading.Event()
    # a signal that is ignored by default, and ends a system call where it has a handler
    handler = signal.signal(signal.SIGURG, lambda *_: woken.set())
    given = (threading.get_ident(), reading, woken)
    watcher = threading.Thread(target=_wake, args=given, name="signals", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        woken.set()
        os.write(writing, _END)
        watcher.join()
        os.close(writing)
        os.close(reading)
        signal.signal(signal.SIGURG, handler)


def _wake(main: int, reading: int, woken: threading.Event) -> None:
    """Wakes the main thread after each signal whose number comes from the pipe, until the end."""
    while _END not in (numbers := os.read(reading, 64)):
        if set(numbers) == {signal.SIGURG}:
            continue
        woken.clear()
        while not woken.wait(_PATIENCE):  # the main thread may be just about to wait
            signal.pthread_kill(main, signal.SIGURG)
