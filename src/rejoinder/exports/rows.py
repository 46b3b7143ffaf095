"""Reads rows of exports (JSON, XML and tables) one at a time, so that files may be large.

JSON is a page, an array, an object, or lines. `ijson` reads JSON that may be larger than memory;
doing without it would take a complete parser. Table columns go by their names, which may repeat.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, TypeVarTuple
from xml.etree import ElementTree

from rejoinder.errors import InputError, require
from rejoinder.exports.base import Item, Malformed, Message, time_of
from rejoinder.exports.files import Files
from rejoinder.io.formats.text_lines import separated_rows

FAULTS = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""Errors raised by a row whose types differ from its format."""
AIRBYTE = "_airbyte_data"
"""Path to a row in files from Airbyte, whatever the source."""
_JSON = (".json", ".jsonl", ".ndjson")
LOOKED_AT = 20
"""Most files that a reader checks to recognise an export."""
_LONGEST = 1 << 28
_SHAPES = 1 << 14
"""Most shapes to cache for the files of an export."""
_SECONDS = re.compile(r"-?\d+(?:\.\d*)?")
_LONE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F]..)|\\."
)
"""Matches an escaped pair of surrogates, half of one (in its group), or another escape."""

Shape = Mapping[str, Set[str]]
"""Keys of the objects in a document, by path (as for `rows`)."""


def documents(files: Files) -> list[str]:
    """Returns the names of the JSON files; a single file may have any name."""
    if len(files.names) == 1:
        return list(files.names)
    return [name for name in files.names if name.lower().removesuffix(".gz").endswith(_JSON)]


def shape(files: Files, name: str) -> Shape:
    """Returns the keys of objects in the first 64 KiB of a file; empty unless it is JSON."""
    if name not in files.shapes:
        if len(files.shapes) == _SHAPES:
            files.shapes.clear()
        files.shapes[name] = _shape(files.head(name))
    return files.shapes[name]


def _shape(head: bytes) -> Shape:
    if head.lstrip()[:1] not in (b"{", b"["):
        return {}
    keys: dict[str, set[str]] = {}
    if _is_in_lines(head):  # JSON lines, possibly plain texts to search, need no ijson
        for line in head.splitlines():
            with suppress(ValueError, RecursionError):  # such as at the end of the head
                _add_keys(keys, "", loads(line.decode("utf-8", "replace")))
        if keys:
            return keys
    require("extract", "ijson")
    import ijson

    with suppress(ijson.JSONError, UnicodeDecodeError):  # the head can end within a value
        # without use_float, an integer of more than 4,300 digits crashes ijson
        for path, event, value in ijson.parse(
            io.BytesIO(head), multiple_values=True, use_float=True
        ):
            if event == "map_key":
                keys.setdefault(path, set()).add(value)
    return keys


def _add_keys(keys: dict[str, set[str]], path: str, tree: Any) -> None:
    if isinstance(tree, dict):
        keys.setdefault(path, set()).update(tree)
        for name, value in tree.items():
            _add_keys(keys, f"{path}.{name}".lstrip("."), value)
    elif isinstance(tree, list):
        for value in tree:
            _add_keys(keys, f"{path}.item".lstrip("."), value)


def recognises(files: Files, *layouts: "Layout") -> bool:
    """Returns whether one of the first files has rows of one of the layouts."""
    return any(one.recognises(files) for one in layouts)


def first_shapes(files: Files, likely: str = "") -> Iterator[Shape]:
    """Yields the keys of the first JSON files, which show which program wrote them.

    Files with `likely` in their names come first.
    """
    names = sorted(documents(files), key=lambda name: likely not in name)
    for name in names[:LOOKED_AT]:
        yield shape(files, name)


Ts = TypeVarTuple("Ts")
Making = Callable[[], Message]
Part = Message | Callable[[], "Message | Iterator[Part]"] | list[Making]
"""A message, a function that makes a message or nested parts, or functions to sort by time."""


