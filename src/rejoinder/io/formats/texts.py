"""Reads the texts of a file: its lines, the rows of a table, or a field of JSON lines.

The name tells whether a file is a table (`KINDS`), or the content if there is no name. Other
content, such as a JSON document or a mailbox, is refused. A new kind needs a function and a line in
`KINDS`.

Also splits text files into parts that several machines can read separately.
"""

import csv
import io
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

from rejoinder.errors import InputError, is_misspelt, nearest, require
from rejoinder.io.files.storage import read_errors
from rejoinder.io.formats.compression import MAGIC, compression, decompressed, head_of
from rejoinder.io.formats.text_lines import file_lines, replace_surrogates, shortened, text_lines

Text = tuple[str | None, str] | tuple[str | None, str, Mapping[str, Any]]
"""An id, None for none, and a text; with what is known about it where columns of that are named."""
KEYS = ("author", "time", "source", "thread", "answers", "link", "title")
"""What can be known about a text."""
_FIELDS = ("text", "id", "reply", *KEYS)
_PAIRS = ("question", "answer"), ("message", "reply"), ("input", "response"), ("prompt", "response")
"""Columns of a text and of a reply to it, in any case, where there is no column `text`."""
_RESERVED = (
    "since", "until", "phrase", "without", "has", "confidence", "score", "rank", "similarity",
)  # fmt: skip
"""What else conditions and hits have."""
_DELIMITERS = ",;\t|"
SQLITE = b"SQLite format 3\0"
"""How a file of SQLite begins."""
SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
_SECONDS = 10
"""How long to wait for a database that another program writes."""
_LATEST = 1e11
"""Seconds since 1970 in the year 5138; a larger time is in thousandths, or less."""


@dataclass(frozen=True)
class TextColumns:
    """Which columns, or fields, hold a text and its id."""

    text: str = ""
    """Its name; or its number from 1, for a table without a header. Empty: `text`."""
    id: str = ""
    """The same for the id. Empty: `id`, if there is one."""
    about: Mapping[str, str] = field(default_factory=dict)
    """The same for what is known about texts: `author`, `time`, `source`, others and fields of the
    user's own; and for a `reply`, which becomes a separate text."""

    def among(self, header: Iterable[str]) -> "TextColumns":
        """Returns these for a table; if none is named, those of a question and of an answer.

        >>> TextColumns().among(["Question", "Answer"])
        TextColumns(text='Question', id='', about={'reply': 'Answer'})
        """
        if self.text or "text" in header:
            return self
        names = {name.strip().lower(): name for name in header}
        for text, reply in _PAIRS:
            if text in names and reply in names:
                about = {"reply": names[reply], **self.about}
                return TextColumns(names[text], self.id, about)
        return self


def text_columns(spec: str | None) -> TextColumns:
    """Returns the columns that `text=COLUMN,id=COLUMN,author=COLUMN` names.

    >>> text_columns("text=body,author=by")
    TextColumns(text='body', id='', about={'author': 'by'})

    Raises:
        InputError: it is written otherwise.
    """
    if not spec:
        return TextColumns()
    pairs = [item.partition("=") for item in spec.split(",")]
    named = {name.strip(): value.strip() for name, _, value in pairs}
    own = [name for name in named if name not in _FIELDS]
    taken = (*_FIELDS, *_RESERVED)
    wrong = [
        name
        for name in own
        if not name.isidentifier() or name in _RESERVED or is_misspelt(name, taken)
    ]
    if len(named) < len(pairs) or wrong or not all(named.values()):
        raise InputError(
            f"`columns` {spec!r}: text=COLUMN or text=COLUMN,id=COLUMN is needed, with the names "
            f"of your columns; also {', '.join(KEYS)}, and your own fields."
            + (f" {wrong[0]!r} is none: {nearest(wrong[0], _FIELDS)}" if wrong else "")
        )
    about = {name: named[name] for name in ("reply", *KEYS, *own) if name in named}
    return TextColumns(named.get("text", ""), named.get("id", ""), about)


