"""Readers of labelled data against damaged files: a value, or one sentence."""

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.datasets import CASES, read_damaged
from rejoinder.errors import RejoinderError


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_read_or_refused(name, seed):
    with tempfile.TemporaryDirectory() as folder:
        try:
            read_damaged(name, random.Random(seed), Path(folder))
            said = ""
        except RejoinderError as error:
            said = str(error)
        assert "\n" not in said
