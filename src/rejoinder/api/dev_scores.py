"""Scores on dev: during training, where they choose the best weights, and of exported models."""

from collections.abc import Collection, Mapping
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
        needed: bool = False,
    ) -> None:
        """Reads the dev splits of a folder of pairs and of a folder of data sets, if given.

        Pairs of the sources `without` are left out: what a run leaves out of training shall not
        choose its weights either.

        Raises:
            InputError: the folder of pairs is not usable, or the benchmark is damaged.
            DataMissingError: the benchmark is missing, although it is `needed`.
        """
        self._max_inputs, self._needed = max_inputs, needed
        self._pairs = None if pairs is None else response_pairs(pairs, "dev", without)
        try:
            self._benchmark = None if data is None else read_stsb(data, "dev")
        except DataMissingError:
            if needed:
                raise
            self._benchmark = None

    def __call__(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns the scores by name; those of the pairs come first, if there are any."""
        return {**self.responses(encoder), **self.similarity(encoder)}

    def responses(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns P@1, P@3 and P@10 of `max_inputs` inputs (None means all)."""
        if self._pairs is None or (len(self._pairs) < 2 and not self._needed):
            return {}
        return rank_responses(Embedder(encoder), self._pairs, max_inputs=self._max_inputs).scores

    def similarity(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns `STS-B Pearson` (angular)."""
        if self._benchmark is None:
            return {}
        return {"STS-B Pearson": score_stsb(encoder, self._benchmark).scores["pearson"]}
