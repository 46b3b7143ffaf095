"""`memory/locomo`, `memory/realtalk`: which turns of a long conversation answer a question?

The score is that of LMEB (2026): NDCG@10 among the turns of the question's own conversation.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from rejoinder.datasets.memory import SOURCES, Conversation, Conversations, read_conversations
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import resampled_interval
from rejoinder.evaluation.metrics import NDCG, Items, subsets_of
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.evaluation.tasks.cqa import CUTOFF, Flags, ranked
from rejoinder.protocols import Embeddings

_PUBLISHED = 10
"""Number of conversations of each set."""
_GAINS = 1 / np.log2(np.arange(2, CUTOFF + 2))


def ndcg(flags: Flags, relevant: int) -> float:
    """Returns the NDCG of the first ten of a ranked list, in which `relevant` entries are relevant.

    >>> ndcg(np.array([True, False]), 1), round(ndcg(np.array([False, True]), 1), 3)
    (1.0, 0.631)
    """
    flags = flags[:CUTOFF]
    return float(_GAINS[: len(flags)][flags].sum() / _GAINS[:relevant].sum())


def _run(embedder: Embedder, context: Context, part: Part, data: Conversations) -> Scored:
    turns = [[turn.dated for turn in talk.turns] for talk in data.all]
    asked = [[question.text for question in talk.questions] for talk in data.all]
    embedder.prepare(part[0], [text for texts in (*turns, *asked) for text in texts])
    values: list[float] = []
    for talk, said, texts in zip(data.all, turns, asked, strict=True):
        if texts:
            rows, queries = embedder.embed(said, part[0]), embedder.embed(texts, part[0])
            values += _scores(talk, _unit(queries) @ _unit(rows).T)
    questions = [question for talk in data.all for question in talk.questions]
    items = Items(
        [f"{question.kind}:{row}" for row, question in enumerate(questions)],
        np.array(values),
        np.ones(len(values)),
        [question.text for question in questions],
    )
    kinds = dict(sorted(subsets_of(items.ids).items()))
    notes = [f"{len(data.all)} of {_PUBLISHED} published conversations"]
    return Scored(
        main=NDCG.name,
        scores=NDCG.recompute(items),
        items=items,
        intervals={
            NDCG.name: resampled_interval(
                items.predictions, context.seed, groups=list(kinds.values())
            )
        },
        groups={
            kind: Group(len(rows), {NDCG.name: float(items.predictions[rows].mean())})
            for kind, rows in kinds.items()
        },
        data={"name": data.name, "conversations": len(data.all)},
        notes=notes if len(data.all) != _PUBLISHED else [],
    )


def _unit(rows: Embeddings) -> Embeddings:
    unit: Embeddings = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def _scores(talk: Conversation, cosines: Embeddings) -> Iterator[float]:
    for question, scores in zip(talk.questions, cosines, strict=True):
        relevant = np.array([turn.id in question.answers for turn in talk.turns])
        yield ndcg(ranked(scores, relevant), int(relevant.sum()))


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder = context.folder(ids[0])
    return {(task, "test"): read_conversations(folder, task.split("/")[1]) for task in ids}


FAMILIES = tuple(Family({f"memory/{name}": ("memory",)}, _read, _run) for name in SOURCES)
