"""Unknown words as sequences of their letters, whose rows are fitted to those of known words.

So a form of a word that training did not meet has a vector near those of its other forms: in Arabic
and Turkish a fifth of the words of new text are such forms. Zhao et al. 2018, "Generalizing word
embeddings using bag of subwords".
"""

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.ragged import Ragged, offsets_of

_SHORTEST, _LONGEST = 3, 6
_KEPT = 20_000
"""Number of words whose buckets are kept: a text has the same unknown words again and again."""


def letter_sequences(word: str) -> list[str]:
    """Returns the sequences of 3 to 6 characters of a word between marks of its ends.

    >>> letter_sequences("ate")
    ['<at', 'ate', 'te>', '<ate', 'ate>', '<ate>']
    """
    edged = f"<{word}>"
    return [
        edged[start : start + length]
        for length in range(_SHORTEST, _LONGEST + 1)
        for start in range(len(edged) - length + 1)
    ]


def is_arabic(word: str) -> bool:
    """Returns whether a word begins with a character of the Arabic block.

    >>> is_arabic("\u0643\u062a\u0627\u0628"), is_arabic("kitab")
    (True, False)
    """
    return "\u0600" <= word[0] < "\u0700"


def letter_buckets(word: str, buckets: int, arabic: int = 0) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each sequence: CRC-32 of its UTF-8, modulo `buckets`.

    With `arabic`, Arabic words have so many buckets, which follow the `buckets` of all others.

    >>> letter_buckets("a", 1000).tolist()
    [515]
    """
    first, size = (buckets, arabic) if arabic and is_arabic(word) else (0, buckets)
    found = [first + crc32(part.encode()) % size for part in letter_sequences(word)]
    return np.array(found, np.int32)


@lru_cache(_KEPT)
def _packed(word: str, buckets: int, arabic: int) -> bytes:
    return letter_buckets(word, buckets, arabic).tobytes()


def with_letters(
    batch: Ragged, words: Sequence[str], first: int, buckets: int, arabic: int = 0
) -> Ragged:
    """Returns a batch with ids of letters, from `first` on, for each id below 0.

    `words` are those that have such an id, in order. A word with the id -2 - k may be the known
    word k, whose id comes before its letters. The rest is as for `letter_buckets`.
    """
    if not words:
        return batch
    found = [_packed(word, buckets, arabic) for word in words]
    unknown = batch.ids < 0
    either = batch.ids < -1
    counts = np.ones(len(batch.ids), np.int64)
    counts[unknown] = np.fromiter(map(len, found), np.int64, len(found)) // 4
    counts += either
    flat = np.repeat(batch.ids, counts)
    flat[(np.cumsum(counts) - counts)[either]] = -2 - batch.ids[either]
    flat[flat < 0] = np.frombuffer(b"".join(found), np.int32) + np.int32(first)
    return Ragged(flat, offsets_of(counts)[batch.offsets])
