"""Blocks of whole lines, cut from pieces of any size."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

LONGEST_LINE = 16 << 20
"""Most bytes of a line of text, up to a piece more. A few KB of bz2 can hold a line of 4 GB."""
_KEPT = 1_000
"""Bytes that stay of a longer line, which no reader takes for a whole line."""

OnLong = Callable[[int], None]
"""Called with the number of lines that come before a line that is too long in its block."""


def line_blocks(
    pieces: Iterable[bytes], size: int, on_long: OnLong, longest: int = LONGEST_LINE
) -> Iterator[bytes]:
    r"""Joins pieces and cuts them after line ends into blocks of about `size` bytes.

    Of a line of more than `longest` bytes the first are left, unless `on_long` raises an error.

    >>> list(line_blocks([b"ab\nc", b"d\n", b"efgh\ni"], 3, print))
    [b'ab\n', b'cd\n', b'efgh\n', b'i']
    """
    memory = BlockMemory()
    for block in reused_line_blocks(pieces, size, memory, on_long, longest):
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
        """Takes back the memory of a block that is no longer used. Any thread may call this."""
        memory: Any = block.obj
        block.release()
        self._free.append(memory)


def reused_line_blocks(
    pieces: Iterable[bytes],
    size: int,
    memory: BlockMemory,
    on_long: OnLong = lambda _before: None,
    longest: int = LONGEST_LINE,
) -> Iterator[memoryview]:
    """Yields what `line_blocks` does, in memory that the caller gives back to `memory`."""
    held, length = memory.take(), 0
    begin, skips = 0, False  # of the last line, whose end has not come yet
    for piece in pieces:
        if skips:
            piece = piece[piece.find(b"\n") :] if b"\n" in piece else b""
            skips = not piece
        _write(held, length, piece)
        cut = piece.rfind(b"\n") + 1
        begin = length + cut if cut else begin
        length += len(piece)
        if length >= size and cut:
            rest = piece[cut:]
            yield memoryview(held)[: length - len(rest)]
            held, length, begin = memory.take(), len(rest), 0
            _write(held, 0, rest)
        elif length - begin > longest:
            on_long(held.count(b"\n", 0, begin))
            length, skips = begin + _KEPT, True
    if length:
        yield memoryview(held)[:length]


def _write(memory: bytearray, start: int, piece: bytes) -> None:
    """Writes at `start`, in memory that grows where it is too small."""
    end = start + len(piece)
    if end > len(memory):
        memory.extend(bytes(end - len(memory)))
    memory[start:end] = piece
