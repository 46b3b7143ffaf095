"""Tasks that train a model on frozen embeddings: SentEval's tasks, and intents.

SentEval has three ways to choose a classifier's penalty and score it, regressions, and COCO:
retrieval of image captions and of images by captions. `snli/head` is natural language
inference by the encoder's own classifier. `classify/…` is logistic regression, trained on train;
`cluster/…` is the V-measure of mini-batch k-means on the test questions, as in MTEB.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.datasets import labelled
from rejoinder.datasets.groups import InferencePairs, read_snli_split
from rejoinder.datasets.labelled import INTENTS, NLI_CLASSES, Captioned, LabelledSet
from rejoinder.datasets.semeval import GradedPairs, read_stsb
from rejoinder.errors import DataMissingError, InputError, require
from rejoinder.evaluation.classifiers.learners import (
    ClassifierSettings,
    FastLearner,
    Features,
    Fold,
    Graded,
    Labels,
    Learner,
    LibraryLearner,
    fit_grades,
)
from rejoinder.evaluation.encoding import Embedder, call, numbers_of
from rejoinder.evaluation.intervals import correlation_interval, mean_interval
from rejoinder.evaluation.metrics import Items, correlations, f1_score, joined, metric_of, numbered
from rejoinder.evaluation.resampled import V_MEASURE, score_interval, v_measure
from rejoinder.evaluation.results import Group, Scored, classified, recomputed
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part, reads, reads_splits
from rejoinder.evaluation.tasks.similarity import sick_pairs
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats, Indices, ScoringError
from rejoinder.protocols import Embeddings, Entails


def _run_inference(
    embedder: Embedder, context: Context, part: Part, pairs: InferencePairs
) -> Scored:
    encoder, (task, split) = embedder.encoder, part
    if not isinstance(encoder, Entails) or not encoder.entails:
        raise DataMissingError(f"{task} needs an encoder with a classifier, a method entail.")
    who = embedder.who(task, "entail")
    returned = call(encoder.entail, pairs.premises, pairs.hypotheses, who=who)
    shape = len(pairs), len(NLI_CLASSES)
    probabilities = numbers_of(returned, shape, who, "(N, 3) probabilities are")
    if not np.isfinite(probabilities).all():
        raise InputError(f"{who} returned a value that is not finite; probabilities are needed.")
    predicted = probabilities.argmax(axis=1)
    return classified(
        numbered(split, predicted, pairs.labels, joined(pairs.premises, pairs.hypotheses)),
        context.seed,
        groups=_confusions(pairs.labels, predicted),
        notes=row_notes("snli", {split: len(pairs)}),
        data={"name": "snli", "unlabelled": pairs.dropped},
    )


def _confusions(gold: Indices, predicted: Indices) -> dict[str, Group]:
    """Returns the cells of the confusion matrix: counts, and shares of the gold class, 0 to 1."""
    cells = {}
    for label, name in enumerate(NLI_CLASSES):
        answers = predicted[gold == label]
        for answer, other in enumerate(NLI_CLASSES):
            count = int((answers == answer).sum())
            share = count / max(len(answers), 1)
            cells[f"is {name}, said {other}"] = Group(count, {"share": share})
    return cells


@dataclass(frozen=True)
class Outcome:
    """A classifier's accuracies in percent, and its predictions."""

    dev_accuracy: float
    """On the rows by which the penalty was chosen."""
    test_accuracy: float
    """The mean over folds if `nested`."""
    predictions: Labels
    """(N,) predicted classes of the test rows; for `nested`, from the fold that held each row
    out."""
    folds: Indices | None = None
    """(N,) the fold that held out each row, for `nested`."""


