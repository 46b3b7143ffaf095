"""Which words carry a similarity: exact for models whose embedding is a sum of rows.

The embedding of a DAN without layers is a sum of rows, scaled to length 1, and an adaptation is
linear. The cosine of two sentences is therefore a sum over all pairs of a token of one and a token
of the other: the dot product of their rows, divided by the lengths of both sums.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.dan.kind import BIGRAM_ROWS
from rejoinder.encoders.quantized import dequantize_rows, scales_name
from rejoinder.errors import ModelError
from rejoinder.inference.tokens import Token, read_tokens
from rejoinder.models.folder import ModelContents
from rejoinder.text.features import WordFeatures

_TABLE = "encoder.table.weight"


@dataclass(frozen=True)
class Explanation:
    """What each pair of tokens adds to the cosine of two sentences."""

    first: tuple[Token, ...]
    """The N tokens of the first sentence that have a row: words in order, then bigrams."""
    second: tuple[Token, ...]
    """The M tokens of the second sentence."""
    contributions: NDArray[np.float64]
    """(N, M), from -1 to 1 or beyond; they sum to `cosine`."""
    cosine: float
    """From -1 to 1; 0 if a sentence has no token."""


def can_explain(model: ModelContents) -> bool:
    """Returns whether the embedding of a model is a sum of rows."""
    return model.encoder["kind"] == "dan" and not model.encoder["layers"]


class Explainer:
    """Explains the similarities of one model."""

    def __init__(self, model: ModelContents) -> None:
        """Prepares for a model.

        Raises:
            ModelError: its embeddings are not sums of rows.
        """
        if not can_explain(model) or not isinstance(model.features, WordFeatures):
            kind = model.encoder["kind"]
            layers = "layers" if kind == "dan" else "an encoder"
            raise ModelError(
                f"{model.name} ({kind}) has {layers} between words and embedding, so its "
                "similarities can't be explained by words. Use a DAN without layers, such as "
                "rejoinder-base."
            )
        self._tensors, self._adaptation = model.tensors, model.adaptation
        self._bigram_rows = model.tensors.get(BIGRAM_ROWS)
        self._words = model.features.words
        self._features = model.features

    def __call__(self, first: str, second: str) -> Explanation:
        """Returns what each pair of tokens adds to the cosine of two sentences."""
        tokens, rows = zip(*map(self._tokens_and_rows, (first, second)), strict=True)
        lengths = [float(np.linalg.norm(side.sum(axis=0))) for side in rows]
        scale = lengths[0] * lengths[1]
        products = rows[0] @ rows[1].T
        contributions = products / scale if scale > 0 else np.zeros_like(products)
        cosine = float(np.clip(contributions.sum(), -1, 1))
        return Explanation(tuple(tokens[0]), tuple(tokens[1]), contributions, cosine)

    def _tokens_and_rows(self, text: str) -> tuple[list[Token], NDArray[np.float64]]:
        """Returns the tokens of a text that have a row, and their (N, D) rows, adapted."""
        [tokens] = read_tokens(self._features, [text])
        pairs = [(token, row) for token in tokens if (row := self._row(token.id)) >= 0]
        numbers = np.array([row for _, row in pairs], np.int64)
        table: NDArray[Any] = self._tensors[_TABLE][numbers]
        if table.dtype == np.int8:
            table = dequantize_rows(table, self._tensors[scales_name(_TABLE)][numbers])
        rows = table.astype(np.float64)
        if self._adaptation is not None:
            rows = rows @ self._adaptation.matrix.T.astype(np.float64)
        return [token for token, _ in pairs], rows

    def _row(self, token: int) -> int:
        """Returns the row of the table for an id, -1 for a bigram that was never trained."""
        if self._bigram_rows is None or token < self._words:
            return token
        return int(self._bigram_rows[token - self._words])
