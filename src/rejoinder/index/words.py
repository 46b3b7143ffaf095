"""The words of a segment's texts: which texts have a word and how often, and how long texts are.

Words are the stems (`text.languages`) of the tokens of `text.normalize`, without punctuation. With
punctuation, search by words found less in every set of `benchmarks/hybrid.py`, and its lists would
be the longest.

There are seven arrays on disk: `words.keys`, the sorted keys of all words; `words.offsets`, where
the texts of each word begin in `words.rows` (ascending) and in `words.counts`; `words.lengths`, the
number of words of each text; `words.spellings`, the sorted keys of words as written, and
`words.times`, their counts. Indexes from before stems do not have the last two.

Likely misspellings in a query are read as a word of the index one error away, or else as the model
reads them, because an index knows names that no list of English has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.index.files import KEY, REMEDY, keys_of, mapped
from rejoinder.io.files.hashed import check_file
from rejoinder.text.features import NumberedWords, WordFeatures, read_tokens
from rejoinder.text.languages import Stem, stemmer, with_digits_in_words
from rejoinder.text.normalize import find_tokens, is_punctuation, located_tokens, words_of
from rejoinder.text.readings import RANK, Mark, Spelling, is_listed

FILES = ("words.counts", "words.keys", "words.lengths", "words.offsets", "words.rows")
SPELLINGS = ("words.spellings", "words.times")
_OFFSET, _ROW, _LENGTH = np.dtype("<i8"), np.dtype("<u4"), np.dtype("<u4")
_COUNTS = (np.dtype("u1"), np.dtype("<u2"), np.dtype("<u4"))
"""Types of counts. A segment uses the smallest type that holds its largest count."""
_PART = np.dtype("<u4")
_PAIRS = 1 << 25
"""Pairs of word and text that are sorted at a time: as many as a million short texts have."""

Counts = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


def matches(query: str, text: str) -> list[tuple[int, int]]:
    """Returns where the words of a query occur in a text: pairs of start and stop index.

    Words whose characters moved when the text was normalised are left out. Forms of a word match by
    English stems, since this only highlights the matches.

    >>> matches("Isn't it hard?", "It IS hard, isn’t it")
    [(0, 2), (6, 10), (12, 17), (18, 20)]
    """
    stem = stemmer("english")
    wanted = {*stem(words_of(query))}
    located = list(located_tokens(text))
    stems = stem([word for word, _, _ in located])
    return [
        (start, stop)
        for word, (_, start, stop) in zip(stems, located, strict=True)
        if word in wanted and start is not None and stop is not None
    ]


def _stretches(offsets: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yields the start and stop of runs of words that have about `most` texts together."""
    begin, words = 0, len(offsets) - 1
    while begin < words:
        end = int(np.searchsorted(offsets, offsets[begin] + most, "right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


class WordsWriter:
    """Writes the words of texts that come in parts.

    Memory holds each distinct word and, in `close`, 160 MB of the arrays being written.
    """

    def __init__(self, folder: Path, stem: Stem) -> None:
        self._folder, self._path, self._stem = folder, folder / "words.part", stem
        self._parts: IO[bytes] = self._path.open("x+b")
        self._lengths: IO[bytes] = (folder / "words.lengths").open("xb")
        self._sizes: list[int] = []
        self._spellings = NumberedWords()
        self._times = np.empty(0, np.int64)  # of each spelling
        self._word_of = np.empty(0, np.int64)  # of each spelling; -1: not searched
        self._words: dict[str, int] = {}
        self._texts = np.empty(0, np.int64)  # of each word
        self._rows = self._largest = 0

    def add(self, texts: Sequence[str]) -> None:
        """Adds texts; their rows follow the earlier texts."""
        found = self._spellings([with_digits_in_words(text) for text in texts])
        new, words = self._spellings.since(len(self._word_of)), self._words
        numbered = [
            -1 if is_punctuation(one) else words.setdefault(stem, len(words))
            for one, stem in zip(new, self._stem(new), strict=True)
        ]
        self._word_of = np.append(self._word_of, np.array(numbered, np.int64))
        self._times = np.append(self._times, np.zeros(len(new), np.int64))
        self._times += np.bincount(found.ids, minlength=len(self._times))
        found = found.only(self._word_of[found.ids] >= 0)
        self._lengths.write(found.lengths.astype(_LENGTH).tobytes())
        rows = np.repeat(np.arange(len(texts)), found.lengths)
        numbers = self._word_of[found.ids]
        pairs, counts = np.unique(numbers * len(texts) + rows, return_counts=True)
        numbers, rows = np.divmod(pairs, max(len(texts), 1))
        for column in (numbers, rows + self._rows, counts):
            self._parts.write(column.astype(_PART).tobytes())
        self._sizes.append(len(pairs))
        self._texts = np.append(self._texts, np.zeros(len(words) - len(self._texts), np.int64))
        self._texts += np.bincount(numbers, minlength=len(self._texts))
        self._largest = max(self._largest, int(counts.max(initial=0)))
        self._rows += len(texts)

    def close(self) -> None:
        """Writes the words of all texts."""
        self._lengths.close()
        keys = keys_of(list(self._words))
        order = np.argsort(keys)
        offsets = np.concatenate([[0], np.cumsum(self._texts[order])])
        with (
            (self._folder / "words.rows").open("xb") as rows,
            (self._folder / "words.counts").open("xb") as counts,
        ):
            for begin, end in _stretches(offsets, _PAIRS):
                texts, numbers = self._joined(order, offsets, begin, end)
                texts.tofile(rows)
                numbers.tofile(counts)
        self._parts.close()
        self._path.unlink()
        (self._folder / "words.keys").write_bytes(keys[order].astype(KEY).tobytes())
        (self._folder / "words.offsets").write_bytes(offsets.astype(_OFFSET).tobytes())
        spellings = keys_of(self._spellings.since(0))
        spelt = np.argsort(spellings)
        (self._folder / "words.spellings").write_bytes(spellings[spelt].astype(KEY).tobytes())
        (self._folder / "words.times").write_bytes(self._times[spelt].astype(_PART).tobytes())

    def _joined(
        self, order: NDArray[np.int64], offsets: NDArray[np.int64], begin: int, end: int
    ) -> tuple[NDArray[np.uint32], Counts]:
        """Returns texts and counts of the words `order[begin:end]`, one word after the other."""
        places = np.full(len(self._words), -1)
        # position for the next text of a word
        places[order[begin:end]] = offsets[begin:end] - offsets[begin]
        size = int(offsets[end] - offsets[begin])
        rows = np.empty(size, _ROW)
        counts = np.empty(size, next(t for t in _COUNTS if self._largest <= np.iinfo(t).max))
        is_all = end - begin == len(order)
        for words, part_rows, part_counts in self._read_parts():
            if not is_all:
                here = places[words] >= 0
                words, part_rows, part_counts = words[here], part_rows[here], part_counts[here]
            # a part is ordered by words, then by rows
            begins = np.flatnonzero(np.diff(words, prepend=-1))
            sizes = np.diff(begins, append=len(words))
            at = np.arange(len(words)) + np.repeat(places[words[begins]] - begins, sizes)
            rows[at], counts[at] = part_rows, part_counts
            places[words[begins]] += sizes
        return rows, counts

    def _read_parts(self) -> Iterator[tuple[NDArray[Any], ...]]:
        self._parts.seek(0)
        for size in self._sizes:
            read = np.frombuffer(self._parts.read(3 * size * _PART.itemsize), _PART)
            words, rows, counts = read.reshape(3, size)
            yield words.astype(np.int64), rows, counts


class Words:
    """The words that a `WordsWriter` wrote."""

    def __init__(self, folder: Path, facts: Mapping[str, Mapping[str, Any]], rows: int) -> None:
        """Maps the files of a segment of `rows` texts. `facts` are their sizes and hashes.

        Raises:
            InputError: a file does not have the size in `facts`, or sizes contradict each other.
        """
        self._folder, self._facts, self._texts = folder, facts, rows
        size = {name: facts[name]["bytes"] for name in FILES}
        words, pairs = size["words.keys"] // KEY.itemsize, size["words.rows"] // _ROW.itemsize
        kinds = [kind for kind in _COUNTS if pairs * kind.itemsize == size["words.counts"]]
        if not kinds:
            raise self.damaged("words.counts")
        self._keys = mapped(folder / "words.keys", KEY, (words,))
        self.offsets: NDArray[np.int64] = mapped(folder / "words.offsets", _OFFSET, (words + 1,))
        """(words + 1,) int64: where the texts of each word begin in `rows` and `counts`."""
        self.rows: NDArray[np.uint32] = mapped(folder / "words.rows", _ROW, (pairs,))
        """(pairs,) uint32: the texts of each word, one word after the other."""
        self.counts: Counts = mapped(folder / "words.counts", kinds[0], (pairs,))
        """(pairs,): how often each text has the word."""
        self._lengths = mapped(folder / "words.lengths", _LENGTH, (rows,))
        self.has_spellings = SPELLINGS[0] in facts
        if self.has_spellings:
            spellings = facts[SPELLINGS[0]]["bytes"] // KEY.itemsize
            self._spellings = mapped(folder / SPELLINGS[0], KEY, (spellings,))
            self._times = mapped(folder / SPELLINGS[1], _PART, (spellings,))

    @cached_property
    def lengths(self) -> NDArray[np.uint32]:
        """(rows,) uint32: the number of words of each text.

        Raises:
            InputError: a file of words was changed.
        """
        # Opening compares no hashes, and a changed byte would give wrong scores, so the first
        # search by words compares all of them.
        for name in FILES:
            check_file(self._folder / name, self._facts[name], InputError, REMEDY)
        offsets, pairs = self.offsets, len(self.rows)
        if offsets[0] != 0 or offsets[-1] != pairs or (np.diff(offsets) < 0).any():
            raise self.damaged("words.offsets")
        if pairs and self.rows.max() >= self._texts:
            raise self.damaged("words.rows")
        return self._lengths

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns the (N,) int64 numbers of words with the given keys; -1 for unknown words."""
        return _found(self._keys, keys)

    def times(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns how often words occur as written, (N,) int64; old indexes: in how many texts."""
        if not self.has_spellings:
            found = self.find(keys)
            return np.where(found >= 0, np.diff(self.offsets)[found], 0)
        found = _found(self._spellings, keys)
        return np.where(found >= 0, self._times[found], 0).astype(np.int64)

    def stretch(self, word: int) -> slice:
        """Returns where the texts of a word are in `rows` and `counts`."""
        begin, end = self.offsets[word : word + 2].tolist()
        return slice(begin, end)

    def texts_with(self, absent: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Returns, for each word, the number of texts that have it and are not `absent`."""
        if absent is None:
            return np.asarray(np.diff(self.offsets))
        present = np.concatenate([[0], np.cumsum(~absent[self.rows])])
        return np.asarray(np.diff(present[self.offsets]))

    def damaged(self, name: str) -> InputError:
        """Returns the error about a file that contradicts others."""
        return InputError(f"{self._folder / name} does not fit the other files. {REMEDY}")


def _found(known: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    if not len(known):
        return np.full(len(keys), -1, np.int64)
    found = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[found] == keys, found, -1)


Count = Callable[[Sequence[str]], NDArray[np.int64]]
"""Returns how often the index has each word as written, (N,) int64."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEAST, _MOST = 5, 24
_EASY, _LONG = -0.5, 7
"""Lowest log-likelihood of an error in a shorter word."""
_OFTEN = 20
"""How much more frequent the right word must be if the index has the misspelling, too."""


def own_words(queries: Sequence[str], count: Count, features: WordFeatures) -> list[dict[str, str]]:
    """Returns, for each query, likely misspellings of words of an index, with the right words.

    A word of the index or of English stays (`text.readings`), unless it is a common misspelling of
    another word that the index has far more often. A name is only corrected to another name.
    """
    index = features.vocabulary.index
    tokens = [{token[0] for token in find_tokens(features.normalize(query))} for query in queries]
    words = sorted(set().union(*tokens))
    unknown = [word for word in words if word not in index]
    absent = [word for word, times in zip(unknown, count(unknown), strict=True) if not times]
    doubtful = {*absent, *filter(is_listed, words)}
    return [
        {} if of_query.isdisjoint(doubtful) else _own_words(query, count, features)
        for query, of_query in zip(queries, tokens, strict=True)
    ]


def _own_words(query: str, count: Count, features: WordFeatures) -> dict[str, str]:
    doubted = features.doubted(query)
    # the letters of a word may be all of it; they are not read as other words
    tokens = read_tokens(features, [query])[0]
    read = {token.text: token.read_as for token in tokens if token.read_as is not None}
    words, found = list({**doubted, **read}), dict[str, str]()
    for word, times in zip(words, count(words).tolist(), strict=True):
        if times and not is_listed(word):
            continue
        near = _nearest_word(word, count) or read.get(word)
        if near is None or count([near])[0] <= _OFTEN * times:
            continue
        name = read.get(word) is None and doubted[word] is Mark.NAME
        if not name or (len(word) >= _LONG and near not in features.vocabulary.index):
            found[word] = near
    return found


def in_own_words(query: str, words: Mapping[str, str]) -> str:
    """Replaces words of a query. Capitals stay, because they mark names.

    >>> in_own_words("Is Kuberntes up?", {"kuberntes": "kubernetes"})
    'Is Kubernetes up?'
    """
    parts, last = list[str](), 0
    for word, start, stop in located_tokens(query) if words else []:
        if word in words and start is not None and stop is not None:
            written, right = query[start:stop], words[word]
            if written[1:] != written[1:].lower():
                right = right.upper()
            elif written[0].isupper():
                right = right.capitalize()
            parts += [query[last:start], right]
            last = stop
    return "".join([*parts, query[last:]])


def _nearest_word(word: str, count: Count) -> str | None:
    """Returns the likeliest word of an index that is one error away from a word."""
    if not _LEAST <= len(word) <= _MOST:
        return None
    near = list(_one_error_from(word))
    counts = count(near)
    there = sorted(np.flatnonzero(counts).tolist(), key=lambda at: (-counts[at], near[at]))
    if not there:
        return None
    candidates = [near[at] for at in there]
    numbers, likely = Spelling(candidates).likely([word])
    number = int(numbers[0])
    if number < 0 or (len(word) < _LONG and likely[0] + np.log(number + RANK) < _EASY):
        return None
    return candidates[number]


def _one_error_from(word: str) -> dict[str, None]:
    """Returns the words with one letter dropped, added, replaced or swapped."""
    parts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    near = [first + rest[1:] for first, rest in parts if rest]
    near += [first + rest[1] + rest[0] + rest[2:] for first, rest in parts if len(rest) > 1]
    for letter in _LETTERS:
        near += [first + letter + rest for first, rest in parts]
        near += [first + letter + rest[1:] for first, rest in parts if rest]
    return dict.fromkeys(one for one in near if one != word)
