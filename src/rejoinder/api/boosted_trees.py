"""Reads the trees that scikit-learn fitted, in the form in which they are kept."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.regression import LEAVES


@dataclass(frozen=True)
class Tree:
    """The rows of `Regression` that are one tree's."""

    features: NDArray[np.int16]
    thresholds: Array
    left: NDArray[np.uint16]
    below: NDArray[np.uint16]
    leaves: Array
    pairs: Array


def trees_of(learner: Any) -> tuple[list[Tree], float]:
    """Returns the trees of a fitted `HistGradientBoostingRegressor`, and what they are added to."""
    bias, trees = float(np.ravel(learner._baseline_prediction)[0]), []
    for [predictor] in learner._predictors:
        if len(predictor.nodes) == 1:  # nothing to compare
            bias += float(predictor.nodes["value"][0])
        else:
            trees.append(tree_of(predictor.nodes))
    return trees, bias


def tree_of(nodes: NDArray[Any]) -> Tree:
    """Returns a tree from its nodes, of which the first is the root."""
    features, thresholds = np.zeros(LEAVES - 1, np.int16), np.full(LEAVES - 1, np.inf, np.float32)
    left, below = np.zeros(LEAVES - 1, np.uint16), np.zeros(LEAVES - 1, np.uint16)
    leaves, pairs = np.zeros(LEAVES, np.float32), np.zeros(LEAVES, np.float32)
    inner = leaf = 0

    def visit(number: int) -> int:
        """Adds a node and those below, the left one first; returns the set of its leaves."""
        nonlocal inner, leaf
        node = nodes[number]
        if node["is_leaf"]:
            leaves[leaf], pairs[leaf] = node["value"], node["count"]
            leaf += 1
            return 1 << (leaf - 1)
        place, inner = inner, inner + 1
        features[place], thresholds[place] = node["feature_idx"], node["num_threshold"]
        on_left = visit(int(node["left"]))
        both = on_left | visit(int(node["right"]))
        left[place], below[place] = on_left, both
        return both

    visit(0)
    return Tree(features, thresholds, left, below, leaves, pairs)
