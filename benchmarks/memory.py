"""Which turn of a long conversation answers a question: LMEB's score, LoCoMo and REALTALK.

    python benchmarks/memory.py ../shared/data
    python benchmarks/memory.py ../shared/data --bm25s

The turns of a conversation are indexed with their author and time, and its questions searched. The
score is NDCG@10 among the turns of the question's own conversation: the mean within a kind of
question, then over kinds (LMEB 2026). Turns have the text of their picture, too. `--bm25s` judges
bm25s with stems on the same turns: it reads date, author and text, as LMEB gives them to encoders.
`rejoinder evaluate ENCODER --tasks memory` judges encoders on the same.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rejoinder import Index
from rejoinder.corpus.texts import Entry
from rejoinder.datasets.memory import SOURCES, Conversation, Conversations, read_conversations
from rejoinder.evaluation.tasks.ranking import ndcg
from rejoinder.index.state import MODES, Mode

TOP = 10
Search = Callable[[list[str]], list[list[str]]]
"""Returns the ids of the best turns for each question."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--bm25s", action="store_true")
    chosen = parser.parse_args()
    rows: dict[str, Callable[[Conversation], Search]] = {
        mode: own(chosen.model, mode) for mode in MODES
    }
    if chosen.bm25s:
        rows["bm25s"] = by_bm25s
    for name in SOURCES:
        conversations = read_conversations(chosen.data, name)
        for system, searcher in rows.items():
            print(json.dumps({"set": name, "system": system, **scores(conversations, searcher)}))


def scores(
    conversations: Conversations, searcher: Callable[[Conversation], Search]
) -> dict[str, object]:
    """Returns NDCG@10 by kind of question and its mean, and milliseconds per question."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    seconds = 0.0
    for talk in conversations.all:
        search = searcher(talk)
        begin = time.perf_counter()
        found = search([question.text for question in talk.questions])
        seconds += time.perf_counter() - begin
        for question, ids in zip(talk.questions, found, strict=True):
            flags = np.array([name in question.answers for name in ids], bool)
            by_kind[question.kind].append(ndcg(flags, len(question.answers)))
    kinds = {kind: statistics.mean(values) for kind, values in sorted(by_kind.items())}
    count = sum(map(len, by_kind.values()))
    return {
        "questions": count,
        "ndcg@10": round(statistics.mean(kinds.values()), 4),
        "kinds": {kind: round(value, 3) for kind, value in kinds.items()},
        "ms": round(1e3 * seconds / count, 2),
    }


def own(model: str, mode: Mode) -> Callable[[Conversation], Search]:
    """Searches an index of ours."""

    def searcher(talk: Conversation) -> Search:
        folder = tempfile.TemporaryDirectory()
        turns = [
            Entry(turn.id, turn.text, {"author": turn.author, "time": turn.time, "source": "talk"})
            for turn in talk.turns
        ]
        index = Index.create(Path(folder.name, "index"), turns, model)

        def search(questions: list[str]) -> list[list[str]]:
            with folder:  # which the last search removes
                hits = index.search(questions, TOP, mode=mode)
            return [[hit.id for hit in of_query] for of_query in hits]

        return search

    return searcher


def by_bm25s(talk: Conversation) -> Search:
    """Searches by bm25s with the stems of Snowball and its stop words."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    texts = [turn.dated for turn in talk.turns]
    index.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)

    def search(questions: list[str]) -> list[list[str]]:
        asked = bm25s.tokenize(questions, stemmer=stemmer, show_progress=False)
        found, _ = index.retrieve(asked, k=TOP, show_progress=False)
        return [[talk.turns[row].id for row in rows] for rows in found.tolist()]

    return search


if __name__ == "__main__":
    main()
