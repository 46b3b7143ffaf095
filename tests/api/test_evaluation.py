"""`evaluate` and `repeat` from Python: names and objects, results files, missing data."""

import numpy as np
import pytest

from embedding_server import running
from rejoinder.api.evaluation import evaluate, load_encoder, repeat
from rejoinder.errors import DataMissingError, InputError, ModelError
from rejoinder.evaluation.encoding import _PROBE
from rejoinder.evaluation.report import compare
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation import Adaptation
from sts_files import write_year

WORDS = ["red", "green", "blue", "old", "young", "tall", "short", "warm", "cold", "quick"]


class Counts:
    """An encoder with `encode` alone: counts of words."""

    def encode(self, sentences):
        return np.array([[text.split().count(word) for word in WORDS] for text in sentences])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """STS12, made up: pairs that share as many words as their gold says."""
    generator = np.random.default_rng(0)

    def rows(_subset):
        for row in range(60):
            words = generator.permutation(WORDS)
            second = " ".join(words[5 - row % 6 : 10 - row % 6])
            yield " ".join(words[:5]), second, min(5.0, row % 6 + round(generator.random(), 2))

    return write_year(tmp_path_factory.mktemp("data"), rows)


def test_an_object_with_encode_is_scored(data, tmp_path):
    path = tmp_path / "counts.json"
    results = evaluate(Counts(), "sts12", data=data, out=path)
    assert results[0].scores["pearson_weighted_mean"] > 0.9
    assert "sts12/cosine test  pearson_weighted_mean" in str(results)
    assert evaluate(Counts(), ["sts12"], data=str(data), out=str(path)).reused == 1
    with pytest.raises(InputError, match=r"results\[0\]\.run"):
        repeat(path)


def test_results_are_compared_by_path_or_as_they_are(data, tmp_path):
    path = tmp_path / "random.json"
    ours = evaluate(Counts(), "sts12", data=data)
    theirs = evaluate("baseline:random", "sts12", data=data, out=path)
    by_path, held = compare(ours, path), compare(ours, theirs)
    assert by_path == held
    assert by_path.tasks[0].better == "first"
    assert compare(path, ours).tasks[0].better == "second"
    assert "pearson_weighted_mean" in str(held)
    again = repeat(path)
    assert not again.differences
    reused = evaluate("baseline:random", "sts12", data=data, out=path)
    assert compare(ours, reused) == held


def test_missing_data_is_an_error_unless_it_is_skipped(data):
    with pytest.raises(DataMissingError, match="sts13/cosine: STS13"):
        evaluate(Counts(), "sts12,sts13", data=data)
    results = evaluate(Counts(), "sts12,sts13", data=data, skip_missing=True)
    assert [task.task for task in results.missing] == ["sts13/cosine"]
    assert len(results) == 1


def test_what_is_no_encoder_is_refused(data):
    with pytest.raises(InputError, match=r"list.*encode"):
        evaluate([1.0], "sts12", data=data)


def texts_of(server):
    """All texts that the server was asked to encode, in order."""
    return [text for body in server.requests for text in body.get("inputs", body.get("input"))]


@pytest.mark.parametrize("name", ["openai:base@{}", "tei:{}"])
def test_an_encoder_behind_an_address_has_the_scores_of_the_local_one(data, tmp_path, name):
    local = SentenceEncoder()
    expected = evaluate(local, "sts12,contrasts/negation", data=data)
    path, cache = tmp_path / "remote.json", tmp_path / "cache"
    with running(local) as server:
        remote = name.format(server.address)
        found = evaluate(remote, "sts12,contrasts/negation", data=data, out=path, cache=cache)
        asked = texts_of(server)
        again = repeat(path, cache=cache)
        Adaptation(np.eye(512, dtype=np.float32), {}).write(tmp_path / "adaptation.safetensors")
        evaluate(
            remote, "sts12", data=data, cache=cache, adaptation=tmp_path / "adaptation.safetensors"
        )
        later = texts_of(server)[len(asked) :]
        assert {*later}.isdisjoint(set(asked) - set(_PROBE))  # all embeddings were kept
        assert {*later} == {*_PROBE}
    assert not again.differences
    assert [result.task for result in found] == [result.task for result in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.scores == pytest.approx(theirs.scores, abs=1e-6)
        assert ours.encoder["name"] == remote
        assert ours.encoder["probe_sha256"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"nhid": 50}, "nhid"),
        ({"kfold": 3}, "kfold"),
        ({"mode": "compat"}, "mode"),
        ({"pytorch": True}, "pytorch"),
        ({"split": "dev"}, "split"),
        ({"text": "body"}, "text"),
        ({"tasks": "trec", "form": "official"}, "form"),
        ({"tasks": "trec", "kfold": 3, "pytorch": True}, "pytorch"),
    ],
)
def test_a_setting_that_acts_on_no_task_is_refused(data, settings, name):
    with pytest.raises(InputError, match=f"^{name} .*no effect"):
        evaluate(SentenceEncoder(), **{"tasks": "sts12", "data": data, **settings})


def test_a_setting_may_act_on_one_of_several_tasks(data):
    results = evaluate(SentenceEncoder(), "sts12,mr", data=data, kfold=3, skip_missing=True)
    assert [result.task for result in results] == ["sts12/cosine"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("stbs", "stsb"),
        ("STSB", "stsb"),
        ("sts61", "sts16"),
        ("TREC", "trec"),
        ("sentevl", "senteval"),
    ],
)
def test_a_misspelt_task_is_named_right(data, wrong, right):
    with pytest.raises(InputError, match=f"did you mean '{right}'"):
        evaluate(SentenceEncoder(), wrong, data=data)


def test_numbers_that_overflow_in_classifiers_are_refused(data):
    class Large:
        def encode(self, texts):
            return np.full((len(texts), 3), 1e19, np.float32)

    with pytest.raises(InputError, match=r"1e\+15"):
        evaluate(Large(), "sts12", data=data)


def test_a_name_of_another_library_is_answered_with_its_prefix(tmp_path):
    with pytest.raises(ModelError, match=r"st:sentence-transformers/all-MiniLM-L6-v2\.$"):
        load_encoder("sentence-transformers/all-MiniLM-L6-v2")
    (tmp_path / "model").mkdir()
    for name in (str(tmp_path / "model"), "runs/dan/model"):
        with pytest.raises(ModelError, match="not a model folder") as caught:
            load_encoder(name)
        assert "st:" not in str(caught.value)
