"""`dedupe`: finds the texts of a collection that mean the same.

Texts whose numbers or unknown words differ are kept apart: embeddings hardly show the difference.

As a second stage, a scorer may compare the words of texts with similar embeddings.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations import duplicates
from rejoinder.conversations.collection import Collection, Given, Model, open_collection
from rejoinder.corpus.core_text import core_of
from rejoinder.corpus.options import ExtractProgress
from rejoinder.encoders.layers import Array
from rejoinder.errors import InputError, ModelError
from rejoinder.index.where import Where
from rejoinder.inference.inputs import check_share
from rejoinder.inference.near_pairs import LEAST, NearPairs, Survey, near_pairs, survey
from rejoinder.io.files.system import default_workers
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings
from rejoinder.scoring.scorer import HIGHEST, Scorer

SecondStage = Callable[[NearPairs, list[str]], NDArray[np.bool_]]
"""Returns which pairs mean the same, among those with a high enough cosine."""
LEAST_SCORE = 4.0
"""Default of `least_score`: from 4 on the STS scale, only details differ."""
_SCORED = 8_192
"""Number of pairs that are scored at once."""
FALSE_POSITIVES = 0.001
"""Share of texts without a duplicate that may be dropped if no threshold is given."""
Examples = str | Path | Iterable[tuple[str, str, bool]]
"""A file (`datasets.groups.read_groups`); or pairs of texts, with whether they mean the same."""
_BELOW = 0.1
"""How far below the threshold pairs are kept for `rethreshold`."""
_MOST_PAIRS = 50_000_000
_NEIGHBOURS = 20_000
"""Number of messages that are compared with the preceding ones."""
_HASHED = 32
"""Number of values of a row that are hashed. Rows equal in these differ by rounding at most."""
_LARGE, _SURVEYED = 500_000, 512
"""Number of embeddings from which only a sample is compared with all others, and its size."""


def dedupe(
    source: Given | Collection,
    encoder: Model = None,
    *,
    threshold: float | None = None,
    examples: Examples | None = None,
    false_positives: float | None = None,
    floor: float | None = None,
    scorer: Scorer | None = None,
    least_score: float | None = None,
    columns: str | None = None,
    where: Where | None = None,
    questions: bool = False,
    min_words: int = 0,
    threads: int | None = None,
    progress: ExtractProgress = lambda _stage, _done, _all: None,
) -> duplicates.Duplicates:
    """Finds the texts that mean the same, and chooses one of each group to keep.

    Groups do not chain: each text is similar to the kept one. Greetings and signatures are
    ignored. Short texts that differ in numbers, or in words that the model does not know,
    count as different.

    Args:
        source: A file of texts, an export, a folder of pairs, an index, texts, or a `Collection`.
        encoder: The model, its name or folder. Default: from the index, or by language.
        threshold: Cosine from which two texts mean the same, from 0 to 1.
        examples: Labelled pairs. The threshold with the highest F1 on them is used.
        false_positives: Share of texts without a duplicate that may be dropped, above 0 and below
            1; sets the threshold, estimated from 0.85 to 0.97
            (`conversations.duplicates`). Default: 0.001, with a threshold of at most 0.9.
        floor: The least threshold that `rethreshold` of the result accepts. Default: 0.1 below
            the threshold, or higher where there are more than 50 million such pairs.
        scorer: Scores pairs above the floor a second time, word by word.
        least_score: The scorer's score, from 0 to 5, from which two texts mean the same; the
            cosine must reach the threshold, too. Default: 4.
        columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
        where: Conditions on messages, see `Index.search`.
        questions: Compare only texts with a question mark.
        min_words: Compare only texts of at least this many words, split at spaces.
        threads: Number of CPU cores; None means all that the process may use.
        progress: Called with the name of a stage (`encoding`, `comparing`), how much of it is done,
            and the total or None.

    Returns:
        The kept and the dropped texts. Up to 20,000 different texts are all compared. For more,
        only nearest ones are: `search_recall` is the share of near pairs that were found.

    Raises:
        InputError: an argument is not valid, two arguments set the threshold, the source can't be
            read, or the examples have pairs of one kind only.
        ModelError: the model can't be loaded.
        MissingExtraError: a package is missing that reads the source or the examples.
    """
    _check(threshold, examples, false_positives, floor)
    confirms = second_stage(scorer, least_score, progress)
    source = open_collection(
        source,
        encoder,
        columns=columns,
        where=where,
        questions=questions,
        min_words=min_words,
        threads=threads,
        progress=lambda done, _read, _size: progress("encoding", done, None),
    )
    workers = threads or default_workers()
    rows, firsts = _different(source)
    embeddings = source.embeddings if len(firsts) == len(rows) else source.embeddings[firsts]
    seen = survey(embeddings, *((_SURVEYED,) if len(embeddings) > _LARGE else ()))
    neighbours = _neighbours(source)
    if threshold is not None:
        estimate = duplicates.expected_at(float(threshold), "given", seen.best, neighbours)
    elif examples is not None:
        estimate = _estimate(source, examples, confirms)
    else:
        rate, most = false_positives, duplicates.MOST_THRESHOLD
        if rate is None:
            rate, most = FALSE_POSITIVES, duplicates.DEFAULT_THRESHOLD
        estimate = duplicates.threshold_of_rate(seen.best, neighbours, rate, most)
    least = _floor(seen, estimate.threshold) if floor is None else floor
    pairs = near_pairs(embeddings, least, workers, lambda *done: progress("comparing", *done))
    sample = seen.found(pairs, least)
    texts = [source.texts[row] for row in firsts.tolist()]
    pairs = pairs.where(~_differ(pairs, texts, source))
    pairs = pairs.where(confirms(pairs, texts))
    return duplicates.Duplicates(
        source.ids, source.texts, source.about, rows, pairs, least, estimate, sample,
        seen.best, neighbours, None if scorer is None else least_score or LEAST_SCORE,
    )  # fmt: skip


def _check(
    threshold: float | None,
    examples: Examples | None,
    false_positives: float | None,
    floor: float | None,
) -> None:
    given = {"threshold": threshold, "examples": examples, "false_positives": false_positives}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} each say what the threshold is; give one.")
    for name, value in (("threshold", threshold), ("floor", floor)):
        if value is not None:
            check_share(name, value, LEAST)
    if threshold is not None and floor is not None and floor > threshold:
        raise InputError(f"floor {floor} is above the threshold {threshold}.")
    if false_positives is not None and not 0 < false_positives < 1:
        raise InputError(f"false_positives must be above 0 and below 1; got {false_positives}.")


def _different(source: Collection) -> tuple[Indices, Indices]:
    """Returns the number of each text among different ones, and the first index of each of these.

    Texts with equal embeddings are the same unless their numbers or unknown words differ.
    """
    keys = _keys(source.embeddings)
    zero = np.asarray(~source.embeddings.any(axis=1))
    _, same = np.unique(keys, return_inverse=True)
    repeated = (np.bincount(same) > 1)[same]
    known: dict[object, int] = {}
    rows = np.empty(len(source), np.int64)
    places = np.flatnonzero(repeated).tolist()
    marks = dict(zip(places, _marks([source.texts[row] for row in places], source), strict=True))
    firsts: list[int] = []
    for row, key in enumerate(same.tolist()):
        # words that the model does not know have no embedding, so their texts are compared
        name = source.texts[row] if zero[row] else (key, marks[row]) if repeated[row] else row
        number = known.setdefault(name, len(firsts))
        if number == len(firsts):
            firsts.append(row)
        rows[row] = number
    return rows, np.array(firsts, np.int64)


def _keys(embeddings: Embeddings) -> NDArray[np.uint64]:
    """Returns a hash of each row, from the bits of some of its values."""
    columns = np.unique(np.linspace(0, embeddings.shape[1] - 1, _HASHED).astype(np.int64))
    factors = np.random.default_rng(0).integers(0, 2**64, len(columns), np.uint64) | np.uint64(1)
    keys: NDArray[np.uint64] = np.zeros(len(embeddings), np.uint64)
    for column, factor in zip(columns.tolist(), factors, strict=True):
        keys += np.ascontiguousarray(embeddings[:, column]).view(np.uint32) * factor
    return keys


def _marks(texts: list[str], source: Collection) -> list[frozenset[str]]:
    try:
        encoder = source.encoder
    except (InputError, ModelError):  # an index has rows even when its model is gone
        return marks_of(texts)
    return marks_of(texts, encoder.unknown)


def _differ(pairs: NearPairs, texts: list[str], source: Collection) -> NDArray[np.bool_]:
    """Returns which pairs have different numbers or unknown words."""
    used = np.unique(np.concatenate([pairs.first, pairs.second])).tolist()
    marks: list[frozenset[str]] = [frozenset()] * len(texts)
    for row, some in zip(used, _marks([texts[row] for row in used], source), strict=True):
        marks[row] = some
    return differing(pairs, marks)


def _neighbours(source: Collection) -> Array:
    """Returns the cosines of messages with the ones they answer, or with the preceding ones."""
    before = source.answered.copy()
    if not (before >= 0).any():
        last: dict[tuple[object, object], int] = {}
        for row, about in enumerate(source.about):
            if "source" in about or "thread" in about:
                place = about.get("source"), about.get("thread")
                before[row] = last.get(place, -1)
                last[place] = row
    places = np.flatnonzero(before >= 0)
    places = places[np.linspace(0, len(places) - 1, min(_NEIGHBOURS, len(places))).astype(np.int64)]
    vectors, earlier = source.embeddings[places], source.embeddings[before[places]]
    cosines = np.einsum("nd,nd->n", vectors, earlier)
    return np.asarray(cosines[~(vectors == earlier).all(axis=1)], np.float32)


def _estimate(source: Collection, examples: Examples, confirms: SecondStage) -> duplicates.Estimate:
    first, second, alike = _labelled(examples)
    vectors = [
        source.encoder.encode([core_of(text) for text in texts]) for texts in (first, second)
    ]
    cosines = np.einsum("nd,nd->n", *vectors)
    count = len(first)
    numbers = np.arange(2 * count, dtype=np.int32)
    pairs = NearPairs(2 * count, numbers[:count], numbers[count:], cosines)
    texts = [*first, *second]
    cosines[_differ(pairs, texts, source) | ~confirms(pairs, texts)] = -1
    return duplicates.threshold_of_examples(cosines.astype(np.float64), alike, LEAST)


def _labelled(examples: Examples) -> tuple[list[str], list[str], NDArray[np.bool_]]:
    """Returns the texts of labelled pairs, and whether they mean the same.

    Raises:
        InputError: the pairs are all of one kind.
    """
    if isinstance(examples, str | Path):
        from rejoinder.datasets.groups import read_groups  # needs Polars

        groups = read_groups(Path(examples))
        pairs = [
            (*pair, True) for group in range(len(groups)) for pair in combinations(groups[group], 2)
        ]
        pairs += [(*pair, False) for pair in groups.negatives]
    else:
        pairs = [(first, second, bool(alike)) for first, second, alike in examples]
    alike = np.array([same for _, _, same in pairs], np.bool_)
    if not alike.any() or alike.all():
        missing = "0" if alike.any() else "1"
        raise InputError(f"no example has the label {missing}; a threshold needs both kinds.")
    return [first for first, _, _ in pairs], [second for _, second, _ in pairs], alike


def _floor(seen: Survey, threshold: float) -> float:
    """Returns the cosine from which pairs are kept; higher where there are too many."""
    steps = np.arange(max(threshold - _BELOW, LEAST), threshold, 0.01).tolist()
    few = (floor for floor in steps if seen.count(floor) <= _MOST_PAIRS)
    return round(next(few, threshold), 4)


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_DIGIT = re.compile(r"\d")
_SHORT = 16
"""Number of words of a short text. With longer ones, fewer duplicates were found among 40-word
questions (CQA 2016), and hardly fewer wrong ones among 12-word questions (Quora)."""


def marks_of(
    texts: Sequence[str], unknown: Callable[[list[str]], NDArray[np.bool_]] | None = None
) -> list[frozenset[str]]:
    """Returns the words of short texts that have a digit, or that are `unknown` to the model.

    A text of more than 16 words has none: it differs in much else.

    >>> [sorted(marks) for marks in marks_of(["Does v2 run on Windows 10?", "Yes"])]
    [['10', 'v2'], []]
    """
    words = [
        {*found} if len(found := _WORD.findall(text.lower())) <= _SHORT else set() for text in texts
    ]
    marks = {word for some in words for word in some if _DIGIT.search(word)}
    if unknown is not None:
        others = sorted({word for some in words for word in some} - marks)
        marks |= {word for word, is_new in zip(others, unknown(others), strict=True) if is_new}
    return [frozenset(some & marks) for some in words]


def differing(pairs: NearPairs, marks: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    """Returns (P,) bool: which pairs have rows that each have a mark missing in the other.

    `Error 404` and `Error 500` differ. But `Error 404` may be what somebody means by `Error`.
    """
    has_some = np.array([bool(some) for some in marks], np.bool_)
    differ = has_some[pairs.first] & has_some[pairs.second]
    for place in np.flatnonzero(differ).tolist():
        one, other = marks[pairs.first[place]], marks[pairs.second[place]]
        differ[place] = not (one <= other or other <= one)
    return differ


def second_stage(
    scorer: Scorer | None, least_score: float | None, progress: ExtractProgress
) -> SecondStage:
    """Returns a function that picks pairs with the same meaning by a scorer; without one, all.

    Raises:
        InputError: `least_score` is out of range, or there is no scorer.
    """
    if scorer is None:
        if least_score is not None:
            raise InputError("least_score is for a scorer.")
        return lambda pairs, _: np.ones(len(pairs), np.bool_)
    least = LEAST_SCORE if least_score is None else least_score
    if not 0 < least <= HIGHEST:
        raise InputError(f"least_score must be above 0 and at most {HIGHEST:g}; got {least}.")

    def alike(pairs: NearPairs, texts: list[str]) -> NDArray[np.bool_]:
        cores, found = [core_of(text) for text in texts], np.empty(len(pairs), np.bool_)
        for low in range(0, len(pairs), _SCORED):
            part = slice(low, low + _SCORED)
            sides = [
                [cores[row] for row in side[part].tolist()] for side in (pairs.first, pairs.second)
            ]
            found[part] = scorer.score(*sides) >= least
            progress("scoring", min(low + _SCORED, len(pairs)), len(pairs))
        return found

    return alike
