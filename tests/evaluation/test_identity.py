"""What an encoder is known by: results are reused for the same content only."""

import json
from functools import cache

import numpy as np
import pytest

from rejoinder import evaluate
from rejoinder.errors import InputError
from rejoinder.evaluation.adapters import StoredVectors, open_function
from rejoinder.evaluation.encoding import identity
from rejoinder.evaluation.results import read_results
from rejoinder.io.files.hashed import sha256_of_folder
from sts_files import write_year

PAIRS = [(f"w{n} w{n + 1} of", f"w{n} w{n % 3}", n % 5) for n in range(60)]


@cache
def _row(seed, word):
    return np.random.default_rng([seed, *word.encode()]).standard_normal(8, np.float32)


class Weighted:
    """Sums of random rows of words, whose first half may be negated."""

    def __init__(self, seed=0):
        self.seed = seed

    def encode(self, texts):
        rows = np.zeros((len(texts), 8), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                rows[row] += _row(self.seed, word)
        return rows


@pytest.fixture
def data(tmp_path):
    return write_year(tmp_path / "data", lambda _: PAIRS)


def test_an_object_with_other_weights_is_another_encoder(data, tmp_path):
    out = tmp_path / "results.json"
    [first] = evaluate(Weighted(), "sts12", data=data, out=out)
    again = evaluate(Weighted(), "sts12", data=data, out=out)
    assert again.reused == 1
    with pytest.raises(InputError, match=r"Weighted.*overwrite=True"):
        evaluate(Weighted(seed=1), "sts12", data=data, out=out)
    [other] = evaluate(Weighted(seed=1), "sts12", data=data, out=out, overwrite=True)
    assert other.scores != first.scores
    assert read_results(out)[0].scores == dict(other.scores)


def test_classes_of_two_modules_are_two_encoders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, factor in (("one_module", 1), ("two_module", 2)):
        code = (
            f"class Enc:\n    def encode(self, texts): return [[{factor}, len(t)] for t in texts]\n"
        )
        (tmp_path / f"{name}.py").write_text(code)
    first, second = (identity(open_function(f"{n}_module:Enc")) for n in ("one", "two"))
    assert first["name"] == second["name"]
    assert first != second


def test_an_encoder_that_tells_its_hash_is_not_asked_for_vectors():
    class Told(Weighted):
        def describe(self):
            return {"name": "told", "sha256": "0" * 64}

        def encode(self, texts):
            raise AssertionError

    assert "probe_sha256" not in identity(Told())


def test_parts_that_vectors_do_not_show_count_too():
    class Responses(Weighted):
        def encode_response(self, texts):
            return -2 * self.encode(texts)

    class Similarities(Weighted):
        def similarity_pairs(self, first, second):
            return np.array([len(a) / (1 + len(b)) for a, b in zip(first, second, strict=True)])

    found = [identity(encoder)["probe_sha256"] for encoder in
             (Weighted(), Responses(), Similarities())]  # fmt: skip
    assert len(set(found)) == 3


def test_a_folder_is_known_by_the_names_and_contents_of_its_files(tmp_path):
    (tmp_path / "inner").mkdir()
    hashes = []
    for name, content in (("a", b"1"), ("inner/b", b"1"), ("a", b"2"), ("c", b"2")):
        (tmp_path / name).write_bytes(content)
        hashes.append(sha256_of_folder(tmp_path))
    (tmp_path / "c").unlink()
    assert sha256_of_folder(tmp_path) == hashes[2]
    assert len(set(hashes)) == 4


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", [1.0, 2]), ("b", [0.0, 1]), ("a", [2.0, 1])], "rows 0 and 2 .*'a'"),
        ([], "vectors"),
        ([("a", [])], "shape"),
    ],
)
def test_stored_vectors_are_one_for_each_text(tmp_path, rows, said):
    path = tmp_path / "vectors.jsonl"
    lines = [json.dumps({"text": text, "embedding": row}) for text, row in rows]
    path.write_text("\n".join(lines) + "\n" if lines else "")
    with pytest.raises(InputError, match=said) as caught:
        StoredVectors(path)
    assert str(path) in str(caught.value)
    assert "out of range" not in str(caught.value)


def test_the_same_vector_twice_is_allowed(tmp_path):
    path = tmp_path / "vectors.jsonl"
    path.write_text('{"text": "a", "embedding": [1, 2]}\n' * 2)
    assert StoredVectors(path).encode(["a"]).tolist() == [[1, 2]]


def test_a_name_without_a_function_says_how_to_write_it():
    with pytest.raises(InputError, match="py:MODULE:NAME"):
        open_function("wrong")
