"""Scores on dev during training, which choose the best weights and are shown as progress."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from rejoinder.api.pairs import response_pairs
from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.tasks.response import rank_responses
from rejoinder.evaluation.tasks.similarity import score_stsb
from rejoinder.protocols import Encodes


class DevScores:
    """Scores an encoder on the dev split of the pairs and of the STS Benchmark."""

    def __init__(
        self,
        pairs: Path | None,
        data: Path | None,
        *,
        max_inputs: int | None = None,
        without: Collection[str] = (),
    ) -> None:
        """Reads the dev splits of a folder of pairs and of a folder of data sets, if given.

        The pairs give P@1, P@3 and P@10 of `max_inputs` inputs (None means all), the STS Benchmark,
        if it is there, `STS-B Pearson` (angular). Pairs of the sources `without` are left out: what
        a run leaves out of training shall not choose its weights either.

        Raises:
            InputError: the folder of pairs is not usable, or the benchmark is damaged.
        """
        self._max_inputs = max_inputs
        self._pairs = None if pairs is None else response_pairs(pairs, "dev", without)
        self._benchmark = None
        if data is not None:
            with suppress(DataMissingError):  # its scores are an extra
                self._benchmark = read_stsb(data, "dev")

    def __call__(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns the scores by name; that of the pairs comes first, if there are any."""
        scores: dict[str, float] = {}
        if self._pairs is not None and len(self._pairs) > 1:
            embedder = Embedder(encoder)
            scores |= rank_responses(embedder, self._pairs, max_inputs=self._max_inputs).scores
        if self._benchmark is not None:
            angular, _ = score_stsb(encoder, self._benchmark)
            scores["STS-B Pearson"] = angular.scores["pearson"]
        return scores
