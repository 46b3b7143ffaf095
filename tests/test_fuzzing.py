"""A few hundred inputs of each area of `benchmarks/fuzz.py`: accepted, or refused in a sentence."""

from random import Random

import pytest

from fuzzing import config, results, run_folders, texts


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("area", "inputs"), [(config, 400), (texts, 150), (results, 60), (run_folders, 40)]
)
def test_what_nobody_should_write_is_accepted_or_refused(area, inputs, tmp_path):
    check = area.checker(tmp_path)
    accepted = [check(Random(f"test/{number}")) for number in range(inputs)]  # raises for a find
    assert {True, False} == set(accepted)
