"""SentEval's trained regressions: `sick-r/senteval-regression`, `stsb/senteval-regression`."""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.datasets.labelled import read_sick
from rejoinder.datasets.semeval import GradedPairs, read_stsb
from rejoinder.evaluation.classifiers.relatedness import Graded, fit_relatedness
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.metrics import Items, correlations, joined, metric_of
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.evaluation.tasks.classification import pair_features, published_order
from rejoinder.evaluation.tasks.similarity import sick_pairs
from rejoinder.io.files.hashed import sha256_of

_SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class _Data:
    """Graded pairs of train, dev and test, and the lowest and highest grade."""

    name: str
    parts: Sequence[GradedPairs]
    grades: tuple[int, int]
    sha256: str
    notes: tuple[str, ...]


def _read_stsb(context: Context, ids: Sequence[str]) -> Data:
    parts = [read_stsb(context.folder("stsb"), split, context.form) for split in _SPLITS]
    # the model is fitted on two of the splits and scored on one
    sha256 = sha256_of("".join(part.sha256 for part in parts).encode())
    notes = f"the {parts[0].form} form of the data", "grades 0 to 5; the original has 1 to 5"
    return {(ids[0], "test"): _Data("stsb", parts, (0, 5), sha256, notes)}


def _read_sick(context: Context, ids: Sequence[str]) -> Data:
    data = read_sick(context.folder("sick"))
    parts = [sick_pairs(data, split, [split]) for split in _SPLITS]
    notes = row_notes("sick", {part.split: len(part) for part in parts})
    return {(ids[0], "test"): _Data("SICK", parts, (1, 5), data.sha256, notes)}


def _run(embedder: Embedder, context: Context, part: Part, data: _Data) -> Scored:
    task, settings = part[0], context.classifiers
    embedder.prepare(task, [text for part in data.parts for text in (*part.first, *part.second)])
    train, dev, test = (
        Graded(
            pair_features(embedder.embed(part.first, task), embedder.embed(part.second, task)),
            part.gold,
        )
        for part in data.parts
    )
    pairs = data.parts[0]
    if settings.regressor == "pytorch":
        order = published_order([pairs.first, pairs.second], train.gold.tolist())
        train = Graded(train.features[order], train.gold[order])
    dev_grades, grades = fit_relatedness(train, dev, test, data.grades, settings)
    scored = data.parts[2]
    items = Items(scored.ids, grades, test.gold, joined(scored.first, scored.second))
    on_dev = correlations(dev_grades, dev.gold)
    form = {"form": pairs.form} if pairs.form else {}
    return Scored(
        main="pearson_trained",
        scores={
            **metric_of("pearson_trained").recompute(items),
            **{f"dev_{name}_trained": score for name, score in on_dev.items()},
        },
        intervals={"pearson_trained": correlation_interval(grades, test.gold, context.seed)},
        data={"name": data.name, **form, "dev_n": len(dev.gold)},
        notes=[f"regression {settings.regressor}, mode {settings.mode}", *data.notes],
        items=items,
    )


FAMILIES = (
    Family(
        {"sick-r/senteval-regression": ("sick-r", "senteval")},
        _read_sick,
        _run,
        protocol="regression",
    ),
    Family(
        {"stsb/senteval-regression": ("senteval",)},
        _read_stsb,
        _run,
        protocol="regression",
        options=("form",),
    ),
)
