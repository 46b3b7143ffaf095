"""Prepares conversations for the page that explores them, in a folder that is kept.

The folder has the index, its model if it was fine-tuned, the results, and `explore.json`, which
records what it was made from. As long as that is unchanged, nothing is computed again.
"""

import dataclasses
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import resources
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from rejoinder.conversations import reading
from rejoinder.conversations.answers import with_answers
from rejoinder.conversations.asked import asked_again
from rejoinder.conversations.collection import Collection, open_collection
from rejoinder.conversations.replies import keep, past_replies, read_kept
from rejoinder.conversations.suggest import Suggestions
from rejoinder.conversations.topics import FoundTopics, Topics, cluster
from rejoinder.corpus.manifest import FILE as PAIRS_FILE
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError, RejoinderError
from rejoinder.exports.files import opened
from rejoinder.index import files
from rejoinder.index.folder import TextIndex
from rejoinder.index.indexing import Index
from rejoinder.inference.sentence_stream import EncodingProgress, Source
from rejoinder.io.files import hashed
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.storage import is_database, is_there, scratch_folder
from rejoinder.links.linker import Linker
from rejoinder.models.find import DEFAULT, find_model, shipped_models
from rejoinder.models.folder import read_model
from rejoinder.text.languages import FOUND

FILE, INDEX, ASKED = "explore.json", "index", "asked.json"
TOPICS, POINTS, FACTS = "topics.json", "points.bin", "facts.json"
KEPT = "topics"
"""Folder of the topics, to which messages are added."""
SUFFIX = ".explore"
"""Ending of the folder's name, after the name of the source."""
MADE_UP = Path(str(resources.files("rejoinder").joinpath("data", "made-up-slack-export.zip")))
"""A sample export to try things on, written by `examples/slack_export.py`."""
_FORMAT_VERSION = 9
_GROWN = 1.2
"""Growth of the messages from which topics are found again and suggestions are tested again."""
_BLOCK = 1 << 20
_REMEDY = "Remove the folder."


class _Made(hashed.Record, frozen=True):
    """What a folder was made from."""

    stamp: str
    """SHA-256 of the names, sizes and times of the files that were read."""
    content: str
    """SHA-256 of the files' content."""
    model: str
    """SHA-256 of the model's weights."""
    named: bool
    """Whether the model was named, rather than chosen by language."""
    columns: str | None
    finetuned: bool
    links: str = ""
    """SHA-256 of the linker's file; empty for the linker of the package."""


class Facts(hashed.Record, frozen=True):
    """Facts about the messages that were explored."""

    ids: list[str]
    suggests: bool
    """Whether some messages answer others, so that their replies can be suggested."""
    read: str = ""
    """Description of what was read; empty unless it was an export."""
    found_in: int = 0
    """Number of messages when topics were found and suggestions were tested."""


@dataclass(frozen=True)
class Prepared:
    """Conversations that are ready to explore."""

    folder: Path
    """Folder of the results, and of the index unless that existed before."""
    index: Path
    fresh: bool
    """Whether they have just been prepared."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of messages just left out, by reason (`Index.left_out`)."""
    better: bool = True
    """Whether fine-tuning, if requested, made the model better. If not, it was not used."""
    changes: reading.Changes | None = None
    """What changed since they were last prepared; None: all was prepared now."""


@dataclass(frozen=True)
class Watch:
    """Functions that are called as the work progresses."""

    stage: ExtractProgress = lambda _stage, _done, _all: None
    """Called with a stage, how much of it is done, and the total or None if it is unknown."""
    indexing: EncodingProgress = lambda _done, _read, _all: None


@dataclass(frozen=True)
class _Work:
    """What to explore, and how."""

    sources: tuple[Path, ...]
    model: str | Path | None
    columns: str | None
    finetune: bool
    minutes: float
    threads: int | None
    forget_gone: bool
    watch: Watch
    links: Path | None = None

    @cached_property
    def linker(self) -> Linker:
        return Linker(self.links)

    @property
    def source(self) -> Path:
        """The first of the sources."""
        return self.sources[0]

    @property
    def is_index(self) -> bool:
        return len(self.sources) == 1 and (self.source / files.FILE).is_file()

    @property
    def read(self) -> tuple[Path, ...]:
        """The files and folders whose content is compared."""
        return (self.source / files.FILE,) if self.is_index else self.sources


