"""Prepares conversations for the page that explores them, in a folder that stays.

The folder has the index, with its model if that was fine-tuned, what was found in it, and
`explore.json`, which says what it was made from. Nothing is done again as long as that is the same.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from rejoinder.conversations.answers import linked, with_answers
from rejoinder.conversations.asked import asked_again
from rejoinder.conversations.collection import Collection, messages_of_pairs, open_collection
from rejoinder.conversations.replies import keep, past_replies, read_kept
from rejoinder.conversations.suggest import Suggestions
from rejoinder.conversations.topics import FoundTopics, Topics, cluster
from rejoinder.corpus.manifest import FILE as PAIRS_FILE
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.texts import Entry, may_be_export, messages_of, refuse_empty
from rejoinder.errors import InputError, RejoinderError
from rejoinder.exports.base import ExportFormat
from rejoinder.exports.files import Files
from rejoinder.index.indexing import Index
from rejoinder.index.manifest import FILE as INDEX_FILE
from rejoinder.index.manifest import read_manifest
from rejoinder.inference.sentence_stream import EncodingProgress, Source
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.hashed import (
    Record,
    read_sealed,
    sealed_text,
    sha256_of,
    sha256_of_file,
    sha256_of_folder,
)
from rejoinder.io.files.storage import first_names, scratch_folder
from rejoinder.links.linker import Linker
from rejoinder.models.find import DEFAULT, find_model, shipped_models
from rejoinder.models.folder import read_model

FILE, INDEX, ASKED = "explore.json", "index", "asked.json"
TOPICS, POINTS, FACTS = "topics.json", "points.bin", "facts.json"
SUFFIX = ".explore"
"""What the folder is called, after the name of what it was made from."""
_FORMAT_VERSION = 8
_REMEDY = "Remove the folder."


class _Made(Record, frozen=True):
    """What a folder was made from."""

    stamp: str
    """SHA-256 of the names, sizes and times of the files that were read."""
    content: str
    """That of their content."""
    model: str
    """That of the model's weights."""
    named: bool
    """Whether the model was named, not chosen by the language."""
    columns: str | None
    finetuned: bool


class Facts(Record, frozen=True):
    """Facts about the messages that were explored."""

    ids: list[str]
    suggests: bool
    """Whether some answer others, whose replies can be suggested."""
    read: str = ""
    """What was read, in words; empty unless it was an export."""


@dataclass(frozen=True)
class Prepared:
    """Conversations that are ready to explore."""

    folder: Path
    """What was found in them, and the index unless that was there before."""
    index: Path
    fresh: bool
    """Whether they were prepared just now."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Messages that were just left out, by the reason (`Index.left_out`)."""
    better: bool = True
    """Whether fine-tuning, if it was asked for, made the model better. If not, it was not used."""


@dataclass(frozen=True)
class Watch:
    """What is called as the work goes on."""

    stage: ExtractProgress = lambda _stage, _done, _all: None
    """Called with a stage, how much of it is done, and the total or None if it is unknown."""
    indexing: EncodingProgress = lambda _done, _read, _all: None


@dataclass(frozen=True)
class _Work:
    """What is explored, and how."""

    source: Path
    model: str | Path | None
    columns: str | None
    finetune: bool
    minutes: float
    threads: int | None
    watch: Watch

    @property
    def is_index(self) -> bool:
        return (self.source / INDEX_FILE).is_file()

    @property
    def read(self) -> Path:
        """The file or folder whose content is compared."""
        return self.source / INDEX_FILE if self.is_index else self.source


