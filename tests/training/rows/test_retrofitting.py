"""Rows of words near those of their synonyms and definitions."""

import numpy as np
import scipy.sparse as sp

from rejoinder.text.ragged import Ragged
from rejoinder.training.data.examples import GroupText
from rejoinder.training.initial_rows import links_of, retrofitted


def test_synonyms_and_definitions_are_links():
    # a group of the words 200 and 201 and the definition "3 202 203", a group of two definitions
    texts = Ragged(np.array([200, 201, 3, 202, 203, 204, 205, 206, 207], np.int32),
                   np.array([0, 1, 2, 5, 7, 9]))  # fmt: skip
    groups = GroupText([""] * 5, "", 0, 0, np.array([0, 3, 5]), np.array([0, 1, 2, 3, 4]))
    links = links_of(groups, texts, 300, np.arange(150)).toarray()
    assert links[200, 201] == links[201, 200] == 1
    assert links[200, 202] == links[200, 203] == 0.5
    assert links[200, 3] == 0  # a function word
    assert links[202].sum() == links[204].sum() == 0  # definitions are moved by no one
    assert links_of(groups, texts, 202, np.arange(150)).nnz == 2  # others have no row


def test_linked_rows_come_closer_and_others_stay():
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((6, 20)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[5] = 0
    links = sp.csr_matrix(([1.0, 1.0, 1.0], ([0, 1, 5], [1, 0, 0])), shape=(6, 6))
    moved = retrofitted(rows, links)
    assert moved.dtype == np.float32
    np.testing.assert_array_equal(moved[2:5], rows[2:5])
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, rtol=1e-5)
    assert moved[0] @ moved[1] > rows[0] @ rows[1] + 0.3
    assert moved[5] @ moved[0] > 0.99  # a zero row takes the place of its neighbour
    assert moved[0] @ rows[0] > moved[0] @ rows[1]  # each stays nearer to its old place


def test_without_groups_of_words_there_are_no_links():
    texts = Ragged(np.array([1, 2, 3, 4], np.int32), np.array([0, 2, 4]))
    groups = GroupText(["", ""], "", 0, 0, np.array([0, 2]), np.array([0, 1]))
    assert links_of(groups, texts, 10, np.array([1])).nnz == 0
