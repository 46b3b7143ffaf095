"""Classifiers against scikit-learn and against the published protocol, written again slowly."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import senteval_reference as reference
from rejoinder.datasets.labelled import read_binary, read_trec
from rejoinder.errors import InputError
from rejoinder.evaluation.classifiers.learners import (
    ClassifierSettings,
    Graded,
    LogisticGrid,
    grade_distribution,
)
from rejoinder.evaluation.tasks import trained
from rejoinder.measures import pearson_correlation, spearman_correlation

pytestmark = pytest.mark.usefixtures("one_thread")


def blobs(rows, classes, width, seed):
    directions = np.random.default_rng(0).standard_normal((width, classes))
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, width)).astype(np.float32)
    x[:, 0] *= 20  # badly scaled, as embeddings are
    scores = x @ directions * 0.5 + generator.gumbel(size=(rows, classes))
    return x, scores.argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_solver_reaches_the_optimum(classes):
    x, y = blobs(400, classes, 12, 1)
    masks = np.ones((400, 2), bool)
    masks[:100, 1] = False
    penalties = np.array([4.0, 0.125, 4.0, 0.125], np.float32)
    problems = masks, np.array([0, 0, 1, 1]), penalties
    solver = LogisticGrid(x, y)
    predicted = solver.predict(np.arange(len(x)), solver.fit(*problems))
    for place in range(4):
        rows = masks[:, problems[1][place]]
        model = LogisticRegression(C=1 / penalties[place], max_iter=10_000, tol=1e-10)
        expected = model.fit(x[rows], y[rows]).predict(x)
        assert (predicted[:, place] == expected).mean() >= 0.995


@pytest.mark.shared_data
def test_nested_accuracy_is_that_of_the_protocol(shared_data):
    data = read_binary(shared_data, "CR").splits["all"]
    chosen = np.random.default_rng(0).permutation(len(data))[:600]
    features = reference.HashedWords().encode([data.first[row] for row in chosen])
    labels = data.labels[chosen]
    expected = reference.nested_accuracy(features, labels, 3)
    for mode in ("fast", "compat"):
        settings = ClassifierSettings(mode=mode, kfold=3)
        outcome = trained.fitted_nested(features, labels, settings)
        assert outcome.test_accuracy == pytest.approx(expected, abs=0.5), mode
        assert (outcome.predictions == labels).mean() * 100 == pytest.approx(
            outcome.test_accuracy, abs=0.1
        )


@pytest.mark.slow
@pytest.mark.shared_data
def test_folded_accuracy_is_that_of_the_protocol(shared_data):
    data = read_trec(shared_data)
    train, test = data.splits["train"], data.splits["test"]
    encoder = reference.HashedWords()
    x, y = encoder.encode(train.first[:500]), train.labels[:500]
    xt, yt = encoder.encode(test.first), test.labels
    expected = reference.kfold_accuracy(x, y, xt, yt, 3)
    outcome = trained.fitted_split((x, xt), (y, yt), ClassifierSettings(kfold=3))
    assert outcome.test_accuracy == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("nhid", [0, 20])
def test_the_original_network_learns_and_repeats_itself(nhid):
    pytest.importorskip("torch")
    x, y = blobs(600, 3, 10, 2)
    settings = ClassifierSettings(
        mode="compat", usepytorch=True, nhid=nhid, epoch_size=2, kfold=3, optim="adam,lr=0.01"
    )
    parts = ((x[:400], x[400:500], x[500:]), (y[:400], y[400:500], y[500:]))
    first = trained.fitted_split(*parts, settings)
    fast = trained.fitted_split(*parts, ClassifierSettings())
    assert first.test_accuracy == pytest.approx(fast.test_accuracy, abs=6)
    assert first.test_accuracy > 60
    assert np.array_equal(first.predictions, trained.fitted_split(*parts, settings).predictions)


def test_settings_that_make_no_sense_are_named():
    with pytest.raises(InputError, match="did you mean 'compat'"):
        ClassifierSettings(mode="compatt")
    wrong = {"kfold": 1, "seed": -1, "nhid": 1.5, "batch_size": 0, "tenacity": -1,
             "epoch_size": 0, "max_epoch": "9", "dropout": 1.0}  # fmt: skip
    for name, value in wrong.items():
        with pytest.raises(InputError, match=rf"{name} is "):
            ClassifierSettings(**{name: value})
    x, y = blobs(20, 2, 3, 1)
    with pytest.raises(InputError, match=r"kfold is 30.* rarest "):
        trained.fitted_nested(x, y, ClassifierSettings(kfold=30))
    network = pytest.importorskip("rejoinder.evaluation.classifiers.network")
    for text in ("adamm", "adam,lr", "adam,rate=1"):
        with pytest.raises(InputError, match="optim"):
            network.optimizer_of(text, [])


def test_grades_share_their_weight():
    scores = np.array([0.0, 0.4, 2.25, 5.0])
    shares = grade_distribution(scores, 0, 5)
    assert shares.sum(axis=1).tolist() == pytest.approx([1, 1, 1, 1])
    assert (shares @ np.arange(6)).tolist() == pytest.approx(scores.tolist())


def graded(generator, rows, gold):
    """Grades 1 to 5, and a few far off: Pearson's r and Spearman's rho do not agree on them."""
    x = generator.standard_normal((rows, 8)).astype(np.float32)
    x[: rows // 20] *= 6
    return Graded(x, np.clip(gold(x) + 0.4 * generator.standard_normal(rows), 1, 5))


@pytest.mark.parametrize("mode", ["fast", pytest.param("compat", marks=pytest.mark.slow)])
def test_relatedness_is_learned(mode):
    if mode == "compat":
        pytest.importorskip("torch")
    generator = np.random.default_rng(3)
    x = generator.standard_normal((500, 8)).astype(np.float32)
    gold = np.clip(2.5 + x[:, 0] + 0.5 * x[:, 1], 0, 5).astype(float)
    parts = [Graded(x[a:b], gold[a:b]) for a, b in ((0, 200), (200, 350), (350, 500))]
    on_dev, on_test = trained.fit_relatedness(*parts, (0, 5), ClassifierSettings(mode=mode))
    assert spearman_correlation(on_dev, parts[1].gold) > 0.95
    assert pearson_correlation(on_test, parts[2].gold) > 0.95


@pytest.mark.slow
def test_the_regression_stops_where_the_original_does():
    pytest.importorskip("torch")
    generator = np.random.default_rng(5)
    train, dev, test = (
        graded(generator, rows, lambda x: 3 + x[:, 0] + 0.5 * np.abs(x[:, 1]))
        for rows in (120, 60, 80)
    )
    r, predictions = reference.network_regression(
        (train.features, train.gold), (dev.features, dev.gold), test.features, 2
    )
    settings = ClassifierSettings(mode="compat", seed=2)
    on_dev, on_test = trained.fit_relatedness(train, dev, test, (1, 5), settings)
    assert pearson_correlation(on_dev, dev.gold) == pytest.approx(r, abs=1e-4)
    assert on_test == pytest.approx(predictions, abs=1e-3)


@pytest.mark.parametrize("mode", ["fast", "compat"])
def test_a_seed_draws_the_folds_where_the_original_lets_it(mode):
    _, y = blobs(200, 2, 6, 4)

    def folds(seed, protocol):
        settings = ClassifierSettings(mode=mode, kfold=3, seed=seed)
        return [fold.test.tolist() for fold in trained._folds(y, settings, protocol)]

    assert folds(1, "kfold") != folds(2, "kfold")
    assert folds(1, "kfold") == [test.tolist() for _, test in reference.folds(y, 3, 1)]
    # MR, CR, SUBJ, MPQA: fixed in the original, and so in compat
    assert (folds(1, "nested") == folds(2, "nested")) == (mode == "compat")
    assert folds(1111, "nested") == [test.tolist() for _, test in reference.folds(y, 3)]


def test_settings_tell_who_fits():
    told = {
        (mode, pytorch, nhid): ClassifierSettings(
            mode=mode, usepytorch=pytorch, nhid=nhid
        ).describe("kfold")["classifier"]
        for mode in ("fast", "compat")
        for pytorch in (False, True)
        for nhid in (0, 10)
    }
    assert {key for key, value in told.items() if value == "fast"} == {
        ("fast", False, 0),
        ("fast", True, 0),
    }
    assert {key for key, value in told.items() if value == "scikit-learn"} == {("compat", False, 0)}
    compat = ClassifierSettings(mode="compat", seed=3)
    assert compat.describe("regression") == {"classifier": "pytorch", "mode": "compat", "seed": 3}
    assert compat.describe("nested")["fold_seed"] == 1111
    assert compat.describe("kfold")["fold_seed"] == 3
