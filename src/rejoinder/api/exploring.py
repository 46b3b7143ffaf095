"""Prepares conversations for the page that explores them, in a folder that stays.

The folder has the index, with its model if that was fine-tuned, and `explore.json`, which says what
it was made from. Nothing is done again as long as that is the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from rejoinder.errors import InputError, RejoinderError
from rejoinder.index.indexing import Index
from rejoinder.index.manifest import FILE as INDEX_FILE
from rejoinder.inference.sentence_stream import EncodingProgress
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.hashed import (
    read_sealed,
    sealed_text,
    sha256_of,
    sha256_of_file,
    sha256_of_folder,
)
from rejoinder.io.files.places import scratch_folder
from rejoinder.io.formats.decoding import Record
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model
from rejoinder.models.shipped import DEFAULT

FILE = "explore.json"
INDEX = "index"
SUFFIX = ".explore"
"""What the folder is called, after the name of what it was made from."""
_FORMAT_VERSION = 1
_REMEDY = "Remove the folder."


class _Made(Record, frozen=True):
    """What a folder was made from."""

    stamp: str
    """SHA-256 of the names, sizes and times of the files that were read."""
    content: str
    """That of their content."""
    model: str
    """That of the model's weights."""
    columns: str | None
    finetuned: bool


@dataclass(frozen=True)
class Explored:
    """Conversations that are ready to explore."""

    folder: Path | None
    """Where they were prepared; None for an index, which is explored where it is."""
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

    stage: Callable[[str], None] = lambda _doing: None
    """Called with what is begun."""
    indexing: EncodingProgress = lambda _done, _read, _all: None


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
) -> Explored:
    """Prepares conversations to be explored, unless that was done before.

    Args:
        source: An export, a file of texts, a folder of pairs (whose replies are explored), or an
            index.
        out: Folder of the prepared conversations. Default: next to `source`, by its name.
        model: Model that encodes; default: `rejoinder-base`. An index has one.
        columns: Of a table, as `Index.create` takes them.
        finetune: Go on training the model on the pairs of the conversations first.
        minutes: About how long to do so.
        threads: CPU threads of it; by default all.
        watch: Told about the work.

    Raises:
        RejoinderError: `source` can't be read, or `out` can't be written.
    """
    place = Path(source)
    if (place / INDEX_FILE).is_file():
        _refuse_for_index(out, model, columns, finetune=finetune)
        return Explored(None, place, fresh=False)
    if not place.exists():
        raise InputError(f"{place} does not exist; name an export, a file, pairs or an index.")
    folder = place.with_name(place.name + SUFFIX) if out is None else Path(out)
    start = find_model(DEFAULT if model is None else model)
    stamp = _stamp_of(place)
    wanted = _Made(stamp, "", read_model(start).describe()["sha256"], columns, finetune)
    known = _read(folder)
    if known is not None and _is_made(folder, known, wanted, place):
        return Explored(folder, folder / INDEX, fresh=False)
    with new_folder(folder, overwrite=known is not None, inputs=[place, start]) as new:
        better = True
        with scratch_folder() as work:
            if finetune:
                better = _finetune(place, work, start, minutes, threads, watch)
            watch.stage("indexing")
            tuned = finetune and better
            made = Index.create(
                new / INDEX, place, work / "model" if tuned else model, columns=columns,
                copy_model=tuned, progress=watch.indexing,
            )  # fmt: skip
        made_from = _Made(stamp, _content_of(place), wanted.model, columns, finetune)
        write_text(new / FILE, sealed_text(made_from, _FORMAT_VERSION))
    return Explored(folder, folder / INDEX, fresh=True, left_out=made.left_out, better=better)


def _refuse_for_index(
    out: str | Path | None, model: str | Path | None, columns: str | None, *, finetune: bool
) -> None:
    given = {"out": out, "model": model, "columns": columns, "finetune": finetune}
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(
            f"{' and '.join(wrong)}: an index is explored as it is. Leave that out, or name what "
            "the index was made from."
        )


def _finetune(
    source: Path, work: Path, model: Path, minutes: float, threads: int | None, watch: Watch
) -> bool:
    """Writes a model to `work`, and returns whether it got better."""
    from rejoinder.api.finetuning import finetune  # needs torch
    from rejoinder.corpus.extract import extract

    watch.stage("finding replies")
    extract(str(source), work / "pairs", split=(80, 10, 10), threads=threads)
    tuned = finetune(
        work / "pairs", out=work / "model", model=model, minutes=minutes, threads=threads,
        stage=watch.stage,
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
    same = (known.model, known.columns, known.finetuned)
    if same != (wanted.model, wanted.columns, wanted.finetuned):
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
