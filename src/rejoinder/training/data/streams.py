"""Opens the streams of a run: its pairs and labelled files as batches of token ids."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from rejoinder.errors import TrainingError
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.config.tasks import Task
from rejoinder.training.data.batches import Part, Stream
from rejoinder.training.data.id_cache import IdCache, text_key
from rejoinder.training.data.labelled import LabelledStream
from rejoinder.training.data.mixture import Mixture
from rejoinder.training.data.preparation import Data, Prepared, labelled_facts
from rejoinder.training.data.stream import PairStream
from rejoinder.training.objectives import OBJECTIVES
from rejoinder.training.workers.division import check_divisible

_IDS = "ids"
"""Folder of the cache of token ids in that of the run."""


def open_cache(
    run: Path, config: RunConfig, data: Data, prepared: Prepared, workers: int
) -> IdCache | None:
    """Returns the cache of token ids of one of so many workers; None if the config has none."""
    most = config.training.id_cache_gb
    if not most or not config.reads_pairs:
        remove_cache(run)
        return None
    text = text_key(run / "vocabulary", prepared.features.config())
    return IdCache(run / _IDS, data.needed_pairs(), text, most * 1e9, workers)


def remove_cache(run: Path) -> None:
    """Removes the cache of token ids of a run."""
    shutil.rmtree(run / _IDS, ignore_errors=True)


def open_mixture(
    config: RunConfig,
    data: Data,
    prepared: Prepared,
    cache: IdCache | None,
    chosen: Sequence[Task],
    part: Part,
) -> Mixture:
    """Opens the streams of the tasks `chosen`, of which a worker takes a `part` of each batch.

    Raises:
        TrainingError: a labelled file is not the one that the run began with.
        InputError: a labelled file has too few rows for so many workers.
    """
    seed = config.training.seed
    labelled = data.labelled(config)
    facts = labelled_facts(labelled)
    for name in {**facts, **prepared.labelled}:
        if facts.get(name) != prepared.labelled.get(name):
            raise TrainingError(
                f"{name} is not the file that the run began with; name the folder of that file "
                "with --data."
            )
    tasks = []
    for task, files in labelled:
        if task not in chosen:
            continue
        for file in files:
            check_divisible(len(file.examples), f"{task.label} from {file.name}", part.count)
        dropout = task.word_dropout
        if dropout is None:
            dropout = config.objective.word_dropout
        streams: list[Stream] = [
            LabelledStream(file, prepared.features, seed=seed, word_dropout=dropout, part=part)
            for file in files
        ]
        kind = OBJECTIVES[task.objective]
        if kind.read is None:
            streams = [
                PairStream(
                    data.needed_pairs(),
                    prepared.features,
                    window_pairs=config.training.window_pairs,
                    seed=seed,
                    excluded=prepared.excluded,
                    word_dropout=dropout,
                    cache=cache,
                    part=part,
                )
            ]
        tasks.append((task, streams))
    return Mixture(tasks, seed)
