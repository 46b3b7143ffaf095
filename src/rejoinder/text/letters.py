"""Unknown words as sequences of their letters, whose rows are fitted to those of known words.

So a form of a word that training did not meet has a vector near those of its other forms: in Arabic
and Turkish a fifth of the words of new text are such forms. Zhao et al. 2018, "Generalizing word
embeddings using bag of subwords".
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.normalize import tokens_of
from rejoinder.text.ragged import Ragged, offsets_of

_SHORTEST, _LONGEST = 3, 6


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


def letter_buckets(word: str, buckets: int) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each sequence: CRC-32 of its UTF-8, modulo `buckets`.

    >>> letter_buckets("a", 1000).tolist()
    [515]
    """
    found = [crc32(part.encode()) % buckets for part in letter_sequences(word)]
    return np.array(found, np.int32)


def with_letters(batch: Ragged, texts: Sequence[str], first: int, buckets: int) -> Ragged:
    """Returns a batch with ids of letters, from `first` on, for each -1, a word that is unknown.

    `batch` has an id for each token of each of the `texts`.
    """
    unknown = np.flatnonzero(batch.ids < 0)
    if not len(unknown):
        return batch
    rows = np.searchsorted(batch.offsets, unknown, side="right") - 1
    tokens = {row: tokens_of(texts[row]) for row in np.unique(rows).tolist()}
    words = [
        tokens[row][at - start]
        for row, at, start in zip(
            rows.tolist(), unknown.tolist(), batch.offsets[rows].tolist(), strict=True
        )
    ]
    ids = {word: letter_buckets(word, buckets) + np.int32(first) for word in set(words)}
    found = [ids[word] for word in words]
    counts = np.ones(len(batch.ids), np.int64)
    counts[unknown] = [len(each) for each in found]
    flat = np.repeat(batch.ids, counts)
    flat[flat < 0] = np.concatenate(found)
    return Ragged(flat, offsets_of(counts)[batch.offsets])
