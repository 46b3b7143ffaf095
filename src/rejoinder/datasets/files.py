"""Finding the files of data sets and cutting them into lines, exactly as they were meant."""

from collections.abc import Sequence
from pathlib import Path

from rejoinder.datasets.streams import OPENERS, read_packed
from rejoinder.errors import DataMissingError, InputError
from rejoinder.files import hashed

ROOTS = ("senteval", "data", "")
"""Where SentEval's folders `downstream` and `probing` may lie below a folder of data sets."""


def senteval_places(inner: str) -> tuple[str, ...]:
    """Where a folder of SentEval may be, below a folder of data sets; `inner` has its full path.

    >>> senteval_places("downstream/MR")
    ('senteval/downstream/MR', 'data/downstream/MR', 'downstream/MR', 'MR')
    """
    places = [f"{root}/{inner}".lstrip("/") for root in ROOTS]
    return (*places, inner.split("/", 1)[1])


def find_folder(data: Path, places: Sequence[str], name: str, what: str) -> Path:
    """The first of the `places` below `data` that holds the file `name`, compressed or not.

    Raises:
        InputError: none does; the message names the data set and where it was looked for.
    """
    for place in places:
        if _present(data / place / name) is not None:
            return data / place
    looked = ", ".join(str(data / place / name) for place in places)
    raise DataMissingError(
        f"{what} is not there; looked for {looked}. `rejoinder data list` says more."
    )


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of the same file compressed as `.zst`.

    A name that ends in `.zst`, `.gz`, `.bz2` or `.xz` says that the file is compressed.

    Raises:
        InputError: it is not there, can't be read or is damaged.
    """
    present = _present(path)
    if present is None:
        raise DataMissingError(f"{path} is not there, and no {path.name}.zst either.")
    if present.suffix in OPENERS:
        return read_packed(present, present.suffix)
    return content_of(present)


def content_of(path: Path) -> bytes:
    """The bytes of a file as they are.

    Raises:
        InputError: it can't be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None


def text_lines(
    content: bytes, path: Path, encoding: str = "utf-8", *, first_line: int = 1
) -> list[str]:
    r"""The lines of a file: ended by \n alone, a \r before it and a BOM at the start cut.

    Byte 0x85, form feeds and the like are text: `str.splitlines` would cut there. `first_line` is
    the number of the first line, for messages: not 1 for a later piece of a file.

    Raises:
        InputError: the bytes are not of the encoding; the message names the line.
    """
    lines = []
    rows = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if rows and not rows[-1]:
        rows.pop()
    for number, row in enumerate(rows, first_line):
        try:
            lines.append(row.removesuffix(b"\r").decode(encoding))
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} line {number}: byte {error.object[error.start]:#04x} is no {encoding}."
            ) from None
    return lines


def tab_separated(line: str, columns: Sequence[int], path: Path, number: int) -> list[str]:
    """The fields of a line.

    Raises:
        InputError: there are fewer or more of them than allowed.
    """
    fields = line.split("\t")
    if len(fields) not in columns:
        allowed = " or ".join(map(str, columns))
        raise InputError(
            f"{path} line {number}: {len(fields)} columns between tabs; {allowed} are needed."
        )
    return fields


def number_of(text: str, low: float, high: float, path: Path, line: int) -> float:
    """A score within [low, high].

    Raises:
        InputError: it is none.
    """
    try:
        value = float("nan" if "_" in text else text)  # Python reads 1_0 as 10
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InputError(
            f"{path} line {line}: score {text[:20]!r}; a number from {low:g} to {high:g} is needed."
        )
    return value


def refuse_repeats(ids: Sequence[str], lines: Sequence[int], path: Path) -> None:
    """Refuse a file that uses an id twice: predictions are compared by these ids.

    Args:
        ids: (N,) of the rows.
        lines: (N,) where each stands.
        path: the file.

    Raises:
        InputError: an id is repeated; the message names it and both lines.
    """
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for name, line in zip(ids, lines, strict=True):
        if name in first:
            raise InputError(
                f"{path} line {line}: the id {name[:40]!r} is that of line {first[name]} too; "
                "every row needs an id of its own. Remove one of the two, or get the file again."
            )
        first[name] = line


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
        InputError: it can't be read.
    """
    try:
        return hashed.sha256_of_file(path)
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None


def refuse_empty(rows: int, path: Path) -> None:
    """Refuse a file without rows.

    Raises:
        InputError: `rows` is 0.
    """
    if not rows:
        raise InputError(f"{path} has no rows; it is empty or cut. Get it again.")


def is_file(path: Path) -> bool:
    """Whether a file is there.

    Raises:
        InputError: its folder can't be looked into.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None


def _present(path: Path) -> Path | None:
    if is_file(path):
        return path
    packed = path.with_name(path.name + ".zst")
    return packed if is_file(packed) else None
