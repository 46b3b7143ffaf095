"""Opens Spark sessions on this machine, on a cluster, or on a Spark Connect server.

Also translates errors of executors, which reach the driver as the text of a Java exception.
"""

import json
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rejoinder.errors import InputError, ModelError, RejoinderError, StorageError, require
from rejoinder.io.formats.shown import parse_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LEAST = 512_000_000
"""Initial memory of Spark's Java process, in bytes."""
_MEMORY = "2GB"
_PARTITION_BYTES = 64 << 20
_SETTINGS = [
    ("spark.ui.showConsoleProgress", "false"),
    # there is already a Python worker per core
    ("spark.executorEnv.POLARS_MAX_THREADS", "2"),
]
_LOCAL_SETTINGS = [
    ("spark.ui.enabled", "false"),
    ("spark.driver.host", "127.0.0.1"),
    ("spark.driver.bindAddress", "127.0.0.1"),
]


@dataclass(frozen=True)
class OpenSession:
    """A session, and the resources to release with it."""

    spark: "SparkSession"
    is_own: bool
    """Whether this process opened it for this work. A session of the caller stays open."""
    log: Path | None = None
    """Folder with Spark's output, if it runs on this machine."""
    is_local: bool = False
    """Whether this process opened it, on this machine only."""

    def expect(self, size: int) -> None:
        """Adapts the number of partitions to data of `size` bytes, if this process opened it.

        For few comments, Spark's default of 200 partitions takes several times as long as eight.
        On a cluster, there are never fewer than in its settings.
        """
        if not self.is_own:
            return
        name = "spark.sql.shuffle.partitions"
        if self.is_local:
            least = 2 * self.spark.sparkContext.defaultParallelism
        else:
            least = int(self.spark.conf.get(name) or 0)
        self.spark.conf.set(name, str(max(least, size // _PARTITION_BYTES)))

    def close(self) -> None:
        """Stops the session if this process opened it."""
        if self.is_own:
            self.spark.stop()
            _forget_gateway()
        if self.log is not None:
            shutil.rmtree(self.log, ignore_errors=True)


def open_session(
    master: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    scratch: Path | None = None,
) -> OpenSession:
    """Opens a Spark session. Without settings, it reuses an active session of this process.

    Args:
        master: address of a cluster's master, `local[N]`, or the address of a Spark Connect
            server, `sc://HOST:PORT`. None means this machine.
        memory: memory of each Java process, such as `2GB`: the only process on this machine, or
            each executor. None means 2GB on this machine, or the cluster's settings.
        threads: number of tasks at a time on this machine. None means all cores.
        scratch: folder for shuffled or cached data on this machine. None means Spark's default.

    Raises:
        InputError: a setting has no effect, or Spark can't be reached or started.
        MissingExtraError: pyspark is not installed.
    """
    require("spark", "pyspark")
    from pyspark.sql import SparkSession

    connects = (master or "").startswith("sc://")
    with without_warnings():
        if active := SparkSession.getActiveSession():
            if (master, memory, threads) != (None, None, None):
                raise InputError(
                    "this process already has a Spark session, so `master`, `memory` and "
                    "`threads` have no effect; leave them out, or stop the session."
                )
            return OpenSession(active, is_own=False)
        if master and threads is not None:
            raise InputError(
                f"`threads` is for Spark on this machine, but `master` {master} is given, too;"
                " leave one of them out (local[4] is this machine with four threads)."
            )
        if connects and memory is not None:
            raise InputError(
                "`memory` has no effect on a Spark Connect server, which sets the memory of its "
                "executors; leave it out."
            )
        if master and connects:
            return OpenSession(_connected(master), is_own=True)
        return _started(master or f"local[{threads or '*'}]", memory, scratch)


def _connected(master: str) -> "SparkSession":
    require("spark", "grpc", "grpc_status")
    from pyspark.sql import SparkSession

    address = urlsplit(master)
    try:
        # PySpark retries for ten minutes if no server listens
        with socket.create_connection((address.hostname or "", address.port or 15_002), 20):
            pass
        # it writes every error that is raised to standard error, as JSON
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        spark: SparkSession = SparkSession.builder.remote(master).getOrCreate()
        spark.range(1).count()  # connects
    except Exception as error:  # gRPC and the checks of its address raise many kinds
        reason = re.search(r'details = "([^"]*)"', str(error))
        raise InputError(
            f"`master` {master}: can't connect to Spark Connect "
            f"({reason[1] if reason else str(error).splitlines()[0]})."
        ) from None
    return spark


def _started(master: str, memory: str | None, scratch: Path | None) -> OpenSession:
    """Starts the Java process of a driver; its output goes to a file instead of the terminal."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    _require_java()
    is_local = master.startswith("local")
    conf = SparkConf().setMaster(master).setAppName("rejoinder").setAll(_SETTINGS)
    if is_local:
        conf.setAll(_LOCAL_SETTINGS).set("spark.driver.memory", _java(memory or _MEMORY))
        if scratch is not None:
            conf.set("spark.local.dir", str(scratch))
    elif memory is not None:
        conf.set("spark.executor.memory", _java(memory))
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs every interruption
    log = Path(tempfile.mkdtemp(prefix="rejoinder-spark-"))
    try:
        with (log / "spark.log").open("wb") as file:
            launch: Any = launch_gateway  # untyped
            gateway = launch(conf, popen_kwargs={"stdout": file, "stderr": file})
        if is_local:  # workers with another Python would not have the packages of this one
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("ERROR")
        return OpenSession(SparkSession(context), is_own=True, log=log, is_local=is_local)
    except (PySparkException, Py4JError, OSError) as error:
        said = (log / "spark.log").read_text("utf-8", "replace")
        _forget_gateway()
        shutil.rmtree(log, ignore_errors=True)
        raise InputError(_why_not_started(master, str(error), said)) from None


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=str(Path(home) / "bin") if home else None) is None:
        looked = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise InputError(
            f"Spark needs Java 17 or newer, and none was found {looked}. Install it, or set "
            "JAVA_HOME to its folder."
        )


def _why_not_started(master: str, error: str, said: str) -> str:
    if "JAVA_GATEWAY_EXITED" not in error:
        return f"`master` {master} can't be used: {first_line(error)}."
    lines = [line for line in said.splitlines() if re.search("Exception|Error", line)]
    cause = re.sub(r"^.*?(?:Exception|Error):\s*", "", lines[0]) if lines else said[-300:]
    return f"Spark can't be started with the master {master}: {cause.strip().rstrip('.')}."


def _java(memory: str) -> str:
    """Returns an amount of memory in the form of Java's options.

    >>> _java("2GB"), _java("800MB")
    ('1907m', '762m')
    """
    amount = parse_bytes(memory)
    if amount < _LEAST:
        raise InputError(f"`memory` {memory!r} is too little for Spark; 512MB is the least.")
    return f"{int(amount) >> 20}m"


def _forget_gateway() -> None:
    """Lets the next session start its own Java process: `stop` keeps the old one."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    gateway.shutdown()
    if process := getattr(gateway, "proc", None):
        process.stdin.close()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


_KINDS = {kind.__name__: kind for kind in (InputError, ModelError, StorageError)}
_MARKED = re.compile(r"rejoinder-error(\[[^\[\]]*\])rejoinder-error")


@contextmanager
def told_to_driver() -> Iterator[None]:
    """In an executor: marks errors for users, so that `spark_errors` raises them in the driver."""
    try:
        yield
    except RejoinderError as error:
        kind = type(error).__name__ if type(error).__name__ in _KINDS else InputError.__name__
        told = json.dumps([kind, str(error).encode().hex()])
        raise RuntimeError(f"rejoinder-error{told}rejoinder-error") from None


@contextmanager
def spark_errors() -> Iterator[None]:
    """In the driver: turns Spark's exceptions within the block into one sentence each.

    Raises:
        InputError: an executor raised it, or Spark reports an error.
        ModelError, StorageError: an executor raised it.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with without_warnings():
            yield
    except (PySparkException, Py4JError) as error:
        raise _as_error(str(error)) from None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Hides pyspark's warnings about the version of pandas, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        yield


def _as_error(text: str) -> RejoinderError:
    if marked := _MARKED.search(text):
        kind, message = json.loads(marked[1])
        return _KINDS[kind](bytes.fromhex(message).decode())
    if "No space left on device" in text:
        return StorageError(
            "an executor's disk has no space left for shuffled or cached data; free some, or set "
            "spark.local.dir to another disk."
        )
    if "OutOfMemoryError" in text or "Python worker exited unexpectedly" in text:
        return InputError(
            f"an executor ran out of memory or was killed ({first_line(text)}); raise `memory`, "
            "or run fewer tasks at a time."
        )
    return InputError(f"Spark can't do this: {first_line(text)}.")


def first_line(text: str) -> str:
    r"""Returns the most informative line of an exception's text, without classes and traces.

    >>> first_line("An error occurred while calling o1.x.\n: java.io.IOException: no such host")
    'no such host'
    >>> first_line("An exception was thrown\nTraceback (most recent call last):\nKeyError: 'x'")
    "KeyError: 'x'"
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if any(line.startswith("Traceback") for line in lines):  # a Python worker's: use its last line
        errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
        return (errors[-1] if errors else lines[0]).rstrip(".")[:300]
    line = next((line for line in lines if not line.startswith("An error occurred")), "no reason")
    return re.sub(r"^:?\s*(?:[\w.$]+(?:Exception|Error):\s*)+", "", line).rstrip(".")[:300]
