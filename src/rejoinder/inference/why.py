"""Explains a similarity by words; exact for models whose embedding is a sum of rows.

The embedding of a DAN without layers is a sum of rows, scaled to length 1, and an adaptation is
linear. The cosine of two sentences is therefore a sum over all pairs of a token of one and a token
of the other: the dot product of their rows, divided by the lengths of both sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders import BIGRAM_ROWS
from rejoinder.encoders.layers import dequantize_rows, scales_name
from rejoinder.errors import ModelError
from rejoinder.models.folder import ModelContents
from rejoinder.text.features import Token, WordFeatures, read_tokens

_TINY = 1e-12
_TABLE = "encoder.table.weight"


@dataclass(frozen=True)
class Explanation:
    """The contribution of each pair of tokens to the cosine of two sentences."""

    first: tuple[Token, ...]
    """The N tokens of the first sentence that have a row: words in order, then bigrams."""
    second: tuple[Token, ...]
    """The M tokens of the second sentence."""
    contributions: NDArray[np.float64]
    """(N, M), from -1 to 1 or beyond; they sum to `cosine`."""
    cosine: float
    """From -1 to 1; 0 if a sentence has no token."""


def explain(model: ModelContents, first: str, second: str) -> Explanation:
    """Computes the contribution of each pair of tokens to the cosine of two sentences.

    Raises:
        ModelError: the embeddings of the model are not sums of rows.
    """
    tokens, rows = zip(*(_tokens_and_rows(model, text) for text in (first, second)), strict=True)
    lengths = [float(np.linalg.norm(side.sum(axis=0))) for side in rows]
    scale = lengths[0] * lengths[1]
    products = rows[0] @ rows[1].T
    contributions = products / scale if scale > 0 else np.zeros_like(products)
    cosine = float(np.clip(contributions.sum(), -1, 1))
    return Explanation(tuple(tokens[0]), tuple(tokens[1]), contributions, cosine)


def word_shares(
    model: ModelContents, query: str, texts: Sequence[str]
) -> list[tuple[float, list[tuple[int, int, float]]]]:
    """Returns the cosine of a query with each text, and the contribution of each word of the text.

    A word is given as its start and stop in the text. Each word of a bigram gets half of the
    bigram's contribution. Words whose position is unknown are left out.

    Raises:
        ModelError: the embeddings of the model are not sums of rows.
    """
    _, rows = _tokens_and_rows(model, query)
    total = rows.sum(axis=0)
    unit = total / max(float(np.linalg.norm(total)), _TINY)
    found = []
    for tokens, rows in (_tokens_and_rows(model, text) for text in texts):
        shares = rows @ unit / max(float(np.linalg.norm(rows.sum(axis=0))), _TINY)
        cosine = float(np.clip(shares.sum(), -1, 1))
        found.append((cosine, _by_word(tokens, shares.tolist())))
    return found


def _by_word(tokens: Sequence[Token], values: Sequence[float]) -> list[tuple[int, int, float]]:
    shares: dict[tuple[int, int], float] = {}
    begins, ends = dict[int, tuple[int, int]](), dict[int, tuple[int, int]]()
    for token, share in zip(tokens, values, strict=True):
        if token.start is None or token.stop is None:
            continue
        if " " in token.text:  # bigrams come after words
            for place in (begins[token.start], ends[token.stop]):
                shares[place] += share / 2
            continue
        place = token.start, token.stop
        begins[token.start] = ends[token.stop] = place
        shares[place] = share
    return [(start, stop, share) for (start, stop), share in shares.items()]


def _tokens_and_rows(model: ModelContents, text: str) -> tuple[list[Token], NDArray[np.float64]]:
    """Returns the tokens of a text that have a row, and their (N, D) rows, adapted."""
    if not model.is_sum_of_rows:
        kind = model.encoder["kind"]
        layers = "layers" if kind == "dan" else "an encoder"
        raise ModelError(
            f"{model.name} ({kind}) has {layers} between words and embedding, so its similarities "
            "can't be explained by words. Use a DAN without layers, such as rejoinder-base."
        )
    [tokens] = read_tokens(model.features, [text])
    numbers = np.array([token.id for token in tokens], np.int64)
    places = model.tensors.get(BIGRAM_ROWS)
    if places is not None:  # -1 for a bigram that was never trained
        words = model.features.rows - len(places)
        bigrams = numbers >= words
        numbers[bigrams] = places[numbers[bigrams] - words]
    tokens = [token for token, number in zip(tokens, numbers, strict=True) if number >= 0]
    numbers = numbers[numbers >= 0]
    table: NDArray[Any] = model.tensors[_TABLE][numbers]
    if table.dtype == np.int8:
        table = dequantize_rows(table, model.tensors[scales_name(_TABLE)][numbers])
    tokens, rows = _whole_words(model, text, tokens, table.astype(np.float64))
    if model.adaptation is not None:
        rows = rows @ model.adaptation.matrix.T.astype(np.float64)
    return tokens, rows


def _whole_words(
    model: ModelContents, text: str, tokens: list[Token], rows: NDArray[np.float64]
) -> tuple[list[Token], NDArray[np.float64]]:
    """Returns tokens and rows, with the letters of each unknown word joined to that word."""
    features = model.features
    if not tokens or not isinstance(features, WordFeatures) or not features.letter_buckets:
        return tokens, rows
    places = [(token.start, token.stop) for token in tokens]
    firsts = [
        at for at, place in enumerate(places) if not at or None in place or place != places[at - 1]
    ]
    words = [
        tokens[first]
        if last == first + 1
        else replace(tokens[first], text=features.normalize(text[slice(*places[first])]))
        for first, last in pairwise([*firsts, len(tokens)])
    ]
    return words, np.add.reduceat(rows, firsts)
