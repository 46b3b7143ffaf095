"""Training steps a second of a Transformer, as shipped and with other ways to compute the same.

    python benchmarks/transformer.py --pairs pairs/
    python benchmarks/transformer.py --pairs pairs/ --batch 256 --threads 1 encoder.hidden=128
    python benchmarks/transformer.py --pairs pairs/ --config transformer-modern --batch 128,1024

Steps (forward, backward, optimiser) on batches of messages and replies: with other groups of like
lengths, with PyTorch's attention instead of ours, and with blocks that torch.compile made; on a GPU
also with padded attention. Rounds take turns, so that a machine that slows down slows all of them.
On a busy machine compare the seconds of CPU. The subwords are learned from the same sample of the
pairs. On a GPU it also says what share of the speed of a large bfloat16 product a step reaches,
counting the operations that the model needs, without padding.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rejoinder.corpus.writer import Pairs, open_pairs
from rejoinder.encoders import modules
from rejoinder.encoders.settings import TransformerConfig
from rejoinder.text.vocabulary import SubwordFeatures, learn_subwords
from rejoinder.training.config.loading import load_config
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import MixedBatch
from rejoinder.training.data.stream import Batch, PairStream, Position
from rejoinder.training.loop.model import Optimizers, TrainableModel
from rejoinder.training.objectives import ResponsesTask
from rejoinder.training.workers import (
    describe_machine,
    kept_memory,
    own_torch_state,
    pick_device,
)

SAMPLE_BLOCKS = 8
WINDOW = 32_768


def fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """PyTorch's kernel."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


Change = tuple[object, str, object] | None
"""The replacement of an attribute of a module or class."""
COMPILED: Change = (
    modules._Block,
    "forward",
    torch.compile(modules._Block.forward, dynamic=True),
)
WAYS: dict[str, dict[str, Change]] = {
    "cpu": {
        "as shipped": None,
        "groups, 4 more": (modules, "_GROUP_OVERHEAD", 4),
        "groups, 64 more": (modules, "_GROUP_OVERHEAD", 64),
        "torch attention": (modules, "attention", fused_attention),
        "compiled blocks": COMPILED,
    },
    "cuda": {
        "as shipped": None,
        "padded attention": (modules, "varlen_attn", None),
        "unchecked": (Optimizers, "finite", lambda _self: torch.tensor(True)),
        "compiled blocks": COMPILED,
    },
}
"""By device, the changes by name."""


@contextmanager
def replaced(change: Change) -> Iterator[None]:
    """Puts the change in place, within the context."""
    if change is None:
        yield
        return
    module, name, value = change
    ours = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, ours)


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

    def __call__(self, batch: Batch) -> tuple[float, float]:
        """Takes a step; returns its seconds, and its seconds of CPU."""
        mixed = MixedBatch(self.task, "responses", batch)
        if self.model.device.type == "cuda":  # a thread prepares batches meanwhile
            collated = self.model.collate(mixed).to(self.model.device)
            torch.cuda.synchronize()
        begun = time.perf_counter(), time.process_time()
        if self.model.device.type == "cpu":
            collated = self.model.collate(mixed)
        self.optimizers.zero()
        loss = self.model.loss(collated, self.model.embed(collated.chunks[0])).loss
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizers.collect()
        bool(self.optimizers.finite())
        self.optimizers.step(self.phase, 0)
        if self.model.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begun[0], time.process_time() - begun[1]


def operations(config: RunConfig, batch: Batch) -> float:
    """Floating-point operations of a step, forward and backward: products of matrices alone."""
    encoder = cast("TransformerConfig", config.encoder)
    lengths = batch.sentences.lengths.astype(np.float64)
    hidden, wide, dim = encoder.hidden, encoder.filter, encoder.dim
    dense = encoder.layers * (4 * hidden**2 + 2 * hidden * wide) * lengths.sum()
    attention = encoder.layers * 2 * hidden * (lengths**2).sum()
    after = len(lengths) * hidden * dim + len(lengths) / 2 * sum(
        one * other for one, other in pairwise([dim, *config.head.layers])
    )
    scores = (len(lengths) / 2) ** 2 * dim
    return float(6 * (dense + attention + after + scores))


def peak(device: torch.device, size: int = 8_192) -> float:
    """Operations a second of a product of two large matrices of random numbers, bfloat16."""
    one, other = torch.randn(2, size, size, device=device, dtype=torch.bfloat16)
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        one @ other
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return 2 * size**3 / statistics.median(times)


def measured(
    step: Stepper, ways: dict[str, Change], batches: list[Batch]
) -> dict[str, tuple[float, float]]:
    """The median seconds, and those of CPU, of a step by each way."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for change in ways.values():  # the first ones allocate, or compile
        with replaced(change):
            for batch in batches[:2]:
                step(batch)
    for batch in batches:
        for name, change in ways.items():
            with replaced(change):
                found[name].append(step(batch))
    return {
        name: cast("tuple[float, float]", tuple(map(statistics.median, zip(*times, strict=True))))
        for name, times in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--config", default="transformer-small")
    parser.add_argument("--batch", default="512", help="one number, or several with commas")
    parser.add_argument("--ways", help="some of those that are printed, with commas; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("overrides", nargs="*", help="as of rejoinder train")
    chosen = parser.parse_args()
    config, pairs = load_config(chosen.config, chosen.overrides), open_pairs(chosen.pairs)
    device = pick_device(chosen.device)
    ways = WAYS[device.type]
    if chosen.ways:
        ways = {name: ways[name] for name in chosen.ways.split(",")}
    features = learned_subwords(pairs, config)
    ceiling = peak(device) if device.type == "cuda" else None
    machine = describe_machine()
    print(f"{machine['accelerator'] or machine['processor']}, torch {machine['torch']}")
    if ceiling is not None:
        print(f"a bfloat16 product of 8,192: {ceiling / 1e12:,.0f} TFLOP/s")
    with own_torch_state(device, chosen.threads), kept_memory():
        model = TrainableModel(features.rows, config, torch.Generator().manual_seed(0))
        step = Stepper(model.train().to(device), config)
        for size in map(int, chosen.batch.split(",")):
            stream = PairStream(pairs, features, window_pairs=WINDOW, seed=0)
            made = stream.batches(Position(), partial(int, size))
            batches = [batch for _, batch in zip(range(chosen.rounds), made, strict=False)]
            tokens = sum(len(batch.sentences.ids) for batch in batches) / len(batches)
            work = statistics.fmean(operations(config, batch) for batch in batches)
            print(
                f"batches of {size} pairs, {tokens:,.0f} subwords, {work / 1e12:.2f} TFLOP; median "
                f"of {len(batches)}; {torch.get_num_threads()} threads"
            )
            for name, (seconds, cpu) in measured(step, ways, batches).items():
                share = f"  {work / seconds / ceiling:5.1%} of peak" if ceiling else ""
                print(
                    f"{name:17s} {1 / seconds:7.2f} steps/s  {size / seconds:7,.0f} pairs/s  "
                    f"{cpu:6.3f} s of CPU a step{share}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
