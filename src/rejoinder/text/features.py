"""Turns sentences into the token ids that an encoder reads. Features are saved with a model.

A kernel in C (`text/_words.c`), or equivalent Python code, finds the ids of words. With the kernel,
encoding takes 60 % of the time; `notebook/decisions/kernels.md` has the figures.

Also lists the tokens that a model reads in a text, with their ids and positions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from rejoinder.errors import ModelError
from rejoinder.io.files.hashed import Count, decoded
from rejoinder.registry import kernel
from rejoinder.text.normalize import (
    FOLDED,
    RULES,
    UNICODE,
    Located,
    as_strings,
    classes,
    find_tokens,
    fold_all,
    fold_marks,
    located,
    located_tokens,
    normalize_cased,
    normalize_text,
    tokens_of,
)
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.text.readings import Mark, Marks, Readings, Spelling, marks_of
from rejoinder.text.vocabulary import (
    Remembered,
    SubwordFeatures,
    Vocabulary,
    bigram_buckets,
    letter_sequences,
    with_letters,
    word_buckets,
)


class UnknownWords:
    """Finds the ids of words that are not in a vocabulary, and caches them."""

    def __init__(self, vocabulary: Vocabulary, buckets: int = 0, *, spelling: bool = False) -> None:
        """Gives unknown words ids in `buckets` buckets, which follow the ids of the vocabulary.

        With `spelling`, a misspelling of a word in the vocabulary gets the id of that word.
        """
        self.vocabulary, self.buckets, self.spelling = vocabulary, buckets, spelling
        self._ids = Remembered(self._find)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(UnknownWords, self.vocabulary, self.buckets, spelling=self.spelling)
        return made, ()

    def __call__(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Returns the id of each word, (N,) int32; -1 if it has none."""
        return np.array(self._ids(words), np.int32)

    def _find(self, words: list[str]) -> list[int]:
        ids = self._known(words) if self.spelling else np.full(len(words), -1, np.int32)
        if self.buckets:
            rest = np.flatnonzero(ids < 0)
            hashed = word_buckets([words[at] for at in rest.tolist()], self.buckets)
            ids[rest] = hashed + len(self.vocabulary)
        found: list[int] = ids.tolist()
        return found

    @cached_property
    def _known(self) -> Spelling:
        return Spelling(self.vocabulary.words)


class WordIds:
    """Turns sentences into the ids of their words."""

    def __init__(
        self, vocabulary: Vocabulary, unknown: UnknownWords, readings: Readings | None = None
    ) -> None:
        """Uses the ids of a vocabulary, and `unknown` for words that are not in it.

        With `readings`, words first get the ids of the words that they stand for.
        """
        self.vocabulary, self.unknown, self.readings = vocabulary, unknown, readings
        self._normalize = normalize_text if readings is None else normalize_cased
        self._native = kernel("text._words")

    def __reduce__(self) -> tuple[Any, ...]:
        # the kernel's table can't be copied
        return WordIds, (self.vocabulary, self.unknown, self.readings)

    @property
    def way(self) -> str:
        """The implementation that finds ids: `native` or `python`."""
        return "python" if self._native is None else "native"

    def __call__(self, sentences: Sequence[str], *, keep_unknown: bool = False) -> Ragged:
        """Returns the ids of each sentence's words in order.

        A word that is not in the vocabulary gets its id from `unknown`. If it has none, it is left
        out, or gets the id -1 if `keep_unknown`.
        """
        batch, without, _ = self.read(sentences)
        return batch if keep_unknown or not without else batch.only(batch.ids >= 0)

    def read(self, sentences: Sequence[str]) -> tuple[Ragged, list[str], NDArray[np.bool_] | None]:
        """Returns the ids of each sentence's words, the words with ids below 0, and a mask.

        The mask says which tokens have an id; None if all have one.
        """
        read = self._by_sentence if self._native is None else self._by_kernel
        batch, words, marks, parted = read(sentences)
        kept = None
        if words:
            unknown = batch.ids < 0
            ids = np.full(len(words), -1, np.int32)
            if self.readings is not None:
                ids = self.readings.unknown(batch, words, marks)
            rest = np.flatnonzero(ids == -1)
            if len(rest):
                ids[rest] = self.unknown([words[at] for at in rest.tolist()])
            batch.ids[unknown] = ids
            words = [words[at] for at in np.flatnonzero(ids < 0).tolist()]
        if parted and self.readings is not None:
            batch, kept = self.readings.joined(batch)
        return batch, words, kept

    @cached_property
    def _table(self) -> Any:
        """The kernel's table of words."""
        read_as = () if self.readings is None else (self.readings.table.tobytes(),)
        return self._native.Table(self.vocabulary.text.encode(), classes(), *read_as)

    def _by_kernel(self, sentences: Sequence[str]) -> tuple[Ragged, list[str], Marks, bool]:
        """Returns ids, the unknown words (ids of -1), their marks, and a flag.

        Marks say what the texts reveal about unknown words; the flag, if words may be split.
        """
        batch, rest, marks, parted = _numbered(
            self._table, sentences, self._normalize, adding=False
        )
        return batch, rest.decode().split("\n")[:-1], np.frombuffer(marks, np.uint8), bool(parted)

    def _by_sentence(self, sentences: Sequence[str]) -> tuple[Ragged, list[str], Marks, bool]:
        index, readings = self.vocabulary.index, self.readings
        texts = [self._normalize(text) for text in sentences]
        tokens = [list(find_tokens(text.lower())) for text in texts]
        flat = [token[0] for row in tokens for token in row]
        ids = np.fromiter((index.get(token, -1) for token in flat), np.int32, len(flat))
        batch = Ragged(ids, offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))))
        words = [flat[at] for at in np.flatnonzero(ids < 0).tolist()]
        if readings is None:
            return batch, words, np.zeros(len(words), np.uint8), False
        marks = [
            marks_of(text, row, (batch[number] < 0).tolist())
            for number, (text, row) in enumerate(zip(texts, tokens, strict=True))
        ]
        read_as = np.where(ids < 0, ids, readings.table[ids])
        parted = (read_as < 0) & (ids >= 0)
        ids = np.where(parted, ~read_as, read_as)
        all_marks = np.concatenate([np.empty(0, np.uint8), *marks])
        return Ragged(ids, batch.offsets), words, all_marks, bool(parted.any())