@dataclass(frozen=True)
class Layout:
    """Describes where a program's JSON has rows of a kind."""

    paths: Sequence[str]
    """Paths to rows; the first that leads to such rows counts."""
    keys: Sequence[set[str]]
    """A row has all keys of one of these. A key may be a path in it, such as `fields.summary`."""
    likely: str = ""
    """Text in the names of files with such rows."""
    unless: Sequence["Layout"] = ()
    """Keys; a document with one of them has no such rows."""

    def path(self, keys: Shape) -> str | None:
        """Returns the path to the rows of a document; None if it has none."""
        if any(other.path(keys) is not None for other in self.unless):
            return None

        def has(path: str, key: str) -> bool:
            within, _, last = f"{path}.{key}".lstrip(".").rpartition(".")
            return last in keys.get(within, ())

        wanted = self.keys
        found = (one for one in self.paths if any(all(has(one, k) for k in w) for w in wanted))
        return next(found, None)

    def recognises(self, files: Files) -> bool:
        """Returns whether one of the first files has such rows."""
        return any(self.path(keys) is not None for keys in first_shapes(files, self.likely))

    def places(self, files: Files) -> Iterator[tuple[str, str]]:
        """Yields the files that have such rows, and the path to them."""
        for name in documents(files):
            if (path := self.path(shape(files, name))) is not None:
                yield name, path

    def rows(self, files: Files) -> Iterator[tuple[str, int, Any]]:
        """Yields the rows of all files, after the file's name and their number there."""
        for name, path in self.places(files):
            for number, row in rows(files, name, path):
                yield name, number, row

    def names(self, files: Files, name_of: Callable[[Any], Any]) -> dict[str, str]:
        """Returns names by id, from all rows. Rows without id or name are left out."""
        found = (row for _, _, row in self.rows(files) if isinstance(row, dict))
        named = ((id_text(row.get("id")), name_of(row)) for row in found)
        return {id_: str(name) for id_, name in named if id_ and name}

    def messages(
        self, files: Files, read: Callable[[Any, *Ts], Message], *args: *Ts
    ) -> Iterator[Item]:
        """Yields the message that `read` returns for each row."""
        for name, number, row in self.rows(files):
            yield item_of(name, number, read, row, *args)

    def items(
        self, files: Files, parts: Callable[[Any, *Ts], Iterator[Part]], *args: *Ts
    ) -> Iterator[Item]:
        """Yields the messages of all rows, whose `parts` are as for `items_of`."""
        for name, number, row in self.rows(files):
            yield from items_of(name, number, parts(row, *args))


def rows(files: Files, name: str, path: str) -> Iterator[tuple[int, Any]]:
    """Yields the values at a path with their numbers; for an empty path, the document or its lines.

    A line that is not JSON gives None. A file may have several documents, or none if empty.

    Raises:
        InputError: a document other than JSON lines is not valid JSON.
    """
    if not path and _is_in_lines(files.head(name)):
        with files.open(name) as file:
            yield from enumerate(_lines(file), 1)
    else:
        yield from enumerate(_parsed(files, name, "items", path, multiple_values=True), 1)


def _is_in_lines(head: bytes) -> bool:
    line, newline, rest = head.lstrip().partition(b"\n")
    if not newline:
        return not line or (len(line) > 1 and line[:1] == b"{")
    return line.rstrip().endswith(b"}") and rest.lstrip()[:1] in (b"", b"{")


def _lines(file: IO[bytes]) -> Iterator[Any]:
    while line := file.readline(_LONGEST):
        text = line.decode("utf-8", "replace")
        if not text.strip():
            continue
        try:
            yield loads(text)
        except (ValueError, RecursionError):
            yield None


