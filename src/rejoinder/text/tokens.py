"""The tokens that a model reads of a text, with their ids and where they are in the text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.normalize import as_strings, find_tokens, normalize_text
from rejoinder.text.vocabulary import SubwordFeatures, letter_sequences


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text."""

    text: str
    """Normalised, as the model reads it. A bigram is two words with a space between."""
    id: int
    """From 0 to `features.rows` - 1. Words that share a bucket share an id, and so does a
    misspelt word with the right one if the model reads it so."""
    start: int | None
    """Index of its first character in the text as given; None if normalising moved characters."""
    stop: int | None
    """Index after its last character."""
    read_as: str | None = None
    """The known word that it is read as, if that is another; its letters follow if they count,
    too."""


Located = tuple[str, int | None, int | None]
"""A token with its start and stop in the text as given."""


def read_tokens(features: TextFeatures, texts: Sequence[str]) -> list[list[Token]]:
    """Returns the tokens of each text that a model reads; tokens without an id are left out.

    Words come in order, then bigrams; or subwords in order.
    """
    if isinstance(features, SubwordFeatures):
        return [_pieces(features, text) for text in as_strings(texts)]
    return [_words(features, text) for text in as_strings(texts)]


def _words(features: WordFeatures, text: str) -> list[Token]:
    words = features.vocabulary.words
    batch, _, kept = features.word_ids.read(features.texts([text]))
    found, rows = located_tokens(text, features.normalize), batch.ids.tolist()
    if kept is not None:
        found = _joined(found, kept.tolist())
    read: list[tuple[Located, str | None]] = []
    for (word, start, stop), row in zip(found, rows, strict=True):
        known = row if row >= 0 else -2 - row
        if known >= 0:
            other = known < len(words) and words[known] != word
            read.append(((word, start, stop), words[known] if other else None))
        if row < 0 and features.letter_buckets:
            read += [((part, start, stop), None) for part in letter_sequences(word)]
    ids = features([text])[0].tolist()
    if len(ids) > len(read):  # two known words next to each other make a bigram
        read += [
            ((f"{left[0]} {right[0]}", left[1], right[2]), None)
            for (left, one), (right, other) in pairwise(zip(found, rows, strict=True))
            if 0 <= one < len(words) and 0 <= other < len(words)
        ]
    return [
        Token(word, row, start, stop, other)
        for ((word, start, stop), other), row in zip(read, ids, strict=True)
    ]


def _joined(found: list[Located], kept: list[bool]) -> list[Located]:
    """Returns tokens of which those that are not kept are part of the one before."""
    joined: list[Located] = []
    for (word, start, stop), whole in zip(found, kept, strict=True):
        if whole:
            joined.append((word, start, stop))
        else:
            joined[-1] = (joined[-1][0] + word, joined[-1][1], stop)
    return joined


def _pieces(features: SubwordFeatures, text: str) -> list[Token]:
    plain = normalize_text(text)
    places = _places(text, plain, normalize_text)
    read = features.tokenizer.encode(plain, add_special_tokens=False)
    pairs = list(zip(read.ids, read.offsets, strict=True))[: features.max_tokens]
    return [Token(plain[low:high], row, *_span(places, low, high)) for row, (low, high) in pairs]


def located_tokens(text: str, normalize: Callable[[str], str] = normalize_text) -> list[Located]:
    """Returns the tokens of a text by text rules 1, known to a model or not, and their places.

    `normalize` may be that of a model with other rules.

    >>> located_tokens("Don\u2019t  panic \ufb01ne!")
    [("don't", 0, 5), ('panic', 7, 12), ('fine', 13, 16), ('!', 16, 17)]
    """
    plain = normalize(text)
    places = _places(text, plain, normalize)
    return [(match[0], *_span(places, *match.span())) for match in find_tokens(plain)]


def _places(text: str, plain: str, normalize: Callable[[str], str]) -> list[int] | None:
    """Returns for each character of `plain` the index in `text` that it comes from.

    None if that can't be told: normalising joined or moved characters.
    """
    if text.isascii():
        return list(range(len(text)))
    parts = [normalize(character) for character in text]
    # a capital sigma becomes another letter at the end of a word
    if "".join(parts).replace("ς", "σ") != plain.replace("ς", "σ"):
        return None
    return [index for index, part in enumerate(parts) for _ in part]


def _span(places: list[int] | None, low: int, high: int) -> tuple[int | None, int | None]:
    if places is None:
        return None, None
    if low == high:
        return places[low], places[low]
    return places[low], places[high - 1] + 1