def explore(
    source: str | Path,
    *,
    out: str | Path | None = None,
    model: str | Path | None = None,
    columns: str | None = None,
    finetune: bool = False,
    minutes: float = 5.0,
    threads: int | None = None,
    watch: Watch = Watch(),
) -> Prepared:
    """Prepares conversations to be explored, unless that was done before.

    Args:
        source: An export, a file of texts, a folder of pairs or an index.
        out: Folder of the prepared conversations. Default: next to `source`, by its name.
        model: Model that encodes; default: that for the language, as in `Index.create`. An index
            has one.
        columns: Of a table, as `Index.create` takes them.
        finetune: Go on training the model on the pairs of the conversations first.
        minutes: About how long to do so.
        threads: CPU threads of it; by default all.
        watch: Told about the work.

    Raises:
        RejoinderError: `source` can't be read, or `out` can't be written.
    """
    work = _Work(Path(source), model, columns, finetune, minutes, threads, watch)
    if not work.source.exists():
        raise InputError(f"{source} does not exist; name an export, a file, pairs or an index.")
    folder = work.source.with_name(work.source.name + SUFFIX) if out is None else Path(out)
    index = work.source if work.is_index else folder / INDEX
    wanted, known = _wanted(work), _read(folder)
    if known is not None and _is_made(folder, known, wanted, work.read):
        return Prepared(folder, index, fresh=False)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / FILE).is_file():
        raise InputError(
            f"{folder} has other files, and what is explored would replace it; name another folder "
            "(`out`)."
        )
    if finetune and model is None:
        chosen = Source(work.source, columns).model()
        work = dataclasses.replace(work, model=chosen)
    inputs = [work.source, *([] if model is None else [model])]
    with new_folder(folder, overwrite=True, inputs=inputs) as new:
        read = _Read()
        better = work.is_index or _index(work, new / INDEX, read)
        _find(work.source if work.is_index else new / INDEX, new, work, read)
        if work.is_index or model is not None:
            used = wanted.model
        elif work.model is not None:
            used = _sha256_of(work.model)
        else:
            used = read_manifest(new / INDEX).model.sha256
        made = replace(wanted, content=_content_of(work.read), model=used)
        write_text(new / FILE, sealed_text(made, _FORMAT_VERSION))
    return Prepared(folder, index, fresh=True, left_out=read.left_out, better=better)


def _wanted(work: _Work) -> _Made:
    """Returns what a folder must have been made from, without the hash of the content.

    Where no model is named, there is none.

    Raises:
        InputError: an option does not fit an index.
        ModelError: there is no such model.
    """
    stamp = _stamp_of(work.read)
    if not work.is_index:
        named = work.model is not None
        sha256 = "" if work.model is None else _sha256_of(work.model)
        return _Made(stamp, "", sha256, named, work.columns, work.finetune)
    given = {"model": work.model, "columns": work.columns, "finetune": work.finetune}
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(
            f"{' and '.join(wrong)}: an index is explored as it is. Leave that out, or name what "
            "the index was made from."
        )
    sha256 = read_manifest(work.source).model.sha256
    return _Made(stamp, "", sha256, named=True, columns=None, finetuned=False)


def _sha256_of(model: str | Path) -> str:
    return str(read_model(find_model(model)).describe()["sha256"])