def _folds(labels: Labels, settings: ClassifierSettings, protocol: str) -> list[Fold]:
    """Returns stratified folds of all rows."""
    require("eval", "sklearn")
    from sklearn.model_selection import StratifiedKFold

    rarest = int(np.bincount(labels)[np.unique(labels)].min())
    if settings.kfold > rarest:
        raise ScoringError(
            f"kfold is {settings.kfold}, but the rarest class has only {rarest} of the "
            f"{len(labels):,} rows. Use at most {rarest} folds."
        )
    seed = settings.fold_seed(protocol)
    splitter = StratifiedKFold(settings.kfold, shuffle=True, random_state=seed)
    return [Fold(*rows) for rows in splitter.split(np.zeros(len(labels)), labels)]


def _opened(settings: ClassifierSettings, features: Features, labels: Labels) -> Learner:
    """Returns the learner for these settings, on (N, D) features and (N,) labels."""
    if settings.classifier == "pytorch":
        from rejoinder.evaluation.classifiers.network import NetworkLearner

        return NetworkLearner(settings, features, labels)
    kind = LibraryLearner if settings.classifier == "scikit-learn" else FastLearner
    return kind(settings, features, labels)


def _held_out(
    learner: Learner, folds: Sequence[Fold], grid: Sequence[float], labels: Labels
) -> Floats:
    """Returns (F, G) accuracies from 0 to 1 of G penalties on the test rows of F folds.

    As in SentEval, the test rows also decide when to stop.
    """
    stopping = [fold._replace(stop=fold.test) for fold in folds]
    pairs = zip(folds, learner.predict(stopping, [grid] * len(folds)), strict=True)
    return np.stack([(classes == labels[fold.test]).mean(axis=1) for fold, classes in pairs])


def _best(accuracy: Floats) -> tuple[Any, Any]:
    """Returns the index and the accuracy, in percent, of the best penalty of the last axis."""
    # as in the original, accuracies are rounded before they are compared
    rounded = np.round(100 * accuracy, 2)
    return rounded.argmax(axis=-1), rounded.max(axis=-1)


def fitted_nested(features: Features, labels: Labels, settings: ClassifierSettings) -> Outcome:
    """Cross-validates (N, D) features; each fold's penalty is chosen within its train rows.

    For data without published splits: MR, CR, SUBJ, MPQA.

    Raises:
        ScoringError: a class has fewer rows than there are folds.
        MissingExtraError: a needed library is not installed.
    """
    outer = _folds(labels, settings, "nested")
    inner = [
        Fold(fold.train[part.train], fold.train[part.test])
        for fold in outer
        for part in _folds(labels[fold.train], settings, "nested")
    ]
    learner, grid = _opened(settings, features, labels), settings.grid("nested")
    accuracy = _held_out(learner, inner, grid, labels)
    means = accuracy.reshape(len(outer), settings.kfold, len(grid)).mean(axis=1)
    chosen, dev = _best(means)
    predicted = learner.predict(outer, [[grid[index]] for index in chosen])
    predictions, folds = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
    scores = []
    for index, (fold, [classes]) in enumerate(zip(outer, predicted, strict=True)):
        predictions[fold.test], folds[fold.test] = classes, index
        scores.append(_percent(classes, labels[fold.test]))
    accuracy_of_folds = round(float(np.mean(scores)), 2)
    return Outcome(round(float(dev.mean()), 2), accuracy_of_folds, predictions, folds)


def fitted_split(
    features: Sequence[Features], labels: Sequence[Labels], settings: ClassifierSettings
) -> Outcome:
    """Chooses the penalty on dev, or on folds of train if there is no dev, and predicts test.

    `features`, (N, D) each, and `labels` are of train, dev and test (SST, SICK-E, SNLI, probing),
    or of train and test (TREC, MRPC).

    Raises:
        ScoringError: without dev, a class has fewer train rows than there are folds.
        MissingExtraError: a needed library is not installed.
    """
    ends = np.cumsum([len(part) for part in features])
    train, *dev, test = np.split(np.arange(ends[-1]), ends[:-1])
    protocol = "split" if dev else "kfold"
    folds = [Fold(train, *dev)] if dev else _folds(labels[0], settings, protocol)
    together, grid = np.concatenate(labels), settings.grid(protocol)
    learner = _opened(settings, np.concatenate(features), together)
    index, best = _best(_held_out(learner, folds, grid, together).mean(axis=0))
    [[predictions]] = learner.predict([Fold(train, test, *dev)], [[grid[index]]])
    return Outcome(float(best), _percent(predictions, labels[-1]), predictions)