class NumberedWords:
    """Numbers the words of sentences from 0, in the order of their first occurrence.

    >>> words = NumberedWords()
    >>> words(["It is.", "Is it?"]).ids.tolist()
    [0, 1, 2, 1, 0, 3]
    >>> words.since(2)
    ['.', '?']
    """

    def __init__(self) -> None:
        native = kernel("text._words")
        self._table = None if native is None else native.Table(b"", classes())
        self._numbers: dict[str, int] = {}

    def __call__(self, sentences: Sequence[str]) -> Ragged:
        """Returns the numbers of each sentence's words in order."""
        if self._table is not None:
            return _numbered(self._table, sentences, normalize_text, adding=True)[0]
        tokens, numbers = [tokens_of(text) for text in sentences], self._numbers
        flat = [numbers.setdefault(token, len(numbers)) for row in tokens for token in row]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        return Ragged(np.array(flat, np.int32), offsets_of(lengths))

    def since(self, number: int) -> list[str]:
        """Returns the words numbered `number` and up, in order."""
        if self._table is None:
            return list(islice(self._numbers, number, None))
        return [word.decode() for word in self._table.since(number).split(b"\n")[:-1]]


def _numbered(
    table: Any, sentences: Sequence[str], normalize: Callable[[str], str], *, adding: bool
) -> tuple[Ragged, bytes, bytes, int]:
    """Returns ids by a kernel's table, and the marks of unknown words, whose ids are -1."""
    texts = tuple([text if text.isascii() else normalize(text) for text in sentences])
    ids, offsets, *rest = table.ids(texts, adding)
    return Ragged(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)), *rest


_LETTERS = ("letter_buckets", "arabic_letter_buckets")
"""Sizes that are in the config only if the model reads letters of words."""
Spellings = Literal["as written", "nearest", "likely"]
"""How misspelt words are read: as unknown words; as the known word one error away; or as a known
word if that is likely (`text.readings`)."""
_SPELLINGS: tuple[Spellings, ...] = ("as written", "nearest", "likely")
_STEP = 2
"""Steps between versions of the text rules, from one way of spelling to the next."""
SPELT_RULES = (RULES + _STEP, FOLDED + _STEP, RULES + 2 * _STEP, FOLDED + 2 * _STEP)