def loads(text: str) -> Any:
    r"""Returns the tree of JSON; control characters may be in strings, and halves of pairs.

    >>> loads('"\\ud83d x \\ud83d\\ude00"') == "\ufffd x \U0001f600"
    True
    """
    if "\\u" in text:
        text = _LONE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text)
    return json.loads(text, strict=False)


def id_of(row: Any, key: str = "id") -> str:
    """Returns an id as text; it may be a number, even a whole number written as a float.

    Raises:
        KeyError, TypeError: there is no id.
    """
    if value := id_text(row[key]):
        return value
    raise TypeError(f"{key!r} is {row[key]!r:.40}")


def id_text(value: Any) -> str:
    """Returns an id as text; an empty string if the value is not an id.

    >>> id_text(7.0), id_text("7"), id_text(None)
    ('7', '7', '')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id else ""


def named(names: Mapping[str, str], id_: Any) -> str:
    """Returns the name for an id, or else the id as text."""
    key = id_text(id_)
    return names.get(key, key)


def list_of(value: Any) -> list[Any]:
    """Returns the value if it is a list, and an empty list for None.

    Raises:
        TypeError: it is something else.
    """
    if value is None or isinstance(value, list):
        return value or []
    raise TypeError(f"{value!r:.40} is not a list")


def seconds(value: Any) -> float | None:
    """Returns a time as seconds since 1970, in UTC if it has no zone; None for no time.

    Raises:
        ValueError: it is not a time.

    >>> seconds("2024-03-01T10:00:00.000+0200"), seconds(1709280000), seconds("1709280000")
    (1709280000.0, 1709280000.0, 1709280000.0)
    """
    if value is None or value == "":
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or _SECONDS.fullmatch(str(value)):
        time = float(value)
        if not math.isfinite(time):
            raise ValueError(f"{value} is not a time")
        return time
    when = datetime.fromisoformat(
        re.sub(r"(?<!\s)\s+(?=[+-]|UTC)", "", value).replace("UTC", "+00:00")
    )
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def first_of(row: Mapping[str, Any] | None, *keys: str) -> str:
    """Returns the first non-empty value of the keys, as text; an empty string if there is none.

    >>> first_of({"name": "", "id": 7}, "name", "id"), first_of(None, "name")
    ('7', '')
    """
    found = ((row or {}).get(key) for key in keys)
    return next((str(value) for value in found if value), "")


def from_milliseconds(value: Any) -> float | None:
    """Converts milliseconds since 1970 to seconds; None for no time."""
    return None if value is None else value / 1000


def item_of(name: str, number: int, read: Callable[[*Ts], Message], *args: *Ts) -> Item:
    """Returns the message that `read` returns for a row, or `Malformed` if it raises."""
    try:
        return read(*args)
    except FAULTS as error:
        return no_message(name, number, error)


def items_of(name: str, number: int, parts: Iterator[Part]) -> Iterator[Item]:
    """Yields the messages in a row, and `Malformed` for each that can't be read.

    Reading goes on after a failure in a part that is a function, but not after one in `parts`.
    """
    waiting = [parts]
    while waiting:
        try:
            part = next(waiting[-1])
            made = part() if callable(part) else part
        except StopIteration:
            waiting.pop()
        except FAULTS as error:
            yield no_message(name, number, error)
        else:
            if isinstance(made, Message):
                yield made
            elif isinstance(made, list):
                yield from sorted((item_of(name, number, one) for one in made), key=time_of)
            else:
                waiting.append(made)


def no_message(name: str, number: int, error: Exception) -> Malformed:
    """Returns the `Malformed` for a row that is not a message of the program."""
    return Malformed(name, number, f"no message ({error!r})")


def json_members(files: Files, name: str, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the keys and values of an object in a JSON document.

    Raises:
        InputError: it is not JSON. Members before the error have been yielded.
        MissingExtraError: ijson is not installed.
    """
    return _parsed(files, name, "kvitems", path)


