"""Several tasks, one encoder: the library call behind `rejoinder evaluate`."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.calls import identity
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.results import Key, Missing, Result, settings_key, stamp
from rejoinder.evaluation.tasks import families_of, resolve
from rejoinder.evaluation.tasks.base import Context, Family
from rejoinder.files.claims import claim
from rejoinder.files.hashed import sha256_of
from rejoinder.measures.correlation import ScoringError
from rejoinder.protocols import Encodes

Progress = Callable[[int, int, str], None]
"""Called with the tasks that are done, all tasks, and the one that comes next."""


def evaluate(
    encoder: Encodes,
    tasks: Sequence[str],
    context: Context | None = None,
    *,
    done: Sequence[Result] = (),
    progress: Progress = lambda _done, _all, _next: None,
    cache: Path | None = None,
) -> Iterator[Result | Missing]:
    """The results of `tasks`, one after the other; a task without its data is named as missing.

    Args:
        encoder: anything that encodes.
        tasks: groups or ids of tasks.
        context: where the data is, and the settings; none: the defaults.
        done: results that are there already: one of the same encoder, task, data and settings is
            handed out as it is instead of scoring again.
        progress: called before each task.
        cache: folder that keeps embeddings for later runs, by the encoder's identity.

    Raises:
        InputError: a task is unknown, its data is damaged, or the encoder misbehaves.
    """
    context = context or Context()
    wanted = resolve(tasks)
    about = identity(encoder)
    known = {one.key: one for one in done if dict(one.encoder) == about}
    embedder = Embedder(encoder, about["name"])
    with _kept(embedder, None if cache is None else cache / f"{_key(about)}.safetensors"):
        count = 0
        for family, ids in families_of(wanted):
            progress(count, len(wanted), ids[0])
            found = _done(family, context, ids, known)
            yield from (one for results in found.values() for one in results)
            left = [task for task in ids if task not in found]
            yield from _scored(family, embedder, context, left, about)
            count += len(ids)
        progress(count, len(wanted), "")


@contextmanager
def _kept(embedder: Embedder, path: Path | None) -> Iterator[None]:
    """Take up the embeddings of a file, hold it meanwhile, and write it at the end."""
    if path is None:
        yield
        return
    with claim(path):
        embedder.load(path)
        yield
        embedder.save(path)


def _done(
    family: Family, context: Context, ids: Sequence[str], known: Mapping[Key, Result]
) -> dict[str, list[Result]]:
    """Of those of the tasks all of whose results are known, these."""
    settings = settings_key(family.settings(context))
    hopeful = [task for task in ids if any(key[0] == task and key[3] == settings for key in known)]
    if not hopeful:
        return {}
    try:
        hashes = family.hashes(context, hopeful)
    except DataMissingError:
        return {}
    keys: dict[str, list[Key]] = {}
    for (task, split), sha256 in hashes.items():
        keys.setdefault(task, []).append((task, split, sha256, settings))
    return {
        task: [known[key] for key in wanted]
        for task, wanted in keys.items()
        if all(key in known for key in wanted)
    }


def _scored(
    family: Family, embedder: Embedder, context: Context, ids: Sequence[str], about: dict[str, Any]
) -> Iterator[Result | Missing]:
    if not ids:
        return
    begun = time.perf_counter()
    try:
        results = family.run(embedder, context, ids)
    except DataMissingError as error:
        yield from (Missing(task, str(error)) for task in ids)
        return
    except ScoringError as error:
        raise InputError(f"{ids[0]}, encoder {embedder.name}: {error}") from None
    seconds = (time.perf_counter() - begun) / max(len(results), 1)
    settings = family.settings(context)
    for result in results:
        yield stamp(replace(result, dtype=embedder.dtype), about, settings, seconds)


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
    return sha256_of(json.dumps(about, sort_keys=True).encode())[:32]


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
