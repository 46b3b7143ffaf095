"""Embedders and the retriever in the real Haystack."""

import pytest
from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder

from rejoinder import SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.interfaces.haystack import (
    RejoinderDocumentEmbedder,
    RejoinderRetriever,
    RejoinderTextEmbedder,
)

OURS = ["rejoinder.interfaces.haystack"]


def test_embeddings_are_those_of_the_encoder(texts):
    encoder = SentenceEncoder("rejoinder-small")
    documents = [Document(content=text, meta={"n": n}) for n, text in enumerate(texts)]
    found = RejoinderDocumentEmbedder("rejoinder-small", threads=1).run(documents)["documents"]
    assert [document.embedding for document in found] == encoder.encode(texts).tolist()
    assert [document.content for document in found] == texts
    assert documents[0].embedding is None
    assert RejoinderDocumentEmbedder("rejoinder-small").run([])["documents"] == []
    row = RejoinderTextEmbedder("rejoinder-small").run(texts[-1])["embedding"]
    assert row == encoder.encode(texts[-1]).tolist()


def test_fields_are_encoded_before_the_text():
    embedder = RejoinderDocumentEmbedder(
        "rejoinder-small", meta_fields_to_embed=["title", "none"], embedding_separator=": "
    )
    [found] = embedder.run([Document(content="How old?", meta={"title": "Age"})])["documents"]
    assert found.embedding == SentenceEncoder("rejoinder-small").encode("Age: How old?").tolist()


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_the_retriever_returns_hits_as_documents(index, mode):
    retriever = RejoinderRetriever(index.folder, top_k=9, mode=mode)
    [hits] = index.search(["8000 port"], 2, mode=mode)
    found = retriever.run("8000 port", top_k=2)["documents"]
    assert [(each.id, each.content, each.score, each.meta) for each in found] == [
        (hit.id, hit.text, hit.score, hit.about) for hit in hits
    ]
    assert {each.meta["author"] for each in found} == {"ann", "bob"}
    assert len(retriever.run("8000 port")["documents"]) >= 2


def test_a_pipeline_is_stored_with_them_and_runs_again(index):
    pipeline = Pipeline()
    pipeline.add_component("search", RejoinderRetriever(index.folder, top_k=1, mode="hybrid"))
    template = "{{ documents[0].content }}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables=["documents"]))
    pipeline.add_component("text", RejoinderTextEmbedder("rejoinder-small", threads=1))
    pipeline.add_component(
        "documents", RejoinderDocumentEmbedder("rejoinder-small", meta_fields_to_embed=["author"])
    )
    pipeline.connect("search.documents", "prompt.documents")
    pipeline.connect("search.documents", "documents.documents")
    pipeline.connect("prompt.prompt", "text.text")
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=OURS)
    assert again.to_dict()["components"] == pipeline.to_dict()["components"]
    query = {"search": {"query": "which port?"}}
    results = again.run(query, include_outputs_from={"prompt"})
    assert results == pipeline.run(query, include_outputs_from={"prompt"})
    prompt = results["prompt"]["prompt"]
    assert prompt.startswith("Which port")
    assert results["text"]["embedding"] == index.encoder.encode(prompt).tolist()
    [document] = results["documents"]["documents"]
    assert document.embedding == index.encoder.encode(f"ann\n{prompt}").tolist()


def test_conditions_are_met(index):
    bob = {"author": "bob"}
    found = [
        each.meta["author"]
        for each in RejoinderRetriever(index.folder, where=bob).run("port")["documents"]
    ]
    assert {*found} == {"bob"}


def test_messages_around_a_hit_are_in_its_metadata(index, around_port):
    pipeline = Pipeline()
    pipeline.add_component("search", RejoinderRetriever(index.folder, top_k=1, context=1))
    template = "{{ documents[0].meta.after[0].text }}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables=["documents"]))
    pipeline.connect("search.documents", "prompt.documents")
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=OURS)
    found = again.run({"search": {"query": "which port?"}}, include_outputs_from={"search"})
    assert found["search"]["documents"][0].meta == around_port
    assert found["prompt"]["prompt"] == "8000 :)"


def test_settings_are_checked_when_they_are_used(index):
    with pytest.raises(InputError, match="is not an index"):
        RejoinderRetriever("missing/").warm_up()
    with pytest.raises(InputError, match="mode must be one of"):
        RejoinderRetriever(index.folder, mode="meaning").run("Hi.")
