"""`rejoinder fit-scorer`, and `similarity` and `evaluate` with what it writes."""

import json
from functools import partial

import pytest

import commands
from commands import call
from rejoinder.api import trees
from rejoinder.errors import RejoinderError
from rejoinder.scoring.scorer import FILE

refused = partial(commands.refused, error=RejoinderError)

WORDS = "the cat sleeps on warm sofas in our small old house near a wide river".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorer")
    lines = []
    for number in range(250):
        start, shared = number % 9, number % 5
        first = WORDS[start : start + 5]
        second = [*first[:shared], *(f"{word}{number}" for word in first[shared:])]
        row = {"sentence1": " ".join(first), "sentence2": " ".join(second), "score": shared}
        lines.append(json.dumps(row) + "\n")
    (folder / "pairs.jsonl").write_text("".join(lines), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "TREES", 9)
        patch.setattr(trees, "BOOSTS", 9)
        done = call("fit-scorer", "--sets", folder / "pairs.jsonl", "--model", "rejoinder-small",
                    "--out", folder / "scorer", "--json")  # fmt: skip
    return folder, json.loads(done.stdout)


def test_fitting_says_what_it_did(place):
    folder, told = place
    assert (folder / "scorer" / FILE).is_file()
    assert sum(told["pairs"].values()) + told["leaks_dropped"] == 250
    assert told["dev"] == {}


def test_similarity_by_a_scorer(place):
    folder, _ = place
    asked = ("similarity", "--model", "rejoinder-small", "--scorer-from", folder / "scorer")
    [row] = json.loads(call(*asked, "a cat", "the cat", "--json", "--why").stdout)
    assert row["low"] <= row["score"] <= row["high"]
    assert row["cosine"] > 0
    assert "embeddings" in row["why"]
    [plain] = json.loads(call(*asked, "a cat", "the cat", "--json").stdout)
    assert "why" not in plain
    assert plain["score"] == row["score"]
    table = call(*asked, "a cat", "the cat", "--why", "--tsv").stdout
    assert "remainders" in table


def test_options_without_effect_are_errors(place):
    folder, _ = place
    for words in (
        ("similarity", "--why", "a", "b"),
        ("similarity", "--scorer-from", folder / "scorer", "a", "b"),  # another model
        ("fit-scorer", "--out", folder / "new"),  # no data
        ("fit-scorer", "--sets", "", "--out", folder / "new"),
    ):
        refused(*words)
    assert not (folder / "new").exists()
