"""Scores one encoder on several tasks.

Also notes leaks into the training data, and data that is not as published.
"""

import datetime
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, overload

from rejoinder.datasets.catalogue import official_rows
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.encoding import Embedder, Meter, identity
from rejoinder.evaluation.results import (
    Key,
    Missing,
    Result,
    Scored,
    score_text,
    settings_key,
    variants,
    with_label,
)
from rejoinder.evaluation.tasks import Context, Data, Part, families_of, resolve, set_of
from rejoinder.evaluation.vector_cache import VectorCache
from rejoinder.io.formats.shown import Shown, View
from rejoinder.measures import ScoringError
from rejoinder.protocols import CachesItself, Encodes
from rejoinder.version import VERSION, commit

EvaluationProgress = Callable[[int, int, str], None]
"""Called with the number of finished tasks, the number of all tasks, and the current one: its id,
sometimes followed by its current step."""


@dataclass(frozen=True, repr=False)
class Results(Shown, Sequence[Result]):
    """The results of an encoder in the order of its tasks; printing shows the main scores."""

    results: tuple[Result, ...]
    missing: tuple[Missing, ...] = ()
    """Tasks that could not be scored because their data is missing."""
    reused: int = 0
    """Number of results reused from the results file instead of being scored."""

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Result, ...]: ...
    def __getitem__(self, index: int | slice) -> Result | tuple[Result, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def view(self) -> View:
        """Returns the main scores of all tasks."""
        labels = variants(self.results)
        rows = []
        for result in self.results:
            values = (result.scores[result.main], *result.intervals.get(result.main, ()))
            texts = [score_text(value, percent=result.in_percent) for value in values]
            task = with_label(result.task, result.split, labels[result.key])
            rows.append((task, result.main, result.n, *(*texts, "", "")[:3]))
        encoder = self.results[0].encoder.get("name", "") if self.results else ""
        missing = (f"{task.task} missing: {task.reason}" for task in self.missing)
        title = "; ".join(filter(None, (str(encoder), *missing)))
        return View(title, ("task", "score", "n", "value", "95 % from", "to"), rows)


def score_tasks(
    encoder: Encodes,
    tasks: Sequence[str],
    context: Context | None = None,
    *,
    known: Sequence[Result] = (),
    progress: EvaluationProgress = lambda _done, _total, _task: None,
    cache: Path | None = None,
    about: Mapping[str, Any] | None = None,
    costs: Callable[[], Mapping[str, float]] = dict,
    request: Mapping[str, Any] | None = None,
    keep: Callable[[Result], Result] = lambda result: result,
    skip_missing: bool = False,
) -> Results:
    """Returns the results of an encoder on tasks, in their order.

    Args:
        encoder: the encoder to score.
        tasks: ids and groups of tasks.
        context: the location of the data, and settings.
        known: earlier results. Those with the same encoder, task, data and settings are reused
            instead of being scored again.
        progress: called before each task, and during long tasks.
        cache: folder that stores embeddings for later runs of the same encoder.
        about: the encoder's `identity`, if it is known already.
        costs: returns further costs for each new result; called once, before the first.
        request: the arguments of `evaluate`; each new result stores them with its own task.
        keep: saves a new result, and returns it with what saving adds.
        skip_missing: list tasks whose data is missing, instead of raising an error at the first.

    Raises:
        DataMissingError: the data of a task is missing, and `skip_missing` is False.
        InputError: a task is unknown, its data is damaged, or the encoder misbehaves.
    """
    context = context or Context()
    wanted = resolve(tasks)
    about = dict(about or identity(encoder))
    by_key = {result.key: result for result in known if dict(result.encoder) == about}
    embedder = Embedder(encoder, about["name"], _cache(encoder, about, cache))
    results: list[Result] = []
    missing: list[Missing] = []
    more: Mapping[str, float] | None = None
    done = taken = 0
    for family, ids in families_of(wanted):
        progress(done, len(wanted), ids[0])

        def tell(doing: str, done: int = done, task: str = ids[0]) -> None:
            progress(done, len(wanted), f"{task}: {doing}")

        begun, settings = time.perf_counter(), family.settings(context)
        embedder.meter = meter = Meter()
        reused: list[Result] = []
        found: Mapping[Part, Scored] = {}
        try:
            data = family.read(context, ids)
            reused = _reused(data, settings, by_key)
            left = {part: data[part] for part in data if part[0] not in {r.task for r in reused}}
            told = replace(context, tell=tell)
            found = {part: family.run(embedder, told, part, value) for part, value in left.items()}
        except DataMissingError as error:
            if not skip_missing:
                raise DataMissingError(f"{ids[0]}: {error}") from None
            known_tasks = {result.task for result in reused}
            missing += (Missing(task, str(error)) for task in ids if task not in known_tasks)
        except ScoringError as error:
            raise InputError(f"{ids[0]}, encoder {embedder.name}: {error}") from None
        results += reused
        taken += len(reused)
        seconds = (time.perf_counter() - begun) / max(len(found), 1)
        if found and more is None:
            more = costs()
        cost = {**meter.cost(), **(more or {})}
        for (task, split), scored in found.items():
            notes = (*scored.notes, leak_note(task, split, about))
            about_data = {**scored.data, "sha256": data[task, split].sha256}
            result = Result(
                task=task,
                split=split,
                n=len(scored.items.ids),
                seed=context.classifiers.seed if family.protocol else context.seed,
                seconds=round(seconds, 3),
                cost=cost,
                encoder=about,
                dtype=embedder.dtype,
                date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                versions=_versions(),
                machine=_machine(),
                settings=settings,
                run={} if request is None else {**request, "tasks": task},
                **vars(scored) | {"data": about_data, "notes": tuple(filter(None, notes))},
            )
            results.append(keep(result))
        done += len(ids)
    progress(done, len(wanted), "")
    return Results(tuple(results), tuple(missing), taken)


def _reused(data: Data, settings: Mapping[str, Any], known: Mapping[Key, Result]) -> list[Result]:
    """Returns the known results of tasks whose splits all have a known result."""
    keys = {part: (*part, read.sha256, settings_key(settings)) for part, read in data.items()}
    new = {task for (task, _), key in keys.items() if key not in known}
    return [known[key] for (task, _), key in keys.items() if task not in new]


@cache
def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("numpy", "scipy")}
    checkout = {} if (known := commit()) is None else {"commit": known}
    return {"rejoinder": VERSION, **checkout, "python": platform.python_version(), **libraries}


