"""Errors of executors, which reach the driver as the text of a Java exception."""

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rejoinder.errors import InputError, ModelError, RejoinderError, StorageError

_KINDS = {kind.__name__: kind for kind in (InputError, ModelError, StorageError)}
_MARKED = re.compile(r"rejoinder-error(\[[^\[\]]*\])rejoinder-error")


@contextmanager
def told_to_driver() -> Iterator[None]:
    """In an executor: marks an error for users, so that `spark_errors` raises it in the driver."""
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
        InputError: what an executor raised, or what Spark says is wrong.
        ModelError, StorageError: what an executor raised.
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
            "an executor's disk has no space left for data that is shuffled or kept; free some, or "
            "name another disk in spark.local.dir."
        )
    if "OutOfMemoryError" in text or "Python worker exited unexpectedly" in text:
        return InputError(
            f"an executor ran out of memory or was killed ({first_line(text)}); raise `memory`, "
            "or run fewer tasks at a time."
        )
    return InputError(f"Spark can't do this: {first_line(text)}.")


def first_line(text: str) -> str:
    r"""Returns the line of an exception's text that says most, without classes and traces.

    >>> first_line("An error occurred while calling o1.x.\n: java.io.IOException: no such host")
    'no such host'
    >>> first_line("An exception was thrown\nTraceback (most recent call last):\nKeyError: 'x'")
    "KeyError: 'x'"
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if any(line.startswith("Traceback") for line in lines):  # a Python worker's: its end counts
        lines = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)][
            -1:
        ] or lines
        return lines[0].rstrip(".")[:300]
    line = next((line for line in lines if not line.startswith("An error occurred")), "no reason")
    return re.sub(r"^:?\s*(?:[\w.$]+(?:Exception|Error):\s*)+", "", line).rstrip(".")[:300]
