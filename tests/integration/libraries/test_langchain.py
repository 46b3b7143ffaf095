"""Embeddings and the retriever in the real LangChain."""

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from rejoinder import SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.interfaces.langchain import RejoinderEmbeddings, RejoinderRetriever


def test_embeddings_are_those_of_the_encoder(texts):
    encoder = SentenceEncoder("rejoinder-small")
    for made in (RejoinderEmbeddings("rejoinder-small", threads=1), RejoinderEmbeddings(encoder)):
        assert made.embed_documents(texts) == encoder.encode(texts).tolist()
        assert made.embed_documents([]) == []
        assert made.embed_query(texts[-1]) == encoder.encode(texts[-1]).tolist()
    assert asyncio.run(made.aembed_query("Hi.")) == made.embed_query("Hi.")
    with pytest.raises(InputError, match="this encoder has its own"):
        RejoinderEmbeddings(encoder, threads=1)


def test_a_vector_store_finds_what_an_index_does(index):
    store = InMemoryVectorStore(RejoinderEmbeddings(index.encoder))
    [hits] = index.search(["which port?"], 9)
    store.add_texts([hit.text for hit in hits], ids=[hit.id for hit in hits])
    found = store.similarity_search_with_score("which port?", k=9)
    assert [document.id for document, _ in found] == [hit.id for hit in hits]
    assert [score for _, score in found] == pytest.approx([hit.score for hit in hits], abs=1e-5)


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_the_retriever_returns_hits_as_documents(index, mode):
    retriever = RejoinderRetriever(str(index.folder), k=2, mode=mode)
    [hits] = index.search(["8000 port"], 2, mode=mode)
    expected = [
        Document(hit.text, id=hit.id, metadata={**hit.about, "score": hit.score}) for hit in hits
    ]
    assert retriever.invoke("8000 port") == expected
    assert asyncio.run(retriever.ainvoke("8000 port")) == expected
    assert retriever.batch(["8000 port"] * 20) == [expected] * 20
    answers = {document.metadata.get("answers") for document in expected}
    assert {document.metadata["author"] for document in expected} == {"ann", "bob"}
    assert "102" in answers


def test_the_retriever_is_a_step_of_a_chain(index):
    chain = RejoinderRetriever(index, k=1) | RunnableLambda(lambda found: found[0].page_content)
    assert chain.invoke("which port?").startswith("Which port")


def test_conditions_are_met(index):
    bob = {"author": "bob"}
    found = [
        each.metadata["author"] for each in RejoinderRetriever(index, k=9, where=bob).invoke("port")
    ]
    assert {*found} == {"bob"}


def test_messages_around_a_hit_are_in_its_metadata(index, around_port):
    [document] = RejoinderRetriever(index, k=1, context=1).invoke("which port?")
    assert {"score": document.metadata["score"], **around_port} == document.metadata


def test_settings_are_checked(index):
    with pytest.raises(InputError, match="is not an index"):
        RejoinderRetriever("missing/")
    with pytest.raises(ValidationError, match="semantic"):
        RejoinderRetriever(index, mode="meaning")
    with pytest.raises(InputError, match="top_k must be 1 or more"):
        RejoinderRetriever(index, k=0).invoke("Hi.")
