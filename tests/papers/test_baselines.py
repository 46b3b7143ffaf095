"""The baselines: figures told with the data, and what they do with small files."""

import json

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from rejoinder.errors import InputError
from rejoinder.evaluation.adapters import StoredVectors, open_function
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context
from rejoinder_papers.baselines import BASELINES, open_baseline
from rejoinder_papers.baselines.words import BagOfWords

TEXTS = ["A cat sat.", "The cat slept", "A dog ran", "zzz qqq", ""]
GLOVE = "the 1 0 0.5\ncat 0 1 0\ndog 0.1 0.9 0\nran 1 1 1\na 0.5 0 0\n"


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text(GLOVE)
    return path


@pytest.mark.shared_data
def test_the_official_baseline_gives_the_published_figures(shared_data):
    """Cer et al. 2017 report .7278 on track 5, .7117 on track 3, .6045 on track 1."""
    [result] = score_tasks(BagOfWords(), ["sts17"], Context(shared_data))
    scores = {name: round(value, 4) for name, value in result.scores.items()}
    assert scores["pearson_track5"] == pytest.approx(0.7278, abs=0.006)
    assert scores["pearson_track3"] == pytest.approx(0.7117, abs=0.006)
    assert scores["pearson_track1"] == pytest.approx(0.6045, abs=0.006)
    assert scores["pearson_mean_of_7"] == pytest.approx(
        np.mean([group.scores["pearson"] for group in result.groups.values()]), abs=1e-4
    )


@pytest.fixture
def characters(tmp_path):
    draw = np.random.default_rng(0)
    path, rows = tmp_path / "characters.safetensors", draw.normal(size=(50, 4))
    save_file({"rows": rows.astype(np.float16), "bias": np.ones(4, np.float32)}, path)
    return path


@pytest.mark.parametrize("kind", list(BASELINES))
def test_every_baseline_keeps_to_the_protocol(kind, vectors, characters):
    needs_file = hasattr(BASELINES[kind], "load")
    file = characters if kind == "charagram" else vectors
    encoder = open_baseline(f"{kind}:{file}" if needs_file else kind)
    if hasattr(encoder, "prepare"):
        encoder.prepare("test", TEXTS)
    rows = encoder.encode(TEXTS)
    assert rows.shape[0] == len(TEXTS)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert np.array_equal(rows, encoder.encode(TEXTS))
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], rows, atol=1e-6)
    assert encoder.describe()["name"].startswith("baseline:")
    if hasattr(encoder, "similarity_pairs"):
        same = encoder.similarity_pairs(TEXTS, TEXTS)
        assert same[:3] == pytest.approx([1, 1, 1])
        assert same[4] == 0
        both = encoder.similarity_pairs(TEXTS, TEXTS[::-1])
        np.testing.assert_allclose(both, encoder.similarity_pairs(TEXTS[::-1], TEXTS))


def test_formats_of_word_vectors_give_the_same(vectors, tmp_path):
    from gensim.models import KeyedVectors

    found = KeyedVectors.load_word2vec_format(str(vectors), no_header=True)
    found.save_word2vec_format(str(tmp_path / "words.bin"), binary=True)
    found.save_word2vec_format(str(tmp_path / "words.vec"))
    plain = open_baseline(f"average:{vectors}").encode(TEXTS)
    assert plain[2].tolist() == pytest.approx([(0.5 + 0.1 + 1) / 3, 1.9 / 3, 1 / 3])
    for name in ("words.bin", "words.vec"):
        np.testing.assert_allclose(open_baseline(f"average:{tmp_path / name}").encode(TEXTS), plain)


def test_names_and_files_that_are_wrong(tmp_path):
    with pytest.raises(InputError, match="did you mean 'average'"):
        open_baseline("averag:x")
    with pytest.raises(InputError, match="baseline:sif:FILE"):
        open_baseline("sif")
    with pytest.raises(InputError, match=r"no\.txt"):
        open_baseline(f"sif:{tmp_path / 'no.txt'}")
    (tmp_path / "bad.txt").write_text("cat 1 2 x\n")
    with pytest.raises(InputError, match=r"bad\.txt.*word2vec"):
        open_baseline(f"average:{tmp_path / 'bad.txt'}")


def test_charagram_reads_characters_and_not_words(characters, tmp_path):
    encoder = open_baseline(f"charagram:{characters}")
    same = encoder.encode(["A  cat sat.", "a cat sat. "])
    assert np.array_equal(*same)
    assert not encoder.encode(["", "  "]).any()
    with pytest.raises(InputError, match=r"none\.safetensors"):
        open_baseline(f"charagram:{tmp_path / 'none.safetensors'}")
    for rows, bias in ((np.ones((5, 2)), np.ones(3)), (np.full((5, 2), np.nan), np.ones(2))):
        save_file({"rows": rows, "bias": bias}, tmp_path / "bad.safetensors")
        with pytest.raises(InputError, match="finite rows"):
            open_baseline(f"charagram:{tmp_path / 'bad.safetensors'}")


def test_vectors_by_text(tmp_path):
    frame = pl.DataFrame({"text": TEXTS, "embedding": [[float(n), 1.0] for n in range(5)]})
    frame.write_parquet(tmp_path / "v.parquet")
    lines = [json.dumps(row) for row in frame.iter_rows(named=True)]
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    for name in ("v.parquet", "v.jsonl"):
        stored = StoredVectors(tmp_path / name)
        assert stored.encode([TEXTS[2], TEXTS[0]]).tolist() == [[2, 1], [0, 1]]
        with pytest.raises(InputError, match=r"1 of 2 .*'new'"):
            stored.encode(["new", TEXTS[0]])
    with pytest.raises(InputError, match=r"none\.parquet.*text and embedding"):
        StoredVectors(tmp_path / "none.parquet")


def test_functions_and_objects_by_name(tmp_path, monkeypatch):
    (tmp_path / "things_to_score.py").write_text(
        "import numpy as np\n"
        "def short(texts): return [[len(t), 1.0] for t in texts]\n"
        "class Model:\n"
        "    def encode(self, texts): return np.ones((len(texts), 3), np.float32)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert open_function("things_to_score:short").encode(["ab"]).tolist() == [[2, 1]]
    assert open_function("things_to_score:Model").encode(["ab"]).shape == (1, 3)
    with pytest.raises(InputError, match="py:MODULE:NAME"):
        open_function("things_to_score:nothing")