def read_texts(
    path: Path, columns: str | None = None, on_read: Callable[[int], None] = lambda _count: None
) -> Iterator[Text]:
    """Yields the ids and texts of a file, plain or compressed.

    `columns` is what `text_columns` reads. `on_read` is called with the bytes of each read.

    Raises:
        InputError: the file can't be read, seems to hold no texts, or does not say where they are.
        MissingExtraError: a package is missing that reads it.
    """
    if head_of(path, len(SQLITE)) == SQLITE:
        return _with_replies(_of_database(path, text_columns(columns)))
    suffix = Path(path.stem).suffix if path.suffix in MAGIC.values() else path.suffix
    return texts_of(decompressed(path, on_read), str(path), columns, suffix)


def texts_of(
    pieces: Iterable[bytes], name: str, columns: str | None = None, suffix: str = ""
) -> Iterator[Text]:
    """Yields the ids and texts of pieces of bytes, such as standard input.

    The `suffix` of a name tells tables. JSON lines are also known by their first line, and tables
    by a header with the column, where there is no suffix or `columns` says that it is a table.

    Raises:
        InputError: see `read_texts`.
    """
    chosen = text_columns(columns)
    pieces = iter(pieces)
    head = next((piece for piece in pieces if piece), b"")
    pieces = chain([head], pieces)
    kind = KINDS.get(suffix.lower()) or (_json_lines if _begins_with_object(head) else None)
    if kind is None and (columns or (not suffix and "text" in table_columns(head))):
        kind = _tsv if _likeliest(head.decode("utf-8", "replace")) == "\t" else _csv
    if kind is None:
        yield from ((None, line) for line in text_lines(pieces, name))
    else:
        yield from _with_replies(kind(pieces, name, chosen))


def _with_replies(texts: Iterable[Text]) -> Iterator[Text]:
    """Yields texts, and after each its reply. Those without an id get their number as one."""
    for number, text in enumerate(texts, 1):
        if len(text) < 3 or "reply" not in text[2]:
            yield text
            continue
        key, about = text[0] or str(number), {**text[2]}
        reply = about.pop("reply")
        yield key, text[1], about
        others = {name: fact for name, fact in about.items() if name != "author"}
        yield f"{key}/reply", reply, {**others, "answers": key}


def table_columns(head: bytes) -> list[str]:
    r"""Returns the columns of what seems to be a table: rows as wide as its first line.

    >>> table_columns(b'id,text\n1,"Hi, Ann"\n'), table_columns(b"Hi, Ann\nHow are you?\n")
    (['id', 'text'], [])
    """
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    delimiter, lines = _likeliest(text), io.StringIO(text, newline="")
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    if delimiter == "\t":
        table = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    rows: list[list[str]] = []
    with suppress(csv.Error):  # the head may end within quotes
        rows.extend(row for row in table if row)
    whole = rows if text.endswith("\n") else rows[:-1]
    is_table = len(rows) > 1 and all(1 < len(row) == len(rows[0]) for row in whole)
    return rows[0] if is_table else []


def _likeliest(text: str) -> str:
    """Returns what separates the columns of a table, by its first line."""
    return max(_DELIMITERS, key=text.partition("\n")[0].count)


def _begins_with_object(head: bytes) -> bool:
    """Returns whether the first line is a whole JSON object, and no document goes on after it."""
    line, _, rest = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    if not line.startswith(b"{") or rest.lstrip()[:1] not in (b"{", b""):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _json_lines(pieces: Iterable[bytes], name: str, columns: TextColumns) -> Iterator[Text]:
    """Yields the fields of the objects of lines; blank lines are left out."""
    chosen: TextColumns | None = None
    for number, line in enumerate(text_lines(pieces, name, any_content=True), 1):
        if line.strip():
            where = f"{name} line {number:,}"
            tree = json_object(line, where)
            chosen = chosen or columns.among(tree)
            text = _of_object(tree, chosen.text or "text", chosen.id or "id", where)
            values = {each: tree.get(column) for each, column in chosen.about.items()}
            yield (*text, _known(values, where)) if chosen.about else text


