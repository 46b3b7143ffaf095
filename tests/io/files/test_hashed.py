"""Files and JSON that carry their hashes."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import ModelError
from rejoinder.io.files.hashed import (
    Count,
    Record,
    blake2b_number,
    check_file,
    check_seal,
    file_facts,
    md5_of,
    read_sealed,
    sealed,
    sealed_text,
    sha256_number,
    sha256_of_array,
)  # fmt: skip


class Step(Record, frozen=True):
    step: Count


class Named(Record, frozen=True):
    name: str


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text().filter(lambda key: key != "sha256"), VALUES, min_size=1))
def test_a_seal_holds_until_something_changes(tree):
    marked = sealed(tree)
    assert check_seal(marked, Path("x.json"), ModelError, "") == tree
    key = next(iter(tree))
    for changed in ({**marked, key: [tree[key]]}, {**marked, "another": 1}, tree):
        with pytest.raises(ModelError, match=r"^x\.json was changed"):
            check_seal(changed, Path("x.json"), ModelError, "")


def test_a_file_is_compared_with_its_facts(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"content")
    facts = file_facts(tmp_path, ["a"])["a"]
    check_file(path, facts, ModelError, "Copy it again.")
    path.write_bytes(b"Content")
    with pytest.raises(ModelError, match=r"a .*SHA-256.*Copy it again\."):
        check_file(path, facts, ModelError, "Copy it again.")
    path.write_bytes(b"cut")
    with pytest.raises(ModelError, match="3 bytes, not 7"):
        check_file(path, facts, ModelError, "")
    path.unlink()
    with pytest.raises(ModelError, match=r"is missing\."):
        check_file(path, facts, ModelError, "")
    with pytest.raises(ModelError, match=r"a .*SHA-256"):
        check_file(path, None, ModelError, "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"^the run: it has no [\w.]+\.$"),
        (b"\xff", r"^the run: .*decode"),
        (b"[" * 100_000, "^the run: "),
        (b"[1]", r"x\.json .*None.*\b2\b.*Update\."),
        (b'{"format_version": 3}', "version 3.*reads 2"),
        (b'{"format_version": 2}', r"x\.json .*SHA-256.*Begin again\."),
        (json.dumps(sealed({"format_version": 2, "step": -1})).encode(), "step.* Begin again"),
    ],
)
def test_sealed_json_of_a_version_is_read_or_refused(tmp_path, content, message):
    def read():
        return read_sealed(
            path, Step, 2, ModelError, "Begin again.", outdated="Update.", unreadable="the run"
        )

    path = tmp_path / "x.json"
    path.write_text(sealed_text(Step(7), 2))
    assert read() == Step(7)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        read()


def test_names_that_are_not_utf_8_can_be_kept(tmp_path):
    (tmp_path / "x.json").write_text(sealed_text(Named("a\udcff"), 1), "ascii")
    assert read_sealed(tmp_path / "x.json", Named, 1, ModelError, "") == Named("a\udcff")


def test_hashes_that_seeds_and_formats_depend_on_never_change():
    """The values from before the functions had their names."""
    text = "Ça va ?".encode()
    digest = hashlib.sha256(text).digest()
    assert sha256_number(text, 4) == int.from_bytes(digest[:4], "little")
    assert sha256_number(text, 8) == int.from_bytes(digest[:8], "little")
    assert sha256_number(b"snli_1.0_train.jsonl", 4) == 3509948854
    assert blake2b_number(b"no\nits red") == 3744410217151291729
    assert md5_of(b"how are you?") == "35179a54ea587953021400eb0cd23201"
    matrix = np.array([[1, -2], [0.5, 3]], np.float32)
    expected = hashlib.sha256(np.ascontiguousarray(matrix.T, "<f4").tobytes()).hexdigest()
    assert sha256_of_array(matrix.T) == expected
