"""SentEval's trained regressions: `sick-r/senteval-regression`, `stsb/senteval-regression`."""

from collections.abc import Sequence

import numpy as np

from rejoinder.datasets.sentence_pairs import SentencePairSet, read_sick
from rejoinder.datasets.sts import GradedPairs, read_stsb
from rejoinder.evaluation.classifiers.relatedness import Graded, fit_relatedness
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.published_rows import row_notes
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.tasks.base import Context, Family
from rejoinder.evaluation.tasks.classification import pair_features, published_order
from rejoinder.files.hashed import sha256_of
from rejoinder.measures.arrays import Floats
from rejoinder.measures.correlation import pearson_correlation
from rejoinder.measures.ranks import spearman_correlation

_SPLITS = ("train", "dev", "test")
Texts = tuple[Sequence[str], Sequence[str]]


def _run_stsb(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    parts = _stsb(context)
    texts: list[Texts] = [(part.first, part.second) for part in parts]
    gold = [part.gold for part in parts]
    data = {"name": "stsb", "form": parts[0].form, "sha256": _sha256(parts)}
    notes = (f"the {parts[0].form} form of the data", "grades 0 to 5; the original has 1 to 5")
    return [_result(ids[0], embedder, texts, gold, (0, 5), parts[2].ids, data, notes, context)]


def _run_sick(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    whole = _sick(context)
    parts = [whole.splits[split] for split in _SPLITS]
    texts: list[Texts] = [(part.first, part.second) for part in parts]
    gold = [part.scores for part in parts]
    data = {"name": "SICK", "sha256": whole.sha256}
    notes = row_notes("sick", {split: len(whole.splits[split]) for split in _SPLITS})
    return [_result(ids[0], embedder, texts, gold, (1, 5), parts[2].ids, data, notes, context)]


def _result(
    task: str,
    embedder: Embedder,
    texts: Sequence[Texts],
    gold: Sequence[Floats],
    grades: tuple[int, int],
    ids: Sequence[str],
    data: dict[str, str],
    notes: tuple[str, ...],
    context: Context,
) -> Result:
    embedder.prepare(task, [text for first, second in texts for text in (*first, *second)])
    train, dev, test = (
        Graded(pair_features(embedder.embed(first, task), embedder.embed(second, task)), scores)
        for (first, second), scores in zip(texts, gold, strict=True)
    )
    settings = context.classifiers
    if settings.regressor == "pytorch":
        order = published_order(texts[0], gold[0].tolist())
        train = Graded(train.features[order], train.gold[order])
    found = fit_relatedness(train, dev, test, grades, settings)
    predictions = found.test
    first, second = texts[2]
    return Result(
        task=task,
        split="test",
        n=len(ids),
        main="pearson_trained",
        scores={
            "pearson_trained": pearson_correlation(predictions, test.gold),
            "spearman_trained": spearman_correlation(predictions, test.gold),
            "mse": float(np.mean((predictions - test.gold) ** 2)),
            "dev_pearson_trained": pearson_correlation(found.dev, dev.gold),
            "dev_spearman_trained": spearman_correlation(found.dev, dev.gold),
        },
        intervals={"pearson_trained": correlation_interval(predictions, test.gold, context.seed)},
        groups={},
        seed=settings.seed,
        data={**data, "dev_n": len(dev.gold)},
        notes=(f"regression {settings.regressor}, mode {settings.mode}", *notes),
        items=Items(
            ids,
            predictions,
            test.gold,
            [f"{a} | {b}" for a, b in zip(first, second, strict=True)],
        ),
    )


def _sick(context: Context) -> SentencePairSet:
    return read_sick(context.folder("sick"))


def _stsb(context: Context) -> list[GradedPairs]:
    return [read_stsb(context.folder("stsb"), split, context.form) for split in _SPLITS]


def _sha256(parts: Sequence[GradedPairs]) -> str:
    """Of all that decides the scores: the test split, and those that the model is fitted on."""
    return sha256_of("".join(part.sha256 for part in parts).encode())


FAMILIES = (
    Family(
        {"sick-r/senteval-regression": ("sick-r", "senteval")},
        _run_sick,
        lambda context, ids: {(ids[0], "test"): _sick(context).sha256},
        protocol="regression",
    ),
    Family(
        {"stsb/senteval-regression": ("senteval",)},
        _run_stsb,
        lambda context, ids: {(ids[0], "test"): _sha256(_stsb(context))},
        protocol="regression",
    ),
)
