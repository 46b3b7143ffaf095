"""Sentences of evaluation sets in training text: found by hashes, without the sets.

    python -m rejoinder.leaks ../shared/data src/rejoinder/data/evaluation_hashes.safetensors

writes the shipped list anew.
"""

from rejoinder.leaks.hashes import comparable, pair_hashes, sentence_hashes
from rejoinder.leaks.sets import EvaluationHashes, EvaluationSet, shipped

__all__ = [
    "EvaluationHashes",
    "EvaluationSet",
    "comparable",
    "pair_hashes",
    "sentence_hashes",
    "shipped",
]
