"""Candidates of several workers: their losses and gradients together are those of one process.

The workers are threads here; tests/training/test_workers.py has processes.
"""

from threading import Barrier, Thread

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.training.data.batches import duplicates
from rejoinder.training.losses.in_batch import in_batch_softmax
from rejoinder.training.losses.joined import Joined

DIM = 6


class Together:
    """What workers that are threads hand each other."""

    def __init__(self, count: int) -> None:
        self.barrier = Barrier(count, timeout=20)
        self.given: list[torch.Tensor] = [torch.empty(0)] * count


class Peers:
    def __init__(self, together: Together, index: int) -> None:
        self.together, self.index = together, index

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        self.together.given[self.index] = tensor.clone()
        self.together.barrier.wait()
        found = list(self.together.given)
        self.together.barrier.wait()
        return found

    def add(self, tensor: torch.Tensor) -> None:
        tensor.copy_(torch.stack(self.gather(tensor)).sum(dim=0))

    def most(self, tensor: torch.Tensor) -> None:
        tensor.copy_(torch.stack(self.gather(tensor)).amax(dim=0))


def leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone().requires_grad_()


def divided(values: torch.Tensor, sizes: list[int]) -> list[torch.Tensor]:
    return [leaf(part) for part in torch.split(values, sizes)]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(lambda rows: sum(rows) > 1),
    more=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    symmetric=st.booleans(),
    nested=st.sampled_from([(), (2,), (1, 4)]),
    seed=st.integers(0, 1000),
)
def test_together_they_have_the_loss_and_the_gradients_of_one(rows, more, symmetric, nested, seed):
    count, size, more = len(rows), sum(rows), more[: len(rows)]
    draw = torch.Generator().manual_seed(seed)
    anchors, own = (F.normalize(torch.randn(size, DIM, generator=draw), dim=1) for _ in range(2))
    others = F.normalize(torch.randn(sum(more), DIM, generator=draw), dim=1)
    same = duplicates(*np.random.default_rng(seed).integers(0, 4, (2, size)))
    options = {"symmetric": symmetric, "nested": nested}

    left, right, scale = leaf(anchors), leaf(torch.cat([own, others])), leaf(torch.tensor(7.0))
    whole = in_batch_softmax(left, right, scale, same=torch.from_numpy(same), **options)
    whole.loss.backward()

    lefts, parts = divided(anchors, rows), divided(own, rows)
    furthers = divided(others, more)
    scales = [leaf(torch.tensor(7.0)) for _ in rows]
    together, found = Together(count), [None] * count

    def work(index: int) -> None:
        first = sum(rows[:index])
        chosen = same[:, (same[0] >= first) & (same[0] < first + rows[index])]
        result = in_batch_softmax(
            lefts[index],
            torch.cat([parts[index], furthers[index]]),
            scales[index],
            same=torch.from_numpy(chosen - [[first], [0]]),
            joined=Joined(Peers(together, index), index, tuple(rows), tuple(more)),
            **options,
        )
        (result.loss * rows[index] / size).backward()
        found[index] = result

    threads = [Thread(target=work, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    loss = sum(result.loss * part / size for result, part in zip(found, rows, strict=True))
    assert loss.item() == pytest.approx(whole.loss.item(), rel=1e-5)
    assert sum(int(result.correct) for result in found) == int(whole.correct)
    gradients = [torch.cat([each.grad for each in side]) for side in (lefts, parts, furthers)]
    expected = [left.grad, right.grad[:size], right.grad[size:]]
    near = 1e-4 if nested else 2e-6  # short entries are scaled up, and rounding with them
    for gradient, one in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, one, atol=near, rtol=1e-4)
    total = sum(each.grad for each in scales)
    torch.testing.assert_close(total, scale.grad, atol=2e-6, rtol=1e-4)
