"""Requests to the server that no client should send: an answer, or a status from 400 to 422."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx

from fuzzing.datasets import damaged
from fuzzing.texts import text
from rejoinder.corpus.texts import Entry
from rejoinder.serve.app import create_app
from rejoinder.serve.server import ServerSettings
from tiny_models import dan_model

_BODIES: dict[str, dict[str, Any]] = {
    "/embed": {"inputs": ["a", "b"], "normalize": True, "truncate": True},
    "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}},
    "/rerank": {"query": "a", "texts": ["b", "c"], "raw_scores": False, "return_text": True},
    "/tokenize": {"inputs": ["a"], "add_special_tokens": False},
    "/rank": {"message": "a", "responses": ["b", "c"], "top_k": 1},
    "/search": {"queries": ["a"], "top_k": 2},
    "/texts": {"name": "a.txt", "content": "WzMvMS8yNCwgOTo1OSBQTV0gQW5uOiBIaQ=="},
    "/explain": {"first": "a", "second": "b"},
    "/read": {"queries": ["How old are yuo?", "b"]},
    "/unknown": {"inputs": ["a", "b"]},
    "/map": {"inputs": ["a", "b", "c"]},
    "/v1/embeddings": {"input": ["a"], "model": "tiny", "encoding_format": "float",
                       "dimensions": 5},
}  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 3, 2**63, 10**30, 0.5, 1e308, "", "a", "float", "base64", "tiny", [], {},
    [[]], ["a"], [1, 2], [None], ["a", 5], {"a": ["b"]}, [["a", "b"]], "\ud800", "\0", ["a"] * 40,
    [[101, 102]], "x" * 5_000, {"source_sentence": 5, "sentences": "a"},
)  # fmt: skip
_TYPES = ("application/json", "application/json", "application/json; charset=utf-8", "text/plain",
          "multipart/form-data", "", "a/b; c=é")  # fmt: skip


def body(random: Random, tree: dict[str, Any]) -> bytes:
    """The body of a request with other values, keys or bytes."""
    tree = dict(tree)
    for _ in range(random.choice((0, 1, 1, 2))):
        key = random.choice([*tree, "top_k", "extra", ""])
        tree[key] = text(random) if random.random() < 0.3 else random.choice(_VALUES)
        if random.random() < 0.1:
            del tree[key]
    whole: Any = tree if random.random() < 0.97 else random.choice(_VALUES)
    content = json.dumps(whole, ensure_ascii=random.random() < 0.7)
    written = content.encode("utf-8", "surrogatepass")
    if random.random() < 0.05:
        return b"[" * random.choice((10, 1_000, 50_000))
    return damaged(written, random) if random.random() < 0.25 else written


def checker(folder: Path) -> Callable[[Random], bool]:
    """What sends one request to the app; true: it was answered with 200."""
    settings = ServerSettings(max_texts=30, max_body_bytes=100_000)
    texts = [Entry(None, "How old are you?"), Entry(None, "I like pizza.")]
    app = create_app(dan_model(), settings, texts=texts, threads=1)
    loop = asyncio.new_event_loop()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")

    def checked(random: Random) -> bool:
        path = random.choice(list(_BODIES))
        other = random.choice(list(_BODIES)) if random.random() < 0.1 else path
        headers = {"content-type": random.choice(_TYPES).encode("latin-1")}
        method = "POST" if random.random() < 0.98 else random.choice(("GET", "PUT", "X" * 50))
        request = client.request(
            method, path, content=body(random, _BODIES[other]), headers=headers
        )
        answer = loop.run_until_complete(request)
        assert answer.status_code in (200, 400, 404, 405, 413, 415, 422), answer.text[:300]
        tree = json.loads(answer.content, parse_constant=_refused)
        assert answer.status_code == 200 or "error" in tree, tree
        return answer.status_code == 200

    return checked


def _refused(name: str) -> None:
    raise AssertionError(f"{name} in an answer")
