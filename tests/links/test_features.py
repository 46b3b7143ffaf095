"""What a piece of a channel says about its messages and pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.links.features import PAIR_NAMES, WINDOW, PieceFeatures, read_piece

SAID = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "carl", ""]), st.text("ab :,?", max_size=12)),
    min_size=1, max_size=90,
)  # fmt: skip


def piece_of(said, *, names=True):
    authors, texts = zip(*said, strict=True)
    return read_piece(authors, np.arange(len(said)) * 30.0, texts, names=names)


def features_of(said):
    piece = piece_of(said)
    rows = np.random.default_rng(0).standard_normal((len(said), 4)).astype(np.float32)
    return PieceFeatures(piece, rows, rows)


def test_names_are_taken_out_and_known():
    said = [("ann", "hello"), ("Bob Hale", "ann: hi"), ("carl_", "I think Bob is right, ann."),
            ("ann", "@carl ok"), ("ann", "me, ann, I mean")]  # fmt: skip
    piece = piece_of(said)
    assert piece.texts == ["hello", "hi", "I think is right,", "ok", "me, ann, I mean"]
    assert piece.named.T.tolist() == [[-1, -1], [0, -1], [1, 0], [2, -1], [-1, -1]]
    assert piece.trust[0, 1] == piece.trust[0, 3] == 1
    assert 0 < piece.trust[0, 2] < 1
    without = piece_of(said, names=False)
    assert without.texts == piece.texts
    assert (without.named == -1).all()


def test_shared_rare_words_are_found_within_the_window():
    texts = ["kernel panic"] + ["nothing"] * 70 + ["nvidia driver", "which driver", "a kernel"]
    piece = piece_of([("ann", text) for text in texts])
    later, earlier, weights = piece.shared
    assert list(zip(later.tolist(), earlier.tolist(), strict=True)) == [(72, 71)]
    assert weights[0] > 0


def test_first_messages_have_no_candidates():
    features = features_of([("ann", "a"), ("bob", "ann: b"), ("ann", "bob: b")])
    pairs = features.pairs(0, 3)
    assert not pairs[..., 0].any()
    assert not pairs[:, : WINDOW - 1, 1].any()
    assert pairs[0, -1, 1] == 1  # bob names ann
    assert pairs[2, -1, 2] == 1  # ann answers who named her


@given(SAID, st.data())
def test_pairs_do_not_depend_on_which_rows_are_asked_for(said, data):
    features = features_of(said)
    whole = features.pairs(0, len(said))
    start = data.draw(st.integers(0, len(said) - 1))
    end = data.draw(st.integers(start + 1, len(said)))
    assert np.isfinite(whole).all()
    # where all cosines are nearly the same, their spread of .01 divides their rounding
    np.testing.assert_allclose(features.pairs(start, end), whole[..., start:end], atol=1e-4)


@given(SAID)
def test_messages_that_name_nobody_have_no_numbers_of_names(said):
    features = features_of([(author, "") for author, _ in said])
    assert not features.pairs(0, len(said))[:PAIR_NAMES].any()
    assert not features.names.any()


def test_unknown_times_are_as_good_as_none():
    piece = read_piece(["ann", "bob"], np.full(2, np.nan), ["a", "b"])
    rows = np.eye(2, dtype=np.float32)
    assert np.isfinite(PieceFeatures(piece, rows, rows).pairs(0, 2)).all()


@pytest.mark.parametrize("text", ["", " ", ":", "@", "ann:", "\u2028", "?" * 5000])
def test_any_text_is_read(text):
    assert len(piece_of([("bob", text), ("ann", text)]).texts) == 2
