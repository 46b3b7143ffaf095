"""What a format of embedding files does: appends to parts, and makes the file of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Protocol

from rejoinder.protocols import Embeddings


class EmbeddingFormat(Protocol):
    """A format of embedding files.

    Embeddings are appended to one or more parts, which are files of bytes. What is in them never
    changes while they grow, so that parts that were cut back to an earlier size can grow again.
    """

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts."""
        ...

    @property
    def header_bytes(self) -> int:
        """Number of first bytes of each part that `finish` writes again."""
        ...

    def require(self) -> None:
        """Checks that the packages that it needs are installed.

        Raises:
            MissingExtraError: one is not.
        """
        ...

    def begin(self, files: Sequence[IO[bytes]], dim: int) -> None:
        """Writes what comes before the embeddings into the empty `files`, one for each part."""
        ...

    def append(
        self, files: Sequence[IO[bytes]], texts: Sequence[str], embeddings: Embeddings
    ) -> None:
        """Appends texts and their embeddings, (N, dim) float32."""
        ...

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Makes the whole file of the parts in `folder`, and returns its path in `folder`.

        `count` is the number of all embeddings. It may be called again after it was interrupted.
        """
        ...