def explore(
    source: str | Path,
    *more: str | Path,
    out: str | Path | None = None,
    model: str | Path | None = None,
    columns: str | None = None,
    finetune: bool = False,
    minutes: float = 5.0,
    threads: int | None = None,
    forget_gone: bool = False,
    links: Path | None = None,
    watch: Watch = Watch(),
) -> Prepared:
    """Prepares conversations to be explored, unless that has been done.

    If the folder has other messages, or some have changed, only the new or changed ones are linked
    and encoded; topics keep their names, and are found again once a fifth of the messages is new.

    Args:
        source: An export, a file of texts, a folder of pairs or an index.
        more: More exports, if the source is an export; each message is read once (`reading.once`).
        out: Folder of the results. Default: next to the first source, named after it.
        model: Model that encodes; default: by language, as in `Index.create`. An index
            has its own.
        columns: Of a table, as `Index.create` takes them.
        finetune: Fine-tune the model on the pairs of the conversations first.
        minutes: About how long to fine-tune.
        threads: Number of CPU threads; by default all.
        forget_gone: Remove messages that are in the folder but not in the sources, such as those of
            an older export. By default they stay.
        links: File of `own_links.fit_links`, which chooses likely answers; by default the linker
            of the package.
        watch: Called with the progress.

    Raises:
        RejoinderError: a source can't be read, or `out` can't be written.
    """
    paths = tuple(dict.fromkeys(map(Path, (source, *more))))
    work = _Work(paths, model, columns, finetune, minutes, threads, forget_gone, watch, links)
    for path in paths:
        if not is_there(path):
            raise InputError(f"{path} does not exist; name an export, a file, pairs or an index.")
    near = work.source
    if is_database(near):  # a folder here, named like the database
        near = Path(Path(str(near).partition("?")[0]).name)
    folder = near.with_name(near.name + SUFFIX) if out is None else Path(out)
    index = work.source if work.is_index else folder / INDEX
    wanted, known = _wanted(work), _read(folder)
    if known is not None and not forget_gone and _is_made(folder, known, wanted, work.read):
        return Prepared(folder, index, fresh=False)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / FILE).is_file():
        raise InputError(
            f"{folder} has other files, which would be replaced; name another folder (`out`)."
        )
    if finetune and model is None:
        chosen = Source(work.source, columns).model(FOUND)
        work = dataclasses.replace(work, model=chosen)
    inputs = [*work.sources, *([] if model is None else [model])]
    read, better, changes = reading.Reading(work.sources, columns), True, None
    with new_folder(folder, overwrite=True, inputs=inputs) as new:
        if not work.is_index:
            before = None
            if known is not None and known.columns == columns:  # else ids may differ
                before = reading.Before.read(folder, folder / INDEX)
            fits = known is not None and _fits(known, wanted)
            better, changes = _index(work, new, read, before, as_before=fits)
        older = None if changes is None else folder
        _find(work.source if work.is_index else new / INDEX, new, work, older, read.in_words)
        used = wanted.model or (work.model and _sha256_of(work.model))
        used = used or files.read_manifest(new / INDEX).model.sha256
        facts = replace(wanted, content=_of_all(_content_of, work.read), model=used)
        write_text(new / FILE, hashed.sealed_text(facts, _FORMAT_VERSION))
    return Prepared(folder, index, True, read.left_out, better, changes)


def prepared_in(folder: Path) -> Prepared | None:
    """Returns what was prepared in a folder, or from the index in it; None if nothing was."""
    inside = [folder.parent] if folder.name == INDEX else []
    for made in (folder, *inside, folder.with_name(folder.name + SUFFIX)):
        if (known := _read(made)) is None:
            continue
        if (made / INDEX / files.FILE).is_file():
            return Prepared(made, made / INDEX, fresh=False)
        index = made.with_name(made.name.removesuffix(SUFFIX))  # an index explored unchanged
        if (index / files.FILE).is_file() and known.stamp == _stamp_of(index / files.FILE):
            return Prepared(made, index, fresh=False)
    return None


def change_prepared(
    folder: Path, change: Callable[[TextIndex], None], threads: int | None, watch: Watch
) -> None:
    """Changes the index of prepared conversations, and computes the results again.

    Raises:
        InputError: the folder is of another version.
    """
    known = hashed.read_sealed(folder / FILE, _Made, _FORMAT_VERSION, InputError, _REMEDY)
    with new_folder(folder, overwrite=True) as new:
        shutil.copytree(folder / INDEX, new / INDEX)
        index = TextIndex(new / INDEX)
        change(index)
        if (before := reading.Before.read(folder, folder / INDEX)) is not None:
            (new / reading.FILE).write_bytes(before.rows_in(index).tobytes())
        work = _Work((folder / INDEX,), None, None, False, 0, threads, False, watch)
        facts = read_facts(folder)
        were = reading.counted(len(facts.ids), "message")
        _find(
            index.folder, new, work, None,
            lambda left: facts.read.replace(were, reading.counted(left, "message")),
        )  # fmt: skip
        write_text(new / FILE, hashed.sealed_text(known, _FORMAT_VERSION))


