"""The loss against the softmax written out."""

import math

import pytest
import torch

from rejoinder.objectives.response_selection import duplicates, response_selection


def rows(count: int, seed: int) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.randn(count, 4, generator=torch.Generator().manual_seed(seed)), dim=1
    )


def slow(inputs, responses, scale, same=None):
    total = 0.0
    for i in range(len(inputs)):
        scores = {
            j: scale * float(inputs[i] @ responses[j])
            for j in range(len(responses))
            if same is None or not same[i][j]
        }
        total -= math.log(math.exp(scores[i]) / sum(map(math.exp, scores.values())))
    return total / len(inputs)


def test_loss_is_the_mean_cross_entropy_of_the_diagonal():
    inputs, responses = rows(6, 0), rows(6, 1)
    result = response_selection(inputs, responses, 3.0)
    assert result.loss.item() == pytest.approx(slow(inputs, responses, 3.0), abs=1e-5)
    scores = inputs @ responses.T
    assert result.correct.item() == sum(int(scores[i].argmax()) == i for i in range(6))


def test_symmetric_is_the_mean_of_both_directions():
    inputs, responses = rows(6, 0), rows(6, 1)
    both = response_selection(inputs, responses, 3.0, symmetric=True).loss.item()
    expected = (slow(inputs, responses, 3.0) + slow(responses, inputs, 3.0)) / 2
    assert both == pytest.approx(expected, abs=1e-5)


def test_masked_duplicates_are_no_negatives():
    inputs, responses = rows(4, 0), rows(4, 1)
    responses[2] = responses[0]
    same = duplicates(torch.tensor([1, 2, 3, 2]), torch.tensor([7, 8, 7, 9]))
    assert same.nonzero().tolist() == [[0, 2], [1, 3], [2, 0], [3, 1]]
    masked = response_selection(inputs, responses, 3.0, same=same).loss.item()
    assert masked == pytest.approx(slow(inputs, responses, 3.0, same), abs=1e-5)
    assert masked < response_selection(inputs, responses, 3.0).loss.item()


def test_a_perfect_batch_costs_nothing():
    eye = torch.eye(4)
    result = response_selection(eye, eye, 100.0)
    assert result.loss.item() == pytest.approx(0.0, abs=1e-6)
    assert result.correct.item() == 4
