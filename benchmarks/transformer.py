"""Training steps a second of a Transformer, as shipped and with other ways to compute the same.

    python benchmarks/transformer.py --pairs pairs/
    python benchmarks/transformer.py --pairs pairs/ --batch 256 --threads 1 encoder.hidden=128

Steps (forward, backward, optimiser) on batches of messages and replies: with other groups of like
lengths, with PyTorch's attention instead of ours, and with blocks that torch.compile made.
Rounds take turns, so that
a machine that slows down slows all of them. On a busy machine compare the seconds of CPU.
The subwords are learned from the same sample of the pairs.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from rejoinder.corpus.shards import Pairs, open_pairs
from rejoinder.encoders.transformer import module as transformer
from rejoinder.encoders.transformer import packing
from rejoinder.text.subwords import SubwordFeatures, learn_subwords
from rejoinder.training.config.loading import load_config
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.batches import Batch, Position
from rejoinder.training.data.stream import PairStream
from rejoinder.training.loop.machine import describe_machine, kept_memory, own_torch_state
from rejoinder.training.loop.model import CollatedBatch, TrainableModel
from rejoinder.training.loop.optimizers import Optimizers
from rejoinder.training.objectives.responses import ResponsesTask

SAMPLE_BLOCKS = 8
WINDOW = 32_768


def fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """PyTorch's kernel."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


WAYS: dict[str, tuple[object, str, object] | None] = {
    "as shipped": None,
    "groups, 4 more": (packing, "_GROUP_OVERHEAD", 4),
    "groups, 64 more": (packing, "_GROUP_OVERHEAD", 64),
    "torch attention": (transformer, "attention", fused_attention),
    "compiled blocks": (
        transformer._Block,
        "forward",
        torch.compile(transformer._Block.forward, dynamic=True),
    ),
}
"""By name, the replacement of an attribute of a module or class."""


@contextmanager
def replaced(change: tuple[object, str, object] | None) -> Iterator[None]:
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
        begun = time.perf_counter(), time.process_time()
        sentences = self.model.encoder.collate(batch.sentences)
        rows = len(batch.left_keys)
        collated = CollatedBatch(self.task, (sentences,), rows, None, None, rows)
        self.optimizers.zero()
        loss = self.model.loss(collated, self.model.embed(sentences)).loss
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizers.collect()
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
        step = Stepper(model, config)
        stream = PairStream(pairs, features, window_pairs=WINDOW, seed=0)
        batches = stream.batches(Position(), lambda: chosen.batch)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
        tokens = 0
        with kept_memory():
            first = next(batches)
            for change in WAYS.values():  # the first one allocates, or compiles
                with replaced(change):
                    step(first)
            for _, batch in zip(range(chosen.rounds), batches, strict=False):
                tokens += len(batch.sentences.ids)
                for name, change in WAYS.items():
                    with replaced(change):
                        found[name].append(step(batch))
        threads = torch.get_num_threads()
    machine = describe_machine()
    print(
        f"batches of {chosen.batch} pairs, {tokens // chosen.rounds:,} subwords; median of "
        f"{chosen.rounds}; {threads} threads; {machine['processor']}, torch {machine['torch']}"
    )
    for name, times in found.items():
        seconds, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:17s} {1 / seconds:7.2f} steps/s  {chosen.batch / seconds:7,.0f} pairs/s  "
            f"{cpu:6.2f} s of CPU a step"
        )


if __name__ == "__main__":
    main()
