"""Vectors and the retriever in the real txtai."""

import numpy as np
import pytest
import txtai
from txtai.pipeline import RAG

from rejoinder import SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.interfaces.txtai import RejoinderRetriever

METHOD = "rejoinder.interfaces.txtai.RejoinderVectors"


def made(**settings):
    return txtai.Embeddings(
        method=METHOD, path="rejoinder-small", backend="numpy", content=True, **settings
    )


def test_vectors_are_those_of_the_encoder(texts):
    rows = SentenceEncoder("rejoinder-small").encode(texts)
    np.testing.assert_allclose(made().batchtransform(texts), rows, atol=1e-6)
    cut = made(dimensionality=64).batchtransform(texts)
    expected = SentenceEncoder("rejoinder-small").encode(texts, truncate_dim=64)
    np.testing.assert_allclose(cut, expected, atol=1e-6)


def test_its_index_takes_them_and_is_loaded_again(index, tmp_path):
    [hits] = index.search(["which port?"], 9)
    made_index = made()
    made_index.index([(hit.id, hit.text, None) for hit in hits])
    made_index.save(str(tmp_path / "saved"))
    again = txtai.Embeddings()
    again.load(str(tmp_path / "saved"))
    for each in (made_index, again):
        found = each.search("which port?", 9)
        assert [row["id"] for row in found] == [hit.id for hit in hits if hit.score > 0]
        scores = [hit.score for hit in hits if hit.score > 0]
        assert [row["score"] for row in found] == pytest.approx(scores, abs=1e-5)


def test_the_default_model_needs_no_path():
    default = txtai.Embeddings(method=METHOD)
    expected = SentenceEncoder().encode("Hi.")
    np.testing.assert_allclose(default.transform("Hi."), expected, atol=1e-6)


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_the_retriever_returns_hits_as_rows(index, mode):
    retriever = RejoinderRetriever(str(index.folder), mode=mode)
    [hits] = index.search(["8000 port"], 2, mode=mode)
    found = retriever.search("8000 port", 2)
    assert found == [
        {"id": hit.id, "text": hit.text, "score": hit.score, **hit.about} for hit in hits
    ]
    assert retriever.batchsearch(["8000 port", "one"], 2)[0] == found
    assert {row["author"] for row in found} == {"ann", "bob"}


def test_rag_takes_the_retriever(index):
    prompts = []
    rag = RAG(
        RejoinderRetriever(index),
        lambda texts, **_: prompts.extend(texts) or ["8000"],
        template="{question} {context}",
        context=1,
        output="reference",
    )
    answer = rag("which port?")
    [hits] = index.search(["which port?"], 1)
    assert prompts == [f"which port? {hits[0].text}"]
    assert (answer["answer"], answer["reference"]) == ("8000", hits[0].id)


def test_conditions_are_met(index):
    bob = {"author": "bob"}
    found = [row["author"] for row in RejoinderRetriever(index, where=bob).search("port", 9)]
    assert {*found} == {"bob"}


def test_messages_around_a_hit_are_in_its_row(index, around_port):
    [row] = RejoinderRetriever(index, context=1).search("which port?", 1)
    assert row == {"id": "102", "text": row["text"], "score": row["score"], **around_port}


def test_settings_are_checked(index):
    with pytest.raises(InputError, match="is not an index"):
        RejoinderRetriever("missing/")
    with pytest.raises(InputError, match="mode must be one of"):
        RejoinderRetriever(index, mode="meaning").search("Hi.")
