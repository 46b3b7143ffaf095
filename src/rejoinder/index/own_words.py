"""Misspelt words of a query as words of an index: it knows names that no list of English has.

Words that are likely to be misspelt are read as a word of the index one error away, else as the
model reads them.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.features import WordFeatures
from rejoinder.text.normalize import find_tokens
from rejoinder.text.readings import RANK, Mark, Spelling, is_listed
from rejoinder.text.tokens import located_tokens, read_tokens

Count = Callable[[Sequence[str]], NDArray[np.int64]]
"""Gives the number of texts of the index that have each word, (N,) int64."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEAST, _MOST = 5, 24
_EASY, _LONG = -0.5, 7
"""Least logarithm of an error in a word of fewer letters."""
_OFTEN = 20
"""How many more texts have the right word than one that the index has, too."""


def own_words(query: str, count: Count, features: WordFeatures) -> dict[str, str]:
    """Returns the words of a query that are likely to stand for words of an index, and those.

    A word that the index or English has stays (`text.readings`), unless people often misspell
    another so, which the index has far more often. A name stands for another name alone.
    """
    index = features.vocabulary.index
    tokens = [token[0] for token in find_tokens(features.normalize(query))]
    if all(token in index and not is_listed(token) for token in tokens):
        return {}
    doubted = features.doubted(query)
    read = {token.text: token.read_as for token in read_tokens(features, [query])[0]}
    words = [word for word in {**doubted, **read} if word in doubted or read.get(word)]
    found = dict[str, str]()
    for word, times in zip(words, count(words).tolist(), strict=True):
        near = _nearest(word, count) or read.get(word)
        if near is None or count([near])[0] <= _OFTEN * times or (times and not is_listed(word)):
            continue
        name = read.get(word) is None and doubted[word] is Mark.NAME
        if not name or (len(word) >= _LONG and near not in index):
            found[word] = near
    return found


def in_own_words(query: str, words: Mapping[str, str]) -> str:
    """Returns a query in which words are replaced. Capitals stay, which tell names.

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


def _nearest(word: str, count: Count) -> str | None:
    """Returns the word of an index that a word is one error from; of several, the likeliest."""
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
    """Returns the words one letter dropped, added, wrong or swapped from a word."""
    parts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    near = [first + rest[1:] for first, rest in parts if rest]
    near += [first + rest[1] + rest[0] + rest[2:] for first, rest in parts if len(rest) > 1]
    for letter in _LETTERS:
        near += [first + letter + rest for first, rest in parts]
        near += [first + letter + rest[1:] for first, rest in parts if rest]
    return dict.fromkeys(one for one in near if one != word)