@dataclass(frozen=True)
class WordFeatures:
    """Ids of known words, hash buckets of unknown words, and hash buckets of bigrams.

    A bigram is two adjacent known words.

    >>> features = WordFeatures(Vocabulary(("how", "are", "you")), buckets=10)
    >>> features(["Are you how?", "??"]).lengths.tolist()
    [5, 0]
    """

    vocabulary: Vocabulary
    buckets: int = 0
    """Number of bigram buckets; 0 for no bigrams. Bucket b has the id `words + b`."""
    unknown_buckets: int = 0
    """Number of buckets of unknown words, 0 to ignore them. Bucket b has the id
    `len(vocabulary) + b`."""
    fold_marks: bool = False
    """Whether letters are read without their marks."""
    letter_buckets: int = 0
    """Number of buckets of the letters of unknown words. Bucket b has the id
    `len(vocabulary) + unknown_buckets + b`."""
    arabic_letter_buckets: int = 0
    """Number of buckets for the letters of unknown Arabic words, after the buckets of all others; 0
    if all alphabets share `letter_buckets`."""
    spelling: Spellings = "as written"
    """Which misspelt words get the ids of the words that they stand for."""

    @property
    def words(self) -> int:
        """Number of word ids: known words, buckets of unknown words and of their letters."""
        letters = self.letter_buckets + self.arabic_letter_buckets
        return len(self.vocabulary) + self.unknown_buckets + letters

    @property
    def rows(self) -> int:
        """Number of ids: words and bigram buckets."""
        return self.words + self.buckets

    def __call__(self, sentences: Iterable[str]) -> Ragged:
        """Returns the ids of each sentence's words in order, then the ids of its bigrams."""
        texts = self.texts(sentences)
        if self.letter_buckets:
            batch, unknown, _ = self.word_ids.read(texts)
            first = len(self.vocabulary) + self.unknown_buckets
            buckets = (self.letter_buckets, self.arabic_letter_buckets)
            return with_letters(batch, unknown, first, *buckets)
        if not self.buckets:
            return self.word_ids(texts)
        batch = self.word_ids(texts, keep_unknown=True)
        words = batch.only(batch.ids >= 0)
        known = (batch.ids >= 0) & (batch.ids < len(self.vocabulary))
        owner = np.repeat(np.arange(len(batch)), batch.lengths)
        pairs = known[:-1] & known[1:] & (owner[:-1] == owner[1:])
        hashed = bigram_buckets(batch.ids[:-1][pairs], batch.ids[1:][pairs], self.buckets)
        counts = np.bincount(owner[:-1][pairs], minlength=len(batch))
        return _interleave(words, Ragged(hashed + np.int32(self.words), offsets_of(counts)))

    def texts(self, sentences: Iterable[str]) -> list[str]:
        """Returns sentences as the model reads them: strings, without marks if it folds them."""
        texts = as_strings(sentences)
        return fold_all(texts) if self.fold_marks else texts

    def normalize(self, text: str) -> str:
        """Returns the normalised text in which tokens are found."""
        text = fold_marks(text) if self.fold_marks else text
        return normalize_cased(text).lower() if self.spelling == "likely" else normalize_text(text)

    @cached_property
    def word_ids(self) -> WordIds:
        """Finds the ids of words, without bigrams."""
        nearest = self.spelling == "nearest"
        unknown = UnknownWords(self.vocabulary, self.unknown_buckets, spelling=nearest)
        if self.spelling != "likely":
            return WordIds(self.vocabulary, unknown)
        readings = Readings(self.vocabulary, both=bool(self.letter_buckets))
        return WordIds(self.vocabulary, unknown, readings)

    def known(self, sentences: Iterable[str]) -> Ragged:
        """Returns the ids of each sentence's words of the vocabulary."""
        batch = self.word_ids(self.texts(sentences), keep_unknown=True)
        ids = as_known(batch.ids)
        return Ragged(ids, batch.offsets).only((ids >= 0) & (ids < len(self.vocabulary)))

    def unknown_share(
        self, sentences: Iterable[str], *, as_written: bool = False
    ) -> NDArray[np.float64]:
        """Returns the share of each sentence's words not in the vocabulary, (N,) from 0 to 1.

        Signs and numbers, which all languages share, don't count. Misspelt words that are read as
        known words count as known, unless `as_written`.

        >>> WordFeatures(Vocabulary(("how", "?"))).unknown_share(["How are you?", "?"]).round(2)
        array([0.67, 0.  ])
        """
        texts = self.texts(sentences)
        tokens = [[token[0] for token in find_tokens(self.normalize(text))] for text in texts]
        flat = [token for row in tokens for token in row]
        letters = np.array([any(map(str.isalpha, token)) for token in flat], np.bool_)
        if as_written:
            known = np.array([token in self.vocabulary.index for token in flat], np.bool_)
        else:
            batch, _, kept = self.word_ids.read(texts)
            ids, known = as_known(batch.ids), np.ones(len(flat), np.bool_)
            known[slice(None) if kept is None else kept] = (ids >= 0) & (ids < len(self.vocabulary))
        owners = np.repeat(np.arange(len(tokens)), list(map(len, tokens)))
        unknown, words = (
            np.bincount(owners[which], minlength=len(tokens))
            for which in (letters & ~known, letters)
        )
        share: NDArray[np.float64] = unknown / np.maximum(words, 1)
        return share

    def doubted(self, sentence: str) -> dict[str, Mark]:
        """Returns the unknown words of a sentence that are in no list, with their marks."""
        readings = self.word_ids.readings
        return {} if readings is None else readings.doubted(self.texts([sentence])[0])

    def whole(self, sentences: Iterable[str]) -> Ragged:
        """Same as a call: an encoder of words cuts long sentences itself."""
        return self(sentences)

    def config(self) -> dict[str, object]:
        """Returns the kind, the version of the text rules, their Unicode version, and sizes."""
        return {
            "kind": "words",
            "rules": (FOLDED if self.fold_marks else RULES)
            + _STEP * _SPELLINGS.index(self.spelling),
            "unicode": UNICODE,
            "words": len(self.vocabulary),
            "bigram_buckets": self.buckets,
            "unknown_buckets": self.unknown_buckets,
            **{name: getattr(self, name) for name in _LETTERS if getattr(self, name)},
        }

    def save(self, folder: Path) -> list[str]:
        """Writes `vocabulary.txt`."""
        return [self.vocabulary.save(folder)]


