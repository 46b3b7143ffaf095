"""`sick-r/cosine`: similarities of SICK's pairs against their relatedness, without training.

Peers publish correlations over all 9,927 pairs (train, trial and test); papers those of test.
"""

from collections.abc import Sequence

import numpy as np

from rejoinder.datasets.sentence_pairs import SentencePairSet, read_sick
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.metrics.correlation import correlations
from rejoinder.evaluation.notes import row_notes
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes

_PARTS = {"test": ("test",), "all": ("train", "dev", "test")}
"""Splits of SICK by split of the results."""


def _run(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    data = read_sick(context.folder("sick"))
    pairs = [pair for split in _PARTS["all"] for pair in zip(*_texts(data, [split]), strict=True)]
    embedder.prepare(ids[0], [text for pair in pairs for text in pair])
    return [_scored(embedder, data, split, ids[0], context.seed) for split in _PARTS]


def _scored(embedder: Embedder, data: SentencePairSet, split: str, task: str, seed: int) -> Result:
    parts = [data.splits[part] for part in _PARTS[split]]
    first, second = _texts(data, _PARTS[split])
    gold = np.concatenate([part.scores for part in parts])
    values, notes = embedder.similarity(first, second, f"{task} on {split}")
    names = [name for part in parts for name in part.ids]
    sizes = {part: len(data.splits[part]) for part in _PARTS[split]}
    return Result(
        task=task,
        split=split,
        n=len(gold),
        main="pearson",
        scores=correlations(values, gold),
        intervals={
            "pearson": correlation_interval(values, gold, seed),
            "spearman": correlation_interval(values, gold, seed, ranks=True),
        },
        groups={},
        seed=seed,
        data={"name": data.name, "sha256": data.sha256},
        notes=(*row_notes("sick", sizes), *notes),
        items=Items(names, values, gold, joined(first, second)),
    )


def _texts(data: SentencePairSet, parts: Sequence[str]) -> tuple[list[str], list[str]]:
    splits = [data.splits[part] for part in parts]
    first = [text for split in splits for text in split.first]
    return first, [text for split in splits for text in split.second]


def _hashes(context: Context, ids: Sequence[str]) -> Hashes:
    sha256 = read_sick(context.folder("sick")).sha256
    return {(ids[0], split): sha256 for split in _PARTS}


FAMILIES = (Family({"sick-r/cosine": ("sick-r",)}, _run, _hashes),)
