"""Approximate search: what it finds, also after changes, damage and without FAISS."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from rejoinder.errors import InputError, MissingExtraError
from rejoinder.index import lists
from rejoinder.index.files import IndexModel, Manifest, mapped, release
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts
from rejoinder.io.files.claims import claim

DIM = 16
LEAST = 3_000
MODEL = IndexModel("model", "ab" * 32, None, None)

pytest.importorskip("faiss")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


_BUILT: dict[object, Path] = {}
"""Indexes of this module: building one takes a second, copying it none."""


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    import faiss

    monkeypatch.setattr(lists, "LEAST_ROWS", LEAST)
    monkeypatch.setattr(lists, "_JUDGED", 256)
    faiss.omp_set_num_threads(1)


@pytest.fixture
def made(tmp_path_factory):
    """Returns a function that makes an index of rows."""

    def make(folder, rows, **settings):
        key = (len(rows), float(rows.sum()), *settings.items())
        if key not in _BUILT:
            _BUILT[key] = tmp_path_factory.mktemp("built") / "index"
            create_index(_BUILT[key], Manifest(MODEL, DIM, **settings), [encoded(rows)])
        shutil.copytree(_BUILT[key], folder / "index")
        return TextIndex(folder / "index")

    return make


def rows_of(count, seed=0):
    """Unit rows in clusters, as texts are."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((50, DIM))
    rows = centres[generator.integers(50, size=count)] + generator.standard_normal((count, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def encoded(rows, first=1):
    names = [str(number) for number in range(first, first + len(rows))]
    return EncodedTexts(names, [f"text {name}" for name in names], rows)


def ids(hits):
    return [[hit.id for hit in row] for row in hits]


def recall(index, queries, top_k=10):
    found, true = index.nearest(queries, top_k), index.nearest(queries, top_k, exact=True)
    return np.mean([len({*a} & {*b}) / len(b) for a, b in zip(ids(found), ids(true), strict=True)])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_large_index_finds_nearly_all_with_true_scores(made, tmp_path, dtype):
    rows, queries = rows_of(LEAST), rows_of(50, seed=1)
    index = made(tmp_path, rows, dtype=dtype)
    [entry] = index.manifest.segments
    assert not index.is_exact
    assert 1 <= entry.probing.probes < 64
    assert entry.probing.recall >= 0.98
    assert recall(index, queries) > 0.95
    stored = rows.astype(dtype).astype(np.float32)
    for hits, query in zip(TextIndex(index.folder).nearest(queries), queries, strict=True):
        expected = [float((stored[int(hit.id) - 1] * query).sum()) for hit in hits]
        assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-6)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    size = (index.folder / entry.name / "embeddings.bin").stat().st_size
    assert size == LEAST * DIM * np.dtype(dtype).itemsize
    index.check()


def test_the_recall_asked_for_decides_how_many_lists_are_probed(made, tmp_path):
    rows = rows_of(LEAST)
    few = made(tmp_path / "few", rows, recall=0.5).manifest.segments[0]
    many = made(tmp_path / "many", rows, recall=0.99).manifest.segments[0]
    assert few.probing.probes < many.probing.probes
    assert few.probing.recall < many.probing.recall
    assert made(tmp_path / "all", rows, recall=1.0).is_exact


def test_a_small_index_has_no_lists(made, tmp_path):
    index = made(tmp_path, rows_of(LEAST - 1))
    assert index.is_exact
    queries = rows_of(5, seed=1)
    assert index.nearest(queries) == index.nearest(queries, exact=True)


def test_small_additions_are_joined_when_they_are_many_together(made, tmp_path):
    index = made(tmp_path, rows_of(LEAST))
    [first] = index.manifest.segments
    half = LEAST // 2
    index.add_encoded([encoded(rows_of(half, 1), first=LEAST + 1)])
    assert [entry.probing is None for entry in index.manifest.segments] == [False, True]
    index.add_encoded([encoded(rows_of(half, 2), first=LEAST + half + 1)])
    kept, joined = index.manifest.segments
    assert kept == first  # nothing that has lists is built again
    assert (joined.rows, joined.probing is None) == (2 * half, False)
    again = TextIndex(index.folder)
    again.check()
    assert len(again) == 2 * LEAST
    assert recall(again, rows_of(30, seed=3)) > 0.95
    assert sorted(path.name for path in index.folder.iterdir()) == sorted(
        [first.name, joined.name, "index.json"]
    )


def test_deleted_texts_are_not_found_and_the_next_ones_are(made, tmp_path):
    rows, queries = rows_of(LEAST), rows_of(20, seed=1)
    index = made(tmp_path, rows)
    # the nearest of the first query, more than there are candidates
    near = np.argsort(-(rows @ queries[0]))[:1_500]
    gone = [str(row + 1) for row in near]
    index.delete(gone)
    assert not {name for hits in ids(index.nearest(queries)) for name in hits} & {*gone}
    assert ids(index.nearest(queries[:1])) == ids(index.nearest(queries[:1], exact=True))
    assert [len(hits) for hits in index.nearest(queries, 10)] == [10] * 20
    assert [len(hits) for hits in index.nearest(queries[:2], LEAST)] == [LEAST - 1_500] * 2
    index.delete([name for name in map(str, range(1, LEAST + 1)) if name not in {*gone}])
    assert index.nearest(queries[:2]) == [[], []]


def test_updated_texts_are_found_as_they_are_now(made, tmp_path):
    index = made(tmp_path, rows_of(LEAST))
    new = -rows_of(1)[:1]
    index.add_encoded([EncodedTexts(["1"], ["turned"], new)], update=True)
    [[hit]] = index.nearest(new, 1)
    assert (hit.id, hit.text) == ("1", "turned")
    assert len(index) == LEAST


def test_segments_that_are_larger_than_memory_are_searched_alike(made, tmp_path, monkeypatch):
    index = made(tmp_path, rows_of(LEAST))
    queries = rows_of(40, seed=1)
    before = index.nearest(queries), index.nearest(queries, exact=True)
    monkeypatch.setattr("rejoinder.index.hits._KEPT_BYTES", 0)
    assert (index.nearest(queries), index.nearest(queries, exact=True)) == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_read_of_a_file_is_released(tmp_path):
    path = tmp_path / "numbers"
    np.zeros(1 << 20).tofile(path)

    def resident():
        status = Path("/proc/self/status").read_text("ascii").split()
        return int(status[status.index("RssFile:") + 1])

    numbers = mapped(path, np.dtype("f8"), (1 << 20,))
    assert numbers.sum() == 0
    before = resident()
    release(numbers)
    assert before - resident() > 6_000  # of 8,192 kB
    assert numbers.sum() == 0


def test_without_faiss_an_index_is_exact_or_says_what_to_install(made, tmp_path, monkeypatch):
    index = made(tmp_path / "with", rows_of(LEAST))
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("rejoinder.index.folder.find_spec", lambda _name: None)
    monkeypatch.setattr("rejoinder.errors.find_spec", lambda _name: None)
    rows = encoded(rows_of(LEAST))
    assert create_index(tmp_path / "without", Manifest(MODEL, DIM), [rows]).is_exact
    opened = TextIndex(index.folder)
    with pytest.raises(MissingExtraError, match=r"faiss.*\[index\]"):
        opened.nearest(rows_of(1))
    assert len(opened.nearest(rows_of(1), exact=True)[0]) == 10


def test_damaged_lists_are_named(made, tmp_path):
    index = made(tmp_path, rows_of(LEAST))
    path = index.folder / index.manifest.segments[0].name / lists.FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"lists\.faiss"):
        TextIndex(index.folder)
    path.write_bytes(b"\0" * len(whole))
    opened = TextIndex(index.folder)
    for _ in range(2):
        with pytest.raises(InputError, match=r"lists\.faiss.*SHA-256"):
            opened.nearest(rows_of(1))
    assert len(opened.nearest(rows_of(1), exact=True)[0]) == 10
    with pytest.raises(InputError, match="SHA-256"):
        opened.check()
    path.unlink()
    with pytest.raises(InputError, match=r"lists\.faiss"):
        TextIndex(index.folder)