def _wanted(work: _Work) -> _Made:
    """Returns what a folder must have been made from, except the hash of the content.

    If no model is named, its hash is missing, too.

    Raises:
        InputError: an option does not fit an index.
        ModelError: there is no such model.
    """
    stamp = _of_all(_stamp_of, work.read)
    if not work.is_index:
        named = work.model is not None
        sha256 = "" if work.model is None else _sha256_of(work.model)
        links = "" if work.links is None else work.linker.sha256
        return _Made(stamp, "", sha256, named, work.columns, work.finetune, links)
    given = {
        "model": work.model, "columns": work.columns, "finetune": work.finetune,
        "links": work.links,
    }  # fmt: skip
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(
            f"{' and '.join(wrong)}: not allowed for an index; name its source instead."
        )
    sha256 = files.read_manifest(work.source).model.sha256
    return _Made(stamp, "", sha256, named=True, columns=None, finetuned=False)


def _sha256_of(model: str | Path) -> str:
    return str(read_model(find_model(model)).describe()["sha256"])


def _index(
    work: _Work, new: Path, read: reading.Reading, before: reading.Before | None, *, as_before: bool
) -> tuple[bool, reading.Changes | None]:
    """Writes the index and what to remember of the messages to a new folder.

    With `as_before`, it begins as a copy of the older index. Returns whether training helped
    (True without training), and the changes since the older index, None if it was not used.
    """
    parts = read.parts()
    rows = all_rows = reading.rows_of(parts)
    gone, remembered = ([], rows) if before is None or not len(rows) else before.gone(rows)
    if gone and not work.forget_gone:
        parts, all_rows = reading.with_gone(parts, gone), np.concatenate([rows, remembered])
    (new / reading.FILE).write_bytes(all_rows.tobytes())
    if before is None or not (as_before and len(rows)):
        linked = reading.all_linked(parts, work.linker)
        return _index_all(work, new / INDEX, linked), None
    shutil.copytree(before.index, new / INDEX, copy_function=_linked_or_copied)
    index = Index(new / INDEX)
    if work.forget_gone:
        index.delete([one.id or "" for one in gone])
    reading.update(index, parts, all_rows, before, work.linker, work.watch.indexing)
    return True, before.changes(rows)


def _linked_or_copied(source: str, target: str) -> None:
    """Hard-links a file, as an index never changes its files, or copies it."""
    try:
        Path(target).hardlink_to(source)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def _index_all(work: _Work, out: Path, entries: Iterator[Entry]) -> bool:
    """Writes an index. Returns whether training helped, True without training."""
    with scratch_folder() as scratch:
        tuned = work.finetune and _finetune(work, scratch)
        model = scratch / "model" if tuned else work.model
        Index.create(out, entries, model, copy_model=tuned, progress=work.watch.indexing)
        return tuned or not work.finetune


def _find(
    index: Path, out: Path, work: _Work, older: Path | None, in_words: Callable[[int], str]
) -> None:
    """Writes the results for the messages of an index, and `in_words` of their number.

    Topics and test results of suggestions come from an older folder, unless much is new.
    """
    collection = with_answers(open_collection(index, threads=work.threads), work.linker)
    asked = asked_again(collection)
    (out / ASKED).write_bytes(msgspec.json.encode(asked))
    known = None if older is None else read_facts(older)
    if known is not None and not known.found_in <= len(collection) < _GROWN * known.found_in:
        older = None
    texts = dict(zip(collection.ids, collection.texts, strict=True))
    kept = None if older is None else Topics.load(older / KEPT).only(texts)
    topics = cluster(collection, keep=kept, threads=work.threads, progress=work.watch.stage)
    topics.save(out / KEPT)
    found = FoundTopics(topics.topics, topics.wider, topics.months)
    (out / TOPICS).write_bytes(msgspec.json.encode(found))
    (out / POINTS).write_bytes(_points(topics))
    suggests = _keeps_replies(index, collection, work.watch.stage, older)
    count = len(topics.ids)
    found_in = known.found_in if older is not None and known is not None else count
    facts = Facts(topics.ids, suggests, in_words(count), found_in)
    (out / FACTS).write_bytes(msgspec.json.encode(facts))


