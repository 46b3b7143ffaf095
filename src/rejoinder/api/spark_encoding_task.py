"""What an executor of Spark does for an encoding: it encodes one part to a file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.api.encoding import encode_file
from rejoinder.errors import InputError, ModelError
from rejoinder.files.atomic import write_text
from rejoinder.formats.text_parts import TextPart, part_lines
from rejoinder.runtime.encoder import SentenceEncoder
from rejoinder.runtime.long_texts import OnTooLong
from rejoinder.spark.failures import told_to_driver

if TYPE_CHECKING:
    import pyarrow as pa


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


def record_of(folder: Path, number: int, suffix: str) -> tuple[Path, Path]:
    """Returns the file of a part, and that of its counts, which is written when it is finished."""
    name = f"part-{number:05d}"
    return folder / f"{name}{suffix}", folder / f".{name}.counts"


def encode_parts(
    task: PartTask, archive: str, pending: Sequence[int], batches: "Iterator[pa.RecordBatch]"
) -> "Iterator[pa.RecordBatch]":
    """Encodes the parts whose places in `pending` come in `batches`, and yields their numbers."""
    import pyarrow as pa

    for batch in batches:
        for place in batch.column(0).to_pylist():
            with told_to_driver():
                _encode_part(task, archive, pending[place])
            yield pa.RecordBatch.from_pydict({"number": pa.array([pending[place]], pa.int64())})


@lru_cache(1)
def _encoder(archive: str, sha256: str) -> SentenceEncoder:
    """Loads the model that the driver sent to this executor, once in each process."""
    from pyspark import SparkFiles

    encoder = SentenceEncoder.load(SparkFiles.get(archive), threads=1)
    if encoder.describe()["sha256"] != sha256:
        raise ModelError("an executor has another model than the driver; run the command again.")
    return encoder


def _encode_part(task: PartTask, archive: str, number: int) -> None:
    part = task.parts[number]
    path, record = record_of(task.folder, number, task.suffix)
    try:
        written = encode_file(
            _encoder(archive, task.model_sha256),
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
    counts = {"n": written.n, "unknown": written.unknown, "too_long": written.too_long}
    write_text(record, json.dumps(counts))
