"""`RejoinderEmbedding` and `RejoinderRetriever` for LlamaIndex."""

from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rejoinder.index.indexing import Index
from rejoinder.index.state import Mode
from rejoinder.index.where import Where
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.opening import index_of, retrieve
from rejoinder.models.find import DEFAULT

_MOST = 2_048
"""Largest batch of texts that LlamaIndex allows."""


class RejoinderEmbedding(BaseEmbedding):  # type: ignore[misc]  # its library is optional
    """Computes embeddings of length 1 for indexes of LlamaIndex."""

    _encoder: SentenceEncoder = PrivateAttr()

    def __init__(
        self,
        model_name: str | Path = DEFAULT,
        *,
        threads: int | None = None,
        embed_batch_size: int = _MOST,
        **options: Any,
    ) -> None:
        """Loads a model.

        Args:
            model_name: Name, folder or address of the model; see `SentenceEncoder.load`.
            threads: Number of CPU cores, by default all that the process may use.
            embed_batch_size: Texts per call, at most 2,048.
            **options: Fields of every LlamaIndex embedding, such as `callback_manager`.

        Raises:
            InputError, ModelError: see `SentenceEncoder.load`.
        """
        super().__init__(model_name=str(model_name), embed_batch_size=embed_batch_size, **options)
        self._encoder = SentenceEncoder.load(model_name, threads=threads)

    @classmethod
    def class_name(cls) -> str:
        """Returns the name of the class in stored settings."""
        return "RejoinderEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._encoder.encode(texts).tolist()
        return rows

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class RejoinderRetriever(BaseRetriever):  # type: ignore[misc]
    """Finds texts of an index by meaning, by words or by both.

    A node has the id and text of a hit, and as metadata the known facts about a message, such as
    `author` and `time`, and the messages around it (see `Retrieved.about`). The score comes with
    the node.
    """

    def __init__(
        self,
        index: str | Path | Index,
        *,
        similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K,
        mode: Mode = "semantic",
        weight: float | None = None,
        where: Where | None = None,
        context: int = 0,
        **options: Any,
    ) -> None:
        """Opens an index.

        Args:
            index: The index, or its folder. It is searched in its current state; to see later
                changes by other processes, create a new retriever.
            similarity_top_k: Number of nodes per query.
            mode: `semantic`, `words` or `hybrid`; see `Index.search`.
            weight: Share of meaning in a hybrid search, from 0 to 1; as in `Index.search`.
            where: Conditions that messages must meet, such as `{"author": "ann"}`; see
                `Index.search`.
            context: Number of messages to add before and after each hit, in its thread or channel.
            **options: Arguments of every LlamaIndex retriever, such as `callback_manager`.

        Raises:
            InputError, ModelError: see `Index`.
        """
        super().__init__(**options)
        self.index = index_of(index)
        self.similarity_top_k, self.mode, self.weight = similarity_top_k, mode, weight
        self.where, self.context = where, context

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        [hits] = retrieve(self.index, self, [query_bundle.query_str], self.similarity_top_k)
        return [
            NodeWithScore(
                node=TextNode(id_=hit.id, text=hit.text, metadata=hit.about), score=hit.score
            )
            for hit in hits
        ]
