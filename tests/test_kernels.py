"""What setuptools is told about the kernels in C."""

import os
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.registry import kernel
from rejoinder.text.normalize import classes

ROOT = Path(__file__).parents[1]
HEADERS = "src/kernels"


def test_headers_are_named_so_that_the_source_distribution_has_them():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    modules = settings["tool"]["setuptools"]["ext-modules"]
    assert {module["sources"][0] for module in modules} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.c")
    }
    for module in modules:
        [source] = module["sources"]
        headers = re.findall(r'#include "(.+)"', (ROOT / source).read_text("utf-8"))
        assert module.get("depends", []) == [f"{HEADERS}/{name}" for name in headers]


def test_the_environment_leaves_them_out():
    ask = "from rejoinder.registry import kernel; print(kernel('text._words'))"
    environment = {**os.environ, "REJOINDER_NATIVE": "0"}
    done = run([sys.executable, "-c", ask], env=environment, capture_output=True, check=True)
    assert done.stdout.split() == [b"None"]


WITHOUT = """
import sys
from pathlib import Path
import rejoinder
folder = Path(rejoinder.__file__).parent
for path in folder.rglob("*.c"):
    sys.modules[".".join(["rejoinder", *path.relative_to(folder).with_suffix("").parts])] = None
from rejoinder.cli.main import run
run()
"""