def _keeps_replies(
    index: Path, collection: Collection, stage: ExtractProgress, older: Path | None
) -> bool:
    """Stores what suggestions need of an index; returns whether there is anything to suggest."""
    if collection.of_responses:
        return False
    past = past_replies(collection)
    if len(past) and read_kept(index) is None:
        _, tried = (older and read_kept(older / INDEX)) or (None, None)
        keep(index, past, tried or Suggestions(past, None, stage=stage).tried)
    return len(past) > 0


def read_facts(folder: Path) -> Facts:
    """Returns the facts about conversations that were prepared in a folder."""
    return msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)


def _points(topics: Topics) -> bytes:
    """Returns where the N messages are on the map: N x, N y, N topics and N months, 4 bytes each.

    Topics (-1: none) and months since 1970 (-1: unknown) are integers.
    """
    months = np.full(len(topics.ids), -1, "<i4")
    known = np.isfinite(topics.times)
    months[known] = topics.times[known].astype("datetime64[s]").astype("datetime64[M]").astype(int)
    x, y = topics.coordinates.T.astype("<f4")
    return b"".join(
        [x.tobytes(), y.tobytes(), topics.labels.astype("<i4").tobytes(), months.tobytes()]
    )


def _finetune(work: _Work, scratch: Path) -> bool:
    """Writes a model to `scratch`, and returns whether it improved."""
    from rejoinder.api.finetuning import finetune  # needs torch
    from rejoinder.corpus.extract import extract

    pairs, stage = work.source, work.watch.stage
    if not (pairs / PAIRS_FILE).is_file():
        pairs = scratch / "pairs"
        extract(
            work.sources, pairs, columns=work.columns, split=(80, 10, 10), threads=work.threads,
            linker=work.linker.stream, progress=stage,
        )  # fmt: skip
    tuned = finetune(
        pairs, out=scratch / "model", model=work.model or DEFAULT, minutes=work.minutes,
        threads=work.threads, stage=lambda doing: stage(doing, 0, None),
    )  # fmt: skip
    return tuned.folder is not None


def _read(folder: Path) -> _Made | None:
    """Returns what a folder was made from; None if it is not ours, or from another version."""
    try:
        return hashed.read_sealed(folder / FILE, _Made, _FORMAT_VERSION, InputError, _REMEDY)
    except RejoinderError:
        return None


def _fits(known: _Made, wanted: _Made) -> bool:
    """Returns whether a folder was made with the same settings, perhaps from other messages."""
    same = (known.named, known.columns, known.finetuned, known.links)
    if same != (wanted.named, wanted.columns, wanted.finetuned, wanted.links):
        return False
    there = [wanted.model] if wanted.named else map(_sha256_of, shipped_models())
    return known.model in there


def _is_made(folder: Path, known: _Made, wanted: _Made, sources: Sequence[Path]) -> bool:
    """Returns whether a folder was made from these sources. Files may be newer, if unchanged."""
    if not _fits(known, wanted):
        return False
    if known.stamp == wanted.stamp:
        return True
    if known.content != _of_all(_content_of, sources):
        return False
    write_text(
        folder / FILE, hashed.sealed_text(replace(known, stamp=wanted.stamp), _FORMAT_VERSION)
    )
    return True


def _of_all(hash_of: Callable[[Path], str], sources: Sequence[Path]) -> str:
    """Returns a hash of several sources, or the hash of the only one."""
    found = list(map(hash_of, sources))
    return hashed.sha256_of(*map(str.encode, found)) if found[1:] else found[0]


def _stamp_of(source: Path) -> str:
    """Returns a hash of the names, sizes and times of a file, or of the files of a folder.

    For a database it always differs: only the content shows whether it changed.
    """
    if is_database(source):
        return uuid.uuid4().hex
    files = _logged(source) if source.is_file() else sorted(filter(Path.is_file, source.rglob("*")))
    facts = [(os.path.relpath(path, source), path.stat()) for path in files]
    lines = [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in facts]
    return hashed.sha256_of("\n".join(lines).encode("utf-8", "surrogateescape"))


def _content_of(source: Path) -> str:
    if is_database(source):
        digest = hashed.Sha256()
        with opened(source) as files:
            for name in files.names:
                with files.open(name) as file:
                    for block in iter(partial(file.read, _BLOCK), b""):
                        digest.add(block)
        return digest.hexadecimal
    if not source.is_file():
        return hashed.sha256_of_folder(source)
    return _of_all(hashed.sha256_of_file, _logged(source))


def _logged(file: Path) -> list[Path]:
    """Returns a file, and for SQLite also its log, where newer rows are until they are moved."""
    log = file.with_name(f"{file.name}-wal")
    return [file, log] if log.is_file() and log.stat().st_size else [file]