def _percent(predictions: Labels, labels: Labels) -> float:
    return round(100 * float((predictions == labels).mean()), 2)


def fit_relatedness(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> tuple[Floats, Floats]:
    """Fits a model of grades on train, and returns the mean grades of dev and test.

    Dev chooses the penalty by Spearman's rho (`fast`), or when to stop by Pearson's r (`compat`, as
    in SentEval). In `compat`, the row order of train affects the batches.

    Raises:
        MissingExtraError: `compat` needs PyTorch, which is not installed.
    """
    if settings.mode != "compat":
        return fit_grades(train, dev, test, grades)
    from rejoinder.evaluation.classifiers import network

    return network.fit_grades(train, dev, test, grades, settings)


def pair_features(first: Embeddings, second: Embeddings) -> Embeddings:
    """Returns (N, 2 D) |u - v| and u * v (Tai et al. 2015; SentEval's MRPC, SICK and STS-B)."""
    return np.hstack([np.abs(first - second), first * second])


def inference_features(first: Embeddings, second: Embeddings) -> Embeddings:
    """Returns (N, 4 D) u, v, u * v and |u - v| (SentEval's SNLI)."""
    return np.hstack([first, second, first * second, np.abs(first - second)])


def published_order(texts: Sequence[Sequence[str]], labels: Sequence[float | str]) -> Indices:
    """Returns (N,) indices in the order of SentEval: by number of tokens, then by label.

    SentEval makes folds and draws batches from rows in this order. `texts` are columns of N
    sentences each, sorted by the first column first; `labels` are N classes or grades.
    """
    rows = zip(zip(*texts, strict=True), labels, strict=True)
    keys = [(*(len(text.split()) for text in row), label) for row, label in rows]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


@dataclass(frozen=True)
class _Task:
    """A task of SentEval: its data, and the features for its classifiers."""

    read: Callable[[Path], LabelledSet]
    protocol: str
    features: Callable[..., Embeddings] = lambda embeddings: embeddings
    """Makes features from the embeddings of each column."""

    def run(self, embedder: Embedder, context: Context, part: Part, data: LabelledSet) -> Scored:
        """See `Family`."""
        settings = _adjusted(context.classifiers, data.name)
        texts = [part.columns for part in data.splits.values()]
        labels = [part.labels for part in data.splits.values()]
        embedder.prepare(data.name, [text for columns in texts for text in chain(*columns)])
        ordered = self.protocol != "split" or settings.classifier == "pytorch"
        order = _order(data) if ordered else np.arange(len(labels[0]))
        labels[0] = labels[0][order]
        # the original embeds in its own order, too, and embeddings can depend on their batch
        early = self.protocol != "split" and len(texts[0]) == 1
        if early:
            texts[0] = ([texts[0][0][row] for row in order],)
        features = [
            self.features(*np.split(embedder.embed(list(chain(*columns)), data.name), len(columns)))
            for columns in texts
        ]
        if ordered and not early:
            features[0] = features[0][order]
        if self.protocol == "nested":
            outcome = fitted_nested(features[0], labels[0], settings)
        else:
            outcome = fitted_split(features, labels, settings)
        *_, (split, last) = data.splits.items()
        names = order if self.protocol == "nested" else range(len(last))
        ids = last.ids or [f"{split}:{row}" for row in names]
        items = numbered(split, outcome.predictions, labels[-1], joined(*texts[-1]))
        items = replace(items, ids=ids, folds=outcome.folds)
        scores = {"accuracy": outcome.test_accuracy, "dev_accuracy": outcome.dev_accuracy}
        if data.name == "MRPC":
            scores["f1"] = round(f1_score(items.predictions, items.gold), 2)
        counts = {name: len(part) for name, part in data.splits.items()}
        dev_n = len(labels[-2:][0])  # the split before test: dev, or else train
        facts = {"name": part[0].split("/")[0], "dev_n": dev_n}
        notes = [*row_notes(data.name.lower(), counts), _note(settings, self.protocol)]
        scored = classified(items, context.seed, data=facts, notes=notes)
        return replace(scored, scores=scores)

    def family(self, name: str, group: str = "senteval") -> Family:
        """Returns a family with only this task."""
        tasks = {f"{name}/senteval": (name, group)}
        read = reads(self.read, "all" if self.protocol == "nested" else "test")
        return Family(tasks, read, self.run, protocol=self.protocol)


def _adjusted(settings: ClassifierSettings, name: str) -> ClassifierSettings:
    """Returns the settings that SentEval uses for a data set."""
    if name == "WordContent":
        # there are a thousand classes of words, and the original uses no hidden units
        return replace(settings, nhid=0)
    if name == "SNLI" and settings.mode == "compat":
        # there are half a million pairs, and the original tries a single, tiny penalty
        return replace(settings, noreg=True)
    return settings


def _order(data: LabelledSet) -> Indices:
    """Returns the published order of the first split."""
    first = next(iter(data.splits.values()))
    if data.name == "SNLI":
        return published_order(first.columns[::-1], [NLI_CLASSES[row] for row in first.labels])
    return published_order(first.columns, first.labels.tolist())


def _note(settings: ClassifierSettings, protocol: str) -> str:
    note = f"classifier {settings.classifier}, mode {settings.mode}, nhid {settings.nhid}"
    if protocol == "split":
        return note
    seed = settings.fold_seed(protocol)
    fixed = "" if seed == settings.seed else ", as in the original, whatever the seed"
    return f"{note}, kfold {settings.kfold}, folds drawn with seed {seed}{fixed}"


_SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class _Splits:
    """Graded pairs of train, dev and test, and the lowest and the highest grade."""

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
    return {(ids[0], "test"): _Splits("stsb", parts, (0, 5), sha256, notes)}


def _read_sick(folder: Path) -> _Splits:
    data = labelled.read_sick(folder)
    parts = [sick_pairs(data, split, [split]) for split in _SPLITS]
    notes = row_notes("sick", {part.split: len(part) for part in parts})
    return _Splits("SICK", parts, (1, 5), data.sha256, notes)


def _run_regression(embedder: Embedder, context: Context, part: Part, data: _Splits) -> Scored:
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


_COCO = "COCO"
_COCO_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class _CocoSplits:
    """Two splits to fit, one to score, and their hash."""

    parts: list[Captioned]
    sha256: str


def _read_coco(folder: Path) -> _CocoSplits:
    parts = [labelled.read_coco(folder, split) for split in _COCO_SPLITS]
    return _CocoSplits(parts, sha256_of("".join(part.sha256 for part in parts).encode()))


def _run_coco(embedder: Embedder, context: Context, _part: Part, splits: _CocoSplits) -> Scored:
    embedder.prepare(_COCO, [text for part in splits.parts for text in part.captions])
    # torch is imported after the data was read: if both are missing, the data is reported
    from rejoinder.evaluation.classifiers.network import Side, fit_retrieval

    sides = [Side(part.features, embedder.embed(part.captions, _COCO)) for part in splits.parts]
    train, dev, test = sides
    scores, image_ranks = fit_retrieval(train, dev, test, context.classifiers)
    first = (image_ranks < 1).astype(np.float64)
    *_, dev_part, scored = splits.parts
    return Scored(
        main="recall_1_t2i",
        scores=scores,
        intervals={"recall_1_t2i": mean_interval(first, context.seed, unit=100)},
        data={"name": _COCO, "dev_n": len(dev_part)},
        notes=[
            *row_notes("coco", dict(zip(_COCO_SPLITS, map(len, splits.parts), strict=True))),
            "classifier pytorch",
            "ranked in folds of 1,000 images",
            "ties count against the model",
        ],
        items=numbered("test", image_ranks, np.zeros(len(image_ranks)), scored.captions),
    )


_MINI_BATCH = 500
"""Texts of a mini-batch in MTEB."""
_C = 1.0
"""Inverse penalty, as in MTEB. SentEval's grids take hours with 150 classes."""
RUNS = 10
"""Number of clusterings, each with its own seed."""


def _run_clusters(embedder: Embedder, context: Context, part: Part, data: LabelledSet) -> Scored:
    require("eval", "sklearn")
    from sklearn.cluster import MiniBatchKMeans

    texts, labels = data.splits["test"].first, data.splits["test"].labels
    embedder.prepare(part[0], texts)
    rows = embedder.embed(texts, part[0])
    count = len(np.unique(labels))
    clusters = []
    for run in range(RUNS):
        context.tell(f"clustering {run + 1} of {RUNS}")
        seed = context.seed + run
        way = MiniBatchKMeans(count, batch_size=_MINI_BATCH, n_init="auto", random_state=seed)
        clusters.append(way.fit_predict(rows).astype(np.float64))
    ids = [f"run {run}:{row}" for run in range(RUNS) for row in range(len(texts))]
    gold = np.tile(labels.astype(np.float64), RUNS)
    items = Items(ids, np.concatenate(clusters), gold, texts * RUNS)
    return recomputed(
        V_MEASURE,
        items,
        score_interval(v_measure, items, context.seed),
        data={"name": part[0], "texts": len(texts), "classes": count},
        notes=[f"the mean of {RUNS} clusterings"],
    )


def _run_classes(embedder: Embedder, context: Context, part: Part, data: LabelledSet) -> Scored:
    train, test = data.splits["train"], data.splits["test"]
    texts = [*train.first, *test.first]
    embedder.prepare(part[0], texts)
    rows, labels = embedder.embed(texts, part[0]), np.concatenate([train.labels, test.labels])
    fold = Fold(*np.split(np.arange(len(labels)), [len(train)]))
    [[predicted]] = FastLearner(ClassifierSettings(), rows, labels).predict([fold], [[_C]])
    items = numbered("test", predicted, test.labels, test.first)
    notes = [f"logistic regression on {len(train):,} questions of train, C = {_C:g}"]
    return classified(items, context.seed, data={"name": part[0]}, notes=notes)


FAMILIES = (
    Family({"snli/head": ("snli",)}, reads_splits(read_snli_split), _run_inference),
    *(
        _Task(partial(labelled.read_binary, name=name), "nested").family(name.lower())
        for name in ("MR", "CR", "SUBJ", "MPQA")
    ),
    *(_Task(partial(labelled.read_sst, classes=n), "split").family(f"sst{n}") for n in (2, 5)),
    _Task(labelled.read_trec, "kfold").family("trec"),
    _Task(labelled.read_mrpc, "kfold", pair_features).family("mrpc"),
    _Task(labelled.read_sick, "split", pair_features).family("sick-e"),
    _Task(labelled.read_snli, "split", inference_features).family("snli"),
    *(
        _Task(partial(labelled.read_probing, name=name), "split").family(name.lower(), "probing")
        for name in labelled.PROBING
    ),
    Family(
        {"sick-r/senteval-regression": ("sick-r", "senteval")},
        reads(_read_sick),
        _run_regression,
        protocol="regression",
    ),
    Family(
        {"stsb/senteval-regression": ("senteval",)},
        _read_stsb,
        _run_regression,
        protocol="regression",
        options=("form",),
    ),
    Family(
        {"coco/senteval": ("coco", "senteval")}, reads(_read_coco), _run_coco, protocol="retrieval"
    ),
    *(
        Family({f"{kind}/{name}": (kind,)}, reads(partial(labelled.read_intents, name=name)), run)
        for kind, run in (("cluster", _run_clusters), ("classify", _run_classes))
        for name in INTENTS
    ),
)
