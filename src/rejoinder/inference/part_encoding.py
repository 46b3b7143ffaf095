"""Encodes the lines of many files on an engine, in parts that survive an interruption.

Defines the task that an engine gets, the work of its executors, and the Spark engine.
"""

import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.encoding import EncodedFile, encode_file, refuse_changes, settings_of
from rejoinder.inference.outputs import BATCH_SIZE, OnTooLong, checked_way
from rejoinder.inference.sentence_stream import EncodingProgress
from rejoinder.io.files import hashed
from rejoinder.io.files.atomic import discard_unfinished, unfinished_folder, write_text
from rejoinder.io.files.claims import claim_output, remove, swap_in
from rejoinder.io.files.storage import creation_errors, read_errors, resolved, storage_errors
from rejoinder.io.formats.embedding_files import format_of
from rejoinder.io.formats.texts import TextPart, part_lines, text_parts
from rejoinder.io.spark_session import open_session, spark_errors, told_to_driver
from rejoinder.models.find import find_model
from rejoinder.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

PART_BYTES = 16 << 20
"""Bytes of text in a part: about 200,000 sentences, minutes of a slow model's work."""
_STATE = "state.json"
_VERSION = 1
_REMEDY = "Begin again with `overwrite=True`."


def encode_files(
    model: str | Path,
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    engine: str = "spark",
    master: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    response: bool = False,
    batch_size: int = BATCH_SIZE,
    on_too_long: OnTooLong = "truncate",
    part_bytes: int = PART_BYTES,
    resume: bool = False,
    overwrite: bool = False,
    progress: EncodingProgress = lambda _done, _read, _all: None,
) -> EncodedFile:
    """Encodes the lines of files on the executors of an engine to a folder of files.

    Each executor gets the model once. Each part of the input becomes a file of the folder
    (`part-00000.parquet` and so on), in the order of the input; `manifest.json` lists them. A
    resumed run keeps the parts that an interrupted run finished (next to `out`) and continues the
    parts that it began.

    Args:
        model: See `SentenceEncoder.load`.
        sources: UTF-8 text files with a sentence on each line, plain or compressed; or folders or
            glob patterns of such files. All executors must see them and `out` under these paths.
            Plain files are cut into parts; compressed files can't be.
        out: Folder to write, with the suffix of a format: `.npy`, `.parquet` or `.jsonl`.
        engine: One of `ENCODING_ENGINES`.
        master: Address of the engine's cluster. None means this machine.
        memory: Spark: memory of Java on this machine, or of each executor.
        threads: Number of parts encoded at a time on this machine. None means all cores.
        response: Encode by `encode_response`.
        batch_size: See `SentenceEncoder.encode`.
        on_too_long: Likewise.
        part_bytes: Bytes of text in a part.
        resume: Keep what an interrupted run of the same input, model and arguments has finished.
        overwrite: Replace a folder at `out`, and drop what an interrupted run left unless `resume`.
        progress: Told how far the work is, when it begins and when it ends.

    Raises:
        InputError: an argument is not valid, `out` exists, an interrupted run was begun there or
            had another input, model or arguments, or a line is not UTF-8 text.
        ModelError, MissingExtraError, BusyError, StorageError: see `encode_file`.
    """
    begun = time.perf_counter()
    encode = ENCODING_ENGINES[engine]
    out = resolved(Path(out))  # executors run in other working folders
    format_of(out)
    files = _files([sources] if isinstance(sources, str | Path) else sources)
    parts = text_parts(files, part_bytes)
    folder = find_model(model)
    encoder = SentenceEncoder.load(folder, on_too_long=checked_way(on_too_long))
    settings = settings_of(encoder, response, batch_size, on_too_long)
    facts = _Begun(settings, tuple(_fact(part) for part in parts))
    with claim_output(out, overwrite=overwrite, inputs=[*files, folder]):
        place = unfinished_folder(out)
        _begin(out, facts, resume=resume, overwrite=overwrite)
        records = {
            number: read_record(place, number, out.suffix, content=True)
            for number in range(len(parts))
            if _is_finished(place, number, out.suffix)
        }
        pending = [number for number in range(len(parts)) if number not in records]
        resumed = sum(record.n for record in records.values())
        progress(resumed, 0, None)
        task = PartTask(
            tuple(parts), place, out.suffix, encoder.describe()["sha256"], response, batch_size,
            on_too_long,
        )  # fmt: skip
        if pending:
            try:
                encode(folder, task, pending, Cluster(master, memory, threads))
            finally:
                if [path.name for path in place.iterdir()] == [_STATE]:  # nothing to resume
                    discard_unfinished(out)
        for number in pending:
            if not _is_finished(place, number, out.suffix):
                raise InputError(
                    f"part {number} is not in {place}: the executors wrote it to local disks. "
                    "Choose an output folder that all machines share."
                )
            records[number] = read_record(place, number, out.suffix, content=False)
        counts = {"dim": encoder.dim}
        for name in ("n", "unknown", "too_long"):
            counts[name] = sum(getattr(record, name) for record in records.values())
        progress(counts["n"], 0, None)
        _publish(out, {**settings, **counts}, parts, records)
    seconds = time.perf_counter() - begun
    n, unknown, too_long = counts["n"], counts["unknown"], counts["too_long"]
    return EncodedFile(out, n, encoder.dim, unknown, too_long, resumed, seconds)


