"""SNLI by the encoder's own classifier."""

import json

import numpy as np
import pytest

from rejoinder.datasets.groups import read_snli_split
from rejoinder.errors import InputError
from rejoinder.evaluation.results import Missing
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context

ROWS = [
    ("entailment", "A man runs.", "A man moves."),
    ("-", "A man runs.", "It is unclear."),
    ("contradiction", "A man runs.", "A man sits."),
    ("neutral", "A man runs.", "A man is late."),
    ("entailment", "A dog eats.", "An animal eats."),
]


class Judge:
    """Says neutral where the hypothesis has an "is", else entailment."""

    entails = True

    def encode(self, sentences):
        return np.ones((len(sentences), 2), np.float32)

    def entail(self, premises, hypotheses):
        assert len(premises) == len(hypotheses)
        rows = [[0, 1, 0] if " is " in text else [0, 0, 1] for text in hypotheses]
        return np.array(rows, np.float32)


class Speechless:
    def encode(self, sentences):
        return np.ones((len(sentences), 2), np.float32)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "snli_1.0").mkdir()
    lines = [
        json.dumps({"gold_label": label, "sentence1": first, "sentence2": second})
        for label, first, second in ROWS
    ]
    for split in ("dev", "test"):
        (tmp_path / f"snli_1.0/snli_1.0_{split}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_accuracy_and_confusions(folder):
    dev, test = score_tasks(Judge(), ["snli/head"], Context(folder))
    assert (dev.split, test.split, test.n, test.main) == ("dev", "test", 4, "accuracy")
    assert test.scores == {"accuracy": 75.0}
    assert test.data["unlabelled"] == 1
    assert len(test.groups) == 9
    found = {name: (cell.n, cell.scores["share"]) for name, cell in test.groups.items() if cell.n}
    assert found == {
        "is contradiction, said entailment": (1, 1.0),
        "is neutral, said neutral": (1, 1.0),
        "is entailment, said entailment": (2, 1.0),
    }
    assert test.items.texts[1] == "A man runs. | A man sits."


def test_an_encoder_without_a_classifier_is_named_as_missing(folder):
    [missing] = score_tasks(Speechless(), ["snli/head"], Context(folder), skip_missing=True).missing
    assert isinstance(missing, Missing)
    assert "a method entail" in missing.reason


def test_what_the_classifier_returns_is_checked(folder):
    judge = Judge()
    judge.entail = lambda premises, _hypotheses: np.full((len(premises), 3), np.nan)
    with pytest.raises(InputError, match=r"entail.*finite"):
        list(score_tasks(judge, ["snli/head"], Context(folder)))


@pytest.mark.shared_data
def test_snli_s_official_splits(shared_data):
    for split, counts in (("dev", (3278, 3235, 3329)), ("test", (3237, 3219, 3368))):
        pairs = read_snli_split(shared_data, split)
        assert tuple(np.bincount(pairs.labels).tolist()) == counts
