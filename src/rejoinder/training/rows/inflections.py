"""The regular forms of words: `peel`, `peels`, `peeling`, `peeled`.

A form that is rare in the training text has a row that says little, although its lemma's is good.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

_VOWELS = "aeiou"
_UNDOUBLED = _VOWELS + "wxy"
"""Last letters that are not doubled before -ing and -ed."""
_HISSING = ("s", "x", "z", "ch", "sh")
_SHORTEST = 3
"""Letters of a lemma: shorter words have more chance matches than forms."""


def regular_forms(word: str) -> list[str]:
    """Returns the forms in -s, -ing and -ed that a word of three letters or more has by rule.

    Nouns and verbs are not told apart, and irregular verbs get their regular forms, so that the
    caller keeps those that occur.

    >>> regular_forms("stop")
    ['stops', 'stoping', 'stoped', 'stopping', 'stopped']
    >>> regular_forms("carry")
    ['carries', 'carrying', 'carried']
    """
    as_i = word[-1] == "y" and word[-2] not in _VOWELS
    stem = word.removesuffix("e")
    plural = word[:-1] + "ies" if as_i else word + ("es" if word.endswith(_HISSING) else "s")
    forms = [plural, stem + "ing", word[:-1] + "ied" if as_i else stem + "ed"]
    last, before, first = word[-1], word[-2], word[-3]
    if last not in _UNDOUBLED and before in _VOWELS and first not in _VOWELS:
        forms += [word + last + "ing", word + last + "ed"]
    return forms


def inflection_links(vocabulary: Sequence[str], lemmas: Iterable[str], rows: int) -> sp.csr_matrix:
    """Returns (rows, rows) links of weight 1 between lemmas and their forms, in both directions.

    Args:
        vocabulary: the words, of which the first `rows` have a row.
        lemmas: words; those without a row, shorter than three letters, or with other characters
            than letters are ignored.
        rows: number of rows.
    """
    ids = {word: index for index, word in enumerate(vocabulary[:rows])}
    found = [
        (ids[lemma], ids[form])
        for lemma in sorted(set(lemmas) & ids.keys())
        if len(lemma) >= _SHORTEST and lemma.isalpha()
        for form in regular_forms(lemma)
        if form in ids and form != lemma
    ]
    one, other = np.array(found, np.int64).reshape(-1, 2).T
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    return sp.csr_matrix((np.ones(2 * len(found), np.float32), ends), shape=(rows, rows))