class _Read:
    """What is found while an export is read."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._authors = set[str]()
        self._programs: list[str] = []
        self._unread: dict[str, None] = {}
        self._count = 0

    def messages(self, path: Path, export: ExportFormat) -> Iterator[Entry]:
        """Yields the messages of an export, by one of its formats."""
        for entry in messages_of(
            path, export, lambda why: self.left_out.update([why]), None, self._note
        ):
            self._authors.update([entry.about["author"]] if "author" in entry.about else ())
            yield entry

    def _note(self, title: str, files: Files) -> None:
        before = self._unread if self._programs else files.names
        self._unread = {name: None for name in before if name not in files.read}
        self._programs.append(title.partition(" (")[0])
        self._count = len(files.names)

    def in_words(self, messages: int) -> str:
        """Returns what was read as one line, empty if it was not an export."""
        if not self._programs:
            return ""
        people = f" of {_counted(len(self._authors), 'person')}" if self._authors else ""
        said = f"{' and '.join(self._programs)}, {_counted(self._count, 'file')}, "
        said += f"{_counted(messages, 'message')}{people}"
        if self._unread:
            names = first_names([*self._unread])
            said += f", {_counted(len(self._unread), 'file')} not read: {names}"
        return said


def _counted(count: int, noun: str) -> str:
    many = "people" if noun == "person" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


def _index(work: _Work, out: Path, read: _Read) -> bool:
    """Writes the index. Returns whether training helped, True without training."""
    with scratch_folder() as scratch:
        better = not work.finetune or _finetune(work, scratch)
        tuned = work.finetune and better
        texts: Path | Iterator[Entry] = work.source
        if (work.source / PAIRS_FILE).is_file():
            texts = messages_of_pairs(work.source)
        elif work.columns is None and may_be_export(work.source):
            from rejoinder.exports import exports_of  # importing all formats takes a while

            if exports := exports_of(work.source):
                linked_messages = (
                    linked(read.messages(work.source, one), trusted=one.knows_replies)
                    for one in exports
                )
                texts = refuse_empty(chain.from_iterable(linked_messages), work.source, exports)
        Index.create(
            out,
            texts,
            scratch / "model" if tuned else work.model,
            columns=work.columns,
            copy_model=tuned,
            progress=work.watch.indexing,
        )
        return better


def _find(index: Path, out: Path, work: _Work, read: _Read) -> None:
    """Writes what is found in the messages of an index."""
    collection = with_answers(open_collection(index, threads=work.threads))
    asked = asked_again(collection)
    (out / ASKED).write_bytes(msgspec.json.encode(asked))
    topics = cluster(collection, threads=work.threads, progress=work.watch.stage)
    found = FoundTopics(topics.topics, topics.wider, topics.months)
    (out / TOPICS).write_bytes(msgspec.json.encode(found))
    (out / POINTS).write_bytes(_points(topics))
    suggests = _keeps_replies(index, collection, work.watch.stage)
    facts = Facts(topics.ids, suggests, read.in_words(len(topics.ids)))
    (out / FACTS).write_bytes(msgspec.json.encode(facts))


def _keeps_replies(index: Path, collection: Collection, stage: ExtractProgress) -> bool:
    """Keeps what suggestions need of an index, and returns whether there is anything to suggest."""
    if collection.of_responses:
        return False
    past = past_replies(collection)
    if len(past) and read_kept(index) is None:
        keep(index, past, Suggestions(past, None, stage=stage).tried)
    return len(past) > 0


def read_facts(folder: Path) -> Facts:
    """Returns the facts about conversations that were prepared in a folder."""
    return msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)


def _points(topics: Topics) -> bytes:
    """Returns where the N messages are on the map: N x, N y, N topics and N months, 4 bytes each.

    Topics, -1 for none, and months since 1970, -1 for an unknown one, are whole numbers.
    """
    months = np.full(len(topics.ids), -1, "<i4")
    known = np.isfinite(topics.times)
    months[known] = topics.times[known].astype("datetime64[s]").astype("datetime64[M]").astype(int)
    x, y = topics.coordinates.T.astype("<f4")
    return b"".join(
        [x.tobytes(), y.tobytes(), topics.labels.astype("<i4").tobytes(), months.tobytes()]
    )


def _finetune(work: _Work, scratch: Path) -> bool:
    """Writes a model to `scratch`, and returns whether it got better."""
    from rejoinder.api.finetuning import finetune  # needs torch
    from rejoinder.api.pairs import LEAST_PAIRS
    from rejoinder.corpus.extract import extract
    from rejoinder.corpus.writer import open_pairs

    pairs, stage = work.source, work.watch.stage
    if not (pairs / PAIRS_FILE).is_file():
        pairs = scratch / "pairs"
        columns = work.columns
        extract(
            str(work.source), pairs, columns=columns, split=(80, 10, 10), threads=work.threads,
            linker=Linker().stream, progress=stage,
        )  # fmt: skip
        made = open_pairs(pairs)
        if min(made.count("dev"), made.count("test")) < LEAST_PAIRS:
            raise InputError(
                f"{work.source} has too few messages that answer others to fine-tune a model: "
                f"{LEAST_PAIRS} held-out ones are needed, of a tenth of its threads. Leave out "
                "`finetune`."
            )
    tuned = finetune(
        pairs, out=scratch / "model", model=work.model or DEFAULT, minutes=work.minutes,
        threads=work.threads, stage=lambda doing: stage(doing, 0, None),
    )  # fmt: skip
    return tuned.folder is not None


def _read(folder: Path) -> _Made | None:
    """Returns what a folder was made from; None if it is not one of ours, or of another version."""
    try:
        return read_sealed(folder / FILE, _Made, _FORMAT_VERSION, InputError, _REMEDY)
    except RejoinderError:
        return None


def _is_made(folder: Path, known: _Made, wanted: _Made, source: Path) -> bool:
    """Returns whether a folder was made from what is wanted. Files may be newer, but the same."""
    same = (known.named, known.columns, known.finetuned)
    if same != (wanted.named, wanted.columns, wanted.finetuned):
        return False
    there = [wanted.model] if wanted.named else map(_sha256_of, shipped_models())
    if known.model not in there:
        return False
    if known.stamp == wanted.stamp:
        return True
    if known.content != _content_of(source):
        return False
    write_text(folder / FILE, sealed_text(replace(known, stamp=wanted.stamp), _FORMAT_VERSION))
    return True


def _stamp_of(source: Path) -> str:
    """Returns a hash of the names, sizes and times of a file, or of the files of a folder."""
    files = [source] if source.is_file() else sorted(filter(Path.is_file, source.rglob("*")))
    facts = [(path, path.stat()) for path in files]
    lines = [
        f"{path.relative_to(source)} {stat.st_size} {stat.st_mtime_ns}" for path, stat in facts
    ]
    return sha256_of("\n".join(lines).encode("utf-8", "surrogateescape"))


def _content_of(source: Path) -> str:
    return sha256_of_file(source) if source.is_file() else sha256_of_folder(source)
