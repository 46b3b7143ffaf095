"""Limits of addresses (`ulimit -v`) and threads (`ulimit -u`), which libraries do not survive."""

import threading
from contextlib import ExitStack

from rejoinder.cli.exits import BAD_INPUT
from rejoinder.errors import InputError
from rejoinder.io.files.platform import address_space_limit, usable_cores
from rejoinder.kernels import kernel

_LEAST = {"extract": 3_000, "train": 3_000, "reproduce": 3_000, "evaluate": 2_000, "leaks": 2_000}
"""MB of addresses that the libraries of a command reserve on two cores, by `VmPeak` of Linux; with
less they end the process or wait for ever."""
_LEAST_OF_OTHERS = 600
_WITHOUT_POOLS = (
    "encode", "export", "index", "info", "models", "rank", "rejoinder", "search", "serve",
    "similarity",
)  # fmt: skip
"""Commands without Polars, which panics where its pool of threads can't be started."""
_SENTENCE = (
    "rejoinder: a library ended the process, most likely because the address space is limited to "
    "{limit:,.0f} MB (ulimit -v); raise the limit, or ask for less at a time.\n"
)


def prepare_for_limits(command: str) -> None:
    """Makes limits of the process end a command with a sentence and the status of bad input.

    Without a limit of addresses, the system promises more memory than there is.

    Raises:
        InputError: a limit leaves too little for the libraries of the command.
    """
    limit = address_space_limit()
    if limit is not None:
        _prepare_for_few_addresses(command, limit)
    elif command not in _WITHOUT_POOLS:
        _refuse_few_threads(command, 8 + 4 * usable_cores())


def _prepare_for_few_addresses(command: str, limit: int) -> None:
    least = _LEAST.get(command, _LEAST_OF_OTHERS)
    if limit < least * 1_000_000:
        raise InputError(
            f"the address space is limited to {limit / 1e6:,.0f} MB (ulimit -v), and the libraries "
            f"of {command} reserve {least:,} MB, though they use less memory; raise the limit, or "
            "limit the memory itself (MemoryMax of systemd, --memory of containers)."
        )
    native = kernel("cli._ending")
    if native is not None:
        native.tell(_SENTENCE.format(limit=limit / 1e6).encode(), BAD_INPUT)


def _refuse_few_threads(command: str, needed: int) -> None:
    """Starts threads to see whether the libraries will be able to; takes a millisecond."""
    done = threading.Event()
    with ExitStack() as stack:
        stack.callback(done.set)
        for _ in range(needed):
            try:
                threading.Thread(target=done.wait, daemon=True).start()
            except RuntimeError:
                raise InputError(
                    f"{needed} threads can't be started, and the libraries of {command} may need "
                    "them; raise the limit of processes (ulimit -u, or that of the container)."
                ) from None