@pytest.mark.slow
def test_commands_note_once_what_missing_kernels_cost(tmp_path):
    def said(*arguments, cache=tmp_path / "cache"):
        told = run(
            [sys.executable, "-c", WITHOUT, *arguments],
            env={**os.environ, "REJOINDER_CACHE": str(cache)},
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stderr

    compare = ("similarity", "How old are you?", "What is your age?")
    assert not said(*compare, "--quiet")
    assert re.search(r"kernels.*two to four times as long.*compiler", said(*compare))
    assert not said(*compare)
    assert "kernels" in said("--version")
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert "kernels" in said(*compare, cache=tmp_path / "file")


HUGE = 1 << 62
"""A width whose size in bytes is 0 in 64 bits."""
NO_COLUMNS = {
    "empty": [],
    "beyond the content": [0, 1 << 40],
    "far beyond": [0, (1 << 63) - 1],
    "before the content": [-1, 2],
    "descending": [0, 2, 1],
}


@pytest.mark.parametrize("ends", NO_COLUMNS.values(), ids=NO_COLUMNS)
@pytest.mark.parametrize("name", ["gather", "hashes", "order_in_runs", "text_facts"])
def test_columns_whose_ends_are_wrong_are_refused(name, ends):
    native = kernel("corpus.reading._strings")
    if native is None:
        pytest.skip("the kernel was not built")
    content, ends = b"abc", np.array(ends, np.int64)
    rows = np.arange(max(len(ends) - 1, 1), dtype=np.uint32)
    arguments = {
        "gather": ([(content, ends)], np.zeros_like(rows), rows, ""),
        "hashes": ([(content, ends)], ""),
        "order_in_runs": ([(content, ends)], np.array([0, len(ends) - 1])),
        "text_facts": (content, ends, bytes(0x200000 // 8)),
    }
    with pytest.raises((ValueError, IndexError), match="column"):
        getattr(native, name)(*arguments[name])


@pytest.mark.parametrize("cut", range(1, 8))
def test_ends_that_are_cut_are_refused(cut):
    native = kernel("corpus.reading._strings")
    if native is None:
        pytest.skip("the kernel was not built")
    ends = np.array([0, 1, 2]).tobytes()[:-cut]
    for call in (
        lambda: native.hashes([(b"ab", ends)], ""),
        lambda: native.order_in_runs([(b"ab", ends)], np.array([0, 1])),
        lambda: native.text_facts(b"ab", ends, bytes(0x200000 // 8)),
    ):
        with pytest.raises(ValueError, match="column"):
            call()


def floats(*shape):
    return np.ones(shape, np.float32)


def best(top_k, queries):
    """A search for no words among two texts."""
    none, begins = np.empty(0), np.zeros(queries + 1, np.int64)
    return (
        top_k, None, b"", b"", floats(2), np.zeros(1, np.int64), b"", b"", none, none, begins, none,
        none, bytearray(), bytearray(), bytearray(8 * queries),
    )  # fmt: skip


def softmax(columns, own, rows=1):
    one, flags = floats(rows), bytearray(rows)
    scores = floats(rows * (columns if columns < HUGE else 0))
    return (
        0,
        1,
        columns,
        own,
        1.0,
        scores,
        b"",
        scores.copy(),
        one,
        one.copy(),
        flags,
        b"",
        b"",
        bytearray(),
    )


def sums(width, out):
    offsets = np.zeros(2, np.int64)
    return 0, 1, width, b"", np.empty(0, np.int64), offsets, out


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("index._matches", "best", best(HUGE, 1)),
        ("index._matches", "best", best(HUGE, 4)),
        ("index._matches", "best", best(-1, 1)),
        ("training.losses._softmax", "softmax", softmax(HUGE, 0)),
        ("training.losses._softmax", "softmax", softmax(HUGE, 0, rows=4)),
        ("training.losses._softmax", "softmax", softmax(3, (1 << 63) - 1)),
        ("training.losses._softmax", "softmax", softmax(3, 2, rows=2)),
        ("training.losses._softmax", "log_sums", (0, 1, HUGE, 1.0, b"", bytearray(), b"", b"")),
        ("training.losses._softmax", "log_sums", (0, 1, HUGE, 1.0, b"", bytearray(4), b"", b"")),
        ("encoders.dan._sums", "unit_rows", (HUGE, b"", bytearray())),
        (
            "encoders.dan._sums",
            "sums",
            ("f", 1 << 39, 0.0, b"", b"", b"", np.zeros((1 << 23) + 1, np.int64), bytearray()),
        ),
        ("encoders.nn._rows", "sum_rows", sums(HUGE, bytearray())),
        ("encoders.nn._rows", "sum_rows", sums(HUGE // 2, bytearray())),
        ("encoders.nn._rows", "sum_rows", sums(3, bytearray(8))),
        (
            "encoders.nn._rows",
            "move_rows",
            (0, 1, HUGE, *sums(1, None)[3:6], bytearray(), np.zeros(1, int), bytearray(), 1.0, 1.0),
        ),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit_arrays_are_refused(module, name, arguments):
    native = kernel(module)
    if native is None:
        pytest.skip("the kernel was not built")
    with pytest.raises(ValueError, match="do not belong together"):
        getattr(native, name)(*arguments)


@pytest.mark.parametrize("pair", [5, (b"ab",), [b"ab"], (b"ab", b"", b"")])
@pytest.mark.parametrize(("name", "rest"), [("gather", (b"", b"", "")), ("hashes", ("",))])
def test_a_column_that_is_not_a_pair_is_refused(pair, name, rest):
    native = kernel("corpus.reading._strings")
    if native is None:
        pytest.skip("the kernel was not built")
    with pytest.raises((TypeError, ValueError), match=r"2 arg|a pair"):
        getattr(native, name)([pair], *rest)


NUMBERS = st.integers(-2, 8) | st.sampled_from([-HUGE, 1 << 31, 1 << 40, HUGE])


@given(st.lists(NUMBERS, max_size=6), st.lists(NUMBERS, max_size=6), st.integers(0, 6))
def test_offsets_and_ids_give_sums_or_are_refused(offsets, ids, count):
    """Both kernels that sum rows take what lies within their arrays, and nothing else."""
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    right = (
        len(offsets) == count + 1
        and offsets[0] == 0
        and offsets[-1] == len(ids)
        and offsets == sorted(offsets)
        and all(0 <= row < len(table) for row in ids)
    )
    begins, rows = np.array(offsets, np.int64), np.array(ids, np.int64)
    small = np.clip(rows, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    for module, name, arguments in (
        ("encoders.nn._rows", "sum_rows", (0, 1, 2, table, rows, begins)),
        ("encoders.dan._sums", "sums", ("f", 2, 0.0, table, b"", small, begins)),
    ):
        native = kernel(module)
        if native is None:
            continue
        found = np.full((count, 2), -1, np.float32)
        if right:
            getattr(native, name)(*arguments, found)
            parts = pairwise(offsets)
            assert found.tolist() == [table[ids[a:b]].sum(0).tolist() for a, b in parts]
        else:
            with pytest.raises(ValueError, match="do not belong together"):
                getattr(native, name)(*arguments, found)
            assert (found == -1).all()


def test_a_table_that_reads_words_as_others_takes_no_more_words():
    native = kernel("text._words")
    if native is None:
        pytest.skip("the kernel was not built")
    table = native.Table(b"a\nb\n", classes(), np.array([1, 1], np.int32).tobytes())
    with pytest.raises(ValueError, match="no more words"):
        table.ids(("c c",), True)
    assert np.frombuffer(table.ids(("a c",), False)[0], np.int32).tolist() == [1, -1]


def test_commands_note_that_they_were_not_built(tmp_path):
    environment = {**os.environ, "REJOINDER_CACHE": str(tmp_path)}
    code = "import sys; sys.modules['rejoinder.text._words'] = None; "
    code += "from rejoinder.cli.main import run; run()"
    told_by = ("models", "-q", False), ("models", True), ("models", False), ("--version", True)
    for *words, told in told_by:
        command = [sys.executable, "-c", code, *words]
        done = run(command, env=environment, capture_output=True, text=True, check=True)
        assert ("C compiler" in done.stderr) == told


def test_a_table_of_words_that_was_not_filled_is_refused():
    native = kernel("text._words")
    if native is None:
        pytest.skip("the kernel was not built")
    empty = native.Table.__new__(native.Table)
    for call in (lambda: empty.ids(("a",), False), lambda: empty.since(0)):
        with pytest.raises(RuntimeError, match="not filled"):
            call()
    with pytest.raises(ValueError, match="an id of a word for each word"):
        native.Table(b"a\n", classes(), np.array([7], np.int32).tobytes())
