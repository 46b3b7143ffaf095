"""`cqa-b/2016`, `cqa-b/2017`: ranking of related questions (SemEval task 3, subtask B)."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rejoinder.datasets.cqa import QuestionSet, read_cqa
from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import resampled_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.notes import row_notes
from rejoinder.evaluation.ranking import average_precision, official_scores, ranked
from rejoinder.evaluation.results import Group, Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes

TEXTS = ("both", "subject", "body")
_SPLITS = {"2016": ("dev", "test"), "2017": ("test",)}


def engine_order(questions: QuestionSet) -> dict[str, float]:
    """Returns the scores of the search engine's order of the questions: the baseline to beat."""
    return official_scores(
        [ranked(-query.ranks.astype(np.float64), query.relevant) for query in questions.queries]
    )


def score_questions(
    embedder: Embedder, questions: QuestionSet, task: str, text: str = "both", seed: int = 0
) -> Result:
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
    return Result(
        task=task,
        split=questions.split,
        n=len(questions),
        main="map",
        scores=official_scores(lists),
        intervals={"map": resampled_interval(precisions, seed, unit=100)},
        groups={"search engine's order": Group(len(questions), engine_order(questions))},
        seed=seed,
        data={"name": f"CQA {questions.year} subtask B", "sha256": questions.sha256},
        notes=(
            *row_notes(f"cqa{questions.year[2:]}", {questions.split: len(second)}),
            f"text of questions: {text}",
            *notes,
        ),
        items=Items(
            [query.original.id for query in questions.queries],
            precisions,
            np.ones(len(precisions)),
            [query.original.text() for query in questions.queries],
        ),
    )


def _read(year: str, context: Context, ids: Sequence[str]) -> Iterator[QuestionSet]:
    splits = [split for split in _SPLITS[year] if split in context.splits]
    return (read_cqa(context.folder(ids[0]), year, split) for split in splits)


def _run(year: str, embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    return [
        score_questions(embedder, questions, ids[0], context.text, context.seed)
        for questions in _read(year, context, ids)
    ]


def _hashes(year: str, context: Context, ids: Sequence[str]) -> Hashes:
    return {(ids[0], part.split): part.sha256 for part in _read(year, context, ids)}


FAMILIES = tuple(
    Family(
        {f"cqa-b/{year}": ("cqa",)}, partial(_run, year), partial(_hashes, year), reads=("text",)
    )
    for year in _SPLITS
)
