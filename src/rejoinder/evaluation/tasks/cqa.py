"""`cqa-b/2016`, `cqa-b/2017`: ranking of related questions (SemEval task 3, subtask B).

MAP, AvgRec and MRR are those of the scorer of SemEval-2016 task 3.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.semeval import QuestionSet, read_cqa
from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import resampled_interval
from rejoinder.evaluation.metrics import Items
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.measures import Floats

TEXTS = ("both", "subject", "body")
_SPLITS = {"2016": ("dev", "test"), "2017": ("test",)}


CUTOFF = 10
"""Only the first ten of a list count."""

Flags = NDArray[np.bool_]
"""(N,) whether each entry of a list is relevant, best score first."""


def ranked(scores: Floats, relevant: Flags) -> Flags:
    """Returns `relevant` in the order of (N,) scores, highest first; ties keep their order.

    The official scorer sorts stably: a system that gives all entries the same score keeps the order
    of the file.
    """
    return relevant[np.argsort(-scores, kind="stable")]


def average_precision(flags: Flags) -> float:
    """Returns the mean precision at each relevant entry among the first ten, or 0 without one.

    The mean is over the relevant entries among these ten, not over all.

    >>> round(average_precision(np.array([True, False, True])), 4)
    0.8333
    """
    flags = flags[:CUTOFF]
    if not flags.any():
        return 0.0
    positions = np.flatnonzero(flags) + 1
    return float((np.arange(1, len(positions) + 1) / positions).mean())


def reciprocal_rank(flags: Flags) -> float:
    """Returns 1 / rank of the first relevant entry among the first ten, or 0 without one."""
    positions = np.flatnonzero(flags[:CUTOFF])
    return float(1 / (positions[0] + 1)) if len(positions) else 0.0


def average_recall(lists: Sequence[Flags]) -> float:
    """Returns the mean over k = 1 to 10 of the recall at k, relative to the best possible order.

    All lists are pooled, so a query counts in proportion to its relevant questions.
    """
    retrieved, possible = np.zeros(CUTOFF), np.zeros(CUTOFF)
    for flags in lists:
        top = np.pad(flags[:CUTOFF], (0, max(0, CUTOFF - len(flags))))
        retrieved += np.cumsum(top)
        possible += np.minimum(np.arange(1, CUTOFF + 1), flags.sum())
    return float((retrieved / possible).mean())


def official_scores(lists: Sequence[Flags]) -> dict[str, float]:
    """Returns MAP, AvgRec and MRR in percent. A query without a relevant question counts as 0.

    Raises:
        InputError: no list has a relevant entry.
    """
    if not any(flags.any() for flags in lists):
        raise InputError("no question is relevant to any query: nothing can be ranked right.")
    return {
        "map": 100 * float(np.mean([average_precision(flags) for flags in lists])),
        "avg_rec": 100 * average_recall(lists),
        "mrr": 100 * float(np.mean([reciprocal_rank(flags) for flags in lists])),
    }


def engine_order(questions: QuestionSet) -> dict[str, float]:
    """Returns the scores of the search engine's order of the questions: the baseline to beat."""
    return official_scores(
        [ranked(-query.ranks.astype(np.float64), query.relevant) for query in questions.queries]
    )


def score_questions(
    embedder: Embedder, questions: QuestionSet, task: str, text: str = "both", seed: int = 0
) -> Scored:
    """Returns MAP, AvgRec and MRR of questions ranked by their similarity to the original question.

    `text` is subject, body, or both with a space between. The interval is over queries.

    Raises:
        InputError: `text` has another value, or a similarity is not usable.
    """
    if text not in TEXTS:
        raise InputError(f"text {text!r} of questions: one of {', '.join(TEXTS)} is needed.")
    first = [query.original.text(text) for query in questions.queries for _ in query.related]
    second = [related.text(text) for query in questions.queries for related in query.related]
    embedder.prepare(task, list(dict.fromkeys([*first, *second])))
    scores, notes = embedder.similarity(first, second, task)
    ends = np.cumsum([len(query.related) for query in questions.queries])[:-1]
    lists = [
        ranked(part, query.relevant)
        for part, query in zip(np.split(scores, ends), questions.queries, strict=True)
    ]
    precisions = np.array([average_precision(flags) for flags in lists])
    return Scored(
        main="map",
        scores=official_scores(lists),
        intervals={"map": resampled_interval(precisions, seed, unit=100)},
        groups={"search engine's order": Group(len(questions), engine_order(questions))},
        data={"name": f"CQA {questions.year} subtask B"},
        notes=[
            *row_notes(f"cqa{questions.year[2:]}", {questions.split: len(second)}),
            f"text of questions: {text}",
            *notes,
        ],
        items=Items(
            [query.original.id for query in questions.queries],
            precisions,
            np.ones(len(precisions)),
            [query.original.text() for query in questions.queries],
        ),
    )


def _read(year: str, context: Context, ids: Sequence[str]) -> Data:
    folder, splits = context.folder(ids[0]), context.splits
    return {
        (ids[0], split): read_cqa(folder, year, split) for split in _SPLITS[year] if split in splits
    }


def _run(embedder: Embedder, context: Context, part: Part, questions: QuestionSet) -> Scored:
    return score_questions(embedder, questions, part[0], context.text, context.seed)


FAMILIES = tuple(
    Family({f"cqa-b/{year}": ("cqa",)}, partial(_read, year), _run, options=("text",))
    for year in _SPLITS
)
