"""Subwords for the Transformer: a byte-level BPE learned from the pairs, with `tokenizers`.

With bytes no text is unknown and no alphabet has to be chosen. BPE only counts: the same text
gives the same vocabulary, without the iterations of Unigram.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError, require
from rejoinder.io.files.atomic import write_text
from rejoinder.text.normalize import RULES, UNICODE, as_strings, normalize_text
from rejoinder.text.ragged import Ragged

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILE = "subwords.json"
_CHUNK = 10_000


class _Splitter(Struct, frozen=True):
    type: Literal["ByteLevel"]


class _Model(Struct, frozen=True):
    type: Literal["BPE"]
    dropout: None = None
    unk_token: None = None
    continuing_subword_prefix: None = None
    end_of_word_suffix: None = None


class _Definition(Struct, frozen=True):
    """A plain byte-level BPE, as `learn_subwords` writes it. The library would run others too."""

    pre_tokenizer: _Splitter
    model: _Model
    added_tokens: Annotated[list[None], Meta(max_length=0)]
    truncation: None = None
    padding: None = None
    normalizer: None = None
    post_processor: None = None


class SubwordFeatures:
    """Ids of the first `max_tokens` subwords of each sentence."""

    def __init__(self, definition: str, max_tokens: int) -> None:
        """Creates features from a tokenizer as JSON, such as `learn_subwords` makes.

        Raises:
            ModelError: the JSON is something else.
            MissingExtraError: `tokenizers` is not installed.
        """
        self.definition, self.max_tokens = definition, max_tokens
        ids = self.tokenizer.get_vocab()
        self.rows = len(ids)
        if sorted(ids.values()) != list(range(self.rows)):
            raise ModelError(f"{FILE}: ids do not count from 0 to {self.rows - 1}; it is damaged.")
        if not set(_library().pre_tokenizers.ByteLevel.alphabet()) <= ids.keys():
            raise ModelError(f"{FILE} lacks some of the 256 bytes; it is damaged.")

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer of the library, which does not cut texts."""
        tokenizers = _library()
        try:
            msgspec.json.decode(self.definition, type=_Definition)
            tokenizer: Tokenizer = tokenizers.Tokenizer.from_str(self.definition)
        except Exception as error:  # the library raises plain Exception
            raise ModelError(f"{FILE} is not a byte-level BPE: {error}; it is damaged.") from None
        return tokenizer

    def __call__(self, sentences: Iterable[str]) -> Ragged:
        """Returns the ids of each sentence's subwords, in order. An empty sentence has none."""
        return self._ids(sentences, self.max_tokens)

    def whole(self, sentences: Iterable[str]) -> Ragged:
        """Returns the ids of all subwords of each sentence, also of those beyond `max_tokens`."""
        return self._ids(sentences, None)

    def known(self, sentences: Iterable[str]) -> Ragged:
        """Returns what a call returns: every text is made of known subwords."""
        return self(sentences)

    def unknown_share(
        self,
        sentences: Iterable[str],
        *,
        as_written: bool = False,  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Returns zeros, (N,): no word is unknown."""
        return np.zeros(len(as_strings(sentences)))

    def _ids(self, sentences: Iterable[str], most: int | None) -> Ragged:
        texts = [normalize_text(text) for text in as_strings(sentences)]
        flat: list[int] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _CHUNK):
            for encoding in self.tokenizer.encode_batch_fast(
                texts[start : start + _CHUNK], add_special_tokens=False
            ):
                ids = encoding.ids[:most]
                flat.extend(ids)
                lengths.append(len(ids))
        return Ragged(np.array(flat, np.int32), np.cumsum([0, *lengths], dtype=np.int64))

    def config(self) -> dict[str, object]:
        """Returns the kind, the version of the text rules, their Unicode version, and sizes."""
        return {
            "kind": "subwords",
            "rules": RULES,
            "unicode": UNICODE,
            "subwords": self.rows,
            "max_tokens": self.max_tokens,
        }

    def save(self, folder: Path) -> list[str]:
        """Writes `subwords.json`."""
        write_text(folder / FILE, self.definition)
        return [FILE]

    @classmethod
    def load(cls, folder: Path, subwords: int, max_tokens: int) -> "SubwordFeatures":
        """Loads the file that `save` wrote.

        Raises:
            ModelError: the file is missing or damaged, or has not that many `subwords`.
        """
        try:
            definition = (folder / FILE).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{folder / FILE} can't be read: {error}.") from None
        features = cls(definition, max_tokens)
        if features.rows != subwords:
            raise ModelError(
                f"{folder / FILE} has {features.rows} subwords where the config says {subwords}; "
                "the folder is damaged."
            )
        return features


def learn_subwords(
    texts: Iterable[Iterable[str]], *, size: int, min_count: int, max_tokens: int
) -> SubwordFeatures:
    """Learns at most `size` subwords, including the 256 bytes, in one pass over `texts`.

    Pairs of subwords seen less often than `min_count` are not merged. Of each sentence `max_tokens`
    subwords will be read.

    Raises:
        InputError: `size` is below 256 or `max_tokens` below 1.
        MissingExtraError: `tokenizers` is not installed.
    """
    if size < 256 or max_tokens < 1:
        raise InputError(f"{size} subwords, {max_tokens} per text: at least 256 and 1 are needed.")
    tokenizers = _library()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_count,
        show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
    )

    def batches() -> Iterator[list[str]]:
        for column in texts:
            normalized = [normalize_text(text) for text in column]
            for start in range(0, len(normalized), _CHUNK):
                yield normalized[start : start + _CHUNK]

    tokenizer.train_from_iterator(batches(), trainer)
    return SubwordFeatures(tokenizer.to_str(), max_tokens)


def _library() -> Any:
    """Imports `tokenizers`, whose type stubs do not cover what is used here."""
    require("train", "tokenizers")
    import tokenizers.models
    import tokenizers.pre_tokenizers
    import tokenizers.trainers

    return tokenizers