@pytest.mark.parametrize("number", [np.nan, np.inf, 3e38, 1.5])
@pytest.mark.parametrize("kept_bytes", [0, 1 << 31])
def test_impossible_scores_are_damage(made, tmp_path, monkeypatch, number, kept_bytes):
    monkeypatch.setattr("rejoinder.index.hits._KEPT_BYTES", kept_bytes)
    queries = rows_of(LEAST)[:1]  # finds the row itself
    index = made(tmp_path, rows_of(LEAST))
    path = index.folder / index.manifest.segments[0].name / "embeddings.bin"
    rows = np.fromfile(path, np.float32)
    rows[np.abs(rows[:DIM]).argmax()] = np.copysign(number, rows[np.abs(rows[:DIM]).argmax()])
    rows.tofile(path)
    opened = TextIndex(index.folder)
    for exact in (False, True):
        with pytest.raises(InputError, match=r"embeddings\.bin.*scores"):
            opened.nearest(queries, exact=exact)


def test_a_change_that_fails_at_its_lists_changes_nothing(made, tmp_path, monkeypatch):
    index = made(tmp_path, rows_of(LEAST))

    def stop(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(lists, "write_lists", stop)
        with pytest.raises(KeyboardInterrupt):
            index.add_encoded([encoded(rows_of(LEAST, 1), first=LEAST + 1)])
    assert len(TextIndex(index.folder)) == LEAST
    with claim(index.folder):
        index.add_encoded([encoded(rows_of(LEAST, 1), first=LEAST + 1)])
    assert len(TextIndex(index.folder)) == 2 * LEAST


def test_one_thread_writes_the_same_lists(tmp_path):
    for name in ("a", "b"):
        create_index(tmp_path / name, Manifest(MODEL, DIM), [encoded(rows_of(LEAST))])
    one, other = TextIndex(tmp_path / "a"), TextIndex(tmp_path / "b")
    assert one.manifest.segments == other.manifest.segments
