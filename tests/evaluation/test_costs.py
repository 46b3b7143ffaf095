"""What encoding costs goes into results."""

import json
import time

import numpy as np
import pytest

from rejoinder.api.evaluation import REFERENCES, evaluate, repeat
from rejoinder.evaluation.encoding import Meter, speed

PAIRS = [("a dog runs", "the dog ran", 4.0), ("a cat", "two mice", 0.5), ("red", "blue", 2.0)] * 2


class Slow:
    """An encoder that takes a tenth of a second a call."""

    def encode(self, sentences):
        time.sleep(0.1)
        return np.array([[len(text), text.count("a") + 1] for text in sentences], np.float32)


def test_a_result_says_what_its_encoding_cost(tmp_path):
    [result] = evaluate(Slow(), "graded", data=PAIRS, out=tmp_path / "slow.json")
    cost = result.cost
    assert cost["sentences"] == len(
        {text for first, second, _ in PAIRS for text in (first, second)}
    )
    assert 0.1 <= cost["seconds"] < 5
    assert cost["dimensions"] == 2
    assert cost["peak_bytes"] > 10e6
    assert all(cost[name] > 1_000 for name in REFERENCES)
    saved = json.loads((tmp_path / "slow.json").read_text("utf-8"))
    assert saved["results"][0]["cost"] == cost


def test_an_encoder_that_fails_on_the_reference_sentences_is_told_of(tmp_path):
    class Short(Slow):
        def encode(self, sentences):
            if max(map(len, sentences)) > 80:
                raise ValueError("too long")
            return super().encode(sentences)

    with pytest.warns(UserWarning, match="ValueError: too long"):
        [result] = evaluate(Short(), "graded", data=PAIRS, out=tmp_path / "short.json")
    assert "reference" not in result.cost
    assert set(REFERENCES) < set(result.cost)


def test_references_run_only_for_results_that_are_kept():
    [result] = evaluate(Slow(), "graded", data=PAIRS)
    assert not set(REFERENCES) & set(result.cost)
    assert result.cost["sentences"]


def test_a_shipped_model_has_its_size_and_repeating_tells_both_speeds(tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"sentence1": a, "sentence2": b, "score": score} for a, b, score in PAIRS]
    pairs.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    out = tmp_path / "small.json"
    [result] = evaluate("rejoinder-small", "graded", data=pairs, out=out)
    assert 5e6 < result.cost["model_bytes"] < 20e6
    before, now = repeat(out).speeds
    assert min(before, now) > 0


def test_speed_is_of_all_costs_together():
    assert speed([{"sentences": 10, "seconds": 1.0}, {}, {"sentences": 20, "seconds": 2.0}]) == 10
    assert speed([{}]) is None
    assert Meter().cost() == {}
