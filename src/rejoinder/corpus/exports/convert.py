"""An export as comments, in a temporary file of JSON lines that every engine reads."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from rejoinder.corpus.exports import FORMATS, format_of_export
from rejoinder.corpus.exports.adjacent import Keys, adjacent
from rejoinder.corpus.exports.base import ExportFormat, Message
from rejoinder.corpus.exports.files import opened
from rejoinder.corpus.exports.masks import mask_pii
from rejoinder.corpus.exports.shared_words import SharedWords
from rejoinder.corpus.manifest import ExportCounts, Malformed, WordsFile
from rejoinder.corpus.options import FIELDS, Columns, ExtractProgress
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.files.places import Place

Export = tuple[Path, ExportFormat]
"""An export and its format."""
COLUMNS = Columns({name: name for name in FIELDS}, given=True)
"""The columns of the written files."""
_SHOWN = 20
_MIN_AUTHORS = 5
_WORDS = "words.txt"


@dataclass(frozen=True)
class ExportOptions:
    """What becomes of the messages of exports."""

    pair: str | None = None
    """`links`: a message answers what the export says; `adjacent`: or else the message before it by
    another author. None: `adjacent` for exports that do not say what messages answer."""
    within: float = 600.0
    """Most seconds between a message outside threads and the one before it that it answers."""
    include_private: bool = False
    mask: str | None = None
    """`pii`: see `masks`. None masks nothing."""
    min_authors: int | None = None
    """Authors that must have used a word before a model may know it. None: 5, and 1 for formats
    that everybody can read."""

    def __post_init__(self) -> None:
        if self.pair not in (None, "links", "adjacent"):
            raise InputError(f"--pair {self.pair!r}: links or adjacent.")
        if self.mask not in (None, "pii"):
            raise InputError(f"--mask {self.mask!r}: pii.")

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that decide the content of the pairs."""
        return {
            "pair": self.pair,
            "within": self.within,
            "include_private": self.include_private,
            "mask": self.mask,
            "min_authors": self.min_authors,
        }


class Comment(msgspec.Struct):
    """A row of the written files."""

    id: str
    parent: str | None
    thread: str | None
    author: str
    source: str
    created: float | None
    text: str


@dataclass(frozen=True)
class Converted:
    """An export, and the file of its messages."""

    path: Path
    """The export."""
    bytes: int
    file: Path
    counts: ExportCounts
    malformed: list[Malformed]
    """The first malformed messages, at most 20."""
    options: ExportOptions
    words: list[str] | None
    """The words that enough authors used; None where one author is enough."""


def exports_among(paths: Sequence[Place], name: str | None, *, has_columns: bool) -> list[Export]:
    """Returns the exports among paths, each with its format; none where all are dumps.

    `name` is what `--format` says. Without it, content decides, unless the columns are given.

    Raises:
        InputError: `name` is unknown or can't be, or some are exports and others are not.
    """
    if name is not None:
        if has_columns:
            raise InputError("--columns is for tables and JSON lines, which have no --format.")
        return [(_on_this_machine(path, name), FORMATS[name]) for path in paths]
    if has_columns:
        return []
    here = [path for path in paths if isinstance(path, Path) and path.exists()]
    found = [(path, export) for path in here if (export := format_of_export(path))]
    if found and len(found) < len(paths):
        others = set(map(str, paths)) - {str(path) for path, _ in found}
        raise InputError(
            f"{found[0][0]} is an export of {found[0][1].title}, and {min(others)} is none; "
            "extract them one by one."
        )
    return found


def _on_this_machine(path: Place, name: str) -> Path:
    if not isinstance(path, Path):
        raise InputError(f"{path} is an address, which --format {name} does not take; copy it.")
    if not path.exists():
        raise InputError(f"{path} is not a file or folder.")
    return path


def convert_all(
    exports: Sequence[Export],
    options: ExportOptions,
    folder: Path,
    progress: ExtractProgress,
    *,
    strict: bool,
) -> list[Converted]:
    """Writes the messages of exports to files in `folder`, see `convert`."""
    converted: list[Converted] = []
    before = 0

    def shown(done: int) -> None:
        progress("messages", before + done, None)

    for number, (path, export) in enumerate(exports):
        file = folder / f"export-{number}.jsonl"
        converted.append(convert(path, export, options, file, shown, strict=strict))
        before += converted[-1].counts.messages
    return converted


