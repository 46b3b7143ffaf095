"""Encodes parts on Ray workers."""

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rejoinder.errors import InputError, RejoinderError, require
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.part_encoding import Cluster, PartTask, checked_encoder, encode_part

_PATIENCE = 30
"""Seconds that interrupted parts get to finish."""
_SHORT = "/tmp"  # noqa: S108 -- Ray's sockets lie below it, whose paths must have 103 bytes or fewer


def encode_on_ray(model: Path, task: PartTask, pending: Sequence[int], cluster: Cluster) -> None:
    """Encodes parts on the workers of a Ray cluster, or on this machine."""
    require("ray", "ray")
    import ray
    from ray.exceptions import RayError

    with _connected(cluster):
        given = ray.put((task, _archive(model)))  # sent once to each machine
        encode = ray.remote(_encode)
        running = [encode.remote(given, number) for number in pending]
        try:
            while running:
                done, running = ray.wait(running)
                ray.get(done)
        except RayError as error:
            cause = getattr(error, "cause", error)  # the worker's exception
            if isinstance(cause, RejoinderError):
                raise cause from None
            raise InputError(
                f"Ray can't do this: {type(cause).__name__}: {_first_line(cause)}."
            ) from None
        finally:  # parts save what they have written, and end
            with suppress(RayError):  # a lost connection was already reported
                for each in running:
                    ray.cancel(each)
                if running:
                    ray.wait(running, num_returns=len(running), timeout=_PATIENCE)


@contextmanager
def _connected(cluster: Cluster) -> Iterator[None]:
    """Connects to Ray, or starts it on this machine; keeps the caller's connection open."""
    import ray

    if cluster.memory is not None:
        raise InputError("`memory` has no effect on Ray; leave it out.")
    if ray.is_initialized():
        if cluster != Cluster():
            raise InputError(
                "this process is already connected to Ray, so `master` and `threads` have no "
                "effect; leave them out, or call ray.shutdown()."
            )
        yield
        return
    if cluster.master is not None and cluster.threads is not None:
        raise InputError(
            f"`threads` is for Ray on this machine, but `master` {cluster.master} names a "
            "cluster; leave one of them out."
        )
    short = {"prefix": "rejoinder-ray-", "dir": _SHORT}
    with tempfile.TemporaryDirectory(**short, ignore_cleanup_errors=True) as folder:
        try:
            _start(cluster, folder)
            yield
        finally:
            ray.shutdown()


def _start(cluster: Cluster, folder: str) -> None:
    """Connects to the cluster, or starts Ray on this machine with its files in `folder`."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # by default Ray sends usage statistics
    before = signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    if cluster.master is None:
        options |= {"num_cpus": cluster.threads, "include_dashboard": False, "_temp_dir": folder}
    try:
        if cluster.master is not None:
            address = urlsplit(f"//{cluster.master.rpartition('//')[2]}")
            if address.port is not None:  # Ray retries for half a minute if no server listens
                socket.create_connection((address.hostname or "", address.port), 20).close()
        ray.init("local" if cluster.master is None else cluster.master, **options)
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        where = "this machine" if cluster.master is None else f"`master` {cluster.master}"
        raise InputError(f"{where}: can't connect to Ray ({_first_line(error)}).") from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray installs its handler


def _archive(model: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
        return Path(shutil.make_archive(str(Path(folder) / "model"), "zip", model)).read_bytes()


def _encode(given: tuple[PartTask, bytes], number: int) -> None:
    """Encodes a part, in a worker."""
    task, archive = given
    encode_part(task, _encoder(archive, task.model_sha256), number)


@lru_cache(1)
def _encoder(archive: bytes, sha256: str) -> SentenceEncoder:
    """Loads the model that was sent to this worker, once in each process."""
    # weights are read, or mapped from deleted files, so no file is left
    with tempfile.TemporaryDirectory(prefix="rejoinder-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model.zip"
        path.write_bytes(archive)
        shutil.unpack_archive(path, Path(folder) / "model")
        return checked_encoder(Path(folder) / "model", sha256)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason"])[0].rstrip(".")[:300]