def json_object(line: str, where: str) -> Mapping[str, Any]:
    """Returns the object on a line. Control characters in strings are allowed.

    Raises:
        InputError: it is not JSON, or not an object. The message begins with `where`.
    """
    try:
        tree = json.loads(line, strict=False)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where}: {shortened(line)} is not JSON ({error}); an object on each line is needed."
        ) from None
    if not isinstance(tree, dict):
        raise InputError(
            f"{where}: a JSON {type(tree).__name__}; an object on each line is needed."
        )
    return tree


def _of_object(
    tree: Mapping[str, Any], wanted: str, key: str, where: str
) -> tuple[str | None, str]:
    text, found = tree.get(wanted), tree.get(key)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(text, str):
        fields = ", ".join(sorted(name for name in tree if isinstance(tree[name], str))) or "none"
        raise InputError(
            f"{where}: a string {wanted!r} is needed; fields with a string: {fields}. Name yours "
            "with `columns='text=FIELD'`."
        )
    if not isinstance(found, str | None):
        raise InputError(f"{where}: the id {key!r} must be a string or a whole number.")
    return None if found is None else replace_surrogates(found), replace_surrogates(text)


def _known(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Returns what is known about a text, without what is empty.

    Raises:
        InputError: a value is of another type. The message begins with `where`.
    """
    known: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, date):
            value = value.isoformat()
        of_ours = isinstance(value, bool) and name in KEYS
        if of_ours or not isinstance(value, str | int | float):
            kind = type(value).__name__
            raise InputError(f"{where}: {name} is a {kind}; a string or a number is needed.")
        known[name] = _seconds(value, where) if name == "time" else replace_surrogates(str(value))
    return known


def _seconds(value: str | float, where: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        with suppress(ValueError):
            moment = datetime.fromisoformat(str(value))
            return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InputError(
            f"{where}: time {shortened(str(value))} is neither a date, such as 2024-03-01T08:00, "
            "nor a number of seconds since 1970."
        )
    while abs(seconds) > _LATEST:
        seconds /= 1000
    return seconds


def _csv(pieces: Iterable[bytes], name: str, columns: TextColumns) -> Iterator[Text]:
    """Yields rows of a table with quotes; the delimiter is the likeliest of the first line."""
    lines = text_lines(pieces, name, any_content=True)
    first = next(lines)
    lines = (f"{line}\n" for line in chain([first], lines))
    table = csv.reader(lines, delimiter=_likeliest(first), strict=True)
    try:
        yield from _of_rows(((table.line_num, row) for row in table if row), name, columns)
    except csv.Error as error:
        raise InputError(f"{name} line {table.line_num:,}: {error}.") from None


def _tsv(pieces: Iterable[bytes], name: str, columns: TextColumns) -> Iterator[Text]:
    """Yields rows of a table whose quotes are plain characters."""
    lines = enumerate(text_lines(pieces, name, any_content=True), 1)
    return _of_rows(((number, line.split("\t")) for number, line in lines if line), name, columns)


def _of_rows(
    rows: Iterator[tuple[int, Sequence[Any]]], name: str, columns: TextColumns, unit: str = "line"
) -> Iterator[Text]:
    number, header = next(rows, (0, ()))
    columns = columns.among(header)
    if columns.text.isdigit() and columns.text not in header:
        text, key = int(columns.text) - 1, int(columns.id) - 1 if columns.id.isdigit() else None
        if named := [column for column in columns.about.values() if not column.isdigit()]:
            said = f"{named[0]!r} is a name and {columns.text} a number"
            raise InputError(f"`columns`: {said}; name all columns in the same way.")
        about = {each: int(at) - 1 for each, at in columns.about.items()}
        rows = chain([(number, header)], rows)
    else:
        text, key = _indices(header, name, columns)
        about = {each: header.index(column) for each, column in columns.about.items()}
    for number, row in rows:
        if len(row) <= max(text, key or 0, *about.values()):
            size = len(header)
            raise InputError(f"{name} line {number:,}: {len(row)} columns, not {size} as before.")
        values = {each: row[at] for each, at in about.items()}
        one = None if key is None else row[key], row[text]
        yield (*one, _known(values, f"{name} {unit} {number:,}")) if about else one


def _indices(header: Sequence[str], name: str, columns: TextColumns) -> tuple[int, int | None]:
    """Returns the indices of the text and of the id, None without one."""
    wanted, key = columns.text or "text", columns.id or "id"
    named = (wanted, columns.id, *columns.about.values())
    missing = [each for each in named if each and each not in header]
    if missing:
        shown = ", ".join(repr(column[:40]) for column in header[:20])
        raise InputError(
            f"{name} is a table without a column {missing[0]!r}; its columns are {shown}. Name "
            "yours with `columns='text=COLUMN,id=COLUMN'` (numbers from 1 if it has no header)."
        )
    return header.index(wanted), header.index(key) if key in header else None


def _parquet(pieces: Iterable[bytes], name: str, columns: TextColumns) -> Iterator[Text]:
    require("data", "polars")
    import polars as pl

    content = io.BytesIO(b"".join(pieces))
    try:
        frame = pl.read_parquet(content)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{name} can't be read as Parquet: {str(error).splitlines()[0]}") from None
    columns = columns.among(frame.columns)
    text, key = _indices(frame.columns, name, columns)
    texts = frame.to_series(text)
    if texts.dtype not in (pl.String, pl.Categorical, pl.Enum) or texts.null_count():
        raise InputError(f"{name}: the column {texts.name!r} has other values than strings.")
    named = [frame.columns[at] for at in (text, key) if at is not None]
    frame = frame.with_columns(pl.col(dict.fromkeys(named)).cast(pl.String))
    rows = enumerate(frame.iter_rows(), 1)
    yield from _of_rows(chain([(0, frame.columns)], rows), name, columns, "row")


def _of_database(path: Path, columns: TextColumns) -> Iterator[Text]:
    """Yields the rows with a text of a table or a view of SQLite, whose name `table` is."""
    about = dict(columns.about)
    tables = [name for (name,) in sqlite_rows(path, SQLITE_TABLES)]
    if (table := about.pop("table", "")) not in tables:
        raise InputError(
            f"{path} is a database. Name one of its tables ({', '.join(tables) or 'it has none'}) "
            "and columns: `columns='table=TABLE,text=COLUMN'`."
        )
    name, columns = f"{path}, {table}", replace(columns, about=about)
    header = [one for (one,) in sqlite_rows(path, "SELECT name FROM pragma_table_info(?)", table)]
    text = _indices(header, name, columns.among(header))[0]
    place, column = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in (table, header[text]))
    query = f"SELECT * FROM {place} WHERE typeof({column}) = 'text'"  # noqa: S608 -- names quoted
    rows = sqlite_rows(path, query)
    for key, *said in _of_rows(chain([(0, header)], enumerate(rows, 1)), name, columns, "row"):
        yield None if key is None else str(key), *said


def sqlite_rows(path: Path, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a query to an SQLite file, which is opened to read alone.

    Raises:
        InputError: it can't be read.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_SECONDS)) as database:
            yield from database.execute(query, values)
    except sqlite3.Error as error:
        raise InputError(f"the database {path} can't be read: {error}.") from None


KINDS: Mapping[str, Callable[[Iterable[bytes], str, TextColumns], Iterator[Text]]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}
"""Readers of files that are not lines of text, by the end of the name (before a compression's)."""


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