def convert(
    path: Path,
    export: ExportFormat,
    options: ExportOptions,
    file: Path,
    progress: Callable[[int], None],
    *,
    strict: bool = False,
) -> Converted:
    """Writes the messages of an export that count to a file; the others are counted by reason.

    `progress` is called with the number of messages read.

    Raises:
        InputError: a file of the export can't be read, or with `strict`, a message.
        MissingExtraError: a package that reads the format is not installed.
    """
    seen: Counter[str] = Counter()
    malformed: list[Malformed] = []
    encoder = msgspec.json.Encoder()
    keys = Keys()
    least = options.min_authors or (1 if export.is_public else _MIN_AUTHORS)
    words = SharedWords(least) if least > 1 else None
    with opened(path) as files, file.open("wb") as out:
        size = files.size
        for item in export.read(files):
            if isinstance(item, Malformed):
                if strict:
                    raise InputError(
                        f"{path}: {item.file} message {item.line}: {item.problem}. Without "
                        "--strict such messages are counted and skipped."
                    )
                seen["malformed"] += 1
                malformed += [item][: _SHOWN - len(malformed)]
                continue
            seen["messages"] += 1
            if not seen["messages"] % 1_000:
                progress(seen["messages"])
            if reason := _why_not(item, options):
                seen[reason] += 1
                continue
            seen["linked"] += item.parent is not None
            keys.add(item)
            text = mask_pii(item.text) if options.mask else item.text
            if words is not None:
                words.add(item.author, text)
            out.write(encoder.encode(_comment(item, text)) + b"\n")
    has_links = export.knows_replies and seen["linked"]
    pair = options.pair or ("links" if has_links else "adjacent")
    paired = _pair_adjacent(file, keys.frame(), options.within) if pair == "adjacent" else 0
    counts = ExportCounts(
        format=export.name,
        messages=seen["messages"],
        malformed=seen["malformed"],
        dropped={reason: seen[reason] for reason in REASONS},
        linked=seen["linked"],
        adjacent=paired,
    )
    shared = None if words is None else words.words()
    return Converted(path, size, file, counts, malformed, options, shared)


def write_words(converted: Sequence[Converted], folder: Place) -> WordsFile | None:
    """Writes the words that a model of the exports may know, if they don't allow all."""
    lists = [one.words for one in converted if one.words is not None]
    if not lists:
        return None
    words = sorted(set().union(*lists))
    content = "".join(f"{word}\n" for word in words).encode()
    path = folder / _WORDS
    if isinstance(path, Path):
        path.write_bytes(content)
    else:
        path.put(content)
    return WordsFile(_WORDS, len(words), sha256_of(content))


def kept_messages(path: Path, export: ExportFormat) -> Iterator[Message]:
    """Yields the messages of an export that extraction keeps; malformed ones are left out.

    Raises:
        InputError: a file of the export can't be read.
    """
    options = ExportOptions()
    with opened(path) as files:
        for item in export.read(files):
            if isinstance(item, Message) and not _why_not(item, options):
                yield item


REASONS = {
    "system": "written by the program itself",
    "bot": "written by a bot",
    "private": "internal notes, direct messages; --include-private keeps them",
    "empty": "no text: a picture, a file, a deleted message",
}
"""Why a message is left out, in the order in which that is tested."""


def _why_not(message: Message, options: ExportOptions) -> str | None:
    if message.is_system:
        return "system"
    if message.is_bot:
        return "bot"
    if message.is_private and not options.include_private:
        return "private"
    return None if message.text.strip() else "empty"


def _comment(message: Message, text: str) -> Comment:
    return Comment(
        id=message.id,
        parent=message.parent,
        thread=message.thread,
        author=message.author,
        source=message.source,
        created=message.time,
        text=text,
    )


def _pair_adjacent(file: Path, keys: pl.DataFrame, within: float) -> int:
    """Writes what messages answer into the file of their comments. Returns for how many."""
    found = adjacent(keys, within)
    encoder, decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Comment)
    changed = file.with_suffix(".paired")
    with file.open("rb") as lines, changed.open("wb") as out:
        for line, (parent, thread) in zip(lines, found.iter_rows(), strict=True):
            comment = decoder.decode(line)
            if thread is not None:
                comment.parent, comment.thread = parent, thread
            out.write(encoder.encode(comment) + b"\n")
    changed.replace(file)
    return len(found) - found.get_column("parent").null_count()
