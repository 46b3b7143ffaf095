"""Fits the regression of a scorer, and reads the trees that scikit-learn fitted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rejoinder.inference.scoring.regression import Regression
from rejoinder.measures import Floats, Indices

TREES, DEPTH, LEAST_LEAF, FEATURE_SHARE = 64, 20, 8, 0.7
LINEAR_SHARE, LINEAR_PENALTY = 1 / 3, 10.0
"""All chosen with sources of STS held out, see `docs/measurements/scorer.md`."""
_LEAST_SPREAD = 1e-3


def fitted_regression(
    features: NDArray[np.float32],
    gold: Floats,
    weights: Indices,
    seed: int = 0,
    threads: int = 1,
) -> Regression:
    """Returns a regression of extremely randomised trees and, for a third, of a linear fit.

    They are fitted on (N, F) features and (N,) scores. A pair counts `weights` (N,) times.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.linear_model import Ridge

    mean, spread = features.mean(axis=0), np.maximum(features.std(axis=0), _LEAST_SPREAD)
    z = np.clip((features - mean) / spread, -Regression.FARTHEST, Regression.FARTHEST)
    with threadpool_limits(1):  # several threads add up in another order each time
        line = Ridge(LINEAR_PENALTY).fit(z.astype(np.float64), gold, weights)
        forest = ExtraTreesRegressor(
            TREES, max_depth=DEPTH, min_samples_leaf=LEAST_LEAF, max_features=FEATURE_SHARE,
            random_state=seed, n_jobs=threads,
        ).fit(features, gold, weights)  # fmt: skip
    tensors = forest_of(forest)
    tensors["values"] *= np.float32(1 - LINEAR_SHARE)
    return Regression(
        mean=np.asarray(mean, np.float32),
        spread=np.asarray(spread, np.float32),
        linear=np.asarray(LINEAR_SHARE * line.coef_, np.float32),
        bias=np.array([LINEAR_SHARE * line.intercept_], np.float32),
        **tensors,
    )


def forest_of(learner: Any) -> dict[str, NDArray[Any]]:
    """Returns the trees of a fitted forest as tensors of a `Regression`; their mean is its score.

    Children of a node come next to each other, which scikit-learn does not ensure.
    """
    parts, roots, begin = list[dict[str, NDArray[Any]]](), list[int](), 0
    for each in learner.estimators_:
        parts.append(_tree(each.tree_, begin, len(learner.estimators_)))
        roots.append(begin)
        begin += len(parts[-1]["values"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {"roots": np.array(roots, np.int32), **joined}


def _tree(tree: Any, begin: int, trees: int) -> dict[str, NDArray[Any]]:
    order, children = [0], np.arange(begin, begin + tree.node_count, dtype=np.int32)
    for place, node in enumerate(order):  # it grows: the children come after all nodes of a level
        if tree.children_left[node] >= 0:
            children[place] = begin + len(order)
            order += [int(tree.children_left[node]), int(tree.children_right[node])]
    inner = tree.children_left[order] >= 0
    # a float32 is above a threshold as it is above the next lower float32
    thresholds = tree.threshold[order].astype(np.float32)
    rounded_up = thresholds > tree.threshold[order]
    thresholds[rounded_up] = np.nextafter(thresholds[rounded_up], np.float32(-np.inf))
    return {
        "features": np.where(inner, tree.feature[order], 0).astype(np.int16),
        "thresholds": np.where(inner, thresholds, np.float32(np.inf)),
        "children": children,
        "values": (tree.value[order, 0, 0] / trees).astype(np.float32),
    }
