"""Several tasks, one encoder: the library call behind `rejoinder evaluate`."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.results import Missing, Result, stamp
from rejoinder.evaluation.tasks import families_of, resolve
from rejoinder.evaluation.tasks.base import Context
from rejoinder.protocols import Describes, Encodes

Progress = Callable[[int, int, str], None]
"""Called with the tasks that are done, all tasks, and the one that comes next."""


def evaluate(
    encoder: Encodes,
    tasks: Sequence[str],
    context: Context | None = None,
    *,
    skip: Callable[[str], bool] = lambda _task: False,
    progress: Progress = lambda _done, _all, _next: None,
    cache: Path | None = None,
) -> Iterator[Result | Missing]:
    """The results of `tasks`, one after the other; a task without its data is named as missing.

    Args:
        encoder: anything that encodes.
        tasks: groups or ids of tasks.
        context: where the data is, and the settings; none: the defaults.
        skip: tells of a task id whether it is done already.
        progress: called before each task.
        cache: folder that keeps embeddings for later runs, by the encoder's identity.

    Raises:
        InputError: a task is unknown, its data is damaged, or the encoder misbehaves.
    """
    context = context or Context()
    wanted = [task for task in resolve(tasks) if not skip(task)]
    about = identity(encoder)
    embedder = Embedder(encoder)
    kept = None if cache is None else cache / f"{_key(about)}.safetensors"
    if kept is not None:
        embedder.load(kept)
    done = 0
    for family, ids in families_of(wanted):
        progress(done, len(wanted), ids[0])
        begun = time.perf_counter()
        try:
            results = family.run(embedder, context, ids)
        except DataMissingError as error:
            yield from (Missing(task, str(error)) for task in ids)
        else:
            seconds = (time.perf_counter() - begun) / max(len(results), 1)
            for result in results:
                yield stamp(replace(result, dtype=embedder.dtype), about, seconds)
        done += len(ids)
    progress(done, len(wanted), "")
    if kept is not None:
        embedder.save(kept)


def _key(about: Mapping[str, object]) -> str:
    """A name for an encoder: the same for the same weights alone.

    Raises:
        InputError: the encoder tells no hash of itself: tomorrow it may be another.
    """
    if "sha256" not in about:
        raise InputError(
            f"{about.get('name')} can't be cached: its describe() tells no sha256, by which "
            "another version of it would be known."
        )
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]


def identity(encoder: Encodes) -> Mapping[str, object]:
    """Who an encoder says it is."""
    about = encoder.describe() if isinstance(encoder, Describes) else {}
    return {"name": type(encoder).__name__, "max_tokens": "not told", **about}


def only_results(outcomes: Iterator[Result | Missing]) -> list[Result]:
    """The results of tasks none of which may be missing.

    Raises:
        InputError: one is missing.
    """
    found = []
    for outcome in outcomes:
        if isinstance(outcome, Missing):
            raise InputError(outcome.reason)
        found.append(outcome)
    return found
