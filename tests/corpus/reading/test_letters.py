"""Letters by arithmetic on bytes against letters one by one."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.corpus.reading import letters


def one_by_one(texts: list[str]) -> list[int]:
    return [sum(unicodedata.category(c)[0] == "L" for c in text) for text in texts]


@given(st.lists(st.text(st.sampled_from("azAZ@[`{ 19.\n\0éß中。'")), max_size=12))
def test_any_texts(texts):
    assert letters.count_letters(pl.Series(texts, dtype=pl.String)).tolist() == one_by_one(texts)


@pytest.mark.parametrize("stretch", [1, 7, 256, 1 << 19])
def test_lengths_around_a_byte_and_a_stretch(monkeypatch, stretch):
    monkeypatch.setattr(letters, "_STRETCH", stretch)
    texts = [
        ("b" * size) + end for size in (0, 1, 254, 255, 256, 257, 700) for end in ("", "1", "é")
    ]
    texts += ["", "", "x"]
    for rotated in range(len(texts)):
        turned = texts[rotated:] + texts[:rotated]
        series = pl.Series(["skipped", *turned, "too"])[1:-1]
        assert letters.count_letters(series).tolist() == one_by_one(turned)
