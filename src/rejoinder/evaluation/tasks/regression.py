"""SentEval's trained regressions: `sick-r/senteval-regression`, `stsb/senteval-regression`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rejoinder.datasets.sentence_pairs import read_sick
from rejoinder.datasets.sts import read_stsb
from rejoinder.evaluation.classifiers.relatedness import Graded, fit_relatedness
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.metrics.correlation import correlations
from rejoinder.evaluation.notes import row_notes
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.tasks.base import Context, Data, Family
from rejoinder.evaluation.tasks.classification import pair_features, published_order
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats

_SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class _Data:
    """Graded pairs of train, dev and test, the ids of test, and the lowest and highest grade."""

    texts: Sequence[tuple[list[str], list[str]]]
    gold: Sequence[Floats]
    ids: Sequence[str]
    grades: tuple[int, int]
    facts: Mapping[str, str]
    sha256: str
    notes: tuple[str, ...]


def _read_stsb(context: Context) -> _Data:
    parts = [read_stsb(context.folder("stsb"), split, context.form) for split in _SPLITS]
    form = parts[0].form
    # the model is fitted on two of the splits and scored on one
    sha256 = sha256_of("".join(part.sha256 for part in parts).encode())
    return _Data(
        [(part.first, part.second) for part in parts],
        [part.gold for part in parts],
        parts[2].ids,
        (0, 5),
        {"name": "stsb", "form": form},
        sha256,
        (f"the {form} form of the data", "grades 0 to 5; the original has 1 to 5"),
    )


def _read_sick(context: Context) -> _Data:
    data = read_sick(context.folder("sick"))
    parts = [data.splits[split] for split in _SPLITS]
    return _Data(
        [(part.first, part.second) for part in parts],
        [part.scores for part in parts],
        parts[2].ids,
        (1, 5),
        {"name": "SICK"},
        data.sha256,
        row_notes("sick", {split: len(data.splits[split]) for split in _SPLITS}),
    )


def _run(embedder: Embedder, context: Context, parts: Data) -> list[Result]:
    [((task, _), data)] = parts.items()
    settings = context.classifiers
    embedder.prepare(task, [text for first, second in data.texts for text in (*first, *second)])
    train, dev, test = (
        Graded(pair_features(embedder.embed(first, task), embedder.embed(second, task)), gold)
        for (first, second), gold in zip(data.texts, data.gold, strict=True)
    )
    if settings.regressor == "pytorch":
        order = published_order(data.texts[0], train.gold.tolist())
        train = Graded(train.features[order], train.gold[order])
    fitted = fit_relatedness(train, dev, test, data.grades, settings)
    items = Items(data.ids, fitted.test, test.gold, joined(*data.texts[2]))
    on_dev = correlations(fitted.dev, dev.gold)
    return [
        Result(
            task=task,
            split="test",
            n=len(data.ids),
            main="pearson_trained",
            scores={
                **metric_of("pearson_trained").recompute(items),
                **{f"dev_{name}_trained": score for name, score in on_dev.items()},
            },
            intervals={
                "pearson_trained": correlation_interval(fitted.test, test.gold, context.seed)
            },
            groups={},
            seed=settings.seed,
            data={**data.facts, "sha256": data.sha256, "dev_n": len(dev.gold)},
            notes=(f"regression {settings.regressor}, mode {settings.mode}", *data.notes),
            items=items,
        )
    ]


def _family(
    task: str,
    groups: tuple[str, ...],
    read: Callable[[Context], _Data],
    options: tuple[str, ...] = (),
) -> Family:
    def read_task(context: Context, _ids: Sequence[str]) -> Data:
        return {(task, "test"): read(context)}

    return Family({task: groups}, read_task, _run, protocol="regression", options=options)


FAMILIES = (
    _family("sick-r/senteval-regression", ("sick-r", "senteval"), _read_sick),
    _family("stsb/senteval-regression", ("senteval",), _read_stsb, ("form",)),
)