def finished_parts(out: Path) -> tuple[int, int]:
    """Returns the number of parts that an interrupted run to `out` finished, and the total."""
    place = unfinished_folder(out)
    if not (place / _STATE).is_file():
        return 0, 0
    count = len(_state(place).parts)
    return sum(_is_finished(place, number, out.suffix) for number in range(count)), count


def _files(sources: Iterable[str | Path]) -> list[Path]:
    """Returns the files of paths, folders and patterns, in this order; sorted inside each."""
    files: list[Path] = []
    for source in (Path(source).absolute() for source in sources):
        with read_errors(source):
            if source.is_dir():
                found = sorted(path for path in source.iterdir() if path.name[0] != ".")
            else:
                found = [source] if source.exists() else sorted(map(Path, glob(str(source))))  # noqa: PTH207
            found = [path for path in found if path.is_file()]
        if not found:
            raise InputError(f"{source} is not a file, a folder of files or a glob pattern.")
        files += found
    return files


def _fact(part: TextPart) -> list[Any]:
    about = part.path.stat()
    return [str(part.path), part.start, part.end, about.st_size, about.st_mtime_ns]


class _Begun(hashed.Record, frozen=True):
    """The settings and input that an encoding depends on."""

    settings: Mapping[str, Any]
    parts: tuple[Any, ...]
    """Facts on each part of the input."""


class PartRecord(hashed.Record, frozen=True):
    """The record of a finished part."""

    n: hashed.Count
    unknown: hashed.Count
    too_long: hashed.Count
    bytes: hashed.Count
    sha256_of_part: hashed.Digest


def _state(place: Path) -> _Begun:
    return hashed.read_sealed(place / _STATE, _Begun, _VERSION, InputError, _REMEDY)


def _begin(out: Path, facts: _Begun, *, resume: bool, overwrite: bool) -> None:
    """Creates the folder of parts, or checks that the existing folder can be continued."""
    place = unfinished_folder(out)
    if overwrite and not resume:
        discard_unfinished(out)
    if (place / _STATE).is_file():
        finished, count = finished_parts(out)
        if not resume:
            raise InputError(
                f"an interrupted run has encoded {finished} of {count} parts to {out}. Continue "
                "with `resume=True`, or begin again with `overwrite=True`."
            )
        before = _state(place)
        refuse_changes(out, before.settings, facts.settings)
        if before.parts != facts.parts:
            raise InputError(
                f"the input of the interrupted run to {out} differs: files, their sizes, times of "
                f"change, or the size of parts. {_REMEDY}"
            )
        return
    discard_unfinished(out)
    with creation_errors(out):
        place.mkdir()
    write_text(place / _STATE, hashed.sealed_text(facts, _VERSION))


def _is_finished(place: Path, number: int, suffix: str) -> bool:
    part, record = record_of(place, number, suffix)
    return part.is_file() and record.is_file()


def _publish(
    out: Path,
    about: Mapping[str, Any],
    parts: Sequence[TextPart],
    records: Mapping[int, PartRecord],
) -> None:
    """Writes the manifest and renames the folder of the parts to the output."""
    place = unfinished_folder(out)
    entries = []
    for number, part in enumerate(parts):
        file, record = record_of(place, number, out.suffix)[0], records[number]
        facts = {"bytes": record.bytes, "sha256": record.sha256_of_part}
        entries.append({"file": file.name, "n": record.n, "source": part.name, **facts})
    manifest = {"format_version": _VERSION, **about, "parts": entries}
    with storage_errors(out):
        write_text(place / "manifest.json", json.dumps(hashed.sealed(manifest), indent=1) + "\n")
        with creation_errors(out):
            swap_in(place, out)
        # last, so that nothing is lost if the process is killed before
        (out / _STATE).unlink()
        for left in out.glob(".*"):
            remove(left)


@dataclass(frozen=True)
class PartTask:
    """The settings with which parts are encoded."""

    parts: tuple[TextPart, ...]
    folder: Path
    """Folder to write."""
    suffix: str
    """Suffix of the format of the files."""
    model_sha256: str
    response: bool
    batch_size: int
    on_too_long: OnTooLong


