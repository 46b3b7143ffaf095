"""What a model that is fine-tuned is not trained on: scores that choose weights, and that tell."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from rejoinder.api.pairs import DevScores, response_pairs
from rejoinder.corpus.manifest import SPLITS
from rejoinder.corpus.writer import Pairs
from rejoinder.datasets.groups import read_graded, read_groups
from rejoinder.datasets.sts import GradedPairs
from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.tasks.response import rank_responses, recall_of_all
from rejoinder.evaluation.tasks.similarity import score_stsb
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.search import nearest_rows
from rejoinder.io.files.hashed import md5_of

LEAST_PAIRS = 20
"""Fewest held-out pairs that can show whether a model got better."""
_SHARES = (10, 15, 20, 25, 30)
"""Percent of the threads in dev and in test, each."""
_LEAST = 200
"""Groups or graded pairs, of which a tenth is held out twice."""
_RANKED = 3_000
"""Inputs of the dev split by which weights are chosen."""
QUESTIONS_SCORE = "questions P@1"
Split = Literal["train", "dev", "test"]


def tenths(count: int, split: Split) -> Sequence[int]:
    """Returns the rows of a split: of ten rows one is dev and one is test.

    >>> tenths(11, "dev"), tenths(11, "test"), len(tenths(11, "train"))
    ([8], [9], 9)
    """
    last = {"dev": (8,), "test": (9,)}.get(split, range(8))
    return [row for row in range(count) if row % 10 in last]


class Questions:
    """Groups of questions, each of which has the same answer."""

    def __init__(self, path: Path) -> None:
        """Reads what `read_groups` does.

        Raises:
            InputError: it can't be read, or has too few groups.
        """
        self._groups = read_groups(path)
        _refuse_few(len(self._groups), "groups", path)

    def write_train(self, path: Path) -> None:
        """Writes the groups to train on, as JSON lines."""
        rows = tenths(len(self._groups), "train")
        lines = [json.dumps({"sentences": self._groups[row]}) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines))

    def found_first(self, encoder: SentenceEncoder, split: Split) -> float:
        """Returns the share of questions whose nearest other question is of their group."""
        groups = [dict.fromkeys(self._groups[row]) for row in tenths(len(self._groups), split)]
        texts = [text for group in groups for text in group]
        group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        rows = encoder.encode(texts)
        nearest, _ = nearest_rows(rows, rows, 2)
        own = np.arange(len(texts))
        other = np.where(nearest[:, 0] == own, nearest[:, 1], nearest[:, 0])
        return float((group_of[other] == group_of).mean())


class HeldOut:
    """The scores of models on what they are not trained on."""

    def __init__(
        self, pairs: Pairs, data: Path | None, questions: Path | None, graded: Path | None
    ) -> None:
        """Reads the dev and test threads of `pairs`, and what else there is.

        Raises:
            InputError: a file can't be read, or is too small.
        """
        for split in ("dev", "test"):
            if pairs.count(split) < LEAST_PAIRS:
                raise InputError(
                    f"{pairs.count(split):,} of {pairs.manifest.counts.pairs:,} pairs are {split}, "
                    f"and {LEAST_PAIRS} are needed to tell whether a model gets better; "
                    f"{_more_held_out(pairs)}."
                )
        self.questions = None if questions is None else Questions(questions)
        self._graded = None if graded is None else read_graded(graded)
        if self._graded is not None:
            _refuse_few(len(self._graded), "pairs", graded)
        self._dev = DevScores(pairs.folder, data, max_inputs=_RANKED)
        self._test = response_pairs(pairs.folder, "test")

    def graded(self, split: Split) -> GradedPairs | None:
        """Returns the graded pairs of a split."""
        return self._graded and self._graded.at(tenths(len(self._graded), split))

    def dev(self, encoder: SentenceEncoder) -> float:
        """Returns what weights are chosen by: P@1 of replies, and that of questions, if any."""
        found = next(iter(self._dev.responses(encoder).values()))
        return found + (self.questions.found_first(encoder, "dev") if self.questions else 0.0)

    def test(self, encoder: SentenceEncoder) -> Mapping[str, float]:
        """Returns the scores by name; P@1 of replies comes first."""
        embedder = Embedder(encoder)
        scores = rank_responses(embedder, self._test).scores
        first, *_, last = scores  # P@1 and P@10, of fewer than 100 replies where there are no more
        found = {first: scores[first], last: scores[last]}
        found["recall@10 of all"] = recall_of_all(embedder, self._test, 10)
        if self.questions:
            found[QUESTIONS_SCORE] = self.questions.found_first(encoder, "test")
        if graded := self.graded("test"):
            found["graded pairs"] = score_stsb(encoder, graded).scores["pearson"]
        for value in self._dev.similarity(encoder).values():
            found["STS-B dev"] = value
        return found


def _more_held_out(pairs: Pairs) -> str:
    """Returns what to do about too few pairs of a split: the smallest one that has enough."""
    from rejoinder.corpus.query import split_borders  # Ibis takes a fifth of a second

    threads = Counter[str]()
    for split in SPLITS:
        for frame in pairs.iter_frames(split, ["thread_id"]):
            threads.update(frame["thread_id"])
    heads = {thread: md5_of(thread.encode())[:8] for thread in threads}
    for share in _SHARES:
        shares = 100 - 2 * share, share, share
        borders = split_borders(shares)
        held_out = Counter[int]()
        for thread, count in threads.items():
            held_out[bisect_right(borders, heads[thread])] += count
        if min(held_out[1], held_out[2]) >= LEAST_PAIRS:
            return f"extract with `split={shares}`"
    return (
        f"no split of its {threads.total():,} pairs has so many, so it takes more conversations "
        "or fewer rules (`rules='none'`)"
    )


def _refuse_few(count: int, what: str, path: Path | None) -> None:
    if count < _LEAST:
        raise InputError(
            f"{path} has {count} {what}, and {_LEAST} are needed: a tenth is held out to tell "
            "whether a model gets better."
        )
