"""A server on loopback that embeds texts by a real encoder, and misbehaves where it is told to."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rejoinder.protocols import Encodes


class EmbeddingServer(ThreadingHTTPServer):
    """Speaks OpenAI's interface (`/v1/embeddings`) and text-embeddings-inference's (`/embed`)."""

    daemon_threads = True

    def __init__(self, encoder: Encodes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.encoder = encoder
        self.requests: list[dict[str, Any]] = []
        """Bodies of all requests."""
        self.keys: list[str | None] = []
        """Their headers `Authorization`."""
        self.faults: list[tuple[int, dict[str, str], bytes]] = []
        """Status, headers and content that the next requests are answered with."""
        self.breaks = 0
        """Number of answers that end too early."""
        self.most = 1_000
        """Number of texts in a request that are allowed."""
        self.refuses = "\0"
        """A text that no request may hold."""
        self.change: Callable[[list[list[float]]], Any] = lambda rows: rows
        """Changes the embeddings before they are sent."""
        self.answer: Callable[[Any], Any] = lambda tree: tree
        """Changes the whole answer."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmbeddingServer

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(body)
        server.keys.append(self.headers.get("Authorization"))
        if server.faults:
            self._send(*server.faults.pop(0))
            return
        if self.path == "/v1/embeddings":
            assert set(body) == {"model", "input", "encoding_format"}
            assert body["encoding_format"] == "float"
            texts = body["input"]
        elif self.path == "/embed":
            assert (body["normalize"], body["truncate"]) == (True, True)
            texts = body["inputs"]
        else:
            self._send(404, {}, b'{"error": {"message": "no such route"}}')
            return
        if len(texts) > server.most:
            said = f"batch size {len(texts)} > maximum allowed batch size {server.most}"
            self._send(413, {}, json.dumps({"error": said, "error_type": "Validation"}).encode())
            return
        if server.refuses in texts:
            self._send(422, {}, b'{"detail": "one of the inputs is refused"}')
            return
        rows = server.change(server.encoder.encode(texts).tolist())
        tree: Any = rows
        if self.path == "/v1/embeddings":
            items = [
                {"object": "embedding", "index": index, "embedding": row}
                for index, row in enumerate(rows)
            ]
            # the order of the items means nothing, their indices do
            tree = {"object": "list", "data": items[::-1], "model": body["model"]}
        self._send(200, {}, json.dumps(server.answer(tree)).encode())

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.breaks:
            self.server.breaks -= 1
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running(encoder: Encodes) -> Iterator[EmbeddingServer]:
    """Runs a server while the block runs."""
    server = EmbeddingServer(encoder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
