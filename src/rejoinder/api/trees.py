"""Fits the regression of a scorer with scikit-learn, and converts its trees to tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rejoinder.measures import Floats, Indices
from rejoinder.scoring.scorer import Regression

TREES, DEPTH, LEAST_LEAF, FEATURE_SHARE = 48, 20, 12, 0.7
BOOSTS, BOOSTED_DEPTH, BOOSTED_LEAF, RATE = 150, 6, 10, 0.06
ROWS_OF_BOOST, FEATURES_OF_BOOST = 0.5, 0.3
OFFSET_PENALTY, LINEAR_PENALTY = 10.0, 0.06
"""The second one times the sum of the weights."""
RANDOM_SHARE, BOOSTED_SHARE, LINEAR_SHARE = 0.35, 0.25, 0.4
"""All were chosen with sources of STS held out: see `notebook/scorer.md`."""
_LEAST_SPREAD = 1e-3


def fitted_regression(
    features: NDArray[np.float32],
    gold: Floats,
    weights: Indices,
    seed: int = 0,
    threads: int = 1,
    constructed: NDArray[np.bool_] | None = None,
    sources: NDArray[np.str_] | None = None,
) -> Regression:
    """Returns a regression of extremely randomised trees, boosted trees and a linear part.

    They are fitted on (N, F) features and (N,) scores. A pair counts `weights` (N,) times. The
    linear part leaves out `constructed` (N,) pairs if there are others, as they would blur it.
    Offsets between the scores of `sources` (N,) are not learned, as they say nothing about new
    sources. The linear part is shrunk towards a line of the single best feature, usually the
    cosine.
    """
    from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
    from sklearn.linear_model import Ridge

    rated = np.ones(len(gold), np.bool_)
    if constructed is not None and not constructed.all():
        rated = ~constructed
    given, counts = features[rated], weights[rated]
    mean, spread = given.mean(axis=0), np.maximum(given.std(axis=0), _LEAST_SPREAD)
    z = np.clip((given - mean) / spread, -Regression.FARTHEST, Regression.FARTHEST)
    z = z.astype(np.float64)
    with threadpool_limits(1):  # several threads would sum in a different order each time
        if sources is not None:
            gold = gold.copy()
            gold[rated] -= _offsets(z, gold[rated], counts, sources[rated])
        lead, slope, start = _best_alone(z, gold[rated], counts)
        rest = gold[rated] - slope * z[:, lead] - start
        line = Ridge(LINEAR_PENALTY * counts.sum()).fit(z, rest, counts)
        line.coef_[lead] += slope
        random = ExtraTreesRegressor(
            TREES, max_depth=DEPTH, min_samples_leaf=LEAST_LEAF, max_features=FEATURE_SHARE,
            random_state=seed, n_jobs=threads,
        ).fit(features, gold, weights)  # fmt: skip
        boosted = GradientBoostingRegressor(
            n_estimators=BOOSTS, max_depth=BOOSTED_DEPTH, min_samples_leaf=BOOSTED_LEAF,
            learning_rate=RATE, subsample=ROWS_OF_BOOST, max_features=FEATURES_OF_BOOST,
            random_state=seed,
        ).fit(features, gold, weights)  # fmt: skip
    bias = LINEAR_SHARE * (line.intercept_ + start)
    bias += BOOSTED_SHARE * boosted.init_.constant_[0, 0]
    return Regression(
        mean=np.asarray(mean, np.float32),
        spread=np.asarray(spread, np.float32),
        linear=np.asarray(LINEAR_SHARE * line.coef_, np.float32),
        bias=np.array([bias], np.float32),
        **trees_of([
            *((each, RANDOM_SHARE / TREES) for each in random.estimators_),
            *((each, BOOSTED_SHARE * RATE) for each in boosted.estimators_[:, 0]),
        ]),
    )  # fmt: skip


def _offsets(z: Floats, gold: Floats, weights: Indices, sources: NDArray[np.str_]) -> Floats:
    """Returns (N,) how much higher the source of each pair scores than its features explain.

    Their effect is estimated within sources.
    """
    from sklearn.linear_model import Ridge

    _, owner = np.unique(sources, return_inverse=True)
    totals = np.bincount(owner, weights)

    def means(values: Floats) -> Floats:
        return np.asarray((np.bincount(owner, weights * values) / totals)[owner])

    within = z - np.stack([means(column) for column in z.T], axis=1)
    line = Ridge(OFFSET_PENALTY, fit_intercept=False).fit(within, gold - means(gold), weights)
    rest = gold - z @ line.coef_
    return np.asarray(means(rest) - np.average(rest, weights=weights))


def _best_alone(z: Floats, gold: Floats, weights: Indices) -> tuple[int, float, float]:
    """Returns the column that correlates most with the scores, and its slope and intercept."""
    middle = np.average(z, axis=0, weights=weights)
    mean = float(np.average(gold, weights=weights))
    centred = z - middle
    shared = weights * (gold - mean) @ centred
    own = np.maximum(weights @ centred**2, 1e-9)
    lead = int(np.argmax(shared**2 / own))
    slope = float(shared[lead] / own[lead])
    return lead, slope, mean - slope * float(middle[lead])


def trees_of(learners: Sequence[tuple[Any, float]]) -> dict[str, NDArray[Any]]:
    """Returns fitted trees as tensors of a `Regression`; each learner comes with its weight.

    The children of a node are next to each other, which scikit-learn does not ensure.
    """
    parts, roots, begin = list[dict[str, NDArray[Any]]](), list[int](), 0
    for learner, factor in learners:
        parts.append(_tree(learner.tree_, begin, factor))
        roots.append(begin)
        begin += len(parts[-1]["values"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {"roots": np.array(roots, np.int32), **joined}


def _tree(tree: Any, begin: int, factor: float) -> dict[str, NDArray[Any]]:
    order, children = [0], np.arange(begin, begin + tree.node_count, dtype=np.int32)
    for place, node in enumerate(order):  # it grows: children come after all nodes of a level
        if tree.children_left[node] >= 0:
            children[place] = begin + len(order)
            order += [int(tree.children_left[node]), int(tree.children_right[node])]
    inner = tree.children_left[order] >= 0
    # a float32 is above a float64 threshold if it is above the float32 just below the threshold
    thresholds = tree.threshold[order].astype(np.float32)
    rounded_up = thresholds > tree.threshold[order]
    thresholds[rounded_up] = np.nextafter(thresholds[rounded_up], np.float32(-np.inf))
    return {
        "features": np.where(inner, tree.feature[order], 0).astype(np.int16),
        "thresholds": np.where(inner, thresholds, np.float32(np.inf)),
        "children": children,
        "values": (tree.value[order, 0, 0] * factor).astype(np.float32),
    }
