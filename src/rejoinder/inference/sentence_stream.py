"""Reads sentences as a stream, and encodes them a chunk at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import refuse_unordered
from rejoinder.inference.outputs import OnTooLong
from rejoinder.inference.runtimes import BATCH_SIZE
from rejoinder.io.formats.texts import read_strings
from rejoinder.protocols import Embeddings
from rejoinder.text.normalize import as_strings

CHUNK = 8_192
"""Number of sentences that are encoded at a time. Memory holds as many, and a killed process loses
at most as many, however slow the model is."""

EncodingProgress = Callable[[int, int, int | None], None]
"""Called before the first chunk and after each one, with the number of sentences that are done
(those of an interrupted run included), the number of bytes read, and that of the whole file, None
if it is not known."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class EncodedChunk:
    """At most `CHUNK` sentences and their embeddings."""

    texts: list[str]
    embeddings: Embeddings
    unknown: int
    too_long: int
    foreign: float
    """See `foreign_share`."""


def foreign_share(encoder: SentenceEncoder, texts: Sequence[str]) -> float:
    """Returns the share of texts whose words are mostly unknown, from 0 to 1, by a sample of 32."""
    sample = texts[:: max(1, len(texts) // 32)]
    return float((encoder.unknown_share(sample) > 0.5).mean()) if len(sample) else 0.0


def encoded_chunks(
    encoder: SentenceEncoder,
    texts: Iterable[str],
    *,
    response: bool = False,
    batch_size: int = BATCH_SIZE,
    on_too_long: OnTooLong | None = None,
    name: str = "",
    first: int = 0,
) -> Iterator[EncodedChunk]:
    """Yields sentences and their embeddings, `CHUNK` at a time, as a stream.

    `name` and `first`, the number of lines before these, are for error messages.

    Raises:
        InputError: a text is too long, and `on_too_long` is `error`; or what `texts` raises.
        ModelError: see `encode_file`.
    """
    for chunk in chunks(iter(texts)):
        embeddings, long = encoder.encoded(
            chunk,
            batch_size,
            on_too_long,
            response=response,
            place=partial(_line, name, first),
        )
        unknown = int((~embeddings.any(axis=1)).sum())
        yield EncodedChunk(chunk, embeddings, unknown, long, foreign_share(encoder, chunk))
        first += len(chunk)


def _line(name: str, first: int, index: int) -> str:
    return f"{name} line {first + index + 1:,}".lstrip()


class Source(Generic[Item]):
    """The items of a file, or given items, and how much of the file has been read."""

    def __init__(
        self,
        items: str | Path | Iterable[Any],
        of_file: Callable[..., Iterator[Item]],
        of_items: Callable[[Iterable[Any]], Iterator[Item]],
    ) -> None:
        """Prepares to read a file, if `items` is its path, by `of_file`, others by `of_items`.

        `of_file` calls its argument `on_read` with the number of bytes of each piece that it read.
        """
        self.read = 0
        self.size: int | None = None
        self.name = ""
        if isinstance(items, str | Path):
            file = Path(items)
            self.name = str(items)
            self.size = file.stat().st_size if file.is_file() else None
            self._items = of_file(file, on_read=self._count)
        else:
            self._items = of_items(items)

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def _count(self, count: int) -> None:
        self.read += count


def sentences_of(sentences: str | Path | Iterable[str], columns: str | None = None) -> Source[str]:
    """Returns the texts of a file (`io.formats.texts`), or strings, as a source.

    Raises:
        InputError: as it is read: an element is not a string, or the file can't be read.
    """
    refuse_columns(sentences, columns)
    return Source(sentences, partial(read_strings, columns=columns), _strings)


def refuse_columns(texts: object, columns: str | None) -> None:
    """Refuses columns of texts that are not read from a file."""
    if columns is not None and not isinstance(texts, str | Path):
        raise InputError("columns are those of a file; strings were given.")


def _strings(sentences: Iterable[Any]) -> Iterator[str]:
    refuse_unordered(sentences)
    for index, text in enumerate(sentences):
        if not isinstance(text, str):
            raise InputError(
                f"sentence {index} is a {type(text).__name__}; sentences must be strings."
            )
        yield text


def chunks(texts: Iterator[str]) -> Iterator[list[str]]:
    """Yields lists of `CHUNK` texts, the last one shorter, without halves of surrogate pairs."""
    while chunk := list(islice(texts, CHUNK)):
        yield as_strings(chunk)


def bytes_of(texts: list[str]) -> bytes:
    """Returns texts as UTF-8, each with a line end."""
    return "".join(f"{text}\n" for text in texts).encode()
