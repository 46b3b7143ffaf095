"""An export as comments, in a temporary file of JSON lines that every engine reads."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rejoinder.corpus.exports import FORMATS, format_of_export, warn_of_others
from rejoinder.corpus.exports.base import ExportFormat, Message
from rejoinder.corpus.exports.conversations import Conversations, Position
from rejoinder.corpus.exports.files import opened
from rejoinder.corpus.exports.options import REASONS, ExportOptions, Texts, why_not
from rejoinder.corpus.exports.shared_words import SharedWords
from rejoinder.corpus.exports.threads import Threads
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


class Comment(msgspec.Struct, omit_defaults=True):
    """A row of the written files: what engines read, and where the message stands."""

    id: str
    parent: str | None
    thread: str | None
    author: str
    source: str
    created: float | None
    text: str
    before: str | None = None
    """Id of the message that it answers or, if that is unknown, of the one before it."""
    is_answer: bool = False
    """Whether the message before it is by another author."""
    conversation: str | None = None
    """Its thread, or the first message since the last pause."""


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
    threads_are_apart: bool
    """Whether no message answers one of another thread."""


def exports_among(paths: Sequence[Place], name: str | None, *, has_columns: bool) -> list[Export]:
    """Returns the exports among paths, each with its format; none where all are dumps.

    `name` is what `--format` says. Without it, content decides, unless the columns are given.

    Raises:
        InputError: `name` is unknown or can't be, or some are exports and others are not.
    """
    if name is not None:
        if has_columns:
            raise InputError("`columns` is for tables and JSON lines, which have no `format`.")
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
        raise InputError(f"{path} is an address, which `format={name!r}` does not take; copy it.")
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
    texts = Texts(options)
    converted: list[Converted] = []
    before = 0

    def shown(done: int) -> None:
        progress("messages", before + done, None)

    for number, (path, export) in enumerate(exports):
        file = folder / f"export-{number}.jsonl"
        converted.append(convert(path, export, options, texts, file, shown, strict=strict))
        before += converted[-1].counts.messages
    return converted


def convert(
    path: Path,
    export: ExportFormat,
    options: ExportOptions,
    texts: Texts,
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
    conversations: Conversations | None = Conversations(options.within)
    threads = Threads() if _way(options, export, {"linked": 1}) == "links" else None
    least = options.min_authors or (1 if export.is_public else _MIN_AUTHORS)
    words = SharedWords(least, file.with_suffix(".words")) if least > 1 else None
    with opened(path) as files, file.open("wb") as out:
        size = files.size
        warn_of_others(files, export)
        for item in export.read(files):
            if isinstance(item, Malformed):
                if strict:
                    raise InputError(
                        f"{path}: {item.file} message {item.line}: {item.problem}. Without "
                        "`strict=True` such messages are counted and skipped."
                    )
                seen["malformed"] += 1
                malformed += [item][: _SHOWN - len(malformed)]
                continue
            seen["messages"] += 1
            if not seen["messages"] % 1_000:
                progress(seen["messages"])
            if reason := why_not(item, options):
                seen[reason] += 1
                continue
            if not options.context and _way(options, export, seen) == "links":
                conversations = None  # nothing asks where messages stand
            position = conversations.place(item) if conversations else None
            text = texts.masked(item.text)
            if reason := texts.why_not(text):
                seen[reason] += 1
                continue
            seen["linked"] += item.parent is not None
            if words is not None:
                words.add(item.author, text)
            comment = _comment(item, text, position)
            if threads is not None:
                comment.thread = threads.name(item.id, item.parent, item.thread)
            out.write(encoder.encode(comment) + b"\n")
    paired, conversations = 0, None
    if _way(options, export, seen) == "adjacent":
        threads = Threads() if seen["linked"] else None
        paired = _pair_adjacent(file, threads)
    apart, threads = threads is None or threads.are_apart, None
    counts = ExportCounts(
        format=export.name,
        messages=seen["messages"],
        malformed=seen["malformed"],
        dropped={reason: seen[reason] for reason in REASONS},
        linked=seen["linked"],
        adjacent=paired,
    )
    shared = None if words is None else words.words()
    return Converted(path, size, file, counts, malformed, options, shared, apart)


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


def _way(options: ExportOptions, export: ExportFormat, seen: Mapping[str, int]) -> str:
    """Returns how messages are paired, by the links that were seen so far."""
    has_links = export.knows_replies and seen["linked"]
    return options.pair or ("links" if has_links else "adjacent")


def _comment(message: Message, text: str, position: Position | None) -> Comment:
    row = Comment(
        id=message.id,
        parent=message.parent,
        thread=message.thread,
        author=message.author,
        source=message.source,
        created=message.time,
        text=text,
    )
    if position is not None:
        row.before = message.parent or position.before
        row.is_answer, row.conversation = position.is_answer, position.thread
    return row


def _pair_adjacent(file: Path, threads: Threads | None) -> int:
    """Writes what messages answer into the file of their comments. Returns for how many.

    `threads` names those of messages with links, if there are any.
    """
    encoder, decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Comment)
    changed = file.with_suffix(".paired")
    paired = 0
    with file.open("rb") as lines, changed.open("wb") as out:
        for line in lines:
            comment = decoder.decode(line)
            if comment.parent is None and comment.is_answer:
                comment.parent = comment.before
                paired += 1
            if threads is None:
                comment.thread = comment.conversation
            else:
                comment.thread = threads.name(comment.id, comment.before, comment.thread)
            out.write(encoder.encode(comment) + b"\n")
    changed.replace(file)
    return paired
