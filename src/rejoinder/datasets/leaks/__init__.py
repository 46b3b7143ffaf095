"""Finds sentences of evaluation sets in training text by their hashes, without the sets.

This command writes the shipped list of hashes again:

    python tools/evaluation_hashes.py ../shared/data evaluation_hashes.safetensors
"""

from rejoinder.datasets.leaks.hashes import comparable, pair_hashes, sentence_hashes
from rejoinder.datasets.leaks.sets import EvaluationHashes, EvaluationSet, shipped

__all__ = [
    "EvaluationHashes",
    "EvaluationSet",
    "comparable",
    "pair_hashes",
    "sentence_hashes",
    "shipped",
]
