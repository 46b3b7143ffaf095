"""Embeddings and the retriever in the real LlamaIndex."""

import asyncio

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode

from rejoinder import SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.interfaces.llama_index import RejoinderEmbedding, RejoinderRetriever


def test_embeddings_are_those_of_the_encoder(texts):
    rows = SentenceEncoder("rejoinder-small").encode(texts).tolist()
    made = RejoinderEmbedding("rejoinder-small", threads=1)
    assert made.get_text_embedding_batch(texts) == rows
    assert made.get_text_embedding(texts[-1]) == made.get_query_embedding(texts[-1]) == rows[-1]
    assert asyncio.run(made.aget_query_embedding(texts[-1])) == rows[-1]
    assert asyncio.run(made.aget_text_embedding(texts[-1])) == rows[-1]


def test_settings_are_stored():
    made = RejoinderEmbedding("rejoinder-small", embed_batch_size=7)
    again = RejoinderEmbedding.from_dict(made.to_dict())
    assert (again.model_name, again.embed_batch_size) == ("rejoinder-small", 7)
    assert again.get_text_embedding("Hi.") == made.get_text_embedding("Hi.")


def test_its_index_and_pipeline_take_them(index):
    [hits] = index.search(["which port?"], 9)
    nodes = [TextNode(id_=hit.id, text=hit.text) for hit in hits]
    embedding = RejoinderEmbedding("rejoinder-small")
    nodes = IngestionPipeline(transformations=[embedding]).run(nodes=nodes)
    found = (
        VectorStoreIndex(nodes, embed_model=embedding)
        .as_retriever(similarity_top_k=9)
        .retrieve("which port?")
    )
    assert [each.node.node_id for each in found] == [hit.id for hit in hits]
    assert [each.score for each in found] == pytest.approx([hit.score for hit in hits], abs=1e-5)


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_the_retriever_returns_hits_as_nodes(index, mode):
    retriever = RejoinderRetriever(str(index.folder), similarity_top_k=2, mode=mode)
    [hits] = index.search(["8000 port"], 2, mode=mode)
    for found in (retriever.retrieve("8000 port"), asyncio.run(retriever.aretrieve("8000 port"))):
        assert [
            (each.node.node_id, each.node.text, each.score, each.node.metadata) for each in found
        ] == [(hit.id, hit.text, hit.score, hit.about) for hit in hits]
    assert {each.node.metadata["author"] for each in found} == {"ann", "bob"}


def test_a_query_engine_answers_from_what_was_found(index):
    Settings.embed_model = MockEmbedding(embed_dim=1)
    engine = RetrieverQueryEngine.from_args(
        RejoinderRetriever(index, similarity_top_k=1), llm=MockLLM()
    )
    assert "Which port does" in str(engine.query("which port?"))


def test_conditions_are_met(index):
    bob = {"author": "bob"}
    found = [
        each.node.metadata["author"]
        for each in RejoinderRetriever(index, similarity_top_k=9, where=bob).retrieve("port")
    ]
    assert {*found} == {"bob"}


def test_messages_around_a_hit_are_in_its_metadata(index, around_port):
    retriever = RejoinderRetriever(index, similarity_top_k=1, context=1)
    [found] = retriever.retrieve("which port?")
    assert found.node.metadata == around_port
    Settings.embed_model = MockEmbedding(embed_dim=1)
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("which port?")
    assert "8000 :)" in str(answer)


def test_settings_are_checked(index):
    with pytest.raises(InputError, match="is not an index"):
        RejoinderRetriever("missing/")
    with pytest.raises(InputError, match="mode must be one of"):
        RejoinderRetriever(index, mode="meaning").retrieve("Hi.")
