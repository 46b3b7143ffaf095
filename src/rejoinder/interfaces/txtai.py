"""`RejoinderVectors` and `RejoinderRetriever` for txtai."""

from pathlib import Path
from typing import Any

import numpy as np
from txtai.vectors import Vectors

from rejoinder.encoders.layers import unit_rows
from rejoinder.index.indexing import Index, rows_of
from rejoinder.index.state import Mode
from rejoinder.index.where import Where
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.neighbours import nearest_rows
from rejoinder.interfaces.opening import index_of, retrieve
from rejoinder.models.find import DEFAULT
from rejoinder.protocols import Embeddings


class RejoinderVectors(Vectors):  # type: ignore[misc]  # its library is optional
    """Computes vectors for `txtai.Embeddings`, whose setting `method` names this class.

    The setting `path` is the name or folder of a model, by default `rejoinder-base`.
    """

    def loadmodel(self, path: str | None) -> SentenceEncoder:
        """Returns the model of a path.

        Raises:
            InputError, ModelError: see `SentenceEncoder.load`.
        """
        return SentenceEncoder.load(path or DEFAULT)

    def encode(self, data: list[str], category: str | None = None) -> Embeddings:  # noqa: ARG002
        """Returns (N, D) float32 embeddings of length 1, the same for queries and documents."""
        return np.asarray(self.model.encode(data))

    def normalize(self, embeddings: Embeddings) -> Embeddings:
        """Returns rows of length 1. Rows of texts without a known word stay zero."""
        return unit_rows(embeddings)


class RejoinderRetriever:
    """Finds texts of an index by meaning, by words or by both.

    It has the search methods of `txtai.Embeddings`, so `txtai.pipeline.RAG` accepts it instead.
    """

    def __init__(
        self,
        index: str | Path | Index,
        *,
        mode: Mode = "semantic",
        weight: float | None = None,
        where: Where | None = None,
        context: int = 0,
    ) -> None:
        """Opens an index.

        Args:
            index: The index, or its folder. It is searched in its current state; to see later
                changes by other processes, create a new retriever.
            mode: `semantic`, `words` or `hybrid`; see `Index.search`.
            weight: Share of meaning in a hybrid search, from 0 to 1; as in `Index.search`.
            where: Conditions that messages must meet, such as `{"author": "ann"}`; see
                `Index.search`.
            context: Number of messages to add before and after each hit, in its thread or channel.

        Raises:
            InputError, ModelError: see `Index`.
        """
        self.index, self.mode, self.weight = index_of(index), mode, weight
        self.where, self.context = where, context

    def search(self, query: str, limit: int = 3) -> list[dict[str, Any]]:
        """Returns the best `limit` rows: `id`, `text`, `score` and known facts about a message.

        See `Retrieved.about`.
        """
        return self.batchsearch([query], limit)[0]

    def batchsearch(self, queries: list[str], limit: int = 3) -> list[list[dict[str, Any]]]:
        """Returns the result of `search` for each query."""
        found = retrieve(self.index, self, queries, limit)
        return [
            [{**hit.about, "id": hit.id, "text": hit.text, "score": hit.score} for hit in hits]
            for hits in found
        ]

    def batchsimilarity(self, queries: list[str], data: list[str]) -> list[list[tuple[int, float]]]:
        """Returns for each query the indices of texts with their cosines, highest first."""
        encoder, dim = self.index.encoder, self.index.manifest.dim
        asked, known = (rows_of(encoder, texts, dim) for texts in (queries, data))
        rows, scores = nearest_rows(asked, known, max(len(data), 1))
        both = zip(rows.tolist(), scores.tolist(), strict=True)
        return [list(zip(*found, strict=True)) for found in both]
