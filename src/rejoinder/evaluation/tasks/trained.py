"""SentEval's trained tasks: classifiers, regressions and COCO, on frozen embeddings.

COCO is captions of images and images of captions (SentEval's ImageCaptionRetrieval). `snli/head` is
natural language inference by the encoder's own classifier.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from rejoinder.datasets import labelled
from rejoinder.datasets.groups import InferencePairs, read_snli_split
from rejoinder.datasets.labelled import (
    NLI_CLASSES,
    Captioned,
    Labelled,
    LabelledSet,
    SentencePairs,
    SentencePairSet,
)
from rejoinder.datasets.semeval import GradedPairs, read_stsb
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation import classifiers
from rejoinder.evaluation.classifiers.learners import ClassifierSettings, Graded
from rejoinder.evaluation.encoding import Embedder, call, numbers_of
from rejoinder.evaluation.intervals import correlation_interval, mean_interval
from rejoinder.evaluation.metrics import Items, correlations, f1_score, joined, metric_of
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.evaluation.tasks.similarity import sick_pairs
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings, Entails


def _read_inference(context: Context, ids: Sequence[str]) -> Data:
    folder = context.folder(ids[0])
    return {(ids[0], split): read_snli_split(folder, split) for split in context.splits}


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
    right = (predicted == pairs.labels).astype(np.float64)
    return Scored(
        main="accuracy",
        scores={"accuracy": 100 * float(right.mean())},
        intervals={"accuracy": mean_interval(right, context.seed, unit=100)},
        groups=_confusions(pairs.labels, predicted),
        notes=row_notes("snli", {split: len(pairs)}),
        data={"name": "snli", "unlabelled": pairs.dropped},
        items=Items(
            [f"{split}:{row}" for row in range(len(right))],
            predicted.astype(np.float64),
            pairs.labels.astype(np.float64),
            joined(pairs.premises, pairs.hypotheses),
        ),
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


Columns = tuple[list[str], ...]
"""The sentences of a split, or the first and the second sentences of its pairs."""


def pair_features(first: Embeddings, second: Embeddings) -> Embeddings:
    """Returns (N, 2 D) |u - v| and u * v (Tai et al. 2015; SentEval's MRPC, SICK and STS-B)."""
    return np.hstack([np.abs(first - second), first * second])


def inference_features(first: Embeddings, second: Embeddings) -> Embeddings:
    """Returns (N, 4 D) u, v, u * v and |u - v| (SentEval's SNLI)."""
    return np.hstack([first, second, first * second, np.abs(first - second)])


def published_order(
    texts: Sequence[Sequence[str]], labels: Sequence[float] | Sequence[str]
) -> Indices:
    """Returns (N,) indices in the order of SentEval: by number of tokens, then by label.

    SentEval makes folds and draws batches from rows in this order. `texts` are columns of N
    sentences each, of which the first decides first; `labels` are N classes or grades.
    """
    keys = [
        (*(len(text.split()) for text in row), label)
        for row, label in zip(zip(*texts, strict=True), labels, strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


@dataclass(frozen=True)
class _Task:
    """A task of SentEval: its data, and the features of its classifiers."""

    read: Callable[[Path], LabelledSet | SentencePairSet]
    protocol: str
    features: Callable[..., Embeddings] = lambda embeddings: embeddings
    """Takes the embeddings of each column."""

    def run(
        self, embedder: Embedder, context: Context, part: Part, data: LabelledSet | SentencePairSet
    ) -> Scored:
        """See `Family`."""
        settings = _adjusted(context.classifiers, data.name)
        texts = [_columns(part) for part in data.splits.values()]
        labels = [part.labels for part in data.splits.values()]
        embedder.prepare(data.name, [text for columns in texts for text in chain(*columns)])
        ordered = self.protocol != "split" or settings.classifier == "pytorch"
        order = _order(data) if ordered else np.arange(len(labels[0]))
        labels[0] = labels[0][order]
        # the original embeds in its order too, and embeddings can depend on their batch
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
            outcome = classifiers.nested(features[0], labels[0], settings)
        else:
            outcome = classifiers.split(features, labels, settings)
        *_, (split, last) = data.splits.items()
        names = order if self.protocol == "nested" else range(len(last))
        gold = labels[-1].astype(np.float64)
        items = Items(
            last.ids if isinstance(last, SentencePairs) else [f"{split}:{row}" for row in names],
            outcome.predictions.astype(np.float64),
            gold,
            joined(*texts[-1]),
            outcome.folds,
        )
        scores = {"accuracy": outcome.test_accuracy, "dev_accuracy": outcome.dev_accuracy}
        if data.name == "MRPC":
            scores["f1"] = round(f1_score(items.predictions, gold), 2)
        right = (items.predictions == gold).astype(np.float64)
        counts = {name: len(part) for name, part in data.splits.items()}
        dev_n = len(labels[-2:][0])  # the split before test: dev, or else train
        return Scored(
            main="accuracy",
            scores=scores,
            intervals={"accuracy": mean_interval(right, context.seed, unit=100)},
            data={"name": part[0].split("/")[0], "dev_n": dev_n},
            notes=[*row_notes(data.name.lower(), counts), _note(settings, self.protocol)],
            items=items,
        )

    def data(self, context: Context, ids: Sequence[str]) -> Data:
        """See `Family`."""
        split = "all" if self.protocol == "nested" else "test"
        return {(ids[0], split): self.read(context.folder(ids[0]))}

    def family(self, name: str, group: str = "senteval") -> Family:
        """Returns the family of the task alone."""
        tasks = {f"{name}/senteval": (name, group)}
        return Family(tasks, self.data, self.run, protocol=self.protocol)


def _adjusted(settings: ClassifierSettings, name: str) -> ClassifierSettings:
    """Returns the settings that SentEval has for a data set."""
    if name == "WordContent":
        # there are a thousand classes of words, and the original uses no hidden units
        return replace(settings, nhid=0)
    if name == "SNLI" and settings.mode == "compat":
        # there are half a million pairs, and the original tries a single, tiny penalty
        return replace(settings, noreg=True)
    return settings


def _columns(part: Labelled | SentencePairs) -> Columns:
    return (part.first, part.second) if isinstance(part, SentencePairs) else (part.sentences,)


def _order(data: LabelledSet | SentencePairSet) -> Indices:
    """Returns the published order of the first split."""
    splits: Mapping[str, Labelled | SentencePairs] = data.splits
    first = next(iter(splits.values()))
    if isinstance(data, SentencePairSet) and data.name == "SNLI":
        return published_order(_columns(first)[::-1], [data.classes[row] for row in first.labels])
    return published_order(_columns(first), first.labels.tolist())


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
    return {(ids[0], "test"): _Splits("stsb", parts, (0, 5), sha256, notes)}


def _read_sick(context: Context, ids: Sequence[str]) -> Data:
    data = labelled.read_sick(context.folder("sick"))
    parts = [sick_pairs(data, split, [split]) for split in _SPLITS]
    notes = row_notes("sick", {part.split: len(part) for part in parts})
    return {(ids[0], "test"): _Splits("SICK", parts, (1, 5), data.sha256, notes)}


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
    dev_grades, grades = classifiers.fit_relatedness(train, dev, test, data.grades, settings)
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


def _read_coco(context: Context, ids: Sequence[str]) -> Data:
    parts = [labelled.read_coco(context.folder(ids[0]), split) for split in _COCO_SPLITS]
    sha256 = sha256_of("".join(part.sha256 for part in parts).encode())
    return {(ids[0], "test"): _CocoSplits(parts, sha256)}


def _run_coco(embedder: Embedder, context: Context, _part: Part, splits: _CocoSplits) -> Scored:
    embedder.prepare(_COCO, [text for part in splits.parts for text in part.captions])
    # torch is imported after the data was read: if both are missing, the data is reported
    from rejoinder.evaluation.classifiers.network import Side, fit_retrieval

    train, dev, test = (
        Side(part.features, embedder.embed(part.captions, _COCO)) for part in splits.parts
    )
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
        items=Items(
            [f"test:{row}" for row in range(len(scored.captions))],
            image_ranks.astype(np.float64),
            np.zeros(len(scored.captions)),
            scored.captions,
        ),
    )


FAMILIES = (
    Family({"snli/head": ("snli",)}, _read_inference, _run_inference),
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
        _read_sick,
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
    Family({"coco/senteval": ("coco", "senteval")}, _read_coco, _run_coco, protocol="retrieval"),
)
