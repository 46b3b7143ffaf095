"""Scores pairs of texts by many features: a `Scorer`, and the features by family."""
