"""`cqa-b/2016`, `cqa-b/2017`: related questions, ranked (SemEval task 3, subtask B)."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from rejoinder.datasets.cqa import QuestionSet, read_cqa
from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import resampled_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.published_rows import row_notes
from rejoinder.evaluation.ranking import Flags, average_precision, official_scores, ranked
from rejoinder.evaluation.results import Group, Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes
from rejoinder.measures.arrays import Floats

TEXTS = ("both", "subject", "body")
_SPLITS = {"2016": ("dev", "test"), "2017": ("test",)}


def engine_order(questions: QuestionSet) -> dict[str, float]:
    """Scores of the order in which the search engine gave the questions: the baseline to beat."""
    return official_scores(
        [ranked(-query.ranks.astype(np.float64), query.relevant) for query in questions.queries]
    )


def score_questions(
    embedder: Embedder, questions: QuestionSet, task: str, text: str = "both", seed: int = 0
) -> Result:
    """MAP, AvgRec and MRR of the questions ranked by their similarity to the original one.

    Args:
        embedder: the encoder.
        questions: a split.
        task: id of the result.
        text: subject, body, or both with a space between.
        seed: of the interval, over queries.

    Raises:
        InputError: `text` is none of these, or a similarity is not usable.
    """
    if text not in TEXTS:
        raise InputError(f"text {text!r} of questions: one of {', '.join(TEXTS)} is needed.")
    first = [query.original.text(text) for query in questions.queries for _ in query.related]
    second = [related.text(text) for query in questions.queries for related in query.related]
    embedder.prepare(task, list(dict.fromkeys([*first, *second])))
    scores, notes = embedder.similarity(first, second, task)
    lists = _lists(questions, scores)
    precisions = np.array([average_precision(flags) for flags in lists])
    low, high = resampled_interval(precisions, seed)
    return Result(
        task=task,
        split=questions.split,
        n=len(questions),
        main="map",
        scores=official_scores(lists),
        intervals={"map": (100 * low, 100 * high)},
        groups={"search engine's order": Group(len(questions), engine_order(questions))},
        seed=seed,
        data={"name": f"CQA {questions.year} subtask B", "sha256": questions.sha256},
        notes=(
            *row_notes(f"cqa{questions.year[2:]}", {questions.split: len(second)}),
            f"text of questions: {text}",
            *notes,
        ),
        items=_items(questions, precisions),
    )


def _lists(questions: QuestionSet, scores: Floats) -> list[Flags]:
    ends = np.cumsum([len(query.related) for query in questions.queries])[:-1]
    return [
        ranked(part, query.relevant)
        for part, query in zip(np.split(scores, ends), questions.queries, strict=True)
    ]


def _items(questions: QuestionSet, precisions: Floats) -> Items:
    """An item is a query, its prediction the average precision of its list."""
    return Items(
        [query.original.id for query in questions.queries],
        precisions,
        np.ones(len(precisions)),
        [query.original.text() for query in questions.queries],
    )


def _run(year: str, embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    folder = context.folder(ids[0])
    splits = [split for split in _SPLITS[year] if split in context.splits]
    return [
        score_questions(embedder, read_cqa(folder, year, split), ids[0], context.text, context.seed)
        for split in splits
    ]


def _hashes(year: str, context: Context, ids: Sequence[str]) -> Hashes:
    folder = context.folder(ids[0])
    return {
        (ids[0], split): read_cqa(folder, year, split).sha256
        for split in _SPLITS[year]
        if split in context.splits
    }


FAMILIES = tuple(
    Family(
        {f"cqa-b/{year}": ("cqa",)}, partial(_run, year), partial(_hashes, year), reads_text=True
    )
    for year in _SPLITS
)
