"""Scorers fitted on small made-up data, their folders, and what they say of pairs."""

import json
import shutil

import numpy as np
import pytest

from rejoinder.api import trees
from rejoinder.api.scorer import (
    _folds,
    calibration,
    fit_scorer,
    intervals,
    scaled,
    training_pairs,
)
from rejoinder.datasets.semeval import pair_keys
from rejoinder.errors import BusyError, InputError, ModelError, RejoinderError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.claims import claim_output
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.scoring.scorer import FILE, WEIGHTS, Scorer

TOPICS = [
    "the cat sleeps on the warm sofa all day", "a train to oslo leaves at noon from here",
    "we cook soup with carrots and onions tonight", "two children play football in the park",
    "my computer does not start since the update", "the singer gives a concert in the old church",
]  # fmt: skip


def rows(count=300, seed=0):
    """Pairs whose score is the share of common words."""
    draw, found = np.random.default_rng(seed), []
    for number in range(count):
        words = TOPICS[number % 6].split()
        other = TOPICS[(number + 1) % 6].split()
        kept = number % len(words)
        second = [*draw.permutation(words)[:kept], *draw.permutation(other)[: len(words) - kept]]
        first = [*draw.permutation(words)]
        found.append((" ".join(first), " ".join(second), round(5 * kept / (len(words) - 1), 2)))
    return found


def write(path, pairs):
    lines = [json.dumps(dict(zip(("sentence1", "sentence2", "score"), p, strict=True)))
             for p in pairs]  # fmt: skip
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(read_model(shipped_model("rejoinder-small")))


@pytest.fixture(scope="module", autouse=True)
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "TREES", 9)
        patch.setattr(trees, "BOOSTS", 9)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory, encoder):
    """A folder with pairs and a scorer fitted on them."""
    folder = tmp_path_factory.mktemp("scorers")
    write(folder / "pairs.jsonl", rows())
    fit_scorer(folder / "scorer", sets=[str(folder / "pairs.jsonl")], encoder=encoder)
    return folder


@pytest.fixture(scope="module")
def scorer(place, encoder):
    return Scorer(place / "scorer", encoder)


def test_it_learns_what_the_pairs_say(scorer):
    first, second, gold = zip(*rows(seed=5), strict=True)
    scores = scorer.score(first, second)
    assert scores.shape == (300,)
    assert scores.dtype == np.float32
    assert np.corrcoef(scores, gold)[0, 1] > 0.9
    assert ((scores >= 0) & (scores <= 5)).all()


def test_two_strings_have_one_score_whatever_their_order(scorer):
    score = scorer.score(TOPICS[0], TOPICS[1])
    assert isinstance(score, float)
    assert score == scorer.score(TOPICS[1], TOPICS[0])
    assert score == pytest.approx(scorer.score([TOPICS[0]] * 3, [TOPICS[1]] * 3)[1], abs=0.05)


def test_the_batch_does_not_matter(scorer):
    first, second, _ = zip(*rows(), strict=True)
    alone = [scorer.score(a, b) for a, b in zip(first[:40], second[:40], strict=True)]
    assert np.allclose(scorer.score(first, second)[:40], alone, atol=0.1)
    assert np.isclose(scorer.score(first, second)[:40], alone, atol=1e-4).mean() > 0.9


def test_moves_sum_to_the_score(scorer):
    for pair in scorer.explain(TOPICS, [*reversed(TOPICS)]):
        moved = pair.usual + sum(move.by for move in pair.moves)
        assert np.clip(moved, 0, 5) == pytest.approx(pair.score, abs=1e-4)
        assert pair.low <= pair.score <= pair.high
        assert sum(pair.families().values()) == pytest.approx(moved - pair.usual, abs=1e-4)
        assert [*pair.families()] == sorted(pair.families(), key=lambda n: -abs(pair.families()[n]))


def test_nine_of_ten_scores_are_in_their_interval(scorer):
    first, second, gold = zip(*rows(seed=9), strict=True)
    low, high = scorer.intervals(scorer.score(first, second))
    inside = (np.array(gold) >= low - 1e-6) & (np.array(gold) <= high + 1e-6)
    assert 0.8 < inside.mean() <= 1


def test_the_same_data_and_seed_give_the_same_bytes(place, encoder):
    sets = [str(place / "pairs.jsonl")]
    fit_scorer(place / "again", sets=sets, encoder=encoder, threads=1)
    fit_scorer(place / "other", sets=sets, encoder=encoder, seed=1)
    for name in (FILE, WEIGHTS):
        written = (place / "scorer" / name).read_bytes()
        assert (place / "again" / name).read_bytes() == written
        assert (place / "other" / name).read_bytes() != written


def test_repeated_pairs_are_left_out(place, encoder):
    pairs = rows()
    swapped = [(b.upper(), a, score) for a, b, score in pairs[:50]]
    path = write(place / "repeated.jsonl", [*pairs, *swapped])
    repeats = len(pairs) - len({*pair_keys(*[list(c) for c in zip(*pairs, strict=True)][:2])})
    fitted = fit_scorer(place / "repeated", sets=[str(path)], encoder=encoder)
    assert fitted.facts.pairs == {"repeated.jsonl": len(pairs) - repeats}
    assert fitted.facts.leaks_dropped == 50 + repeats


