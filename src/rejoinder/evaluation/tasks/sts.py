"""`sts12/cosine` … `sts17/cosine`, `sts17/difficult`, `sick-r/cosine`: cosines of graded pairs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from rejoinder.datasets.sentence_pairs import SentencePairSet, read_sick
from rejoinder.datasets.sts import SUBSETS, GradedPairs, read_sts_2017, read_sts_year
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.metrics.correlation import rescaled, share_within_one
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks.base import Context, Data, Family
from rejoinder.evaluation.tasks.similarity import (
    PreparedPairs,
    Score,
    correlated,
    facts_of,
    form_note,
    groups_of,
    items_of,
    rows_of,
    run,
    texts_of,
)
from rejoinder.measures import Floats

_DIFFICULT = (115, 84, 184, 14, 78, 195)
"""Lines of the pairs of Table 12 in Cer et al. 2017, in the file of track 5."""
_SICK = {"test": ("test",), "all": ("train", "dev", "test")}
"""Splits of SICK by split of the results. Peers publish correlations over all 9,927 pairs, papers
those of test."""


def _related(
    _task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    notes = [*row_notes("sick", Counter(pairs.genres)), *notes]
    return correlated(similarity, pairs, seed, data={"name": "SICK"}, notes=notes)


def _subsets(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    """Returns three scores over subsets: mean, weighted mean, and all pairs as one set."""
    items, main = items_of(similarity, pairs), "pearson_weighted_mean"
    rows = list(rows_of(pairs).values())
    return Scored(
        main,
        metric_of(main).recompute(items),
        items,
        {
            main: correlation_interval(similarity, pairs.gold, seed, groups=rows),
            "pearson_all": correlation_interval(similarity, pairs.gold, seed),
        },
        groups_of(similarity, pairs),
        facts_of(task, pairs),
        [
            *row_notes(task.split("/")[0], {pairs.split: len(pairs)}),
            form_note(pairs),
            *notes,
        ],
    )


def _tracks(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    """Scores all tracks. "Primary" is ambiguous in the paper, so both means are given."""
    items, main = items_of(similarity, pairs), "pearson_track5"
    pearson = metric_of(main).recompute(items)
    chosen = rows_of(pairs)["track5"]
    english, gold = similarity[chosen], pairs.gold[chosen]
    five = [pearson[f"pearson_track{track}"] for track in ("1", "2", "3", "4a", "5")]
    scores = {
        **pearson,
        "pearson_mean_of_7": float(np.mean(list(pearson.values()))),
        "pearson_mean_of_1_to_5": float(np.mean(five)),
        "within_1_rescaled_track5": share_within_one(english, gold),
    }
    intervals = {main: correlation_interval(english, gold, seed)}
    means = "mean of tracks 1 to 5 with 4a, 4b left out"
    notes = [*row_notes("sts17", {"test": len(pairs)}), means, *notes]
    groups, facts = groups_of(similarity, pairs), facts_of(task, pairs)
    return Scored(main, scores, items, intervals, groups, facts, notes)


def _difficult(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], _seed: int
) -> Scored:
    """Scores the six difficult pairs of Cer et al. 2017 on the scale of gold.

    Similarities are rescaled by the smallest and the largest of track 5.
    """
    english, main = rows_of(pairs)["track5"], "mean_absolute_error"
    if len(english) < max(_DIFFICULT):
        raise DataMissingError(f"{task} needs all 250 pairs of track 5; {len(english)} are there.")
    lines = np.array(_DIFFICULT) - 1
    chosen = english[lines]
    items = Items(
        [pairs.ids[row] for row in chosen],
        rescaled(similarity[english])[lines],
        pairs.gold[chosen],
        joined([pairs.first[row] for row in chosen], [pairs.second[row] for row in chosen]),
    )
    each = zip(_DIFFICULT, items.gold, items.predictions, strict=True)
    listed = ", ".join(f"{line}: {gold:.1f} / {ours:.1f}" for line, gold, ours in each)
    notes = [f"line of track 5: gold / ours from 0 to 5: {listed}", *notes]
    scores = metric_of(main).recompute(items)
    return Scored(main, scores, items, data=facts_of(task, pairs), notes=notes)


def sick_pairs(data: SentencePairSet, split: str, parts: Sequence[str]) -> GradedPairs:
    """Returns some splits of SICK as one, whose genres are the splits."""
    chosen = [data.splits[part] for part in parts]
    return GradedPairs(
        split,
        "",
        [text for part in chosen for text in part.first],
        [text for part in chosen for text in part.second],
        np.concatenate([part.scores for part in chosen]),
        [name for name, part in zip(parts, chosen, strict=True) for _ in part.ids],
        data.sha256,
        [name for part in chosen for name in part.ids],
        ["SICK"] * sum(len(part.ids) for part in chosen),
    )


def _sick(context: Context) -> list[GradedPairs]:
    data = read_sick(context.folder("sick"))
    return [sick_pairs(data, split, parts) for split, parts in _SICK.items()]


def _family(
    read: Callable[[Context], Sequence[GradedPairs]],
    scores: Mapping[str, Score],
    groups: Mapping[str, tuple[str, ...]],
    options: tuple[str, ...] = (),
) -> Family:
    def read_all(context: Context, ids: Sequence[str]) -> Data:
        parts = read(context)
        texts = texts_of(parts[-1])  # the last holds the others
        return {(task, one.split): PreparedPairs(one, texts) for one in parts for task in ids}

    return Family(groups, read_all, partial(run, scores), options=options)


def _years(year: int) -> Family:
    task = f"sts{year}/cosine"

    def read(context: Context) -> list[GradedPairs]:
        return [read_sts_year(context.folder(task), year, context.form)]

    return _family(read, {task: _subsets}, {task: (f"sts{year}", "sts", "senteval")}, ("form",))


FAMILIES = (
    *map(_years, SUBSETS),
    _family(
        lambda context: [read_sts_2017(context.folder("sts17"))],
        {"sts17/cosine": _tracks, "sts17/difficult": _difficult},
        {"sts17/cosine": ("sts17", "sts"), "sts17/difficult": ("contrasts",)},
    ),
    _family(_sick, {"sick-r/cosine": _related}, {"sick-r/cosine": ("sick-r",)}),
)
