"""Graded pairs in a file of one's own, in three layouts."""

import json

import pytest

from rejoinder.datasets.groups import read_graded
from rejoinder.errors import InputError

PAIRS = [("How old are you?", "What is your age?", 4.5), ("It rains", 'He said "no"', 0.0)]


def lines(layout):
    for first, second, score in PAIRS:
        if layout == "json":
            yield json.dumps({"sentence1": first, "sentence2": second, "score": score})
        elif layout == "table":
            yield f"{first}\t{second}\t{score}"
        else:
            yield f"main-news\tMSRpar\t2012\t{first}\t{score}\t{first}\t{second}"


@pytest.mark.parametrize("layout", ["json", "table", "benchmark"])
def test_every_layout_gives_the_same_pairs(tmp_path, layout):
    path = tmp_path / "graded"
    path.write_text("\n".join(lines(layout)) + "\n\n")
    pairs = read_graded(path)
    assert list(zip(pairs.first, pairs.second, pairs.gold.tolist(), strict=True)) == PAIRS
    assert len(pairs) == 2
    assert pairs.at([1]).first == ["It rains"]


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ('{"sentence1": "a", "sentence2": "b", "score": 1}\n\n'
         '{"sentence1": "a", "sentence2": "b", "score": 5.5}', r"line 3.*5\.5.*0 to 5"),
        ('{"sentence1": "a", "sentence2": "b", "score": "x"}', r"line 1.*x.*0 to 5"),
        ('{"sentence1": "a", "score": 1}', "sentence2"),
        ("a\tb\t7", "line 1.*7.*0 to 5"),
        ("a\tb", r"line 1"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path, content, facts):
    path = tmp_path / "graded"
    path.write_text(content)
    with pytest.raises(InputError, match=facts):
        read_graded(path)
