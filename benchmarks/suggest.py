"""Suggested replies: how often the first one is right, by each way of ranking, and how fast.

    python benchmarks/suggest.py pairs/task pairs/spoken --split dev

The folders of pairs have dev and test threads (`rejoinder extract --split 90,5,5`). Messages of
`--split` are answered from the train split. A suggestion is right if it says nearly the same as a
true reply (`inference.suggestions.Replies.same`), and strictly right if also in the same words.
Messages are ordered by the score of their suggestion; P@50 is the share of right ones in the first
half.

- similarity: the reply to the most similar message, by its cosine
- words: the reply to the message with the highest BM25, by that
- response: the reply with the highest response score, by that (`rank`)
- votes: `Suggestions`; with `--ablate` also other weights, and the response score or BM25 added

With `--strangers FOLDER`, a row gives the share of 300 messages of its dev threads whose suggestion
has at least the median score of the others.

`--fit` opens `Suggestions`, which fits confidences on dev and tries them on test, and measures the
time of a message. Prints a line of JSON for each folder and way.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder import Index, SentenceEncoder, Suggestions
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.replies import CHECK, FIT, HISTORY, PastReplies, past_replies
from rejoinder.conversations.suggestions import (
    EQUAL,
    FLOOR,
    NEIGHBOURS,
    SAME,
    SIMILARITY,
    Voted,
    nearness,
)
from rejoinder.corpus.writer import open_pairs
from rejoinder.inference.neighbours import nearest_rows

COVERAGES = (100, 50, 20, 10)
WAYS: dict[str, dict[str, Any]] = {
    "votes": {},
    "votes, similarity 10": {"similarity": 10.0},
    "votes, similarity 30": {"similarity": 30.0},
    "votes, without the middle": {"middle": False},
    "votes, without the floor": {"floor": 0.0},
    "votes, 50 neighbours": {"neighbours": 50},
    "votes, 100 neighbours": {"neighbours": 100},
    "votes, without the number": {"power": 0.0},
    "votes, response score": {"response": 4.0},
    "votes, words": {"bm25": 3.0},
}
Best = tuple[NDArray[np.int64], NDArray[np.float64]]
"""The pair that is suggested for each message, and its score."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--strangers", nargs="*", type=Path, default=[])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args()
    encoder = SentenceEncoder(chosen.model, threads=chosen.threads)
    for folder in chosen.folders:
        if chosen.fit:
            print(json.dumps({"pairs": str(folder), **fitted(folder, encoder)}), flush=True)
            continue
        past = past_replies(open_collection(folder, encoder))
        messages = past.held_out({"dev": FIT, "test": CHECK}[chosen.split], chosen.messages)
        for way, best in ranked(past, messages, ablate=chosen.ablate):
            row = {"pairs": str(folder), "split": chosen.split, "messages": len(messages)}
            print(json.dumps({**row, "way": way, **scored(past, messages, *best)}), flush=True)
        for other in chosen.strangers:
            texts = open_pairs(other).frame("dev", ["input"])["input"].to_list()[:300]
            for floor in (FLOOR, 0.0):
                own, foreign = (
                    scores_of(past, queries, floor)
                    for queries in (past.collection.rows(messages), encoder.encode(texts))
                )
                share = round(float((foreign >= np.median(own)).mean()), 3)
                row = {"pairs": str(folder), "strangers": str(other), "floor": floor}
                print(json.dumps({**row, "answered": share}), flush=True)


def ranked(
    past: PastReplies, messages: NDArray[np.int64], *, ablate: bool
) -> Iterator[tuple[str, Best]]:
    """Yields the best pair of the train split for each message, by each way."""
    made = past.collection
    queries, known = made.rows(messages), past.parts == HISTORY
    found = list(past.nearest(queries, NEIGHBOURS, known))
    pairs, cosines = np.stack([near for near, _ in found]), np.stack([near for _, near in found])
    yield "similarity", (pairs[:, 0], cosines[:, 0].astype(float))
    words = by_words(past, messages)
    yield "words", (words[0][:, 0], words[1][:, 0])
    replies = np.flatnonzero(known)
    vectors = made.encoder.encode_response(past.texts(replies))
    first, scores = nearest_rows(queries, vectors, 1)
    yield "response", (replies[first[:, 0]], scores[:, 0].astype(float))
    responses = np.zeros((len(past), vectors.shape[1]), np.float32)
    responses[replies] = vectors
    for name, setting in WAYS.items() if ablate else [("votes", {})]:
        best, score = np.zeros(len(messages), np.int64), np.zeros(len(messages))
        for at, query in enumerate(queries):
            best[at], score[at] = voted(past, query, pairs[at], responses, words, at, **setting)
        yield name, (best, score)


