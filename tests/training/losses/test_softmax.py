"""The kernel of the softmax against torch."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import both_ways
from rejoinder.registry import kernel
from rejoinder.training.losses import in_batch
from rejoinder.training.losses.in_batch import log_sums, softmax

pytestmark = pytest.mark.skipif(
    kernel("training.losses._softmax") is None, reason="the kernel was not built"
)


both = partial(both_ways, in_batch)
"""With the kernel, and without it."""


def factors_of(random: np.random.Generator, cosines: torch.Tensor) -> in_batch.Factors:
    rows, columns = (
        torch.from_numpy(random.uniform(0.5, 1, size).astype(np.float32)) for size in cosines.shape
    )
    return rows, columns


@settings(max_examples=100)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(1, 40),
    more=st.integers(0, 40),
    scale=st.sampled_from([0.5, 20.0, 200.0]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    masked=st.booleans(),
    columns=st.booleans(),
    scaled=st.booleans(),
)
def test_kernel_and_torch_agree(seed, rows, more, scale, dtype, masked, columns, scaled):
    random = np.random.default_rng(seed)
    own = int(random.integers(0, more + 1))
    cosines = torch.from_numpy(random.uniform(-1, 1, (rows, rows + more)).astype(np.float32))
    if masked:
        chosen = random.random(cosines.shape) < 0.2
        chosen[np.arange(rows), own + np.arange(rows)] = False
        cosines[torch.from_numpy(chosen)] = in_batch._LEFT_OUT
    cosines, scale_ = cosines.to(dtype), torch.tensor(scale)
    factors = factors_of(random, cosines) if scaled else None
    column = log_sums(cosines, scale_, rows + more, factors) if columns else None
    if column is not None:
        column[column < -1e9] = 0.0  # nobody's candidate: left out in every row
    kernel_, torch_ = both(lambda: softmax(cosines, own, scale_, column, factors))
    # float32 has a score of 200 to 2e-5, and a loss is a sum of them: bounds follow the scale
    near = max(1e-6, 3e-7 * scale)
    torch.testing.assert_close(kernel_.loss, torch_.loss, atol=10 * near, rtol=1e-5)
    assert kernel_.correct == torch_.correct
    fine = {"atol": near, "rtol": 1e-4}
    wide = {"atol": 1e-2, "rtol": 1e-2} if dtype == torch.bfloat16 else fine
    torch.testing.assert_close(kernel_.by_scores, torch_.by_scores, **wide)
    torch.testing.assert_close(kernel_.along, torch_.along, atol=3 * near, rtol=1e-4)
    if scaled:
        sums = kernel_.along_columns, torch_.along_columns
        torch.testing.assert_close(*sums, atol=rows * near, rtol=1e-4)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_not_finite_makes_the_loss_nan(value):
    cosines = torch.zeros(3, 20)
    cosines[1, 17] = value
    found = softmax(cosines, 0, torch.tensor(2.0), None)
    assert torch.isnan(found.loss)


def test_sizes_that_do_not_belong_together_are_refused():
    scores, one = torch.zeros(3, 5), torch.tensor(1.0)
    with pytest.raises(ValueError, match="softmax"):
        softmax(scores, 3, one, None)
    for factors in ((torch.ones(2), torch.ones(5)), (torch.ones(3), torch.ones(4))):
        with pytest.raises(ValueError, match="softmax"):
            softmax(scores, 0, one, None, factors)
        with pytest.raises(ValueError, match="log_sums"):
            log_sums(scores, one, 5, factors)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(1, 40),
    columns=st.integers(1, 60),
    scale=st.sampled_from([0.5, 20.0, 200.0]),
    scaled=st.booleans(),
)
def test_log_sums_of_columns_are_those_of_torch(seed, rows, columns, scale, scaled):
    random = np.random.default_rng(seed)
    cosines = torch.from_numpy(random.uniform(-1, 1, (rows, columns)).astype(np.float32))
    size = int(random.integers(1, columns + 1))
    factors = factors_of(random, cosines) if scaled else None
    kernel_, torch_ = both(lambda: log_sums(cosines, torch.tensor(scale), size, factors))
    torch.testing.assert_close(kernel_, torch_, atol=max(1e-6, 3e-7 * scale), rtol=1e-6)
