"""Tweets, questions and intents: which pairs mean the same, and do groups come out?

`pairs/…`: average precision of cosines, as pair classification of MTEB.
`cluster/…`: the V-measure of mini-batch k-means, as in MTEB, on the test questions. `classify/…`:
logistic regression on frozen embeddings, trained on train.
"""

from collections.abc import Sequence

import numpy as np

from rejoinder.datasets.labelled import LabelledSet
from rejoinder.datasets.short_texts import (
    INTENTS,
    PAIRS,
    ClassedPairs,
    read_intents,
    read_pairs,
)
from rejoinder.errors import require
from rejoinder.evaluation.classifiers.learners import ClassifierSettings, FastLearner, Fold
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.metrics import Items, joined
from rejoinder.evaluation.resampled import (
    AVERAGE_PRECISION,
    V_MEASURE,
    average_precision,
    score_interval,
    v_measure,
)
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part

_BATCH = 500
"""Texts of a mini-batch in MTEB."""
_C = 1.0
"""Inverse of the penalty, as in MTEB. SentEval's grids take hours with 150 classes."""
RUNS = 10
"""Number of clusterings, each with its own seed."""


def _read_pairs(context: Context, ids: Sequence[str]) -> Data:
    return {(ids[0], "test"): read_pairs(context.folder(ids[0]), ids[0].split("/")[1])}


def _run_pairs(embedder: Embedder, context: Context, part: Part, pairs: ClassedPairs) -> Scored:
    embedder.prepare(part[0], [*pairs.first, *pairs.second])
    similarity, notes = embedder.similarity(pairs.first, pairs.second, part[0])
    items = Items(
        [f"test:{row}" for row in range(len(similarity))],
        similarity,
        pairs.same.astype(np.float64),
        joined(pairs.first, pairs.second),
    )
    return Scored(
        AVERAGE_PRECISION.name,
        AVERAGE_PRECISION.recompute(items),
        items,
        {AVERAGE_PRECISION.name: score_interval(average_precision, items, context.seed)},
        data={"name": part[0]},
        notes=[f"{int(pairs.same.sum()):,} pairs mean the same", *notes],
    )


def _read_intents(context: Context, ids: Sequence[str]) -> Data:
    return {(ids[0], "test"): read_intents(context.folder(ids[0]), ids[0].split("/")[1])}


def _run_clusters(embedder: Embedder, context: Context, part: Part, data: LabelledSet) -> Scored:
    require("eval", "sklearn")
    from sklearn.cluster import MiniBatchKMeans

    texts, labels = data.splits["test"].sentences, data.splits["test"].labels
    embedder.prepare(part[0], texts)
    rows = embedder.embed(texts, part[0])
    count = len(np.unique(labels))
    clusters = []
    for run in range(RUNS):
        context.tell(f"clustering {run + 1} of {RUNS}")
        seed = context.seed + run
        way = MiniBatchKMeans(count, batch_size=_BATCH, n_init="auto", random_state=seed)
        clusters.append(way.fit_predict(rows).astype(np.float64))
    items = Items(
        [f"run {run}:{row}" for run in range(RUNS) for row in range(len(texts))],
        np.concatenate(clusters),
        np.tile(labels.astype(np.float64), RUNS),
        texts * RUNS,
    )
    return Scored(
        V_MEASURE.name,
        V_MEASURE.recompute(items),
        items,
        {V_MEASURE.name: score_interval(v_measure, items, context.seed)},
        data={"name": part[0], "texts": len(texts), "classes": count},
        notes=[f"the mean of {RUNS} clusterings"],
    )


def _run_classes(embedder: Embedder, context: Context, part: Part, data: LabelledSet) -> Scored:
    train, test = data.splits["train"], data.splits["test"]
    texts = [*train.sentences, *test.sentences]
    embedder.prepare(part[0], texts)
    rows, labels = embedder.embed(texts, part[0]), np.concatenate([train.labels, test.labels])
    fold = Fold(*np.split(np.arange(len(labels)), [len(train)]))
    [[predicted]] = FastLearner(ClassifierSettings(), rows, labels).predict([fold], [[_C]])
    right = (predicted == test.labels).astype(np.float64)
    return Scored(
        "accuracy",
        {"accuracy": 100 * float(right.mean())},
        Items(
            [f"test:{row}" for row in range(len(test))],
            predicted.astype(np.float64),
            test.labels.astype(np.float64),
            test.sentences,
        ),
        {"accuracy": mean_interval(right, context.seed, unit=100)},
        data={"name": part[0]},
        notes=[f"logistic regression on {len(train):,} questions of train, C = {_C:g}"],
    )


FAMILIES = (
    *(Family({f"pairs/{name}": ("pairs",)}, _read_pairs, _run_pairs) for name in PAIRS),
    *(
        Family({f"{kind}/{name}": (kind,)}, _read_intents, run)
        for kind, run in (("cluster", _run_clusters), ("classify", _run_classes))
        for name in INTENTS
    ),
)
