"""A folder that somebody edited is a model or a ModelError, and what is loaded encodes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.model_folders import MODELS, check, files_of
from fuzzing.models import mutated_model


@pytest.mark.parametrize("kind", MODELS)
def test_an_edited_folder_is_a_model_or_a_model_error(kind, tmp_path):
    files = files_of(MODELS[kind](), tmp_path / "model")
    assert check(files, tmp_path / "edited")

    @settings(
        max_examples=120 if "dan" in kind else 50,
    )
    @given(st.integers(0, 2**32))
    def holds(seed):
        check(mutated_model(Random(seed), files), tmp_path / "edited")

    holds()
