"""The cache of token ids: the same batches with and without it, whatever happens to its files."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from rejoinder.corpus import writer
from rejoinder.corpus.writer import open_pairs
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures
from rejoinder.training.data.stream import IdCache, PairStream, Position, text_key
from runs import DAN

PLENTY = 1e9


@pytest.fixture(scope="module")
def pairs(small_pairs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "BLOCK_ROWS", 100)
        yield open_pairs(small_pairs)


@pytest.fixture(scope="module")
def features(pairs):
    frames = pairs.iter_frames("train", ["input"])
    words, _ = learn_vocabulary((f.get_column("input") for f in frames), max_words=99, min_count=1)
    return WordFeatures(words, buckets=50)


@pytest.fixture
def cache(pairs, tmp_path):
    return lambda text="words", most=PLENTY: IdCache(tmp_path / "ids", pairs, text, most)


def batches(pairs, features, cache=None):
    """The batches of more than an epoch, so that every block is read."""
    count = sum(block.rows for block in pairs.blocks("train")) // 40
    left_out = {0: np.array([3, 5, 99])}
    stream = PairStream(
        pairs, features, window_pairs=300, seed=3, excluded=left_out, word_dropout=0.1, cache=cache
    )
    taken = itertools.islice(stream.batches(Position(), lambda: 40), count)
    return [
        (each.sentences.ids.tolist(), each.left_keys.tolist(), each.right_keys.tolist())
        for each in taken
    ]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


class Unread:
    """Features that no text may reach."""

    def __call__(self, _sentences):
        pytest.fail("a text was turned into ids again")


def test_batches_are_the_same_and_texts_are_read_once(pairs, features, cache, tmp_path):
    plain = batches(pairs, features)
    assert batches(pairs, features, cache()) == plain
    assert len(files(tmp_path / "ids")) == len(pairs.blocks("train"))
    assert batches(pairs, Unread(), cache()) == plain


@pytest.mark.parametrize("change", ["byte", "cut", "empty"])
def test_a_damaged_file_is_made_again(pairs, features, cache, tmp_path, change):
    plain = batches(pairs, features, cache())
    good = [path.read_bytes() for path in files(tmp_path / "ids")]
    for path, content in zip(files(tmp_path / "ids"), good, strict=True):
        changed = bytearray(content)
        changed[len(content) // 2] ^= 1
        path.write_bytes({"byte": bytes(changed), "cut": content[:-9], "empty": b""}[change])
    assert batches(pairs, features, cache()) == plain
    assert [path.read_bytes() for path in files(tmp_path / "ids")] == good


def test_ids_of_other_texts_are_never_used(pairs, features, cache, tmp_path):
    batches(pairs, features, cache("one vocabulary"))
    before = set(files(tmp_path / "ids"))
    other = WordFeatures(features.vocabulary)
    assert batches(pairs, other, cache("another")) == batches(pairs, other)
    assert not before & set(files(tmp_path / "ids"))


def test_its_size_is_bounded(pairs, features, cache, tmp_path):
    plain = batches(pairs, features, cache())
    size = sum(path.stat().st_size for path in files(tmp_path / "ids"))
    for path in files(tmp_path / "ids"):
        path.unlink()
    for _ in range(2):  # what is stored counts when the cache is opened again
        assert batches(pairs, features, cache(most=size / 2)) == plain
        assert 0 < sum(path.stat().st_size for path in files(tmp_path / "ids")) <= size / 2


def test_a_disk_that_can_not_be_written_is_no_error(pairs, features, cache, tmp_path):
    (tmp_path / "ids").write_text("a file in the way")
    assert batches(pairs, features, cache()) == batches(pairs, features)


def test_the_key_follows_the_vocabulary_and_the_rules(features, tmp_path):
    features.save(tmp_path)
    config = features.config()
    key = text_key(tmp_path, config)
    assert key == text_key(tmp_path, dict(config))
    assert key != text_key(tmp_path, {**config, "rules": 2})
    (tmp_path / "vocabulary.txt").write_text("other\n")
    assert key != text_key(tmp_path, config)


def test_a_run_has_the_same_weights_with_and_without(train, tmp_path):
    models = []
    for name, gb in (("with", 1.0), ("without", 0)):
        tree = {**DAN, "training": {**DAN["training"], "id_cache_gb": gb}}
        train(tree, tmp_path / name, stop_at=15)
        assert (tmp_path / name / "ids").exists() == bool(gb)
        result, _ = train(tree, tmp_path / name, resume=True)
        assert not (tmp_path / name / "ids").exists()
        models.append((result.model / "weights.safetensors").read_bytes())
    assert models[0] == models[1]