def test_some_families_alone(place, encoder):
    families = ["lengths", "numbers"]
    fitted = fit_scorer(
        place / "some", sets=[str(place / "pairs.jsonl")], encoder=encoder, families=families
    )
    [pair] = fitted.explain("a cat", "a dog")
    assert {move.family for move in pair.moves} == {*families}


def test_sets_that_cannot_be_fitted_on(place, encoder, tmp_path):
    few = write(tmp_path / "few.jsonl", rows(20))
    for sets in (["stsb"], ["nothing"], [str(few)], []):
        with pytest.raises(InputError):
            fit_scorer(tmp_path / "out", sets=sets, encoder=encoder)
    with pytest.raises(InputError):
        fit_scorer(place / "scorer", sets=[str(place / "pairs.jsonl")], encoder=encoder)
    with pytest.raises(InputError):
        fit_scorer(tmp_path / "out", sets=[str(place / "pairs.jsonl")], families=["colours"])
    assert [path.name for path in tmp_path.iterdir()] == ["few.jsonl"]


def test_an_output_that_another_command_writes(place, encoder, tmp_path):
    with claim_output(tmp_path / "out"), pytest.raises((BusyError, InputError)):
        fit_scorer(tmp_path / "out", sets=["nothing"], encoder=encoder)


def test_arguments_that_are_not_pairs(scorer):
    for first, second in ((["a"], ["b", "c"]), ("a", ["b"]), ([1], ["a"]), (None, "a")):
        with pytest.raises(InputError):
            scorer.score(first, second)
    assert scorer.score([], []).shape == (0,)


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def changed(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, changed, lambda path: path.unlink()])
@pytest.mark.parametrize("name", [FILE, WEIGHTS])
def test_a_damaged_folder_is_refused(place, encoder, tmp_path, name, damage):
    shutil.copytree(place / "scorer", tmp_path / "scorer")
    damage(tmp_path / "scorer" / name)
    with pytest.raises(ModelError):
        Scorer(tmp_path / "scorer", encoder)


def test_a_changed_fact_is_refused(place, encoder, tmp_path):
    shutil.copytree(place / "scorer", tmp_path / "scorer")
    path = tmp_path / "scorer" / FILE
    path.write_text(path.read_text("utf-8").replace('"seed": 0', '"seed": 1'), "utf-8")
    with pytest.raises(ModelError):
        Scorer(tmp_path / "scorer", encoder)


def test_another_model_is_refused(place):
    with pytest.raises(ModelError):
        Scorer(place / "scorer", SentenceEncoder(read_model(shipped_model("rejoinder-base"))))


def test_a_folder_that_is_not_a_scorer(tmp_path):
    for path in (tmp_path, tmp_path / "missing", shipped_model("rejoinder-small")):
        with pytest.raises(RejoinderError):
            Scorer(path)


def test_intervals_of_equal_scores():
    points, low, high = intervals(np.ones(100), np.linspace(0, 2, 100), np.ones(100))
    assert len(points) == len(low) == len(high) == 1
    assert low[0] <= 0 <= high[0]


def test_a_source_of_few_pairs_counts_as_much_as_another():
    draw = np.random.default_rng(0)
    scores = draw.uniform(1, 4, 2_100)
    gold = scores + draw.uniform(-0.1, 0.1, 2_100)
    gold[2_000:] = scores[2_000:] + draw.choice((-1, 1), 100)
    sources = np.array(["many"] * 2_000 + ["few"] * 100)
    slope, intercept, (_, low, high) = calibration(scores, gold, sources)
    assert slope == pytest.approx(1, abs=0.1)
    assert intercept == pytest.approx(0, abs=0.3)
    assert low.mean() < -0.8
    assert high.mean() > 0.8
    _, _, (_, low, high) = calibration(scores, gold, np.full(2_100, "one"))
    assert low.mean() > -0.3
    assert high.mean() < 0.3


def test_a_fold_leaves_whole_sources_out_if_there_are_enough(place, encoder):
    files = [write(place / f"source{n}.jsonl", rows(90, seed=n)) for n in range(5)]
    training = training_pairs(None, [*map(str, files)])
    folds = _folds(training, 0)
    found = {(source, fold) for source, fold in zip(training.sources, folds, strict=True)}
    assert len(found) == len({source for source, _ in found}) == 5
    assert {fold for _, fold in found} == {*range(5)}
    training = training_pairs(None, [*map(str, files[:3])])
    folds, texts = _folds(training, 0), [*map(min, training.first, training.second)]
    assert {*folds.tolist()} == {*range(5)}
    assert len({*zip(texts, folds.tolist(), strict=True)}) == len({*texts})


def test_regressions_are_scaled(scorer):
    regression, draw = scorer._regression, np.random.default_rng(0)
    features = draw.standard_normal((20, len(regression.mean))).astype(np.float32)
    assert np.allclose(scaled(regression, 2, 1)(features), 2 * regression(features) + 1, atol=1e-4)
