"""The turns that answer a question: NDCG@10 against a slow definition, and scores by kind."""

import json
import math

import numpy as np
import pytest

from rejoinder.datasets.memory import read_conversations
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.results import read_results, write_results
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context, resolve
from rejoinder.evaluation.tasks.ranking import ndcg
from rejoinder.inference.encoder import SentenceEncoder

pytestmark = pytest.mark.usefixtures("few_resamples")

WORDS = ("run", "dog", "tea", "sea")


class Words:
    """Has a number for each known word; deaf to `unknown`."""

    def __init__(self, unknown=""):
        self.known = [word for word in WORDS if word != unknown]

    def encode(self, texts):
        return np.array([[float(word in text) for word in WORDS if word in self.known] + [0.01]
                         for text in texts], np.float32)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Two conversations of the same four turns. Questions of kind 1 are right, one of 2 is not."""
    turns = [
        {"dia_id": f"D1:{row}", "speaker": "Ann", "text": word} for row, word in enumerate(WORDS, 1)
    ]
    asked = [("run", 1, "D1:1"), ("dog", 1, "D1:2"), ("tea", 2, ["D1:3"]), ("sea", 2, "D1:2")]
    (tmp_path / "locomo").mkdir()
    for number, questions in enumerate((asked, asked[:2])):
        tree = {
            "conversation": {
                "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023",
            },
            "qa": [dict(zip(("question", "category", "evidence"), row, strict=True))
                   for row in questions],
        }  # fmt: skip
        (tmp_path / f"locomo/{number}.json").write_text(json.dumps(tree))
    return tmp_path


def test_ndcg_is_that_of_its_definition():
    draw = np.random.default_rng(0)
    for size in (3, 10, 40):
        flags = draw.random(size) < 0.3
        flags[0] = False
        relevant = int(flags.sum()) + 2  # two that were not found
        gained = sum(1 / math.log2(rank + 2) for rank in range(min(10, size)) if flags[rank])
        best = sum(1 / math.log2(rank + 2) for rank in range(min(10, relevant)))
        assert ndcg(flags, relevant) == pytest.approx(gained / best)


def test_the_mean_is_over_kinds_and_not_over_questions(folder, tmp_path):
    [result] = score_tasks(Words(), ["memory/locomo"], Context(folder))
    third = 1 / math.log2(4)  # "sea" finds its own turn, then the others in their order
    assert {name: group.scores["ndcg@10"] for name, group in result.groups.items()} == {
        "1": 1, "2": pytest.approx((1 + third) / 2),
    }  # fmt: skip
    assert result.scores["ndcg@10"] == pytest.approx((1 + (1 + third) / 2) / 2)
    low, high = result.intervals["ndcg@10"]
    assert low == pytest.approx((1 + third) / 2)  # kind 1 never changes
    assert high == 1
    assert result.n == 6
    assert result.notes == ("2 of 10 published conversations",)
    written = write_results(tmp_path / "r.json", [result])
    assert read_results(tmp_path / "r.json") == written


def test_two_encoders_are_compared_by_kind(folder):
    both = [score_tasks(Words(name), ["memory/locomo"], Context(folder)) for name in ("", "tea")]
    [row] = compare(*both).tasks
    difference = both[0][0].scores["ndcg@10"] - both[1][0].scores["ndcg@10"]
    assert difference > 0
    assert row.difference == pytest.approx(difference)
    assert row.test == "paired bootstrap"


def test_a_set_that_is_missing_is_told(folder):
    assert resolve(["memory"]) == ["memory/locomo", "memory/realtalk"]
    results = score_tasks(Words(), ["memory"], Context(folder), skip_missing=True)
    assert "danny911kr/REALTALK" in results.missing[0].reason
    with pytest.raises(DataMissingError, match="memory/realtalk: The set realtalk is not there"):
        score_tasks(Words(), ["memory/realtalk"], Context(folder))


@pytest.mark.shared_data
def test_the_figures_are_those_of_a_plain_implementation(shared_data):
    # LMEB publishes scores of all ten conversations; these are five, by its definition
    encoder = SentenceEncoder("rejoinder-base")
    for result in score_tasks(encoder, ["memory"], Context(shared_data)):
        kinds = {}
        for talk in read_conversations(shared_data, result.data["name"]).all:
            rows = encoder.encode([turn.dated for turn in talk.turns])
            asked = encoder.encode([question.text for question in talk.questions])
            for question, scores in zip(talk.questions, asked @ rows.T, strict=True):
                best = [talk.turns[row].id for row in np.argsort(-scores, kind="stable")[:10]]
                gains = [1 / math.log2(rank + 2) for rank in range(10)]
                gained = sum(gains[rank] for rank, name in enumerate(best)
                             if name in question.answers)  # fmt: skip
                share = gained / sum(gains[: len(question.answers)])
                kinds.setdefault(question.kind, []).append(share)
        expected = np.mean([np.mean(values) for values in kinds.values()])
        assert result.scores["ndcg@10"] == pytest.approx(expected, abs=1e-3)
        published = {"locomo": 0.3486, "realtalk": 0.3796}  # as `notebook/search.md` has them
        assert result.scores["ndcg@10"] == pytest.approx(published[result.data["name"]], abs=1e-3)
