"""JSON values as dataclasses: what is annotated is what is allowed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from rejoinder.io.formats.decoding import Between, Count, Digest, FileName, Seconds, decoded


@dataclass(frozen=True)
class Inner:
    rows: Count
    file: FileName = "a"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    parts: tuple[Inner, ...]
    by_name: Mapping[str, Sequence[float]]
    flag: bool = True
    when: Annotated[int, Between(1, 9)] | None = None
    other: Any = None
    made: int = field(default=3, init=False)


TREE = {"inner": {"rows": 1}, "parts": [{"rows": 2, "file": "b"}], "by_name": {"x": [1, 2.5]}}


def test_what_is_annotated_comes_back():
    assert decoded(Outer, {**TREE, "when": None, "other": [1]}) == Outer(
        Inner(1), (Inner(2, "b"),), {"x": (1, 2.5)}, other=[1]
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inner": None}, "inner is None; an object is needed"),
        ({"inner": {}}, r"inner\.rows is missing"),
        ({"inner": {"rows": 1, "more": 1}}, r"inner\.more is unknown"),
        ({"inner": {"rows": 1.0}}, r"inner\.rows is 1\.0; a whole number is needed"),
        ({"inner": {"rows": True}}, r"inner\.rows is True; a whole number is needed"),
        ({"inner": {"rows": 10**30}}, r"inner\.rows is 1000.*; a number from 0"),
        ({"inner": {"rows": 1, "file": "../a"}}, r"inner\.file is '../a'; the name of a file"),
        ({"inner": {"rows": 1, "file": ".."}}, "the name of a file is needed"),
        ({"inner": {"rows": 1, "file": "a\0"}}, "the name of a file is needed"),
        ({"inner": {"rows": 1, "file": "\ud800"}}, "a string is needed"),
        ({"parts": {}}, "parts is {}; a list is needed"),
        ({"parts": [{"rows": 1}, 2]}, r"parts\.1 is 2; an object is needed"),
        ({"by_name": [1]}, r"by_name is \[1\]; an object is needed"),
        ({"by_name": {"x": [1, "2"]}}, r"by_name\.x\.1 is '2'; a number is needed"),
        ({"by_name": {"x": [float("nan")]}}, r"by_name\.x\.0 is nan; a number is needed"),
        ({"flag": 1}, "flag is 1; true or false is needed"),
        ({"when": 0}, "when is 0; a number from 1 to 9 is needed"),
        ({"made": 4}, "made is unknown"),
    ],
)
def test_anything_else_is_named(change, said):
    with pytest.raises(ValueError, match=said):
        decoded(Outer, {**TREE, **change})


def test_digests_and_seconds():
    @dataclass
    class Facts:
        sha256: Digest
        seconds: Seconds

    assert decoded(Facts, {"sha256": "0" * 64, "seconds": 1}).seconds == 1
    for tree in ({"sha256": "0" * 63, "seconds": 1}, {"sha256": "0" * 64, "seconds": float("inf")}):
        with pytest.raises(ValueError, match="is needed"):
            decoded(Facts, tree)
