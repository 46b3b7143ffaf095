"""Seconds of the in-batch softmax, forward and backward, against one call per direction and size.

    python benchmarks/softmax.py --rows 2048 --dim 1024 --nested 128 512

Both compute the same loss: symmetric, over the first entries of the rows as well. The two take
turns; the medians and their ratio are printed.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from rejoinder.training.losses.in_batch import in_batch_softmax
from rejoinder.training.workers import describe_machine


def at_once(left: Tensor, right: Tensor, scale: Tensor, nested: list[int]) -> Tensor:
    return in_batch_softmax(left, right, scale, symmetric=True, nested=nested).loss


def one_by_one(left: Tensor, right: Tensor, scale: Tensor, nested: list[int]) -> Tensor:
    sides = [(F.normalize(left[:, :n], dim=1), F.normalize(right[:, :n], dim=1)) for n in nested]
    losses = [
        in_batch_softmax(one, other, scale).loss
        for first, second in [*sides, (left, right)]
        for one, other in ((first, second), (second, first))
    ]
    return torch.stack(losses).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_048)
    parser.add_argument("--dim", type=int, default=1_024)
    parser.add_argument("--nested", type=int, nargs="*", default=[128, 512])
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()

    draw = torch.Generator().manual_seed(0)
    noise = torch.randn(2, args.rows, args.dim, generator=draw)
    left = F.normalize(noise[0], dim=1).requires_grad_()
    right = F.normalize(noise[0] + noise[1], dim=1).requires_grad_()
    scale = torch.tensor(20.0, requires_grad=True)
    seconds: dict[str, list[float]] = {"at once": [], "one by one": []}
    for _ in range(args.rounds):
        for name, loss in (("at once", at_once), ("one by one", one_by_one)):
            start = time.perf_counter()
            loss(left, right, scale, args.nested).backward()  # type: ignore[no-untyped-call]
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(describe_machine())
    for name, median in medians.items():
        print(f"{name:>10}  {median:.3f} s")
    print(f"     ratio  {medians['one by one'] / medians['at once']:.2f}")


if __name__ == "__main__":
    main()