def json_parts(
    files: Files,
    name: str,
    paths: Collection[str],
    begins: Collection[str] = (),
    mended: Callable[[IO[bytes]], IO[bytes]] = lambda file: file,
) -> Iterator[tuple[str, Any]]:
    """Yields path and value for all values at `paths`, in the order of the document.

    When an object or array at one of `begins` opens, it yields that path and None. `mended` repairs
    files that are not quite JSON.
    """
    require("extract", "ijson")
    from ijson.common import ObjectBuilder

    builder, within = ObjectBuilder(), ""
    for path, event, value in _parsed(files, name, "parse", mended=mended):
        opens = event in ("start_map", "start_array")
        if within:
            builder.event(event, value)
            if path == within and event in ("end_map", "end_array"):
                yield path, builder.value
                within = ""
        elif path in paths and opens:
            builder, within = ObjectBuilder(), path
            builder.event(event, value)
        elif path in paths or (path in begins and opens):
            yield path, value


def _parsed(
    files: Files,
    name: str,
    function: str,
    *given: Any,
    mended: Callable[[IO[bytes]], IO[bytes]] = lambda file: file,
    **options: Any,
) -> Iterator[Any]:
    """Yields the results of an ijson function."""
    require("extract", "ijson")
    import ijson

    with files.open(name) as file:
        try:
            yield from getattr(ijson, function)(mended(file), *given, use_float=True, **options)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())[:100]
            raise InputError(
                f"{files.where(name)} is not complete JSON ({reason}); export it again."
            ) from None


def xml_files(files: Files, begins: bytes) -> list[str]:
    """Returns the names of XML files with certain bytes near the beginning."""
    return [
        name
        for name in files.names
        if (len(files.names) == 1 or name.lower().removesuffix(".gz").endswith(".xml"))
        and begins in files.head(name)[:4_000]
    ]


def xml_items(files: Files, name: str, tag: str) -> Iterator[tuple[int, ElementTree.Element]]:
    """Yields the elements with a tag, numbered from 1; each is emptied before the next.

    Raises:
        InputError: the file is not complete XML.
    """
    with files.open(name) as file:
        try:
            # expat itself limits the growth of entities
            events = ElementTree.iterparse(file, ("start", "end"))  # noqa: S314
            root = next(events)[1]
            found = (one for event, one in events if event == "end" and one.tag == tag)
            for number, element in enumerate(found, 1):
                yield number, element
                element.clear()
                root.clear()
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise InputError(f"{files.where(name)} is not complete XML ({error}).") from None


_SEPARATORS = (",", ";", "\t")

Row = Mapping[str, Sequence[str]]
"""The non-empty values of a row, by column."""


def tables(files: Files, wanted: set[str]) -> list[str]:
    """Returns the names of the tables that have all the columns."""
    some = [name for name in files.names if len(files.names) == 1 or name.lower().endswith(".csv")]
    return [name for name in some if wanted <= _header(files, name)[1].keys()]


def table_rows_of(files: Files, name: str) -> Iterator[tuple[int, Row]]:
    """Yields the rows of a table with the numbers of their first lines, from 2."""
    separator, columns = _header(files, name)
    with files.open(name) as file:
        pieces = iter(lambda: file.read(1 << 16), b"")
        for number, values in separated_rows(pieces, separator, files.where(name)):
            if number > 1:
                row = {
                    column: [values[place] for place in places if values[place : place + 1]]
                    for column, places in columns.items()
                }
                yield number, row


def _header(files: Files, name: str) -> tuple[str, dict[str, list[int]]]:
    """Returns the separator of a table, and the positions of its columns."""
    line = files.head(name).split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    separator = max(_SEPARATORS, key=line.count)
    columns: dict[str, list[int]] = {}
    with suppress(csv.Error):  # not a table
        for place, column in enumerate(next(csv.reader([line], delimiter=separator), [])):
            columns.setdefault(column.strip(), []).append(place)
    return separator, columns
