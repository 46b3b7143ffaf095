"""Library, command line and server give the same vectors, on odd texts, too."""

import json
import random
import sys

import numpy as np
import pytest

from rejoinder.cli import main

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