def voted(
    past: PastReplies,
    query: NDArray[np.float32],
    pairs: NDArray[np.int64],
    responses: NDArray[np.float32],
    words: Best,
    at: int,
    *,
    similarity: float = SIMILARITY,
    floor: float = FLOOR,
    neighbours: int = NEIGHBOURS,
    power: float = 0.5,
    middle: bool = True,
    response: float = 0.0,
    bm25: float = 0.0,
) -> tuple[int, float]:
    """Returns the best pair and its score, as `inference.suggestions.vote` does by default."""
    near = pairs[:neighbours]
    replies, asked = past.replies.at(near), past.collection.rows(past.asked[near])
    cosines = replies.alike(replies)
    same = cosines >= SAME
    near_it = nearness(query, asked, same) if middle else (asked @ query).astype(float)
    logits = similarity * near_it
    if response:
        logits += response * (responses[near] @ query)
    if bm25:
        found = dict(zip(words[0][at].tolist(), words[1][at].tolist(), strict=True))
        most = max(found.values(), default=0.0) or 1.0
        logits += bm25 * np.array([found.get(pair, 0.0) / most for pair in near.tolist()])
    weights = np.exp(logits - similarity * floor)
    weights /= weights.sum() + (len(weights) if floor else 0)
    alike, equals = same.sum(axis=1), np.asarray((cosines >= EQUAL) @ weights, float)
    counted = Voted(same @ weights * alike**power, weights, alike, same, equals)
    [group] = counted.folded(1)
    return int(near[counted.shown(group)]), float(counted.scores[group[0]])


def scores_of(past: PastReplies, queries: NDArray[np.float32], floor: float) -> NDArray[np.float64]:
    """Returns the scores of the best suggestions."""
    pairs = [near for near, _ in past.nearest(queries, NEIGHBOURS, past.parts == HISTORY)]
    nothing, none = np.empty((0, 0), np.float32), (np.empty((0, 0), np.int64), np.empty((0, 0)))
    both = zip(queries, pairs, strict=True)
    return np.array([voted(past, *one, nothing, none, 0, floor=floor)[1] for one in both])


def by_words(past: PastReplies, messages: NDArray[np.int64]) -> Best:
    """Returns the pairs whose messages have the highest BM25, best first, and that."""
    made = past.collection
    history = np.flatnonzero(past.parts == HISTORY)
    texts = [(str(pair), made.texts[past.asked[pair]]) for pair in history.tolist()]
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Path(folder, "index"), texts, "rejoinder-small")
        found = index.search([made.texts[row] for row in messages.tolist()], 100, mode="words")
    pairs = np.full((len(messages), 100), history[0], np.int64)
    scores = np.zeros((len(messages), 100))
    for at, hits in enumerate(found):
        pairs[at, : len(hits)] = [int(hit.id) for hit in hits]
        scores[at, : len(hits)] = [hit.score for hit in hits]
    return pairs, scores


def scored(
    past: PastReplies,
    messages: NDArray[np.int64],
    best: NDArray[np.int64],
    scores: NDArray[np.float64],
) -> dict[str, Any]:
    right, strict = past.judged(messages, past.replies.at(best), past.texts(best))
    order = np.argsort(-scores, kind="stable")
    found: dict[str, Any] = {}
    for name, flags in (("P", right), ("strict P", strict)):
        for coverage in COVERAGES:
            first = order[: max(len(order) * coverage // 100, 1)]
            found[f"{name}@{coverage}"] = round(float(flags[first].mean()), 4)
    return found


def fitted(folder: Path, encoder: SentenceEncoder) -> dict[str, Any]:
    """Returns what confidences are worth on test, and the milliseconds that a message takes."""
    began = time.perf_counter()
    opened = Suggestions.open(folder, encoder)
    seconds, times = time.perf_counter() - began, []
    for text in open_collection(folder, encoder).texts[::1_000]:
        began = time.perf_counter()
        opened.suggest(text)
        times.append(1_000 * (time.perf_counter() - began))
    told = {} if opened.fitted is None else opened.fitted.to_dict()
    return {**told, "open_seconds": round(seconds, 1), "message_ms": round(np.median(times), 1)}


if __name__ == "__main__":
    main()