@dataclass(frozen=True)
class Cluster:
    """Where an engine runs. None means the engine's default."""

    master: str | None = None
    """Address of a cluster; None means this machine."""
    memory: str | None = None
    """Memory of each process of the engine, such as `2GB`."""
    threads: int | None = None
    """Number of parts at a time on this machine."""


EncodingEngine = Callable[[Path, PartTask, Sequence[int], Cluster], None]
"""The extension point: encodes the numbered parts of a task with the model in a folder.

It sends the model to each executor once, opens it there with `checked_encoder`, calls `encode_part`
for each number, in any order, and raises the first error of these calls. It raises InputError for
settings of the `Cluster` that have no effect on it.
"""

ENCODING_ENGINES: Registry[EncodingEngine] = Registry(
    "`engine`",
    {
        "spark": "rejoinder.inference.part_encoding:encode_on_spark",
        "ray": "rejoinder.inference.ray:encode_on_ray",
    },
)
"""Every engine by name, with its function, which is imported on first use."""


def record_of(folder: Path, number: int, suffix: str) -> tuple[Path, Path]:
    """Returns the paths of a part and of its record, which is written when the part is finished."""
    name = f"part-{number:05d}"
    return folder / f"{name}{suffix}", folder / f".{name}.counts"


def read_record(folder: Path, number: int, suffix: str, *, content: bool) -> PartRecord:
    """Reads the record of a finished part. With `content`, compares the part with its SHA-256.

    Raises:
        InputError: the record or the part is damaged.
    """
    part, path = record_of(folder, number, suffix)
    record = hashed.read_sealed(path, PartRecord, _VERSION, InputError, _REMEDY)
    facts = {"bytes": record.bytes, "sha256": record.sha256_of_part}
    hashed.check_file(part, facts, InputError, _REMEDY, content=content)
    return record


def checked_encoder(model: str | Path, sha256: str) -> SentenceEncoder:
    """Loads the model that was sent to an executor, to run on one thread.

    Raises:
        ModelError: its weights have another SHA-256.
    """
    encoder = SentenceEncoder.load(model, threads=1)
    if encoder.describe()["sha256"] != sha256:
        raise ModelError("an executor has another model than the driver; run the command again.")
    return encoder


def encode_part(task: PartTask, encoder: SentenceEncoder, number: int) -> None:
    """Encodes a part of the input to its file, and writes its record.

    Raises:
        InputError: a line is not valid; the file is named.
    """
    part = task.parts[number]
    path, record = record_of(task.folder, number, task.suffix)
    try:
        written = encode_file(
            encoder,
            part_lines(part),
            path,
            response=task.response,
            batch_size=task.batch_size,
            on_too_long=task.on_too_long,
            resume=True,
            overwrite=True,
        )
    except InputError as error:
        if str(part.path) in str(error):
            raise
        raise InputError(f"{part.name}: {error}") from None
    size, sha256 = path.stat().st_size, hashed.sha256_of_file(path)
    told = PartRecord(written.n, written.unknown, written.too_long, size, sha256)
    write_text(record, hashed.sealed_text(told, _VERSION))


def encode_on_spark(model: Path, task: PartTask, pending: Sequence[int], cluster: Cluster) -> None:
    """Encodes parts on the executors of a Spark cluster, or on this machine."""
    session = open_session(cluster.master, cluster.memory, cluster.threads)
    try:
        with spark_errors(), tempfile.TemporaryDirectory(prefix="rejoinder-") as temporary:
            name = f"rejoinder-model-{uuid.uuid4().hex}"
            archive = shutil.make_archive(str(Path(temporary) / name), "zip", model)
            session.spark.addArtifacts(archive, archive=True)
            numbers = session.spark.range(0, len(pending), 1, len(pending))
            work = partial(_encode_parts, task, Path(archive).name, tuple(pending))
            numbers.mapInArrow(work, "number LONG").toArrow()
    finally:
        session.close()


def _encode_parts(
    task: PartTask, archive: str, pending: Sequence[int], batches: "Iterator[pa.RecordBatch]"
) -> "Iterator[pa.RecordBatch]":
    """Encodes the parts at the positions of `pending` in `batches`, and yields their numbers."""
    import pyarrow as pa

    for batch in batches:
        for place in batch.column(0).to_pylist():
            with told_to_driver():
                encode_part(task, _encoder(archive, task.model_sha256), pending[place])
            yield pa.RecordBatch.from_pydict({"number": pa.array([pending[place]], pa.int64())})


@lru_cache(1)
def _encoder(archive: str, sha256: str) -> SentenceEncoder:
    """Loads the model that the driver sent to this executor, once in each process."""
    from pyspark import SparkFiles

    return checked_encoder(SparkFiles.get(archive), sha256)
