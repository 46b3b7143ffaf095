"""Blocks of whole lines, cut from pieces of any size."""

from collections.abc import Callable, Iterable, Iterator

LONGEST_LINE = 16 << 20
"""Most bytes of a line of text, up to a piece more. A few KB of bz2 can hold a line of 4 GB."""
_KEPT = 1_000
"""Bytes that stay of a longer line, which no reader takes for a whole line."""

OnLong = Callable[[int], None]
"""Called with the number of lines that come before a line that is too long in its block."""


def line_blocks(
    pieces: Iterable[bytes],
    size: int,
    on_long: OnLong = lambda _before: None,
    longest: int = LONGEST_LINE,
) -> Iterator[bytes]:
    r"""Joins pieces and cuts them after line ends into blocks of about `size` bytes.

    Of a line of more than `longest` bytes the first are left, unless `on_long` raises an error.

    >>> list(line_blocks([b"ab\nc", b"d\n", b"efgh\ni"], 3))
    [b'ab\n', b'cd\n', b'efgh\n', b'i']
    """
    held: list[bytes] = []
    length = last = 0  # bytes of what is held, and of its last line, whose end has not come yet
    skips = False
    for piece in pieces:
        if skips:
            piece = piece[piece.find(b"\n") :] if b"\n" in piece else b""
            skips = not piece
        cut = piece.rfind(b"\n") + 1
        held.append(piece)
        length += len(piece)
        last = len(piece) - cut if cut else last + len(piece)
        if length >= size and cut:
            block = b"".join([*held[:-1], piece[:cut]])
            held, length = [piece[cut:]], last
            yield block
        elif last > longest:
            block = b"".join(held)
            on_long(block.count(b"\n", 0, length - last))
            held = [block[: length - last + _KEPT]]
            length, last, skips = len(held[0]), _KEPT, True
    if length:
        yield b"".join(held)