def _machine() -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


def _cache(encoder: Encodes, about: Mapping[str, Any], folder: Path | None) -> VectorCache | None:
    if folder is None:
        return None
    if isinstance(encoder, CachesItself):
        encoder.cache_in(folder)
        return None
    if "sha256" not in about:
        raise InputError(f"{about['name']} can't be cached: its describe() has no sha256.")
    return VectorCache(folder / "embeddings.sqlite", json.dumps(about, sort_keys=True))


_SET_NAMES = {"sts17": "sts2017", "translation": "flores200", "robust": "stsb-dev"}
"""Tasks whose evaluation set has another name in the list of leak sets."""
_BY_SPLIT = ("stsb", "snli", "mrpc", "sst2", "trec")
"""Tasks whose splits are separate evaluation sets."""
_BY_NAME = dict.fromkeys(("pairs", "cluster", "classify", "rerank"), "")
_BY_NAME |= {"cqa-b": "cqa", "semrel": "semrel-"}
"""Tasks whose ids name one of several sets, by split, with the prefix of the set's name."""
_UNCHECKED = ("response", "bias")
"""Tasks without leaks: the splits of pairs have different threads from train, and `bias` has no
right answer that training could reveal."""


def leak_note(task: str, split: str, encoder: Mapping[str, object]) -> str | None:
    """Returns a sentence on leaks from the evaluation set into an encoder's training data.

    Returns None if the encoder does not describe the `leak_sets` of its training, as rejoinder
    models do, or if the task needs no check.
    """
    training = encoder.get("training")
    if not isinstance(training, Mapping) or "leak_sets" not in training:
        return None
    if (family := set_of(task)) in _UNCHECKED:
        return None
    if family in _BY_NAME:
        name = f"{_BY_NAME[family]}{task.partition('/')[2]}-{split}"
    else:
        name = f"{family}-{split}" if family in _BY_SPLIT else _SET_NAMES.get(family, family)
    sets = training["leak_sets"]
    if not isinstance(sets, list | tuple) or name not in sets:
        return "the training data was not checked for sentences of this set"
    dropped = training.get("leaks_dropped")
    count = f"{dropped:,} pairs" if isinstance(dropped, int) else "all pairs"
    others = len(sets) - 1
    more = f" or of {others} other {'set' if others == 1 else 'sets'}" if others else ""
    return f"training left out {count} with sentences of {name}{more}"


def row_notes(name: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Returns a sentence for each split of a data set without the published number of rows.

    >>> row_notes("sick", {"train": 299, "test": 4927})
    ('train of sick has 299 rows, and 4,500 were published: the scores are of another set',)
    """
    return tuple(
        f"{split} of {name} has {count:,} rows, and {published:,} were published: the scores are "
        "of another set"
        for split, count in counts.items()
        if (published := official_rows(name, split)) not in (None, count)
    )
