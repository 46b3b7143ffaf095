"""Several tasks, one encoder: the library call behind `rejoinder evaluate`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import InputError
from rejoinder.evaluation.results import Result, stamp
from rejoinder.evaluation.tasks import resolve
from rejoinder.evaluation.tasks.response import ResponsePairs, rank_responses
from rejoinder.evaluation.tasks.stsb import score_stsb
from rejoinder.protocols import Describes, Encodes


def evaluate(
    encoder: Encodes,
    tasks: Sequence[str],
    *,
    data: Path | None = None,
    pairs: Callable[[], ResponsePairs] | None = None,
    form: str | None = None,
    splits: Sequence[str] = ("dev", "test"),
    seed: int = 0,
) -> Iterator[Result]:
    """The results of `tasks`, one after the other.

    Args:
        encoder: anything that encodes.
        tasks: groups or ids of tasks.
        data: folder with the STS Benchmark, for `stsb`.
        pairs: reads the pairs that `response` ranks.
        form: form of the STS Benchmark: official or senteval; none: what is there.
        splits: splits of the STS Benchmark.
        seed: of draws and intervals.

    Raises:
        InputError: a task is unknown, its data is not there, or the encoder misbehaves.
    """
    wanted = resolve(tasks)
    about = _identity(encoder)
    if "response/p@n" in wanted:
        if pairs is None:
            raise InputError("the task response needs pairs; name their folder with --pairs.")
        begun = time.perf_counter()
        result = rank_responses(encoder, pairs(), seed=seed)
        yield stamp(result, about, time.perf_counter() - begun)
    if measures := [task for task in wanted if task.startswith("stsb/")]:
        if data is None:
            raise InputError("the task stsb needs the STS Benchmark; name its folder with --data.")
        for split in splits:
            graded = read_stsb(data, split, form)
            begun = time.perf_counter()
            for result in score_stsb(encoder, graded, seed=seed):
                if result.task in measures:
                    yield stamp(result, about, time.perf_counter() - begun)


def _identity(encoder: Encodes) -> Mapping[str, Any]:
    if isinstance(encoder, Describes):
        return dict(encoder.describe())
    return {"name": type(encoder).__name__}
