"""What hostile texts cost: the time of patterns and readers of exports grows with their size.

It is time of the processor, and counted as a ratio: eight times the text may not take 24 times as
long. `fuzzing/patterns.py` finds the patterns, and makes the texts of what they match.
"""

import json
import re
import shutil
from importlib import import_module

import pytest

from export_samples import write
from fuzzing.patterns import MORE, Text, Used, growth, least_seconds, used_patterns
from rejoinder.corpus.export_options import mask_pii
from rejoinder.corpus.texts import entries_of
from rejoinder.errors import RejoinderError
from rejoinder.exports import FORMATS

_SOME = 30
"""Texts for each pattern."""
_COMMON = ("\n", "<div>", "[ ")


def test_a_pattern_that_goes_back_and_forth_is_found():
    for pattern in (r"\s+$", r"x.*y"):
        used = Used("", re.compile(pattern), "search")
        assert any(growth(used.search, text) > MORE for text in used.texts()), pattern


def test_no_pattern_goes_back_and_forth():
    places = {used.place for used in used_patterns()}
    assert len(places) > 150
    assert places >= {"rejoinder.exports.markup._MARKS", "rejoinder.text"}
    assert any(place.startswith("rejoinder.exports.rows:") for place in places)
    slow = [
        (used.place, text)
        for used in used_patterns()
        for texts in [used.texts()]
        for text in texts[:: 1 + len(texts) // _SOME]
        if growth(used.search, text) > MORE
    ]
    assert not slow


@pytest.mark.slow
def test_no_pattern_goes_back_and_forth_in_long_texts():
    for used in used_patterns():
        texts = used.texts()
        assert all(growth(used.search, text) <= MORE for text in texts), used.place
        costs = {text: least_seconds(used.search, text.of(2_000)) for text in texts}
        for text in sorted(texts, key=costs.__getitem__)[-2:]:
            smaller, larger = (
                least_seconds(used.search, text.of(size)) for size in (30_000, 240_000)
            )
            # larger texts leave the caches; going back and forth would take 64 times as long
            assert larger < 2 * MORE * smaller, (used.place, text)


class Export:
    """A made-up export in which hostile texts stand for names and what is said."""

    def __init__(self, name, folder):
        sample = import_module(f"export_samples.{name}")
        self._files, self._folder = sample.FILES, folder
        said = {one for message in sample.MESSAGES for one in (message.text, message.author)}
        lines = {line for text in said for line in text.split("\n")}
        self._replaced = sorted((line for line in lines if len(line) > 2), key=len, reverse=True)

    def read(self, text):
        shutil.rmtree(self._folder, ignore_errors=True)
        write(
            {name: self._with(content, text) for name, content in self._files.items()}, self._folder
        )
        try:
            for entry in entries_of(self._folder):
                mask_pii(entry.text)
        except RejoinderError:  # nothing is left to read
            pass

    def _with(self, content, text):
        if isinstance(content, bytes):
            return content
        written = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        told = json.dumps(text)[1:-1] if written.lstrip()[:1] in ("{", "[") else text
        for line in self._replaced[:3]:
            written = written.replace(line, told, 1)
        return written


def takes_its_share(export, piece, sizes):
    """Whether a larger text takes no longer than its size says, in one of three trials."""
    smaller, larger = (Text("", piece, "").of(size) for size in sizes)
    return any(
        least_seconds(export.read, larger, 1) < MORE * least_seconds(export.read, smaller, 1)
        for _ in range(3)
    )


@pytest.mark.parametrize("name", list(FORMATS))
def test_no_reader_takes_more_than_its_share(name, tmp_path):
    for piece in _COMMON:
        assert takes_its_share(Export(name, tmp_path / "export"), piece, (1_000, 8_000)), piece
