"""Training steps a second of a Transformer: ways to cut batches into groups, and PyTorch's kernels.

    python benchmarks/transformer.py --pairs pairs/
    python benchmarks/transformer.py --pairs pairs/ --batch 256 --threads 1 encoder.hidden=128

Steps (forward, backward, optimiser) on batches of messages and replies, for several ways to cut a
batch into groups, and with PyTorch's attention and dropout in place of ours. Rounds take turns, so
that a machine that slows down slows down all. On a busy machine compare the seconds of CPU.
The subwords are learned from the same sample of the pairs.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from rejoinder.corpus.shards import Pairs, open_pairs
from rejoinder.encoders import transformer
from rejoinder.encoders.padding import PaddedBatch, pad_groups
from rejoinder.text.ragged import Ragged
from rejoinder.text.subwords import SubwordFeatures, learn_subwords
from rejoinder.training.batches import Batch, Position
from rejoinder.training.config import load_config
from rejoinder.training.machine import describe_machine, own_torch_state
from rejoinder.training.model import CollatedBatch, TrainableModel
from rejoinder.training.optimizers import Optimizers
from rejoinder.training.settings import RunConfig
from rejoinder.training.stream import PairStream
from rejoinder.training.tasks.responses import ResponsesTask

SAMPLE_BLOCKS = 8
WINDOW = 32_768
ALL = 2**40
"""More positions than a batch has: everything in one group."""


def fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """PyTorch's kernel."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


KERNELS: dict[str, tuple[str, Callable[..., Tensor]]] = {
    "torch attention": ("attention", fused_attention),
    "torch dropout": ("dropout", F.dropout),
}
"""What to put in place of a function of the encoder's module, by the name of the row."""


def cuttings(model: TrainableModel) -> dict[str, Callable[[Ragged], PaddedBatch]]:
    """Ways to cut a batch into groups, by name."""
    ways: dict[str, Callable[[Ragged], PaddedBatch]] = {
        "one group": lambda batch: pad_groups(batch, ALL, ALL),
        "as shipped": model.encoder.collate,
    }
    for overhead in (4, 16, 64):
        ways[f"overhead {overhead}"] = partial(pad_groups, positions=8_192, overhead=overhead)
    return ways | dict.fromkeys(KERNELS, model.encoder.collate)


@contextmanager
def replaced(name: str = "", function: Callable[..., Tensor] | None = None) -> Iterator[None]:
    """Puts `function` in the place of one of the encoder's module, within the context."""
    if function is None:
        yield
        return
    ours = getattr(transformer, name)
    setattr(transformer, name, function)
    try:
        yield
    finally:
        setattr(transformer, name, ours)


def learned_subwords(pairs: Pairs, config: RunConfig) -> SubwordFeatures:
    """Subwords of a sample of the pairs."""
    text = config.text
    if text.kind != "subwords":
        raise SystemExit(f"{config.name} reads {text.kind}; name the config of a Transformer")
    blocks = pairs.blocks("train")
    chosen = blocks[:: max(1, len(blocks) // SAMPLE_BLOCKS)]
    frames = [pairs.read(block, ["input", "response"]) for block in chosen]
    texts = [frame.get_column(name) for frame in frames for name in ("input", "response")]
    return learn_subwords(
        texts, size=text.max_words, min_count=text.min_count, max_tokens=text.max_tokens
    )


class Stepper:
    """Takes training steps."""

    def __init__(self, model: TrainableModel, config: RunConfig) -> None:
        self.model, self.phase = model, config.phases[0]
        dense = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizers = Optimizers(dense, model.encoder.tables(), config.optimizer)
        self.task = ResponsesTask(objective="responses", share=1.0)

    def __call__(self, batch: Batch, cut: Callable[[Ragged], PaddedBatch]) -> tuple[float, float]:
        """Takes a step; returns its seconds, and its seconds of CPU."""
        begun = time.perf_counter(), time.process_time()
        collated = CollatedBatch(
            self.task, cut(batch.sentences), len(batch.left_keys), same=None, labels=None
        )
        self.optimizers.zero()
        self.model.loss(collated).loss.backward()  # type: ignore[no-untyped-call]
        self.optimizers.finite()
        self.optimizers.step(self.phase, 0)
        return time.perf_counter() - begun[0], time.process_time() - begun[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--config", default="transformer-small")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("overrides", nargs="*", help="as of rejoinder train")
    chosen = parser.parse_args()
    config, pairs = load_config(chosen.config, chosen.overrides), open_pairs(chosen.pairs)
    features = learned_subwords(pairs, config)
    with own_torch_state(torch.device("cpu"), chosen.threads):
        model = TrainableModel(features.rows, config, torch.Generator().manual_seed(0)).train()
        step, ways = Stepper(model, config), cuttings(model)
        stream = PairStream(pairs, features, window_pairs=WINDOW, seed=0)
        batches = stream.batches(Position(), lambda: chosen.batch)
        step(next(batches), model.encoder.collate)  # the first one allocates
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        padded = dict.fromkeys(ways, 0)
        tokens = 0
        for _, batch in zip(range(chosen.rounds), batches, strict=False):
            tokens += len(batch.sentences.ids)
            for name, cut in ways.items():
                with replaced(*KERNELS.get(name, ())):
                    found[name].append(step(batch, cut))
                groups = cut(batch.sentences).groups
                padded[name] += sum(group.ids.numel() for group in groups)
        threads = torch.get_num_threads()
    machine = describe_machine()
    print(
        f"batches of {chosen.batch} pairs, {tokens // chosen.rounds:,} subwords; median of "
        f"{chosen.rounds}; {threads} threads; {machine['processor']}, torch {machine['torch']}"
    )
    for name, times in found.items():
        seconds, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:15s} {1 / seconds:7.2f} steps/s  {chosen.batch / seconds:7,.0f} pairs/s  "
            f"{cpu:6.2f} s of CPU a step  {padded[name] / tokens - 1:6.1%} padding"
        )


if __name__ == "__main__":
    main()
