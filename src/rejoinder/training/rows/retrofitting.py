"""Rows of words moved towards those of their synonyms and definitions (Faruqui et al. 2015)."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder.text.ragged import Ragged
from rejoinder.training.data.examples import GroupText

Rows = NDArray[np.float32]

_ITERATIONS = 5
FUNCTION_WORDS = 150
"""So many most frequent words say nothing about a word that they help to define."""


def retrofitted(rows: Rows, links: sp.csr_matrix) -> Rows:
    """Returns unit rows near their own old place and near the rows that they are linked to.

    Equation 2 of the paper with α = 1 and β = 1 / degree, on unit rows.

    Args:
        rows: (V, D) float32; zero rows take the place of their neighbours.
        links: (V, V), the weight of each link. Words without links keep their row.
    """
    degrees = np.asarray(links.sum(axis=1)).ravel()
    linked = np.flatnonzero(degrees)
    shares = (sp.diags(1 / degrees[linked]) @ links[linked]).astype(np.float32)
    moved = rows.copy()
    for _ in range(_ITERATIONS):
        moved[linked] = _unit(rows[linked] + shares @ moved)
    return moved


def links_of(
    groups: GroupText, ids: Ragged, words: int, function_words: NDArray[np.int64]
) -> sp.csr_matrix:
    """Returns (words, words) links of each single word to the other texts of its groups.

    A text of n words is one link, divided among its words: synonyms are linked to each other, and
    a word to the words of its definition.

    Args:
        groups: groups of texts.
        ids: token ids of `groups.texts`.
        words: number of ids that have a row; others are ignored.
        function_words: ids that are ignored in definitions.
    """
    one, other, weights = [], [], []
    single = ids.lengths == 1
    ids = ids.only(np.repeat(single, ids.lengths) | ~np.isin(ids.ids, function_words))
    for first, last in zip(groups.starts[:-1], groups.starts[1:], strict=True):
        members = groups.members[first:last]
        for word in members[single[members]]:
            for text in members[members != word]:
                linked = ids[text]
                one.append(np.full(len(linked), ids[word][0]))
                other.append(linked)
                weights.append(np.full(len(linked), 1 / max(1, len(linked)), np.float32))
    if not one:
        return sp.csr_matrix((words, words), dtype=np.float32)
    rows, columns = np.concatenate(one), np.concatenate(other)
    known = (rows < words) & (columns < words) & (rows != columns)
    return sp.csr_matrix(
        (np.concatenate(weights)[known], (rows[known], columns[known])), shape=(words, words)
    )


def _unit(rows: Rows) -> Rows:
    unit: Rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit
