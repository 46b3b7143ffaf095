"""The tokens that a model reads of a text, with their ids and where they are in the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rejoinder.errors import ModelError
from rejoinder.io.formats.surrogates import replace_surrogates
from rejoinder.models.folder import ModelContents
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.normalize import find_tokens, normalize_text


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text."""

    text: str
    """Normalised, as the model reads it. A bigram is two words with a space between."""
    id: int
    """From 0 to `features.rows` - 1. Words that share a bucket share an id."""
    start: int | None
    """Index of its first character in the text as given; None if normalising moved characters."""
    stop: int | None
    """Index behind its last character."""


class TokenReader:
    """Finds the tokens that a model reads. Tokens without an id are left out, as it does."""

    def __init__(self, model: ModelContents) -> None:
        """Prepares for a model.

        Raises:
            ModelError: the features of its text are of a kind that this module does not know.
            MissingExtraError: a package is not installed that reads subwords.
        """
        self._features: TextFeatures = model.features
        self._known: frozenset[str] | None = None
        if isinstance(model.features, WordFeatures):
            words = model.features
            self._known = None if words.unknown_buckets else frozenset(words.vocabulary.words)
            return
        from rejoinder.text.subwords import SubwordFeatures

        if not isinstance(model.features, SubwordFeatures):
            raise ModelError(f"{model.name}: tokens are known of words and subwords only.")
        from tokenizers import Tokenizer

        self._subwords = Tokenizer.from_str(model.features.definition)
        self._subwords.enable_truncation(model.features.max_tokens)

    def __call__(self, texts: Sequence[str]) -> list[list[Token]]:
        """Returns the tokens of each text: words in order, then bigrams; or subwords in order."""
        clean = [replace_surrogates(text) for text in texts]
        if isinstance(self._features, WordFeatures):
            return [self._words(self._features, text) for text in clean]
        return [self._pieces(text) for text in clean]

    def _words(self, features: WordFeatures, text: str) -> list[Token]:
        ids = features([text])[0].tolist()
        found = _split(text)
        known = [self._known is None or word in self._known for word, _, _ in found]
        read = [token for token, flag in zip(found, known, strict=True) if flag]
        tokens = [
            Token(word, row, start, stop)
            for (word, start, stop), row in zip(read, ids[: len(read)], strict=True)
        ]
        if len(ids) == len(read):
            return tokens
        neighbours = self._neighbours(features, found)
        return tokens + [
            Token(f"{left[0]} {right[0]}", row, left[1], right[2])
            for (left, right), row in zip(neighbours, ids[len(read) :], strict=True)
        ]

    def _neighbours(self, features: WordFeatures, found: "list[_Found]") -> "list[_Pair]":
        """Returns the neighbours that make bigrams: both are words of the vocabulary."""
        known = self._known or frozenset(features.vocabulary.words)
        return [pair for pair in pairwise(found) if pair[0][0] in known and pair[1][0] in known]

    def _pieces(self, text: str) -> list[Token]:
        plain = normalize_text(text)
        places = _places(text, plain)
        read = self._subwords.encode(plain, add_special_tokens=False)
        return [
            Token(plain[low:high], row, *_span(places, low, high))
            for row, (low, high) in zip(read.ids, read.offsets, strict=True)
        ]


_Found = tuple[str, int | None, int | None]
"""A token with its start and stop in the text as given."""
_Pair = tuple[_Found, _Found]


def _split(text: str) -> list[_Found]:
    """Returns the tokens of a text by text rules 1, the known and the unknown.

    >>> _split("Don\u2019t  panic \ufb01ne!")
    [("don't", 0, 5), ('panic', 7, 12), ('fine', 13, 16), ('!', 16, 17)]
    """
    plain = normalize_text(text)
    places = _places(text, plain)
    return [(match[0], *_span(places, *match.span())) for match in find_tokens(plain)]


def _places(text: str, plain: str) -> list[int] | None:
    """Returns for each character of `plain` the index in `text` that it comes from.

    None if that can't be told: normalising joined or moved characters.
    """
    if text.isascii():
        return list(range(len(text)))
    parts = [normalize_text(character) for character in text]
    # a capital sigma ends a word otherwise than it goes on
    if "".join(parts).replace("ς", "σ") != plain.replace("ς", "σ"):
        return None
    return [index for index, part in enumerate(parts) for _ in part]


def _span(places: list[int] | None, low: int, high: int) -> tuple[int | None, int | None]:
    if places is None:
        return None, None
    if low == high:
        return places[low], places[low]
    return places[low], places[high - 1] + 1
