"""Which turn of a long conversation answers a question: LMEB's score, LoCoMo and REALTALK.

    python benchmarks/memory.py ../shared/data/memory
    python benchmarks/memory.py ../shared/data/memory --others bm25s all-MiniLM-L6-v2

The turns of a conversation are indexed with their author and time, and its questions searched. The
score is NDCG@10 among the turns of the question's own conversation: the mean within a kind of
question, then over kinds (LMEB 2026). Turns have the text of their picture, too. `--others` judges
others on the same turns: `bm25s` with its stems reads date, author and text, as LMEB gives them to
encoders; anything else is the name or folder of an encoder of sentence-transformers.
"""

import argparse
import json
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import zstandard

from rejoinder import Index
from rejoinder.corpus.texts import Entry
from rejoinder.index.state import MODES, Mode

SETS = ("locomo", "realtalk")
TOP = 10
_SESSION = re.compile(r"session_\d+")
_TURN = re.compile(r"D\s*0*(\d+)\s*:\s*0*(\d+)")
_TEXTS = ("clean_text", "text", "blip_caption")
_TIMES = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S")
Search = Callable[[list[str]], list[list[str]]]
"""Returns the ids of the best turns for each question."""


@dataclass(frozen=True)
class Question:
    """A question, its kind, and the ids of the turns that answer it."""

    text: str
    kind: str
    answers: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """Turns and questions."""

    name: str
    turns: Sequence[Entry]
    questions: Sequence[Question]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--others", nargs="*", default=[])
    chosen = parser.parse_args()
    for name in SETS:
        conversations = [conversation(path) for path in sorted((chosen.data / name).iterdir())]
        rows: dict[str, Callable[[Conversation], Search]] = {
            mode: own(chosen.model, mode) for mode in MODES
        }
        rows |= {
            other: by_bm25s if other == "bm25s" else by_encoder(other) for other in chosen.others
        }
        for system, searcher in rows.items():
            print(json.dumps({"set": name, "system": system, **scores(conversations, searcher)}))


def conversation(path: Path) -> Conversation:
    """Reads a conversation. Questions without a turn that exists are left out."""
    with path.open("rb") as file:
        read = json.loads(zstandard.ZstdDecompressor().stream_reader(file).read())
    talk = read.get("conversation", read)
    sessions = sorted(filter(_SESSION.fullmatch, talk), key=lambda name: int(name[8:]))
    turns = [turn for name in sessions for turn in _turns(talk, name, path.name)]
    known = {turn.id for turn in turns}
    questions = []
    for asked in read["qa"]:
        found = _TURN.findall(json.dumps(asked.get("evidence", [])))
        answers = frozenset(f"D{session}:{turn}" for session, turn in found) & known
        if answers:
            questions.append(Question(asked["question"], str(asked["category"]), answers))
    return Conversation(path.name, turns, questions)


def _turns(talk: dict[str, list[dict[str, str]]], session: str, source: str) -> Iterator[Entry]:
    for number, turn in enumerate(talk[session]):
        when = turn.get("date_time") or str(talk[f"{session}_date_time"])
        text = " ".join(
            filter(None, [turn.get("clean_text", turn.get("text")), turn.get("blip_caption")])
        )
        about = {"author": turn["speaker"], "time": _seconds(when) + number, "source": source}
        yield Entry(turn["dia_id"], text, about)


def _seconds(when: str) -> float:
    for form in _TIMES:
        try:
            return datetime.strptime(when, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise ValueError(f"{when!r} is not a time")


def scores(
    conversations: Sequence[Conversation], searcher: Callable[[Conversation], Search]
) -> dict[str, object]:
    """Returns NDCG@10 by kind of question and its mean, and milliseconds per question."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    seconds = 0.0
    for talk in conversations:
        search = searcher(talk)
        begin = time.perf_counter()
        found = search([question.text for question in talk.questions])
        seconds += time.perf_counter() - begin
        for question, ids in zip(talk.questions, found, strict=True):
            by_kind[question.kind].append(ndcg(ids, question.answers))
    kinds = {kind: statistics.mean(values) for kind, values in sorted(by_kind.items())}
    count = sum(map(len, by_kind.values()))
    return {
        "questions": count,
        "ndcg@10": round(statistics.mean(kinds.values()), 4),
        "kinds": {kind: round(value, 3) for kind, value in kinds.items()},
        "ms": round(1e3 * seconds / count, 2),
    }


def ndcg(found: Sequence[str], wanted: frozenset[str]) -> float:
    """Returns the NDCG of the first ten, where what is wanted counts the same.

    >>> ndcg(["a", "b"], frozenset({"a"})), round(ndcg(["b", "a"], frozenset({"a"})), 3)
    (1.0, 0.631)
    """
    gains = 1 / np.log2(np.arange(2, TOP + 2))
    gained = sum(gain for name, gain in zip(found[:TOP], gains, strict=False) if name in wanted)
    return float(gained / gains[: len(wanted)].sum())


def own(model: str, mode: Mode) -> Callable[[Conversation], Search]:
    """Searches an index of ours."""

    def searcher(talk: Conversation) -> Search:
        folder = tempfile.TemporaryDirectory()
        index = Index.create(Path(folder.name, "index"), talk.turns, model)

        def search(questions: list[str]) -> list[list[str]]:
            with folder:  # which the last search removes
                hits = index.search(questions, TOP, mode=mode)
            return [[hit.id for hit in of_query] for of_query in hits]

        return search

    return searcher


def _with_facts(turn: Entry) -> str:
    day = datetime.fromtimestamp(turn.about["time"], UTC).strftime("%d %B %Y")
    return f"{day} {turn.about['author']}: {turn.text}"


def by_bm25s(talk: Conversation) -> Search:
    """Searches by bm25s with the stems of Snowball and its stop words."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    texts = [_with_facts(turn) for turn in talk.turns]
    index.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)

    def search(questions: list[str]) -> list[list[str]]:
        asked = bm25s.tokenize(questions, stemmer=stemmer, show_progress=False)
        found, _ = index.retrieve(asked, k=TOP, show_progress=False)
        return [[str(talk.turns[row].id) for row in rows] for rows in found.tolist()]

    return search


def by_encoder(name: str) -> Callable[[Conversation], Search]:
    """Searches by the cosines of an encoder."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(name)

    def searcher(talk: Conversation) -> Search:
        texts = [_with_facts(turn) for turn in talk.turns]
        rows = encoder.encode(texts, normalize_embeddings=True)

        def search(questions: list[str]) -> list[list[str]]:
            asked = encoder.encode(questions, normalize_embeddings=True)
            best = np.argsort(-(asked @ rows.T), axis=1, kind="stable")[:, :TOP]
            return [[str(talk.turns[row].id) for row in of_query] for of_query in best.tolist()]

        return search

    return searcher


if __name__ == "__main__":
    main()
