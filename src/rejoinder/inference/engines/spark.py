"""Encoding on the executors of Spark."""

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.engines.base import Cluster, PartTask, checked_encoder, encode_part
from rejoinder.io.spark.session import open_session, spark_errors, told_to_driver

if TYPE_CHECKING:
    import pyarrow as pa


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