TextFeatures = WordFeatures | SubwordFeatures
"""Turns sentences into ids from 0 to `rows` - 1, the rows of an encoder's embedding table."""


class _Config(Struct, frozen=True):
    """The keys read from `config()`; other kinds of features may not have all."""

    kind: Literal["words", "subwords"]
    rules: Literal[1, 2, 3, 4, 5, 6]
    words: Count = 0
    bigram_buckets: Count = 0
    unknown_buckets: Count = 0
    letter_buckets: Count = 0
    arabic_letter_buckets: Count = 0
    subwords: Count = 0
    max_tokens: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


def load_features(folder: Path, config: Mapping[str, object]) -> TextFeatures:
    """Loads the features that `save` wrote into `folder` and whose `config()` was `config`.

    Raises:
        ModelError: the kind or the version of the rules is unknown, or the vocabulary has another
            size.
    """
    try:
        facts = decoded(_Config, config)
    except ValueError as error:
        raise ModelError(f"{folder} has text that this version can't read: {error}.") from None
    if facts.kind == "subwords":
        if facts.rules != RULES:
            raise ModelError(f"{folder} has text rules {facts.rules}, which are only for words.")
        if facts.max_tokens is None:
            raise ModelError(f"{folder} has no max_tokens; the folder is damaged.")
        return SubwordFeatures.load(folder, facts.subwords, facts.max_tokens)
    if facts.arabic_letter_buckets and not facts.letter_buckets:
        raise ModelError(f"{folder} has letters of Arabic words alone; the folder is damaged.")
    vocabulary = Vocabulary.load(folder)
    if len(vocabulary) != facts.words:
        raise ModelError(
            f"{folder} lists {len(vocabulary)} words, but its config says {facts.words}; the "
            "folder is damaged."
        )
    return WordFeatures(
        vocabulary,
        facts.bigram_buckets,
        facts.unknown_buckets,
        facts.rules % _STEP == FOLDED % _STEP,
        facts.letter_buckets,
        facts.arabic_letter_buckets,
        spelling=_SPELLINGS[(facts.rules - 1) // _STEP],
    )


def as_known(ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns ids in which a word that may be a known word has that word's id."""
    return np.where(ids < -1, -2 - ids, ids)


def _interleave(first: Ragged, second: Ragged) -> Ragged:
    """Returns, for each sentence, the ids of `first` followed by those of `second`."""
    ids = np.empty(len(first.ids) + len(second.ids), np.int32)
    ids[np.arange(len(first.ids)) + np.repeat(second.offsets[:-1], first.lengths)] = first.ids
    ids[np.arange(len(second.ids)) + np.repeat(first.offsets[1:], second.lengths)] = second.ids
    return Ragged(ids, first.offsets + second.offsets)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text."""

    text: str
    """The token as the model reads it, normalised. A bigram is two words and a space between."""
    id: int
    """From 0 to `features.rows` - 1. Words in the same bucket share an id, as do a misspelling and
    the right word if the model reads it so."""
    start: int | None
    """Index of its first character in the text as given; None if normalising moved characters."""
    stop: int | None
    """Index after its last character."""
    read_as: str | None = None
    """The known word that it is read as, if different; followed by its letters if they count,
    too."""


def read_tokens(features: TextFeatures, texts: Sequence[str]) -> list[list[Token]]:
    """Returns the tokens that a model reads in each text; tokens without an id are left out.

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
    """Joins each token that is not kept to the token before it."""
    joined: list[Located] = []
    for (word, start, stop), whole in zip(found, kept, strict=True):
        if whole:
            joined.append((word, start, stop))
        else:
            joined[-1] = (joined[-1][0] + word, joined[-1][1], stop)
    return joined


def _pieces(features: SubwordFeatures, text: str) -> list[Token]:
    plain = normalize_text(text)
    read = features.tokenizer.encode(plain, add_special_tokens=False)
    found = located(text, plain, read.offsets, normalize_text)[: features.max_tokens]
    return [
        Token(word, row, start, stop)
        for (word, start, stop), row in zip(found, read.ids, strict=False)
    ]
