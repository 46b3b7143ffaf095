"""Encoding on the workers of Ray."""

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
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rejoinder.errors import InputError, RejoinderError, require
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.engines.base import Cluster, PartTask, checked_encoder, encode_part

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.exceptions import RayTaskError

_PATIENCE = 30
"""Seconds that parts have to end when they are interrupted."""
_SHORT = "/tmp"  # noqa: S108 -- Ray's sockets lie below it, whose paths must have 103 bytes or fewer


def encode_on_ray(model: Path, task: PartTask, pending: Sequence[int], cluster: Cluster) -> None:
    """Encodes parts on the workers of a cluster of Ray, or of this machine."""
    require("ray", "ray")
    with _connected(cluster):
        import ray
        from ray.exceptions import RayError, RayTaskError

        given = ray.put((task, _archive(model)))  # once to each machine
        encode = ray.remote(_encode)
        running = [encode.remote(given, number) for number in pending]
        try:
            while running:
                done, running = ray.wait(running)
                ray.get(done)
        except RayTaskError as error:
            raise _as_error(error) from None
        except RayError as error:
            raise InputError(f"Ray can't do this: {_first_line(error)}.") from None
        finally:
            _stop(running)


def _stop(running: "list[ObjectRef[None]]") -> None:
    """Interrupts parts, which keep what they have written, and waits until they have ended."""
    import ray
    from ray.exceptions import RayError

    with suppress(RayError):  # that of a lost connection is told already
        for each in running:
            ray.cancel(each)
        if running:
            ray.wait(running, num_returns=len(running), timeout=_PATIENCE)


@contextmanager
def _connected(cluster: Cluster) -> Iterator[None]:
    """Connects to Ray, or starts it on this machine; a connection of the caller's stays."""
    import ray

    if cluster.memory is not None:
        raise InputError("--memory has no effect on Ray, whose workers take what they need.")
    if ray.is_initialized():
        if cluster != Cluster():
            raise InputError(
                "this process is connected to Ray already, which --master and --threads can't "
                "change; leave them out, or call ray.shutdown()."
            )
        yield
        return
    if cluster.master is not None and cluster.threads is not None:
        raise InputError(
            f"--threads is for Ray on this machine, and --master {cluster.master} says where it "
            "runs; leave one of them out."
        )
    folder = None
    if cluster.master is not None:
        _call(cluster.master)
    else:
        parent = _SHORT if Path(_SHORT).is_dir() else None
        folder = tempfile.mkdtemp(prefix="rejoinder-ray-", dir=parent)
    try:
        _start(cluster, folder)
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _call(master: str) -> None:
    """Refuses an address where nobody listens: Ray calls there for half a minute."""
    address = urlsplit(master if "://" in master else f"//{master}")
    try:
        if address.port is not None:
            socket.create_connection((address.hostname or "", address.port), 20).close()
    except (OSError, ValueError) as error:
        raise InputError(f"--master {master}: no answer of Ray there ({error}).") from None


def _start(cluster: Cluster, folder: str | None) -> None:
    import ray

    init: Any = ray.init  # its type leaves the folder out
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        init(
            cluster.master or "local",
            num_cpus=cluster.threads,
            include_dashboard=None if cluster.master else False,
            logging_level=logging.CRITICAL,
            log_to_driver=False,
            **({} if folder is None else {"_temp_dir": folder}),
        )
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        where = "this machine" if cluster.master is None else f"--master {cluster.master}"
        raise InputError(f"{where}: Ray can't be used there ({_first_line(error)}).") from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)  # Ray sets its own


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
    # weights are read, or mapped from files that then have no names: nothing is left behind
    with tempfile.TemporaryDirectory(prefix="rejoinder-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model.zip"
        path.write_bytes(archive)
        shutil.unpack_archive(path, Path(folder) / "model")
        return checked_encoder(Path(folder) / "model", sha256)


def _as_error(error: "RayTaskError") -> RejoinderError:
    """Returns what a worker raised."""
    cause = error.cause
    if isinstance(cause, RejoinderError):
        return cause
    return InputError(f"Ray can't do this: {type(cause).__name__}: {_first_line(cause)}.")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason"])[0].rstrip(".")[:300]
