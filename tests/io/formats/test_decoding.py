"""JSON values as records: what is annotated is what is allowed."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pytest
from msgspec import Meta

from rejoinder.io.formats.text_lines import (
    Count,
    Digest,
    FileName,
    Number,
    Record,
    Seconds,
    decoded,
)


class Inner(Record, frozen=True):
    rows: Count
    file: FileName = "a"


class Outer(Record, frozen=True):
    inner: Inner
    parts: tuple[Inner, ...]
    by_name: Mapping[FileName, Sequence[Number]]
    flag: bool = True
    when: Annotated[int, Meta(ge=1, le=9)] | None = None
    other: Any = None


TREE = {"inner": {"rows": 1}, "parts": [{"rows": 2, "file": "b"}], "by_name": {"x": [1, 2.5]}}


def test_what_is_annotated_comes_back():
    assert decoded(Outer, {**TREE, "when": None, "other": [1]}) == Outer(
        Inner(1), (Inner(2, "b"),), {"x": [1, 2.5]}, other=[1]
    )


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"inner": None}, "object.*null.*inner"),
        ({"inner": {}}, "missing.*rows.*inner"),
        ({"inner": {"rows": 1, "more": 1}}, "unknown.*more.*inner"),
        ({"inner": {"rows": 1.0}}, r"int.*float.*inner\.rows"),
        ({"inner": {"rows": True}}, r"int.*bool.*inner\.rows"),
        ({"inner": {"rows": -1}}, r"int.* >= 0.*inner\.rows"),
        ({"inner": {"rows": 10**30}}, r"inner\.rows"),
        ({"inner": {"rows": 1, "file": "../a"}}, r"str.*inner\.file"),
        ({"inner": {"rows": 1, "file": ".."}}, r"str.*inner\.file"),
        ({"inner": {"rows": 1, "file": "a\0"}}, r"str.*inner\.file"),
        ({"inner": {"rows": 1, "file": "\ud800"}}, "surrogates not allowed"),
        ({"other": {"\ud800": 1}}, "surrogates not allowed"),
        ({"parts": {}}, "array.*object.*parts"),
        ({"parts": [{"rows": 1}, 2]}, r"object.*int.*parts\[1\]"),
        ({"by_name": [1]}, "object.*array.*by_name"),
        ({"by_name": {"x": [1, "2"]}}, r"float.*str.*by_name.*\[1\]"),
        ({"by_name": {"x": [float("nan")]}}, r"float.*by_name.*\[0\]"),
        ({"by_name": {"a/b": []}}, "str.*by_name"),
        ({"flag": 1}, "bool.*int.*flag"),
        ({"when": 0}, "int.* >= 1.*when"),
        ({"made": 4}, "unknown.*made"),
    ],
)
def test_anything_else_is_named(change, facts):
    with pytest.raises(ValueError, match=facts):
        decoded(Outer, {**TREE, **change})


class Facts(Record, frozen=True):
    sha256: Digest
    seconds: Seconds


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"sha256": "0" * 63}, "str.*sha256"),
        ({"sha256": "0" * 64 + "\n"}, "str.*sha256"),
        ({"sha256": "A" * 64}, "str.*sha256"),
        ({"seconds": float("inf")}, "float.*seconds"),
        ({"seconds": float("nan")}, "float.*seconds"),
        ({"seconds": -0.1}, "float.*seconds"),
    ],
)
def test_digests_and_seconds(change, facts):
    tree = {"sha256": "0" * 64, "seconds": 1}
    assert decoded(Facts, tree).seconds == 1
    with pytest.raises(ValueError, match=facts):
        decoded(Facts, tree | change)
