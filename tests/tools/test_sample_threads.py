"""Samples by thread: whole threads, nested shares, the same dev and test splits."""

import pytest

from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError
from runs import same_files
from sample_threads import sample_threads


def test_a_sample_holds_whole_threads_and_smaller_ones_are_within(small_pairs, tmp_path):
    pairs = open_pairs(small_pairs)
    everything = pairs.frame("train")
    inner: set[str] = set()
    for share in (0.2, 0.5, 0.9):
        manifest = sample_threads(pairs, share, tmp_path / f"{share}")
        sample = open_pairs(tmp_path / f"{share}")
        assert sample.manifest == manifest
        assert manifest.options["sampled_from"] == pairs.sha256
        frame = sample.frame("train")
        threads = set(frame["thread_id"])
        assert frame.equals(everything.filter(everything["thread_id"].is_in(list(threads))))
        assert share - 0.15 < len(threads) / everything["thread_id"].n_unique() < share + 0.15
        assert inner < threads
        inner = threads
        assert len(frame) == sample.count("train") == manifest.splits["train"]
        for split in ("dev", "test"):
            assert sample.frame(split).equals(pairs.frame(split))
        assert manifest.counts.pairs == sum(
            sum(splits.values()) for splits in sample.manifest.sources.values()
        )


def test_the_same_share_gives_the_same_bytes(small_pairs, tmp_path):
    for name in ("one", "other"):
        sample_threads(open_pairs(small_pairs), 0.3, tmp_path / name)
    assert same_files(tmp_path / "one", tmp_path / "other")


@pytest.mark.parametrize("share", [0, 1, -0.5, 2])
def test_a_share_is_between_0_and_1(small_pairs, tmp_path, share):
    with pytest.raises(InputError, match=r"above 0 and below 1"):
        sample_threads(open_pairs(small_pairs), share, tmp_path / "out")


def test_a_sample_without_pairs_is_refused_and_leaves_nothing(small_pairs, tmp_path):
    with pytest.raises(InputError, match="holds no pair to train on"):
        sample_threads(open_pairs(small_pairs), 1e-9, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_occupied_folder_is_kept(small_pairs, tmp_path):
    (tmp_path / "mine").touch()
    with pytest.raises(InputError, match="not empty"):
        sample_threads(open_pairs(small_pairs), 0.5, tmp_path)
