"""`RejoinderEmbeddings` and `RejoinderRetriever` for LangChain."""

from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever

from rejoinder.index.indexing import Index
from rejoinder.index.state import Mode
from rejoinder.index.where import Where
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.opening import encoder_of, index_of, retrieve
from rejoinder.models.find import DEFAULT


class RejoinderEmbeddings(Embeddings):  # type: ignore[misc]  # its library is optional
    """Computes embeddings for LangChain's vector stores, as lists of floats."""

    def __init__(
        self, model: str | Path | SentenceEncoder = DEFAULT, *, threads: int | None = None
    ) -> None:
        """Wraps an encoder, or loads a model by name, folder or address.

        Raises:
            InputError, ModelError: see `SentenceEncoder.load`.
        """
        self.encoder = encoder_of(model, threads)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Returns an embedding of length 1 for each text."""
        rows: list[list[float]] = self.encoder.encode(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Returns the embedding of a query, computed in the same way as for a text."""
        return self.embed_documents([text])[0]


class RejoinderRetriever(BaseRetriever):  # type: ignore[misc]
    """Finds texts of an index by meaning, by words or by both.

    A document has the `id` and text of a hit. Its metadata are the `score`, known facts about
    a message, such as `author` and `time`, and the messages around it (see `Retrieved.about`).
    """

    index: Index
    k: int
    mode: Mode
    weight: float | None
    where: Any
    context: int

    def __init__(
        self,
        index: str | Path | Index,
        *,
        k: int = 4,
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
            k: Number of documents per query.
            mode: `semantic`, `words` or `hybrid`; see `Index.search`.
            weight: Share of meaning in a hybrid search, from 0 to 1; as in `Index.search`.
            where: Conditions that messages must meet, such as `{"author": "ann"}`; see
                `Index.search`.
            context: Number of messages to add before and after each hit, in its thread or channel.
            **options: Fields of every LangChain retriever, such as `tags`.

        Raises:
            InputError, ModelError: see `Index`.
        """
        super().__init__(
            index=index_of(index), k=k, mode=mode, weight=weight, where=where, context=context,
            **options,
        )  # fmt: skip

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:  # noqa: ARG002
        [hits] = retrieve(self.index, self, [query], self.k)
        return [
            Document(hit.text, id=hit.id, metadata={**hit.about, "score": hit.score})
            for hit in hits
        ]
