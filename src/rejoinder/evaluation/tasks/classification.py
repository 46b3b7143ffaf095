"""SentEval's classification tasks: classifiers on frozen embeddings of sentences and of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.labelled import (
    PROBING,
    LabelledSet,
    read_binary,
    read_probing,
    read_sst,
    read_trec,
)
from rejoinder.datasets.sentence_pairs import (
    SentencePairs,
    SentencePairSet,
    read_mrpc,
    read_sick,
    read_snli,
)
from rejoinder.evaluation.classifiers import validation
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.evaluation.classifiers.validation import Outcome
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.published_rows import row_notes
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes
from rejoinder.protocols import Embeddings

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class _Scored:
    """What a classifier was scored on."""

    split: str
    gold: Labels
    ids: Sequence[str]
    texts: Sequence[str]
    dev_n: int
    """Rows that chose the penalty."""
    sha256: str
    notes: tuple[str, ...]


def pair_features(first: Embeddings, second: Embeddings) -> Embeddings:
    """(N, 2 D) |u - v| and u·v by element (Tai et al. 2015; SentEval's MRPC, SICK, STS-B)."""
    return np.hstack([np.abs(first - second), first * second])


def inference_features(first: Embeddings, second: Embeddings) -> Embeddings:
    """(N, 4 D) u, v, u·v by element and |u - v| (SentEval's SNLI)."""
    return np.hstack([first, second, first * second, np.abs(first - second)])


def f1_score(predictions: Labels, gold: Labels) -> float:
    """F1 of class 1, in percent; 0 where neither is ever 1."""
    both = int(((predictions == 1) & (gold == 1)).sum())
    either = int((predictions == 1).sum() + (gold == 1).sum())
    return 100 * 2 * both / either if either else 0.0


def published_order(
    texts: Sequence[Sequence[str]], labels: Sequence[float] | Sequence[str]
) -> NDArray[np.int64]:
    """(N,) rows in the order in which SentEval folds and draws: by number of tokens, then label.

    Args:
        texts: the columns of a row, compared one after the other, N sentences each.
        labels: N classes or grades.
    """
    keys = [
        (*(len(text.split()) for text in row), label)
        for row, label in zip(zip(*texts, strict=True), labels, strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def _run_binary(
    name: str, embedder: Embedder, context: Context, ids: Sequence[str]
) -> list[Result]:
    data = read_binary(context.folder(ids[0]), name)
    whole = data.splits["all"]
    embedder.prepare(name, whole.sentences)
    order = published_order([whole.sentences], whole.labels.tolist())
    texts = [whole.sentences[row] for row in order]
    labels = whole.labels[order]
    outcome = validation.nested(embedder.embed(texts, name), labels, context.classifiers)
    items = [f"all:{row}" for row in order]
    scored = _Scored("all", labels, items, texts, len(labels), data.sha256, _row_notes(data))
    return [_result(ids[0], outcome, scored, context, "nested")]


def _run_trec(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    data = read_trec(context.folder(ids[0]))
    train, test = data.splits["train"], data.splits["test"]
    embedder.prepare("TREC", [*train.sentences, *test.sentences])
    order = published_order([train.sentences], train.labels.tolist())
    outcome = validation.kfold(
        embedder.embed([train.sentences[row] for row in order], "TREC"),
        train.labels[order],
        embedder.embed(test.sentences, "TREC"),
        test.labels,
        context.classifiers,
    )
    items = [f"test:{row}" for row in range(len(test))]
    notes = _row_notes(data)
    scored = _Scored("test", test.labels, items, test.sentences, len(train), data.sha256, notes)
    return [_result(ids[0], outcome, scored, context, "kfold")]


def _run_split(
    read: Callable[..., LabelledSet], embedder: Embedder, context: Context, ids: Sequence[str]
) -> list[Result]:
    data = read(context.folder(ids[0]))
    parts = [data.splits[split] for split in ("train", "dev", "test")]
    embedder.prepare(data.name, [text for part in parts for text in part.sentences])
    train, dev, test = (embedder.embed(part.sentences, data.name) for part in parts)
    labels = (parts[0].labels, parts[1].labels, parts[2].labels)
    settings = context.classifiers
    if data.name == "WordContent":
        # a thousand classes of words: the original has no hidden units there
        settings = replace(settings, nhid=0)
    if settings.classifier == "pytorch":
        order = published_order([parts[0].sentences], labels[0].tolist())
        train, labels = train[order], (labels[0][order], *labels[1:])
    outcome = validation.split((train, dev, test), labels, settings)
    items = [f"test:{row}" for row in range(len(parts[2]))]
    texts = parts[2].sentences
    notes = _row_notes(data)
    scored = _Scored("test", labels[2], items, texts, len(dev), data.sha256, notes)
    return [_result(ids[0], outcome, scored, replace(context, classifiers=settings), "split")]


def _run_mrpc(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    data = read_mrpc(context.folder(ids[0]))
    train, test = data.splits["train"], data.splits["test"]
    _prepare_pairs(embedder, data)
    order = published_order([train.first, train.second], train.labels.tolist())
    outcome = validation.kfold(
        _pairs(embedder, train, pair_features, "MRPC")[order],
        train.labels[order],
        _pairs(embedder, test, pair_features, "MRPC"),
        test.labels,
        context.classifiers,
    )
    f1 = round(f1_score(outcome.predictions, test.labels), 2)
    texts, notes = _texts(test), _row_notes(data)
    scored = _Scored("test", test.labels, test.ids, texts, len(train), data.sha256, notes)
    return [_result(ids[0], outcome, scored, context, "kfold", f1=f1)]


def _run_sick(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    data = read_sick(context.folder(ids[0]))
    train = data.splits["train"]
    order = published_order([train.first, train.second], train.labels.tolist())
    return _run_inference(data, order, pair_features, embedder, context, ids)


def _run_snli(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    data = read_snli(context.folder(ids[0]))
    train = data.splits["train"]
    names = [data.classes[label] for label in train.labels]
    order = published_order([train.second, train.first], names)
    if context.classifiers.mode == "compat":
        # half a million pairs: the original tries one penalty, next to none
        context = replace(context, classifiers=replace(context.classifiers, noreg=True))
    return _run_inference(data, order, inference_features, embedder, context, ids)


def _run_inference(
    data: SentencePairSet,
    order: NDArray[np.int64],
    features: Callable[[Embeddings, Embeddings], Embeddings],
    embedder: Embedder,
    context: Context,
    ids: Sequence[str],
) -> list[Result]:
    """Published splits of pairs; the network draws from the rows of train in that `order`."""
    _prepare_pairs(embedder, data)
    parts = [data.splits[split] for split in ("train", "dev", "test")]
    train, dev, test = (_pairs(embedder, part, features, data.name) for part in parts)
    labels = (parts[0].labels, parts[1].labels, parts[2].labels)
    if context.classifiers.classifier == "pytorch":
        train, labels = train[order], (labels[0][order], *labels[1:])
    outcome = validation.split((train, dev, test), labels, context.classifiers)
    ids_, texts, notes = parts[2].ids, _texts(parts[2]), _row_notes(data)
    scored = _Scored("test", labels[2], ids_, texts, len(dev), data.sha256, notes)
    return [_result(ids[0], outcome, scored, context, "split")]


def _prepare_pairs(embedder: Embedder, data: SentencePairSet) -> None:
    parts = data.splits.values()
    embedder.prepare(data.name, [text for part in parts for text in (*part.first, *part.second)])


def _pairs(
    embedder: Embedder,
    pairs: SentencePairs,
    features: Callable[[Embeddings, Embeddings], Embeddings],
    name: str,
) -> Embeddings:
    both = embedder.embed([*pairs.first, *pairs.second], name)
    return features(both[: len(pairs)], both[len(pairs) :])


def _row_notes(data: LabelledSet | SentencePairSet) -> tuple[str, ...]:
    counts = {split: len(part) for split, part in data.splits.items()}
    return row_notes(data.name.lower(), counts)


def _hashes(
    read: Callable[[Path], LabelledSet | SentencePairSet],
    split: str,
    context: Context,
    ids: Sequence[str],
) -> Hashes:
    return {(ids[0], split): read(context.folder(ids[0])).sha256}


def _texts(pairs: SentencePairs) -> list[str]:
    return [f"{a} | {b}" for a, b in zip(pairs.first, pairs.second, strict=True)]


def _result(
    task: str,
    outcome: Outcome,
    scored: _Scored,
    context: Context,
    protocol: str,
    f1: float | None = None,
) -> Result:
    right = (outcome.predictions == scored.gold).astype(np.float64)
    low, high = mean_interval(right, context.seed)
    scores = {"accuracy": outcome.test_accuracy, "dev_accuracy": outcome.dev_accuracy}
    if f1 is not None:
        scores["f1"] = f1
    settings = context.classifiers
    return Result(
        task=task,
        split=scored.split,
        n=len(scored.gold),
        main="accuracy",
        scores=scores,
        intervals={"accuracy": (100 * low, 100 * high)},
        groups={},
        seed=settings.seed,
        data={"name": task.split("/")[0], "sha256": scored.sha256, "dev_n": scored.dev_n},
        notes=(*scored.notes, _note(settings, protocol)),
        items=Items(
            scored.ids,
            outcome.predictions.astype(np.float64),
            scored.gold.astype(np.float64),
            scored.texts,
            outcome.folds,
        ),
    )


def _note(settings: ClassifierSettings, protocol: str) -> str:
    told = f"classifier {settings.classifier}, mode {settings.mode}, nhid {settings.nhid}"
    if protocol == "split":
        return told
    seed = settings.fold_seed(protocol)
    fixed = "" if seed == settings.seed else ", as in the original, whatever the seed"
    return f"{told}, kfold {settings.kfold}, folds drawn with seed {seed}{fixed}"


def _family(
    name: str,
    run: Callable[[Embedder, Context, Sequence[str]], list[Result]],
    read: Callable[[Path], LabelledSet | SentencePairSet],
    protocol: str,
    group: str = "senteval",
) -> Family:
    split = "all" if protocol == "nested" else "test"
    hashes = partial(_hashes, read, split)
    return Family({f"{name}/senteval": (name, group)}, run, hashes, protocol=protocol)


def _split_family(
    name: str, read: Callable[[Path], LabelledSet], group: str = "senteval"
) -> Family:
    return _family(name, partial(_run_split, read), read, "split", group)


FAMILIES = (
    *(
        _family(name.lower(), partial(_run_binary, name), partial(read_binary, name=name), "nested")
        for name in ("MR", "CR", "SUBJ", "MPQA")
    ),
    _split_family("sst2", partial(read_sst, classes=2)),
    _split_family("sst5", partial(read_sst, classes=5)),
    _family("trec", _run_trec, read_trec, "kfold"),
    _family("mrpc", _run_mrpc, read_mrpc, "kfold"),
    _family("sick-e", _run_sick, read_sick, "split"),
    _family("snli", _run_snli, read_snli, "split"),
    *(_split_family(name.lower(), partial(read_probing, name=name), "probing") for name in PROBING),
)
