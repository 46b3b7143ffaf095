"""The stream of pairs: everything once an epoch, from any position on, within its window."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.corpus import writer
from rejoinder.corpus.writer import open_pairs
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures
from rejoinder.text.ragged import Ragged
from rejoinder.training.data.stream import PairStream, Position, drop_ids


@pytest.fixture(scope="module")
def stream_of(small_pairs):
    """A stream over blocks of 100 rows, so that windows and blocks are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "BLOCK_ROWS", 100)
        pairs = open_pairs(small_pairs)
        frames = pairs.iter_frames("train", ["input"])
        words, _ = learn_vocabulary(
            (frame.get_column("input") for frame in frames), max_words=999, min_count=1
        )
        features = WordFeatures(words)
        yield lambda **options: PairStream(
            pairs, features, **{"window_pairs": 800, "seed": 3, **options}
        )


def epoch(stream, size=50):
    batches = stream.batches(Position(), lambda: size)
    return list(itertools.takewhile(lambda batch: batch.after.epoch == 0, batches))


def test_an_epoch_holds_every_pair_once(stream_of):
    stream = stream_of()
    seen = np.concatenate([batch.left_keys for batch in epoch(stream, 1)])
    expected = np.concatenate(
        [
            stream.pairs.read(block).get_column("input").hash(seed=0).to_numpy().view(np.int64)
            for block in stream.blocks
        ]
    )
    assert sorted(seen) == sorted(expected)
    assert not (seen == expected).all()


def test_epochs_and_seeds_differ(stream_of):
    first = epoch(stream_of())[0].left_keys.tolist()
    assert first == epoch(stream_of())[0].left_keys.tolist()
    assert first != epoch(stream_of(seed=4))[0].left_keys.tolist()
    batches = stream_of().batches(Position(1), lambda: 50)
    assert first != next(batches).left_keys.tolist()


@settings(max_examples=10)
@given(stop=st.integers(1, 70), dropout=st.sampled_from([0.0, 0.3]))
def test_a_stream_goes_on_from_any_position(stream_of, stop, dropout):
    stream = stream_of(word_dropout=dropout)

    def take(position, count):
        found = itertools.islice(stream.batches(position, lambda: 60), count)
        return [(b.left_keys.tolist(), b.sentences.ids.tolist(), b.after) for b in found]

    whole = take(Position(), stop + 3)
    assert take(whole[stop - 1][2], 3) == whole[stop:]


def test_excluded_rows_do_not_come(stream_of):
    excluded = {0: np.arange(10), 3: np.array([7])}
    stream = stream_of(excluded=excluded)
    left_out = sum(len(batch.left_keys) for batch in epoch(stream, 1))
    assert left_out == sum(len(b.left_keys) for b in epoch(stream_of(), 1)) - 11


@given(st.floats(0, 0.9), st.integers(0, 99))
def test_dropping_keeps_order_and_borders(share, seed):
    batch = Ragged(np.arange(60, dtype=np.int32), np.array([0, 10, 10, 35, 60]))
    dropped = drop_ids(batch, share, np.random.default_rng(seed))
    assert len(dropped) == 4
    for row in range(4):
        kept = dropped[row].tolist()
        assert kept == sorted(kept)
        assert set(kept) <= set(batch[row].tolist())
    if share == 0:
        assert dropped.ids.tolist() == batch.ids.tolist()
