"""Scores one encoder on several tasks."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, overload

from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.identity import identity
from rejoinder.evaluation.printing import score_text, text_table
from rejoinder.evaluation.results import Key, Missing, Result, settings_key, stamp
from rejoinder.evaluation.tasks import families_of, resolve
from rejoinder.evaluation.tasks.base import Context, Family
from rejoinder.evaluation.variants import variants, with_label
from rejoinder.io.files.claims import claim
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import ScoringError
from rejoinder.protocols import CachesItself, Encodes

EvaluationProgress = Callable[[int, int, str], None]
"""Called with the number of finished tasks, the number of all tasks, and the current one: its id,
sometimes followed by what it is doing."""


@dataclass(frozen=True)
class Results(Sequence[Result]):
    """The results of an encoder, in the order of its tasks. `print` shows the main scores."""

    results: tuple[Result, ...]
    missing: tuple[Missing, ...] = ()
    """Tasks that could not be scored because their data is missing."""
    reused: int = 0
    """Number of results that were taken from the results file instead of being scored."""

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Result, ...]: ...
    def __getitem__(self, index: int | slice) -> Result | tuple[Result, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        labels = variants(self.results)
        rows = []
        for result in self.results:
            values = (result.scores[result.main], *result.intervals.get(result.main, ()))
            texts = [score_text(value, percent=result.in_percent) for value in values]
            task = with_label(result.task, result.split, labels[result.key])
            rows.append((task, result.main, str(result.n), *(*texts, "", "")[:3]))
        table = text_table(("task", "score", "n", "value", "95 % from", "to"), rows)
        return "\n".join((table, *(f"{task.task} missing: {task.reason}" for task in self.missing)))


def iter_results(
    encoder: Encodes,
    tasks: Sequence[str],
    context: Context | None = None,
    *,
    known: Sequence[Result] = (),
    progress: EvaluationProgress = lambda _done, _total, _task: None,
    cache: Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> Iterator[Result | Missing]:
    """Yields the results of tasks one by one, and a `Missing` for each task without its data.

    Results in `known` with the same encoder, task, data and settings are yielded as they are
    instead of being scored again. `progress` is called before each task, and by long tasks in
    between. The folder `cache` keeps embeddings for later runs of the same encoder. `about` is the
    encoder's `identity`, if it is known already.

    Raises:
        InputError: a task is unknown, its data is damaged, or the encoder misbehaves.
    """
    context = context or Context()
    wanted = resolve(tasks)
    about = dict(about or identity(encoder))
    by_key = {result.key: result for result in known if dict(result.encoder) == about}
    embedder = Embedder(encoder, about["name"])
    if cache is not None and isinstance(encoder, CachesItself):
        encoder.cache_in(cache)
        cache = None
    with _cached(embedder, None if cache is None else cache / f"{_cache_name(about)}.safetensors"):
        done = 0
        for family, ids in families_of(wanted):
            progress(done, len(wanted), ids[0])
            reused = _reused(family, context, ids, by_key)
            yield from (result for results in reused.values() for result in results)
            left = [task for task in ids if task not in reused]
            tell = partial(_tell, progress, done, len(wanted), ids[0])
            yield from _scored(family, embedder, replace(context, tell=tell), left, about)
            done += len(ids)
        progress(done, len(wanted), "")


def _tell(progress: EvaluationProgress, done: int, total: int, task: str, doing: str) -> None:
    progress(done, total, f"{task}: {doing}")


@contextmanager
def _cached(embedder: Embedder, path: Path | None) -> Iterator[None]:
    """Reads the embeddings of a file, claims it meanwhile, and writes it at the end."""
    if path is None:
        yield
        return
    with claim(path):
        embedder.load(path)
        yield
        embedder.save(path)


def _reused(
    family: Family, context: Context, ids: Sequence[str], known: Mapping[Key, Result]
) -> dict[str, list[Result]]:
    """Returns the known results of those tasks of which the results of all splits are known."""
    settings = settings_key(family.settings(context))
    likely = [task for task in ids if any(key[0] == task and key[3] == settings for key in known)]
    if not likely:
        return {}
    try:
        hashes = family.hashes(context, likely)
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


def _cache_name(about: Mapping[str, object]) -> str:
    """Returns a name for an encoder that is the same for the same weights only."""
    if "sha256" not in about:
        raise InputError(
            f"{about.get('name')} can't be cached: its describe() tells no sha256, by which "
            "another version of it would be known."
        )
    return sha256_of(json.dumps(about, sort_keys=True).encode())[:32]


def collect(
    outcomes: Iterator[Result | Missing],
    known: Sequence[Result] = (),
    *,
    skip_missing: bool = False,
) -> Results:
    """Returns what `iter_results` yields, given the earlier results `known`, as one sequence.

    Raises:
        DataMissingError: the data of a task is missing, and `skip_missing` is False.
    """
    results: list[Result] = []
    missing: list[Missing] = []
    for outcome in outcomes:
        if isinstance(outcome, Result):
            results.append(outcome)
        elif skip_missing:
            missing.append(outcome)
        else:
            raise DataMissingError(f"{outcome.task}: {outcome.reason}")
    reused = sum(any(result is old for old in known) for result in results)
    return Results(tuple(results), tuple(missing), reused)
