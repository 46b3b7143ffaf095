"""The scorer that comes with the package: it opens, and tells apart what a cosine does not."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from rejoinder.api.evaluation import load_encoder
from rejoinder.cli.main import app
from rejoinder.errors import InputError, ModelError
from rejoinder.evaluation.tasks.contrasts import KINDS, read_contrasts
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.scoring.families import FAMILIES
from rejoinder.scoring.scorer import WEIGHTS, Scorer, shipped_scorer


@pytest.fixture(scope="module")
def scorer():
    return Scorer()


def test_it_was_fitted_on_all_families(scorer):
    assert {*scorer.facts.families} == {*FAMILIES}
    assert scorer.facts.dev["pearson"] > 0.87
    lexicon = shipped_scorer().with_name("lexicon.safetensors")
    assert (shipped_scorer() / WEIGHTS).stat().st_size + lexicon.stat().st_size < 5_000_000


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


@pytest.mark.parametrize("kind", KINDS)
def test_more_paraphrases_than_changed_sentences_score_higher(scorer, kind):
    frame = read_contrasts().frame.filter(pl.col("kind") == kind)
    anchors, same, different = (frame[name].to_list() for name in ("anchor", "same", "different"))
    assert (scorer.score(anchors, same) > scorer.score(anchors, different)).mean() > 0.5


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


def test_an_encoder_scores_by_it(scorer):
    pair = ("Two dogs run.", "2 dogs are running.")
    assert SentenceEncoder().score(*pair) == scorer.score(*pair)
    with pytest.raises(ModelError):
        SentenceEncoder("rejoinder-small").score(*pair)


TEXTS = ["He never plays chess.", "It rains.", "He plays chess."]


def test_hits_are_scored_again(scorer):
    queries = ["He is playing chess.", "Rain is falling."]
    found = scorer.encoder.search(queries, TEXTS, 3)
    again = scorer.rerank(queries, found, 2)
    assert [len(hits) for hits in again] == [2, 2]
    assert [hits[0].text for hits in again] == ["He plays chess.", "It rains."]
    for query, hits in zip(queries, again, strict=True):
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        expected = scorer.score([query] * 2, [hit.text for hit in hits])
        assert scores == pytest.approx(expected.tolist(), abs=0.05)
        assert [TEXTS[hit.index] for hit in hits] == [hit.text for hit in hits]
    assert scorer.rerank([], []) == []
    assert scorer.rerank("a", [[]]) == [[]]
    for wrong in ((["a"], []), ("a", found[:1], 0)):
        with pytest.raises(InputError):
            scorer.rerank(*wrong)


def test_a_search_on_the_command_line_scores_hits_again(scorer, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    words = ("search", "He is playing chess.", "--corpus", str(tmp_path / "texts.txt"), "--json")
    result = CliRunner().invoke(app, [*words, "--rerank", "3", "--top-k", "2"])
    rows = json.loads(result.stdout)
    assert [row["line"] for row in rows] == [3, 1]
    expected = scorer.score(["He is playing chess."] * 2, [TEXTS[2], TEXTS[0]])
    assert [row["score"] for row in rows] == pytest.approx(expected.tolist(), abs=0.05)
    for wrong in (["--rerank", "2"], ["--scorer-from", str(shipped_scorer())], ["--rerank", "0"]):
        assert CliRunner().invoke(app, [*words, *wrong]).exit_code != 0
