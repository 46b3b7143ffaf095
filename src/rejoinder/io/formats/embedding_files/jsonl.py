"""Embeddings as JSON lines, `.jsonl`: an object with `text` and `embedding` on each line."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from rejoinder.protocols import Embeddings

exact = "{:.9g}".format
"""Returns a number with nine digits, which identify a float32."""


def json_lines(texts: Sequence[str], embeddings: Embeddings) -> Iterator[str]:
    """Yields an object for each text, without a line end."""
    for text, row in zip(texts, embeddings, strict=True):
        numbers = ", ".join(map(exact, row.tolist()))
        yield f'{{"text": {json.dumps(text, ensure_ascii=False)}, "embedding": [{numbers}]}}'


class JsonLines:
    """The format `.jsonl`, whose only part is the file itself."""

    header_bytes = 0
    parts = ("embeddings.jsonl",)

    def require(self) -> None:
        """Nothing is needed."""

    def begin(self, files: Sequence[IO[bytes]], dim: int) -> None:
        """Writes nothing: there is no header."""

    def append(
        self, files: Sequence[IO[bytes]], texts: Sequence[str], embeddings: Embeddings
    ) -> None:
        """Appends a line for each text."""
        files[0].writelines(f"{line}\n".encode() for line in json_lines(texts, embeddings))

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Returns the path; nothing is left to do."""
        del count, dim
        return folder / self.parts[0]
