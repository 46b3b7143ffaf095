"""Limits of the address space (`ulimit -v`), which libraries in C and Rust do not survive."""

from rejoinder.cli.exits import BAD_INPUT
from rejoinder.errors import InputError
from rejoinder.io.files.platform import address_space_limit
from rejoinder.kernels import kernel

_LEAST = {"extract": 3_000, "train": 3_000, "reproduce": 3_000, "evaluate": 2_000, "leaks": 2_000}
"""MB of addresses that the libraries of a command reserve on two cores, by `VmPeak` of Linux; with
less they end the process or wait for ever."""
_LEAST_OF_OTHERS = 600
_SENTENCE = (
    "rejoinder: a library ended the process, most likely because the address space is limited to "
    "{limit:,.0f} MB (ulimit -v); raise the limit, or ask for less at a time.\n"
)


def prepare_for_limits(command: str) -> None:
    """Makes a limited address space end a command with a sentence and the status of bad input.

    Without a limit, nothing is done: the system then promises more memory than there is.

    Raises:
        InputError: the limit leaves too little for the libraries of the command.
    """
    limit = address_space_limit()
    if limit is None:
        return
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
