"""What results say of leaks."""

import numpy as np
import pytest

from rejoinder.evaluation.notes import leak_note
from rejoinder.evaluation.results import Result, stamp

TRAINING = {"leaks_dropped": 1_570, "leak_sets": ["stsb-dev", "stsb-test", "sts2017", "sts12"]}
LEFT_OUT = "training left out 1,570 pairs with sentences of stsb-dev, stsb-test, sts2017, sts12"
UNCHECKED = "the training data was not checked for sentences of this set"


@pytest.mark.parametrize(
    ("task", "split", "note"),
    [
        ("stsb/angular", "dev", LEFT_OUT),
        ("stsb-unrepeated/cosine", "test", LEFT_OUT),
        ("stsb/senteval-regression", "test", LEFT_OUT),
        ("stsb/cosine", "train", UNCHECKED),
        ("sts12/cosine", "test", LEFT_OUT),
        ("sts17/cosine", "test", LEFT_OUT),
        ("sts17/difficult", "test", LEFT_OUT),
        ("contrasts/names", "test", UNCHECKED),
        ("bias/age", "test", None),
        ("sts16/cosine", "test", UNCHECKED),
        ("mr/senteval", "all", UNCHECKED),
        ("response/p@n", "test", None),
    ],
)
def test_the_set_scored_is_named_or_not_checked(task, split, note):
    assert leak_note(task, split, {"training": TRAINING}) == note


def test_models_that_excluded_nothing_and_encoders_of_others():
    assert leak_note("stsb/cosine", "dev", {"training": {"leak_sets": []}}) == UNCHECKED
    for about in ({}, {"training": None}, {"training": "Wikipedia"}, {"training": {"pairs": 1}}):
        assert leak_note("stsb/cosine", "dev", about) is None


def test_results_carry_the_note_behind_their_own():
    result = Result("stsb/cosine", "test", 2, "pearson", {"pearson": np.float64(0.5)}, {}, {}, 0,
                    {}, notes=("one",))  # fmt: skip
    assert stamp(result, {"training": TRAINING}, {}, 0).notes == ("one", LEFT_OUT)
    assert stamp(result, {}, {}, 0).notes == ("one",)
