"""Library, command line and server give the same vectors, on odd texts, too."""

import json
import random
import sys

import numpy as np
import pytest

from rejoinder.cli import main
from rejoinder.index.folder import TextIndex
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.serve.app import create_app
from serving import TEXTS, running, running_app

ODD = [
    "",
    " ",
    "\x00",
    "\u200b",
    "ﬁne “quotes” and ‘these’",
    "İSTANBUL ΑΣ ΑΣΑ",
    "e\u0301 é",
    "مرحبا بالعالم",
    "こんにちは世界",
    "😀👍🏽 ok",
    "a" * 5_000,
    "\ud800 lone",
    "don't DON’T o''clock",
    "1,234.5e6 ٣٤",
    "tab\tnew\nline\r",
    "how are you " * 300,
    "</script><b>&amp;",
    '{"inputs": "x"}',
    "\x1c\x85\u2028",
]


def many() -> list[str]:
    """1,000 texts, the odd ones among them."""
    draw = random.Random(7)
    words = "how old are you what is your age the a Oslo zyxxyq 42 ? ! 's ßtraße".split()  # noqa: SIM905
    made = [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(1_000 - len(ODD))]
    texts = [*ODD, *made]
    draw.shuffle(texts)
    return texts


@pytest.fixture(scope="module")
def texts():
    return many()


def post(server, path, **body):
    """Sends JSON in ASCII: httpx would send UTF-8, which has no halves of surrogate pairs."""
    headers = {"Content-Type": "application/json"}
    answer = server.client.post(path, content=json.dumps(body), headers=headers)
    assert answer.status_code == 200
    return answer.json()


def test_embed_gives_the_vectors_of_the_library(server, encoder, texts):
    rows = np.array(post(server, "/embed", inputs=texts), np.float32)
    np.testing.assert_allclose(rows, encoder.encode(texts), rtol=0, atol=1e-6)
    plain = post(server, "/embed", inputs=texts, normalize=False)
    np.testing.assert_allclose(
        np.array(plain, np.float32), encoder.encode(texts, normalize=False), rtol=1e-6, atol=1e-6
    )


def test_openai_gives_them_too(server, encoder, texts):
    data = post(server, "/v1/embeddings", input=texts)["data"]
    rows = np.array([item["embedding"] for item in data], np.float32)
    np.testing.assert_allclose(rows, encoder.encode(texts), rtol=0, atol=1e-6)
    assert [item["index"] for item in data] == list(range(len(texts)))


def test_the_command_line_gives_them_too(server, tmp_path, monkeypatch, capsys):
    texts = [text for text in many() if not set("\n\r\0\ud800") & {*text}]
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts) + "\n", "utf-8")
    arguments = ["encode", "-m", "rejoinder-small", "--sentences", str(file), "--json", "-q"]
    monkeypatch.setattr(sys, "argv", ["rejoinder", *arguments])
    with pytest.raises(SystemExit):
        main.run()
    lines = [json.loads(line)["embedding"] for line in capsys.readouterr().out.strip().split("\n")]
    rows = post(server, "/embed", inputs=texts)
    np.testing.assert_allclose(np.array(rows), np.array(lines), rtol=0, atol=1e-6)


def test_answers_have_a_limit(server):
    few = server.client.post("/search", json={"queries": ["a"] * 8, "top_k": 10**9})
    assert [len(hits) for hits in few.json()] == [len(TEXTS)] * 8
    many = server.client.post("/tokenize", json={"inputs": "hello " * 150_000})
    assert many.status_code == 422
    assert "100,000" in many.json()["error"]


def test_hits_have_a_limit(model):
    with running(model, texts=["hello"] * 1_000) as server:
        body = {"queries": ["a"] * 200, "top_k": 1_000}
        answer = server.client.post("/search", json=body)
        assert answer.status_code == 422
        assert "100,000" in answer.json()["error"]


def test_an_index_is_searched_as_it_is_now(model, tmp_path):
    made = Index.create(tmp_path / "index", ["hello"], SentenceEncoder(model))
    with running_app(create_app(model, index=TextIndex(tmp_path / "index"))) as server:

        def found():
            [hits] = server.client.post("/search", json={"queries": "hello you"}).json()
            return {hit["text"] for hit in hits}

        assert found() == {"hello"}
        made.add(["hello you"])
        assert found() == {"hello", "hello you"}
        made.delete("1")
        made.compact()
        assert found() == {"hello you"}
        index_json = tmp_path / "index" / "index.json"
        index_json.write_text("{}")
        answer = server.client.post("/search", json={"queries": "hello"})
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text
