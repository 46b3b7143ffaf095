"""The loss against the softmax written out, and its gradients against PyTorch's own."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.training.loop.model import duplicates
from rejoinder.training.losses import in_batch as module
from rejoinder.training.losses.in_batch import in_batch_softmax


def rows(count: int, seed: int) -> torch.Tensor:
    return F.normalize(torch.randn(count, 4, generator=torch.Generator().manual_seed(seed)), dim=1)


def slow(inputs, responses, scale, same=()):
    total = 0.0
    for i in range(len(inputs)):
        scores = {
            j: scale * float(inputs[i] @ responses[j])
            for j in range(len(responses))
            if (i, j) not in same
        }
        total -= math.log(math.exp(scores[i]) / sum(map(math.exp, scores.values())))
    return total / len(inputs)


def dense(inputs, responses, scale, same, *, symmetric, nested=()):
    """The same with PyTorch's operations, which differentiate themselves."""
    if nested:
        cut = [[F.normalize(side[:, :n], dim=1) for side in (inputs, responses)] for n in nested]
        sides = [*cut, (inputs, responses)]
        return sum(dense(*each, scale, same, symmetric=symmetric) for each in sides) / len(sides)
    scores = inputs @ responses.T * scale
    if same is not None:
        masked = torch.zeros(scores.shape).index_put_(tuple(same), torch.ones(())).bool()
        scores = scores.masked_fill(masked, float("-inf"))
    size = len(scores)
    target = torch.arange(size)
    loss = F.cross_entropy(scores, target)
    if symmetric:
        loss = (loss + F.cross_entropy(scores[:, :size].T, target)) / 2
    return loss


def test_loss_is_the_mean_cross_entropy_of_the_diagonal():
    inputs, responses = rows(6, 0), rows(6, 1)
    result = in_batch_softmax(inputs, responses, torch.tensor(3.0))
    assert result.loss.item() == pytest.approx(slow(inputs, responses, 3.0), abs=1e-5)
    scores = inputs @ responses.T
    assert result.correct.item() == sum(int(scores[i].argmax()) == i for i in range(6))


def test_masked_duplicates_are_no_negatives():
    inputs, responses = rows(4, 0), rows(4, 1)
    responses[2] = responses[0]
    same = duplicates(np.array([1, 2, 3, 2]), np.array([7, 8, 7, 9]))
    places = list(zip(*same.tolist(), strict=True))
    assert places == [(0, 2), (1, 3), (2, 0), (3, 1)]
    three = torch.tensor(3.0)
    masked = in_batch_softmax(inputs, responses, three, same=torch.from_numpy(same)).loss.item()
    assert masked == pytest.approx(slow(inputs, responses, 3.0, places), abs=1e-5)
    assert masked < in_batch_softmax(inputs, responses, three).loss.item()


@settings(max_examples=40)
@given(
    size=st.integers(2, 9),
    seed=st.integers(0, 99),
    symmetric=st.booleans(),
    masked=st.booleans(),
    strip=st.sampled_from([1, 7, 20, 1 << 20]),
    more=st.integers(0, 5),
    nested=st.sampled_from([(), (2,), (2, 3)]),
)
def test_gradients_are_those_of_pytorch(size, seed, symmetric, masked, strip, more, nested):
    keys = np.random.default_rng(seed).integers(0, 6, (2, size))
    same = torch.from_numpy(duplicates(keys[0], keys[1])) if masked else None
    ours = [rows(size, seed), rows(size + more, seed + 1), torch.tensor(2.5)]
    theirs = [value.clone() for value in ours]
    for value in (*ours, *theirs):
        value.requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_STRIP_SCORES", strip)
        loss = in_batch_softmax(*ours, same=same, symmetric=symmetric, nested=nested).loss
    expected = dense(*theirs, same, symmetric=symmetric, nested=nested)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    (3 * loss).backward()
    (3 * expected).backward()
    near = 1e-4 if nested else 1e-5  # short entries are scaled up, and rounding with them
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=near, rtol=1e-4)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_duplicates_are_those_of_the_definition(keys):
    inputs, responses = (np.array(column, np.int64) for column in zip(*keys, strict=True))
    expected = [
        (i, j)
        for i in range(len(keys))
        for j in range(len(keys))
        if i != j and (inputs[i] == inputs[j] or responses[i] == responses[j])
    ]
    assert list(zip(*duplicates(inputs, responses).tolist(), strict=True)) == expected


def test_a_perfect_batch_costs_nothing():
    eye = torch.eye(4)
    result = in_batch_softmax(eye, eye, torch.tensor(100.0))
    assert result.loss.item() == pytest.approx(0.0, abs=1e-6)
    assert result.correct.item() == 4


def test_an_empty_sentence_has_no_gradient_of_its_own_in_nested_dimensions():
    anchors, candidates = rows(3, 0), rows(3, 1)
    anchors[1] = 0.0
    anchors.requires_grad_()
    step = in_batch_softmax(anchors, candidates, torch.tensor(9.0), symmetric=True, nested=[2])
    step.loss.backward()
    assert step.loss.isfinite()
    assert anchors.grad.isfinite().all()


def test_bfloat16_is_near():
    inputs, responses, scale = rows(50, 0), rows(50, 1), torch.tensor(10.0)
    exact = in_batch_softmax(inputs, responses, scale).loss
    with torch.autocast("cpu", torch.bfloat16):
        near = in_batch_softmax(inputs, responses, scale).loss
    assert near.dtype == torch.float32
    assert near.item() == pytest.approx(exact.item(), rel=0.01)
