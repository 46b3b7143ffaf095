"""What an engine of `rejoinder encode` is handed, and what its executors do with it.

Encoding on the executors of Spark.
"""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.encoding import encode_file
from rejoinder.inference.outputs import OnTooLong
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import (
    Count,
    Digest,
    Record,
    check_file,
    read_sealed,
    sealed_text,
    sha256_of_file,
)
from rejoinder.io.formats.texts import TextPart, part_lines
from rejoinder.io.spark_session import open_session, spark_errors, told_to_driver

if TYPE_CHECKING:
    import pyarrow as pa


_RECORD_VERSION = 1
_REMEDY = "Begin again with `overwrite=True`."


@dataclass(frozen=True)
class PartTask:
    """How parts are encoded."""

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
    """Where an engine runs; None is the engine's default."""

    master: str | None = None
    """Address of a cluster; None means this machine."""
    memory: str | None = None
    """Memory of each process of the engine, such as `2GB`."""
    threads: int | None = None
    """Number of parts at a time on this machine."""


EncodingEngine = Callable[[Path, PartTask, Sequence[int], Cluster], None]
"""The extension point: encodes the numbered parts of a task with the model in a folder.

It sends the model to each executor once, opens it there by `checked_encoder`, calls `encode_part`
for each number, in any order, and raises the first error that one of these raised. Settings of the
`Cluster` that have no effect on it are refused by an InputError.
"""


class PartRecord(Record, frozen=True):
    """What is kept of a finished part."""

    n: Count
    unknown: Count
    too_long: Count
    bytes: Count
    sha256_of_part: Digest


def record_of(folder: Path, number: int, suffix: str) -> tuple[Path, Path]:
    """Returns the file of a part, and that of its record, which is written when it is finished."""
    name = f"part-{number:05d}"
    return folder / f"{name}{suffix}", folder / f".{name}.counts"


def read_record(folder: Path, number: int, suffix: str, *, content: bool) -> PartRecord:
    """Reads the record of a finished part. With `content`, compares the part with its SHA-256.

    Raises:
        InputError: the record or the part is damaged.
    """
    part, path = record_of(folder, number, suffix)
    record = read_sealed(path, PartRecord, _RECORD_VERSION, InputError, _REMEDY)
    facts = {"bytes": record.bytes, "sha256": record.sha256_of_part}
    check_file(part, facts, InputError, _REMEDY, content=content)
    return record


def checked_encoder(model: str | Path, sha256: str) -> SentenceEncoder:
    """Loads the model that was sent to an executor, to compute on one thread.

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
    told = PartRecord(
        written.n, written.unknown, written.too_long, path.stat().st_size, sha256_of_file(path)
    )
    write_text(record, sealed_text(told, _RECORD_VERSION))


def encode_on_spark(model: Path, task: PartTask, pending: Sequence[int], cluster: Cluster) -> None:
    """Encodes parts on the executors of a cluster of Spark, or of this machine."""
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
    """Encodes the parts whose places in `pending` come in `batches`, and yields their numbers."""
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
