"""Blocks of whole lines, cut from pieces of any size."""

from collections.abc import Iterable, Iterator
from typing import Any


def line_blocks(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    r"""Joins pieces and cuts them after line ends into blocks of about `size` bytes.

    >>> list(line_blocks([b"ab\nc", b"d\n", b"efgh\ni"], 3))
    [b'ab\n', b'cd\n', b'efgh\n', b'i']
    """
    memory = BlockMemory()
    for block in reused_line_blocks(pieces, size, memory):
        yield bytes(block)
        memory.give_back(block)


class BlockMemory:
    """Memory of blocks that is used again.

    The system clears fresh memory, which takes as long as decompressing into it.
    """

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        """Returns memory of any size that nothing else uses."""
        return self._free.pop() if self._free else bytearray()

    def give_back(self, block: memoryview) -> None:
        """Takes back the memory of a block that nothing uses any more. Any thread may call this."""
        memory: Any = block.obj
        block.release()
        self._free.append(memory)


def reused_line_blocks(
    pieces: Iterable[bytes], size: int, memory: BlockMemory
) -> Iterator[memoryview]:
    """Yields what `line_blocks` does, in memory that the caller gives back to `memory`."""
    held, length = memory.take(), 0
    for piece in pieces:
        _write(held, length, piece)
        length += len(piece)
        if length >= size and (cut := piece.rfind(b"\n") + 1):
            rest = piece[cut:]
            yield memoryview(held)[: length - len(rest)]
            held, length = memory.take(), len(rest)
            _write(held, 0, rest)
    if length:
        yield memoryview(held)[:length]


def _write(memory: bytearray, start: int, piece: bytes) -> None:
    """Writes at `start`, in memory that grows where it is too small."""
    end = start + len(piece)
    if end > len(memory):
        memory.extend(bytes(end - len(memory)))
    memory[start:end] = piece
