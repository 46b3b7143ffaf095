"""Parts of text files that can be read apart from each other, on several machines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rejoinder.errors import InputError
from rejoinder.io.files.storage import read_errors
from rejoinder.io.formats.compression import compression
from rejoinder.io.formats.text_lines import file_lines, text_lines
from rejoinder.io.formats.texts import KINDS

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class TextPart:
    """The lines of a file that begin within some of its bytes."""

    path: Path
    start: int
    """First byte of the part."""
    end: int
    """First byte after it. The last line is read to its end, which may be further on."""
    is_whole: bool
    """Whether the part is the whole file, as that of a compressed file always is."""

    @property
    def name(self) -> str:
        """The part's name in messages."""
        return str(self.path) if self.is_whole else f"{self.path} from byte {self.start:,}"


def text_parts(files: Sequence[Path], size: int) -> list[TextPart]:
    """Cuts files into parts of about `size` bytes. Compressed files can't be cut.

    Raises:
        InputError: a file can't be read, or is empty.
    """
    parts: list[TextPart] = []
    for path in files:
        with read_errors(path):
            total = path.stat().st_size
        if path.suffix in KINDS:
            raise InputError(f"{path} is a table or JSON lines; parts are read of lines of text.")
        if not total:
            raise InputError(f"{path} is empty; one sentence per line is expected.")
        if total <= size or compression(path) is not None:
            parts.append(TextPart(path, 0, total, is_whole=True))
            continue
        starts = range(0, total, size)
        parts += [TextPart(path, low, min(low + size, total), is_whole=False) for low in starts]
    return parts


def part_lines(part: TextPart) -> Iterator[str]:
    """Yields the lines of a part without their ends, as `file_lines` does.

    Raises:
        InputError: see `file_lines`. Lines are counted from the beginning of the part.
    """
    if part.is_whole:
        yield from file_lines(part.path)
        return
    with read_errors(part.path), part.path.open("rb") as file:
        low = _line_start(file, part.start)
        high = _line_start(file, part.end)
        if low < high:
            file.seek(low)
            yield from text_lines(_bytes(file, high - low), part.name)


def _line_start(file: IO[bytes], position: int) -> int:
    """Returns the first byte of the first line that begins at `position` or after it."""
    if not position:
        return 0
    file.seek(position - 1)  # a line that begins at `position` has its end before it
    file.readline()
    return file.tell()


def _bytes(file: IO[bytes], count: int) -> Iterator[bytes]:
    while count and (data := file.read(min(count, _READ_BYTES))):
        count -= len(data)
        yield data
