"""Reads a stream of sentences and encodes them in chunks."""

import reprlib
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from rejoinder.corpus.texts import Entry, entries_of
from rejoinder.errors import ForeignTextWarning, InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import refuse_unordered
from rejoinder.inference.outputs import BATCH_SIZE, MULTILINGUAL, OnTooLong, models_knowing
from rejoinder.io.formats.text_lines import replace_surrogates
from rejoinder.models.card import LANGUAGE_NAMES
from rejoinder.models.find import DEFAULT, shipped_models
from rejoinder.protocols import Embeddings
from rejoinder.text.languages import FOUND, languages_in
from rejoinder.text.normalize import as_strings

CHUNK = 8_192
"""Number of sentences encoded at a time. Memory holds that many, and a killed process loses at most
that many, however slow the model is."""

MOSTLY = 0.5
"""Share of texts in other languages from which a model for those languages is chosen."""
T = TypeVar("T")
EncodingProgress = Callable[[int, int, int | None], None]
"""Called before the first chunk and after each chunk, with the number of sentences done (including
the interrupted run), the number of bytes read, and the size of the file in bytes (None if it is not
known)."""


@dataclass(frozen=True)
class EncodedChunk:
    """At most `CHUNK` sentences and their embeddings."""

    texts: list[str]
    known: list[Mapping[str, Any]]
    """See `Entry.known`."""
    embeddings: Embeddings
    unknown: int
    too_long: int


def encoded_chunks(
    encoder: SentenceEncoder,
    source: "Source",
    progress: EncodingProgress,
    *,
    response: bool = False,
    batch_size: int = BATCH_SIZE,
    on_too_long: OnTooLong | None = None,
    done: int = 0,
) -> Iterator[EncodedChunk]:
    """Yields the sentences of a source and their embeddings, as a stream.

    `done` is the number of sentences already encoded before these.

    Raises:
        InputError: a text is too long, and `on_too_long` is `error`; or `source` raises it.
        ModelError: see `encode_file`.
    """

    def encode(chunk: list[Entry], before: int) -> EncodedChunk:
        embeddings, long = encoder.encoded(
            [entry.encoded for entry in chunk],
            batch_size,
            on_too_long=on_too_long,
            response=response,
            place=partial(_line, source.name, before),
        )
        texts, known = [entry.text for entry in chunk], [entry.known for entry in chunk]
        unknown = int((~embeddings.any(axis=1)).sum())
        return EncodedChunk(texts, known, embeddings, unknown, long)

    return (made for _, made in source.encoded(encode, progress, done))


def _line(name: str, first: int, index: int) -> str:
    return f"{name} line {first + index + 1:,}".lstrip()


def model_for(texts: Sequence[str], least: float = MOSTLY) -> str:
    """Returns the name of the installed model for the languages of texts; warns if in doubt.

    It is `rejoinder-base`, unless at least the share `least` of the texts is in languages that only
    another model knows. For half English texts, `rejoinder-base` finds more than `rejoinder-multi`
    before fine-tuning, and less afterwards (notebook/finetuning.md).
    """
    shares = {name: share for name, share in languages_in(texts).items() if share >= FOUND}
    if shares.keys() <= {"english"} and DEFAULT in shipped_models():
        return DEFAULT
    codes = {name.lower(): code for code, name in LANGUAGE_NAMES.items()}
    known, found = defaultdict[str, float](float), list[str]()
    for language, share in shares.items():
        code = codes[language]
        if able := models_knowing(code) or ["rejoinder-multi"] * (code in MULTILINGUAL):
            found.append(language.title())
            for name in able if DEFAULT not in able else ():
                known[name] += share
    best = max(known, key=lambda name: known[name], default=DEFAULT)
    there = best in shipped_models()
    chosen = best if there and known[best] >= least else DEFAULT
    if best != DEFAULT and (there or known[best] < MOSTLY):  # otherwise encoding warns
        more = "name another model if it should not"
        if chosen != best:
            more = f"the model {best} knows all these languages"
        warnings.warn(
            f"these texts look like {' and '.join(found)}, so {chosen} encodes them; {more}",
            ForeignTextWarning,
            stacklevel=3,
        )
    return chosen


class Source:
    """The texts of a path, or given texts, and how much has been read."""

    def __init__(self, items: str | Path | Iterable[Any], columns: str | None = None) -> None:
        """Prepares to read a path with `entries_of`, or other items with `given_texts`.

        Raises:
            InputError: `columns` are given without a path, or `entries_of` raises it.
        """
        self.read = 0
        self.size: int | None = None
        self.name = ""
        self.left_out = Counter[str]()
        """Number of messages of an export left out so far, by reason."""
        if isinstance(items, str | Path):
            path = Path(items)
            self.name = str(items)
            self.size = path.stat().st_size if path.is_file() else None
            left_out = self.left_out
            self._entries = entries_of(
                path, columns, self._count_read, lambda reason: left_out.update([reason])
            )
        elif columns is not None:
            raise InputError("columns are for a file; strings were given.")
        else:
            self._entries = given_texts(items)

    def __iter__(self) -> Iterator[Entry]:
        return self._entries

    def model(self, least: float = MOSTLY) -> str:
        """Returns the name of the installed model to use for these texts by default.

        It is chosen by the first texts; see `model_for`.
        """
        some = list(islice(self._entries, CHUNK))
        self._entries = chain(some, self._entries)
        return model_for([entry.text for entry in some], least)

    def only(self, wanted: Callable[[Entry], bool]) -> "Source":
        """Drops the texts that are not `wanted`."""
        self._entries = filter(wanted, self._entries)
        return self

    def encoded(
        self,
        encode: Callable[[list[Entry], int], T],
        progress: EncodingProgress,
        done: int = 0,
    ) -> Iterator[tuple[list[Entry], T]]:
        """Yields the texts, `CHUNK` at a time, with the result of `encode`.

        All commands encode in this loop. `encode` also gets the number of texts before the chunk;
        counting begins at `done`.
        """
        progress(done, 0, self.size)
        for chunk in chunks(self._entries):
            yield chunk, encode(chunk, done)
            done += len(chunk)
            progress(done, self.read, self.size)

    def _count_read(self, count: int) -> None:
        self.read += count


GivenText = str | tuple[str, str]
"""A text, or an id and a text."""


def given_texts(given: Iterable[GivenText | Entry]) -> Iterator[Entry]:
    """Converts strings, or tuples of an id and a string, to entries; entries stay as they are.

    Raises:
        InputError: an item is neither; the message gives its index.
    """
    refuse_unordered(given)
    for index, item in enumerate(given):
        if isinstance(item, Entry):
            yield item
            continue
        name, text = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
        if not (isinstance(name, str | None) and isinstance(text, str)):
            raise InputError(
                f"text {index} is {reprlib.repr(item)}; give a string, or an id and a string."
            )
        yield Entry(name and replace_surrogates(name), replace_surrogates(text))


def chunks(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Yields lists of `CHUNK` texts, the last list shorter, without halves of surrogate pairs."""
    while chunk := list(islice(entries, CHUNK)):
        texts = as_strings(entry.text for entry in chunk)
        yield [
            entry if text is entry.text else entry._replace(text=text)
            for entry, text in zip(chunk, texts, strict=True)
        ]


def bytes_of(texts: Iterable[str]) -> bytes:
    """Returns texts as UTF-8, each with a line end."""
    return "".join(f"{text}\n" for text in texts).encode()
