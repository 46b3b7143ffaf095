"""The classifier of pairs, and the form that ranks."""

import numpy as np
import pytest
import torch

from rejoinder.encoders.nn.layers import FeedForward
from rejoinder.training.losses.in_batch import StepInputs, in_batch_softmax
from rejoinder.training.objectives import ENTAILMENT_KIND, pair_features


def rows(count: int, seed: int, width: int = 4) -> torch.Tensor:
    drawn = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=1)


def classified(head, u, v, labels):
    """The loss of a step of the classifier."""
    one = torch.ones(())
    return ENTAILMENT_KIND.loss(StepInputs(u, v, labels, None, one, head, task=None))


def test_features_are_those_of_the_paper():
    u, v = torch.tensor([[0.6, 0.8]]), torch.tensor([[1.0, 0.0]])
    root = 2**0.5
    expected = [0.6 * root, 0.8 * root, root, 0.0, 0.4 * root, 0.8 * root, 0.6 * root, 0.0]
    assert pair_features(u, v)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_classifier_learns_which_pairs_are_alike():
    generator = torch.Generator().manual_seed(0)
    head = FeedForward(16, (16, 3), "tanh", residual=False, generator=generator)
    u = rows(300, 1)
    labels = torch.arange(300) % 3
    v = torch.where(
        (labels == 2)[:, None], u, torch.where((labels == 0)[:, None], -u, rows(300, 2))
    )
    steps = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(150):
        found = classified(head, u, v, labels)
        steps.zero_grad()
        found.loss.backward()
        steps.step()
    assert found.correct.item() / 300 > 0.9
    scores = head(pair_features(u, v))
    picked = -scores.log_softmax(dim=1)[torch.arange(300), labels]
    assert classified(head, u, v, labels).loss.item() == pytest.approx(
        picked.mean().item(), abs=1e-6
    )


def test_a_contradiction_is_one_more_candidate():
    premises, hypotheses = rows(3, 0), rows(5, 1)
    found = in_batch_softmax(premises, hypotheses, torch.tensor(3.0)).loss.item()
    scores = 3 * (premises @ hypotheses.T).numpy().astype(float)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert found == pytest.approx(-np.log(np.diag(shares)).mean(), abs=1e-5)
    assert found > in_batch_softmax(premises, hypotheses[:3], torch.tensor(3.0)).loss.item()


def test_paraphrases_have_no_direction():
    first, second, scale = rows(6, 0), rows(6, 1), torch.tensor(4.0)
    one = in_batch_softmax(first, second, scale, symmetric=True).loss.item()
    assert one == pytest.approx(
        in_batch_softmax(second, first, scale, symmetric=True).loss.item(), abs=1e-6
    )
