"""The kernel of the softmax against torch."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import both_ways
from rejoinder.kernels import kernel
from rejoinder.training.losses import in_batch
from rejoinder.training.losses.in_batch import log_sums, softmax

pytestmark = pytest.mark.skipif(
    kernel("training.losses._softmax") is None, reason="the kernel was not built"
)


both = partial(both_ways, in_batch)
"""With the kernel, and without it."""


@settings(max_examples=100)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(1, 12),
    more=st.integers(0, 40),
    scale=st.sampled_from([0.5, 20.0, 200.0]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    masked=st.booleans(),
    columns=st.booleans(),
)
def test_kernel_and_torch_agree(seed, rows, more, scale, dtype, masked, columns):
    random = np.random.default_rng(seed)
    own = int(random.integers(0, more + 1))
    cosines = torch.from_numpy(random.uniform(-1, 1, (rows, rows + more)).astype(np.float32))
    if masked:
        chosen = random.random(cosines.shape) < 0.2
        chosen[np.arange(rows), own + np.arange(rows)] = False
        cosines[torch.from_numpy(chosen)] = in_batch._LEFT_OUT
    cosines, scale_ = cosines.to(dtype), torch.tensor(scale)
    column = log_sums(cosines, scale_, rows + more) if columns else None
    if column is not None:
        column[column < -1e9] = 0.0  # nobody's candidate: left out in every row
    kernel_, torch_ = both(lambda: softmax(cosines, own, scale_, column))
    # float32 has a score of 200 to 2e-5, and a loss is a sum of them: bounds follow the scale
    near = max(1e-6, 3e-7 * scale)
    torch.testing.assert_close(kernel_.loss, torch_.loss, atol=10 * near, rtol=1e-5)
    assert kernel_.correct == torch_.correct
    fine = {"atol": near, "rtol": 1e-4}
    wide = {"atol": 1e-2, "rtol": 1e-2} if dtype == torch.bfloat16 else fine
    torch.testing.assert_close(kernel_.by_scores, torch_.by_scores, **wide)
    torch.testing.assert_close(kernel_.along, torch_.along, atol=3 * near, rtol=1e-4)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_not_finite_makes_the_loss_nan(value):
    cosines = torch.zeros(3, 20)
    cosines[1, 17] = value
    found = softmax(cosines, 0, torch.tensor(2.0), None)
    assert torch.isnan(found.loss)


def test_candidates_beyond_the_scores_are_refused():
    with pytest.raises(ValueError, match="softmax"):
        softmax(torch.zeros(3, 5), 3, torch.tensor(1.0), None)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(1, 40),
    columns=st.integers(1, 60),
    scale=st.sampled_from([0.5, 20.0, 200.0]),
)
def test_log_sums_of_columns_are_those_of_torch(seed, rows, columns, scale):
    random = np.random.default_rng(seed)
    cosines = torch.from_numpy(random.uniform(-1, 1, (rows, columns)).astype(np.float32))
    size = int(random.integers(1, columns + 1))
    kernel_, torch_ = both(lambda: log_sums(cosines, torch.tensor(scale), size))
    torch.testing.assert_close(kernel_, torch_, atol=max(1e-6, 3e-7 * scale), rtol=1e-6)
