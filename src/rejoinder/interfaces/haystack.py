"""Components of Haystack: `RejoinderTextEmbedder`, `RejoinderDocumentEmbedder` and a retriever.

A model or an index is opened by `warm_up`, which pipelines call, or on first use.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from haystack import Document, component

from rejoinder.index.indexing import Index
from rejoinder.index.state import Mode
from rejoinder.index.where import Where
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.opening import retrieve
from rejoinder.models.find import DEFAULT


class _Embedder:
    def __init__(self, model: str | Path = DEFAULT, *, threads: int | None = None) -> None:
        """Keeps the name, folder or address of a model; see `SentenceEncoder.load`."""
        self.model, self.threads = str(model), threads

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        return SentenceEncoder.load(self.model, threads=self.threads)

    def warm_up(self) -> None:
        """Loads the model.

        Raises:
            InputError, ModelError: see `SentenceEncoder.load`.
        """
        _ = self._encoder


@component
class RejoinderTextEmbedder(_Embedder):
    """Computes the embedding of a text, such as a query."""

    @component.output_types(embedding=list[float])  # type: ignore[untyped-decorator]
    def run(self, text: str) -> dict[str, list[float]]:
        """Returns `embedding`, of length 1."""
        return {"embedding": self._encoder.encode(text).tolist()}


@component
class RejoinderDocumentEmbedder(_Embedder):
    """Computes the embeddings of documents."""

    def __init__(
        self,
        model: str | Path = DEFAULT,
        *,
        meta_fields_to_embed: Sequence[str] = (),
        embedding_separator: str = "\n",
        threads: int | None = None,
    ) -> None:
        """Keeps the settings.

        Args:
            model: Name, folder or address of a model; see `SentenceEncoder.load`.
            meta_fields_to_embed: Fields of `meta` to encode before the text.
            embedding_separator: Separator of these fields and the text.
            threads: Number of CPU cores, by default all that the process may use.
        """
        # `component` creates a new class: super() would refer to the old one
        _Embedder.__init__(self, model, threads=threads)
        self.meta_fields_to_embed = list(meta_fields_to_embed)
        self.embedding_separator = embedding_separator

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Returns `documents`, copies with embeddings of length 1."""
        rows = self._encoder.encode([self._text(document) for document in documents]).tolist()
        return {
            "documents": [
                replace(document, embedding=row)
                for document, row in zip(documents, rows, strict=True)
            ]
        }

    def _text(self, document: Document) -> str:
        fields = (document.meta.get(name) for name in self.meta_fields_to_embed)
        parts = [str(value) for value in fields if value is not None]
        return self.embedding_separator.join([*parts, document.content or ""])


@component
class RejoinderRetriever:
    """Finds texts of an index by meaning, by words or by both.

    A document has the id, text and score of a hit. Its `meta` has known facts about a message,
    message, such as `author` and `time`, and the messages around it (see `Retrieved.about`).
    """

    def __init__(
        self,
        index: str | Path,
        *,
        top_k: int = 10,
        mode: Mode = "semantic",
        weight: float | None = None,
        where: Where | None = None,
        context: int = 0,
    ) -> None:
        """Keeps the settings.

        Args:
            index: Folder of an index. It is searched in its state when opened.
            top_k: Number of documents per query.
            mode: `semantic`, `words` or `hybrid`; see `Index.search`.
            weight: Share of meaning in a hybrid search, from 0 to 1; as in `Index.search`.
            where: Conditions that messages must meet, such as `{"author": "ann"}`; see
                `Index.search`.
            context: Number of messages to add before and after each hit, in its thread or channel.
        """
        self.index, self.top_k, self.mode, self.weight = str(index), top_k, mode, weight
        self.where, self.context = where, context

    @cached_property
    def _opened(self) -> Index:
        return Index.open(self.index)

    def warm_up(self) -> None:
        """Opens the index and its model.

        Raises:
            InputError, ModelError: see `Index`.
        """
        _ = self._opened

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Returns `documents`, best first: `top_k` of them, by default as the constructor set."""
        count = self.top_k if top_k is None else top_k
        [hits] = retrieve(self._opened, self, [query], count)
        return {
            "documents": [
                Document(id=hit.id, content=hit.text, score=hit.score, meta=hit.about)
                for hit in hits
            ]
        }
