"""The scorer that comes with the package: it opens, and tells apart what a cosine does not."""

import json

import pytest
from typer.testing import CliRunner

from rejoinder.api.encoders import load_encoder
from rejoinder.cli.main import app
from rejoinder.inference.scoring.families import FAMILIES
from rejoinder.inference.scoring.scorer import WEIGHTS, Scorer, shipped_scorer


@pytest.fixture(scope="module")
def scorer():
    return Scorer()


def test_it_was_fitted_on_all_families(scorer):
    assert {*scorer.facts.families} == {*FAMILIES}
    assert scorer.facts.dev["pearson"] > 0.87
    assert (shipped_scorer() / WEIGHTS).stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("same", "different"),
    [
        (("He plays chess.", "He is playing chess."), ("He plays chess.", "He never plays chess.")),
        (("Two dogs run.", "2 dogs are running."), ("Two dogs run.", "Three dogs run.")),
        (("A cat sleeps.", "A cat is sleeping."), ("A cat sleeps.", "The market fell in May.")),
    ],
)  # fmt: skip
def test_what_means_the_same_scores_higher(scorer, same, different):
    assert scorer.score(*same) > scorer.score(*different)


def test_the_same_text_scores_high(scorer):
    for text in ("A man is playing a guitar.", "Stocks fell on Monday in New York.", "yes"):
        assert scorer.score(text, text) > 4


def test_it_is_an_encoder_to_judge(scorer):
    opened = load_encoder(f"scorer:{shipped_scorer()}")
    pair = (["A cat sleeps."], ["A cat is sleeping."])
    assert 5 * opened.similarity_pairs(*pair) == pytest.approx(scorer.score(*pair))
    assert opened.describe()["dim"] == 512


def test_the_command_line_uses_it():
    words = ("similarity", "--scorer", "--why", "--json", "He is here.", "He is not here.")
    result = CliRunner().invoke(app, words)
    [row] = json.loads(result.stdout)
    assert row["why"]["negation"] < 0
