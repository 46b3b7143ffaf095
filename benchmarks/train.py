"""Pairs per second of training, compared with the trainer of sentence-transformers.

    python benchmarks/train.py --pairs pairs/                  # ours, at the paper's sizes and ours
    python benchmarks/train.py --pairs pairs/ --compare        # and sentence-transformers

`--compare` needs `pip install sentence-transformers datasets accelerate`. Batches, text and number
of pairs are the same for all; rounds take turns, so that a machine that slows down slows down all.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

# as the command line sets it, before torch is imported
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

from rejoinder.corpus.writer import open_pairs
from rejoinder.training.config.loading import parse_config
from rejoinder.training.data.preparation import Data
from rejoinder.training.loop.loop import Limits
from rejoinder.training.loop.run import begin, go_on
from rejoinder.training.workers import describe_machine

SHARED: dict[str, Any] = {
    "objective": {"scale": 20.0, "learn_scale": True, "mask_duplicates": True},
    "optimizer": {"dense": "adam", "table": "adagrad"},
}
PAPER = {
    **SHARED,
    "text": {"max_words": 200_000, "min_count": 1, "bigram_buckets": 200_000},
    "encoder": {"kind": "dan", "width": 300, "layers": [300, 300, 500]},
    "head": {"layers": [500, 500]},
}
WORDS = {
    **SHARED,
    "text": {"max_words": 30_000, "min_count": 1},
    "encoder": {"kind": "dan", "width": 300, "layers": []},
    "head": {"layers": []},
}


class Silent:
    """Keeps the speeds that it is told, once the first stretch is over."""

    def __init__(self) -> None:
        self.speeds: list[float] = []

    def step(self, step: int, metrics: Any) -> None:
        if step > 10:
            self.speeds.append(metrics["pairs_per_second"])

    def evaluation(self, step: int, scores: Any) -> None: ...

    def saved(self, step: int, path: Path) -> None: ...


def ours(
    tree: dict[str, Any], precision: str, batch: int, steps: int, pairs: Path
) -> Callable[[], float]:
    """A function that trains for some steps and returns its median pairs per second."""
    config = parse_config(
        {
            **tree,
            "training": {"precision": precision, "log_every": 10},
            "phases": [
                {
                    "steps": steps,
                    "batch_size": batch,
                    "table_learning_rate": 0.1,
                    "learning_rate": 0.001,
                }
            ],
        },
        "benchmark",
    )
    folder = Path(tempfile.mkdtemp()) / "run"
    data = Data(open_pairs(pairs))
    begin(config, data, folder, overwrite=False, progress=lambda _done, _all: None)

    def run() -> float:
        listener = Silent()
        for old in (folder / "checkpoints").glob("*/*"):
            old.unlink()
        for old in (folder / "checkpoints").glob("*"):
            old.rmdir()
        go_on(
            folder,
            data,
            Limits(stop_at=steps - 1),
            evaluate=lambda _encoder: {},
            reporter=listener,
        )
        return statistics.median(listener.speeds)

    return run


def theirs(
    batch: int, steps: int, pairs: Path, layers: Sequence[int] = (), *, bf16: bool = False
) -> Callable[[], float]:
    """sentence-transformers' trainer with a 300-dimensional StaticEmbedding, 30,000 words.

    `layers` follow it, with tanh between them.
    """
    import torch
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from sentence_transformers.models import Dense, StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    from datasets import Dataset

    frame = open_pairs(pairs).frame("train", ["input", "response"]).head(batch * steps)
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=30_000, special_tokens=["[UNK]"])
    tokenizer.train_from_iterator(frame.get_column("input").to_list(), trainer)
    data = Dataset.from_dict(
        {
            "anchor": frame.get_column("input").to_list(),
            "positive": frame.get_column("response").to_list(),
        }
    )

    def run() -> float:
        modules = [StaticEmbedding(tokenizer, embedding_dim=300)]
        for number, (inside, outside) in enumerate(pairwise((300, *layers)), 1):
            between = torch.nn.Tanh() if number < len(layers) else torch.nn.Identity()
            modules.append(Dense(inside, outside, activation_function=between))
        model = SentenceTransformer(modules=modules)
        arguments = Arguments(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=batch,
            max_steps=steps,
            learning_rate=0.05,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
            use_cpu=True,
            bf16=bf16,
        )
        loss = MultipleNegativesRankingLoss(model)
        work = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=data, loss=loss
        )
        begun = time.perf_counter()
        work.train()
        return batch * steps / (time.perf_counter() - begun)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compare", action="store_true")
    chosen = parser.parse_args()
    common = (chosen.batch, chosen.steps, chosen.pairs)
    contestants: dict[str, Callable[[], float]] = {
        "DAN 300-300-300-500, words and bigrams, bf16": ours(PAPER, "bf16", *common),
        "DAN 300-300-300-500, words and bigrams, fp32": ours(PAPER, "fp32", *common),
        "words, 300, no DNN, bf16": ours(WORDS, "bf16", *common),
        "words, 300, no DNN, fp32": ours(WORDS, "fp32", *common),
    }
    if chosen.compare:
        name = "sentence-transformers, StaticEmbedding 300"
        layers = (300, 300, 500)
        contestants[f"{name}, Dense 300-300-500, bf16"] = theirs(*common, layers, bf16=True)
        contestants[f"{name}, Dense 300-300-500, fp32"] = theirs(*common, layers)
        contestants[name] = theirs(*common)
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(chosen.rounds):
        for name, run in contestants.items():
            speeds[name].append(run())
    machine = describe_machine()
    print(
        f"batch {chosen.batch}, {chosen.steps} steps, median of {chosen.rounds} rounds; "
        f"{machine['processor']}, {machine['cores']} cores, torch {machine['torch']}"
    )
    medians = {name: statistics.median(found) for name, found in speeds.items()}
    last = medians[next(reversed(medians))]
    for name, speed in medians.items():
        said = f"  {speed / last:5.2f} x the last" if chosen.compare else ""
        print(f"{name:66s} {speed:9,.0f} pairs/s{said}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
    print(f"peak memory of this process {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
