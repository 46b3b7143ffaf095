"""Sentences as a stream: read, and encoded a chunk at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.formats.surrogates import replace_surrogates
from rejoinder.formats.text_lines import file_lines
from rejoinder.protocols import Embeddings
from rejoinder.runtime.batches import BATCH_SIZE
from rejoinder.runtime.encoder import SentenceEncoder
from rejoinder.runtime.long_texts import OnTooLong

CHUNK = 8_192
"""Number of sentences that are encoded at a time: what is in memory, and what a killed process may
lose however slow the model is."""


@dataclass(frozen=True)
class EncodedChunk:
    """At most `CHUNK` sentences and their embeddings."""

    texts: list[str]
    embeddings: Embeddings
    unknown: int
    too_long: int


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
    run = encoder.encode_response if response else encoder.encode
    way = encoder.on_too_long if on_too_long is None else on_too_long
    done = first
    for chunk in chunks(iter(texts)):
        long = encoder.too_long(chunk)
        if way == "error" and long.any():
            number = done + int(long.argmax()) + 1
            raise InputError(
                f"{name} line {number:,} has more tokens than the model reads, "
                f"{encoder.describe()['max_tokens']:,}; cut or split such lines by on_too_long "
                "(--on-too-long).".lstrip()
            )
        embeddings = run(chunk, batch_size=batch_size, on_too_long=way)
        unknown = int((~embeddings.any(axis=1)).sum())
        yield EncodedChunk(chunk, embeddings, unknown, int(long.sum()))
        done += len(chunk)


class Source:
    """The sentences of a file, or those given, and how much of the file is read."""

    def __init__(self, sentences: str | Path | Iterable[str]) -> None:
        self.sentences = sentences
        self.read = 0
        self.size: int | None = None
        self.name = ""
        if isinstance(sentences, str | Path):
            self.name = str(sentences)
            file = Path(sentences)
            self.size = file.stat().st_size if file.is_file() else None

    def __iter__(self) -> Iterator[str]:
        if isinstance(self.sentences, str | Path):
            yield from file_lines(Path(self.sentences), self._count)
            return
        for index, text in enumerate(self.sentences):
            if not isinstance(text, str):
                raise InputError(
                    f"sentence {index} is a {type(text).__name__}; sentences must be strings."
                )
            yield text

    def _count(self, count: int) -> None:
        self.read += count


def chunks(texts: Iterator[str]) -> Iterator[list[str]]:
    """Yields lists of `CHUNK` texts, the last one shorter, without halves of surrogate pairs."""
    while chunk := list(islice(texts, CHUNK)):
        try:
            "".join(chunk).encode()
        except UnicodeEncodeError:
            chunk = [replace_surrogates(text) for text in chunk]
        yield chunk


def bytes_of(texts: list[str]) -> bytes:
    """Returns texts as UTF-8, each with a line end."""
    return "".join(f"{text}\n" for text in texts).encode()
