"""Frequency weights and whitening of the rows of words, at the beginning of a phase.

Training on examples leaves frequent words long and the variance of sentences in few directions.
Both can be mended without looking at any sentence, in the table itself: a sum of rows weighted and
turned is the sum of weighted and turned rows.
"""

import torch
from torch import Tensor

from rejoinder.training.rows.cooccurrence import zipf

_ROWS = 16_384
"""Rows turned at a time."""


@torch.no_grad()
def whiten(weight: Tensor, words: int, sif: float, whitening: float) -> None:
    """Weighs and whitens rows in place; their mean length stays as it was.

    The frequency p of a word is that of its rank, by Zipf's law. Rows without a word, such as
    those of unknown words, count as the rarest word.

    Args:
        weight: (rows, D) float32, first those of the words in order of frequency.
        words: how many rows belong to words.
        sif: a, if above 0: rows are multiplied by a / (a + p), the smooth inverse frequency of
            Arora et al. (2017), section 3.
        whitening: s from 0 to 1: rows are multiplied by C^(-s/2), where C (D, D) is the covariance
            about 0 of rows weighted by p (Yokoi et al. 2024, section 3). 1 makes C the identity.
    """
    lengths = weight.norm(dim=1).mean()
    frequencies = torch.from_numpy(zipf(words)).to(weight.device)
    if sif:
        weights = (sif / (sif + frequencies)).float()
        weight[:words].mul_(weights.unsqueeze(1))
        weight[words:].mul_(weights[-1])
    if whitening:
        turn = _power(_covariance(weight[:words], frequencies), -whitening / 2)
        for start in range(0, len(weight), _ROWS):
            weight[start : start + _ROWS] = weight[start : start + _ROWS] @ turn
    weight.mul_(lengths / weight.norm(dim=1).mean())


def _covariance(rows: Tensor, frequencies: Tensor) -> Tensor:
    """Returns (D, D) float64, the sum of the outer products of rows times their frequencies."""
    total = rows.new_zeros((rows.shape[1], rows.shape[1]), dtype=torch.float64)
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS].double()
        total += part.T @ (part * frequencies[start : start + _ROWS].unsqueeze(1))
    return total


def _power(matrix: Tensor, exponent: float) -> Tensor:
    """Returns a symmetric positive matrix to a power, float32, with eigenvalues of mean 1.

    Directions without variance, as those of unused dimensions, keep the scale of the mean.
    """
    values, vectors = torch.linalg.eigh(matrix)
    values = values / values.mean()
    scales = torch.where(values > 1e-9, values, 1.0).pow(exponent)
    turned: Tensor = (vectors * scales) @ vectors.T
    return turned.float()
