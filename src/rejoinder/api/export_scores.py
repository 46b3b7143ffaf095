"""Scores of exported models on dev, beside those of the models that they were made from."""

from collections.abc import Mapping
from pathlib import Path

from rejoinder.api.pairs import response_pairs
from rejoinder.datasets.sts import read_stsb
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.tasks.response import rank_responses
from rejoinder.evaluation.tasks.similarity import score_stsb
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.folder import ModelContents
from rejoinder.models.layout import RESPONSES

_MOST_INPUTS = 10_000
"""Number of inputs whose responses are ranked."""


class ExportScores:
    """Scores models on dev, also those without a response side.

    Of a folder of data sets it takes the STS Benchmark, of a folder of pairs the dev split.
    """

    def __init__(self, data: str | Path | None, pairs: str | Path | None) -> None:
        self._benchmark = None if data is None else read_stsb(Path(data), "dev")
        self._pairs = None if pairs is None else response_pairs(Path(pairs), "dev")

    def __call__(self, model: ModelContents) -> Mapping[str, float]:
        """Returns the scores by name; responses are ranked only with a response side."""
        encoder = SentenceEncoder(model)
        scores: dict[str, float] = {}
        if self._benchmark is not None:
            angular, _ = score_stsb(encoder, self._benchmark)
            scores["STS-B Pearson"] = angular.scores["pearson"]
        if self._pairs is not None and RESPONSES in model.heads:
            ranked = rank_responses(Embedder(encoder), self._pairs, max_inputs=_MOST_INPUTS)
            scores[ranked.main] = ranked.scores[ranked.main]
        return scores
