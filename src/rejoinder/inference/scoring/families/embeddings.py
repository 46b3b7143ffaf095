"""How near the embeddings of both texts are, and the sums of their rows by weight."""

import numpy as np

from rejoinder.encoders.layers import Array, unit_rows
from rejoinder.inference.scoring.batch import PairBatch
from rejoinder.inference.scoring.families.base import Family
from rejoinder.measures import angular_similarity


def _compute(batch: PairBatch) -> list[Array]:
    cosine = _cosine(batch.first.embeddings, batch.second.embeddings)
    sums = [
        unit_rows((side.weights[:, None, :] @ rows)[:, 0])
        for side, rows in zip(batch.sides, batch.rows, strict=True)
    ]
    return [cosine, np.asarray(angular_similarity(cosine), np.float32), _cosine(*sums)]


def _cosine(first: Array, second: Array) -> Array:
    return np.asarray(np.clip(np.einsum("nd,nd->n", first, second), -1, 1))


EMBEDDINGS = Family("embeddings", ("cosine", "angle", "weighted cosine"), _compute)
