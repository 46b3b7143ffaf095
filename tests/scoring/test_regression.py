"""The regression: scores are scikit-learn's, and moves sum to them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from rejoinder.api.trees import fitted_regression, trees_of
from rejoinder.errors import ModelError

COUNT = 600


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    features = draw.standard_normal((COUNT, 5)).astype(np.float32)
    gold = 2 + features[:, 0] + np.where(features[:, 1] > 0, features[:, 2], -1)
    return features, gold.astype(np.float64)


@pytest.fixture(scope="module")
def regression(data):
    return fitted_regression(*data, np.ones(COUNT, np.int64))


def test_trees_give_what_scikit_learn_predicts(data, regression):
    features, gold = data
    learner = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(features, gold)
    bias = np.asarray(learner.init_.constant_[0], np.float32)
    trees = trees_of([(each, learner.learning_rate) for each in learner.estimators_[:, 0]])
    alone = replace(regression, linear=0 * regression.linear, bias=bias, **trees)
    assert np.allclose(alone(features), learner.predict(features), atol=1e-4)


def test_the_line_leaves_constructed_pairs_to_the_trees(data, regression):
    features, gold = data
    features = np.concatenate([features, features[:100] + np.float32(2)])
    gold, constructed = np.append(gold, np.zeros(100)), np.arange(COUNT + 100) >= COUNT
    found = fitted_regression(features, gold, np.ones(len(gold)), constructed=constructed)
    assert np.array_equal(found.linear, regression.linear)
    low = found(features[constructed]), regression(features[constructed])
    assert low[0].mean() < low[1].mean() - 1


def test_what_a_source_scores_more_is_not_learnt(data):
    features, gold = data
    sources = np.where(np.arange(COUNT) < COUNT / 2, "high", "low")
    features = np.column_stack([features, sources == "high"]).astype(np.float32)
    told = gold + 2 * (sources == "high")
    found = fitted_regression(features, told, np.ones(COUNT, np.int64), sources=sources)
    unaware = fitted_regression(features, told, np.ones(COUNT, np.int64))
    other = features.copy()
    other[:, -1] = 1 - other[:, -1]
    assert abs(found(features) - found(other)).mean() < 0.1
    assert abs(unaware(features) - unaware(other)).mean() > 0.5


def test_constructed_pairs_alone_are_fitted(data, regression):
    every = np.ones(COUNT, np.bool_)
    found = fitted_regression(*data, np.ones(COUNT, np.int64), constructed=every)
    assert np.array_equal(found(data[0]), regression(data[0]))


def test_it_learns(data, regression):
    features, gold = data
    assert np.corrcoef(regression(features), gold)[0, 1] > 0.9
    assert regression(features[:0]).shape == (0,)


def test_a_row_alone_has_the_score_that_it_has_among_others(data, regression):
    features, _ = data
    alone = [regression(features[row : row + 1])[0] for row in range(20)]
    assert np.allclose(regression(features)[:20], alone, atol=1e-5)


def test_moves_sum_to_the_score(data, regression):
    features, _ = data
    sums = regression.usual + regression.moves(features).sum(axis=1)
    assert np.allclose(sums, regression(features), atol=1e-3)


def test_features_that_say_nothing_move_little(data, regression):
    moved = abs(regression.moves(data[0])).mean(axis=0)
    assert moved[0] > 4 * moved[3:].max()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mean", lambda a: a[:-1]),
        ("spread", lambda a: a * 0),
        ("features", lambda a: a + np.int16(9)),
        ("features", lambda a: a.astype(np.int32)),
        ("thresholds", lambda a: a * np.float32(np.nan)),
        ("values", lambda a: a + np.float32(np.inf)),
        ("children", lambda a: a[:-1]),
        ("children", lambda a: a * np.int32(0)),
        ("children", lambda a: a + np.int32(1)),
        ("roots", lambda a: a - np.int32(1)),
        ("bias", lambda a: a.astype(np.float64)),
    ],
)
def test_damaged_tensors_are_refused(regression, name, change):
    tensors = regression.tensors()
    with np.errstate(invalid="ignore"):
        tensors[name] = change(tensors[name])
    with pytest.raises(ModelError):
        type(regression).of(tensors, 5, "a file")


def test_a_missing_tensor_is_refused(regression):
    for name in regression.tensors():
        left = {key: array for key, array in regression.tensors().items() if key != name}
        with pytest.raises(ModelError):
            type(regression).of(left, 5, "a file")
