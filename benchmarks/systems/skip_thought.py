"""Trains SkipThought (Kiros et al. 2015), or the same encoder to find replies, for as long.

    python benchmarks/systems/skip_thought.py train skip --data DATA --out skip.pt --minutes 60
    python benchmarks/systems/skip_thought.py train reply --data DATA --out reply.pt --minutes 60
    python benchmarks/systems/skip_thought.py score skip.pt --data DATA

An encoder of one GRU reads a turn of a conversation. `skip` writes the turns before and after with
two other GRUs; `reply` picks the turn after out of a batch, by a dot product after one layer.
Minutes are of processor time, on one thread. Unlike the paper's, the writers see the last state at
the first word only, words have a softmax by frequency classes (Grave et al. 2017), and a second,
bidirectional encoder is left out. Turns that are a sentence of an evaluation set are left out, too.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import zstandard
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from rejoinder import evaluate
from rejoinder.datasets.leaks import EvaluationHashes, shipped
from rejoinder_papers.baselines.words import tokens

FILES = ("movies", "spoken")
TASKS = "stsb/senteval-regression,stsb/cosine,sick-r/cosine"
_WORDS, _MOST, _BATCH, _RATE, _SCALE = 20_000, 20, 64, 1e-3, 10.0
_UNKNOWN, _END = 0, 1


def read(data: Path) -> Iterator[list[list[str]]]:
    """Yields conversations: the words of turns, each of which answers the one before."""
    held_out = EvaluationHashes.load(list(shipped()))
    for name in FILES:
        path = data / "conversations" / f"{name}.jsonl.zst"
        rows = pl.read_ndjson(zstandard.open(path).read())
        texts, parents = rows["body"].to_list(), rows["parent_id"].to_list()
        leaks = held_out.contains(rows["body"])
        run, last = list[list[str]](), ""
        for ident, parent, text, leak in zip(rows["id"], parents, texts, leaks, strict=True):
            if parent != f"t1_{last}" or leak:
                yield run
                run = []
            if not leak:
                run.append(tokens(text)[:_MOST])
                last = ident
        yield run


class Encoder(nn.Module):
    """A GRU over words, whose last state is the sentence."""

    def __init__(self, words: Sequence[str], dim: int, hidden: int) -> None:
        super().__init__()
        self.words = list(words)
        self._ids = {word: row for row, word in enumerate(words, 2)}
        self.table = nn.Embedding(len(words) + 2, dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True)

    def ids(self, words: Sequence[str]) -> Tensor:
        return torch.tensor([*(self._ids.get(word, _UNKNOWN) for word in words), _END])

    def embedded(self, turns: list[Tensor]) -> PackedSequence:
        """Returns the embeddings of N rows of ids."""
        rows = pack_sequence(turns, enforce_sorted=False)
        return rows._replace(data=self.table(rows.data))

    def forward(self, turns: list[Tensor]) -> Tensor:
        """Returns (N, H) last states of N rows of ids."""
        states: Tensor = self.gru(self.embedded(turns))[1][0]
        return states

    @torch.no_grad()
    def encode(self, sentences: Sequence[str]) -> NDArray[Any]:
        """Returns (N, H) float32."""
        found = [self([self.ids(tokens(text)) for text in sentences[at : at + 256]])
                 for at in range(0, len(sentences), 256)]  # fmt: skip
        return torch.cat(found).numpy()


class Writer(nn.Module):
    """A GRU that writes a turn and begins with the state of another."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        count, dim = encoder.table.weight.shape
        hidden = encoder.gru.hidden_size
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(hidden, count, [1_000, 4_000])

    def forward(self, encoder: Encoder, states: Tensor, turns: list[Tensor]) -> Tensor:
        """Returns the mean loss of the words of (N, H) states' turns."""
        before = encoder.embedded([ids.roll(1) for ids in turns])  # the end of a turn begins it
        targets = pack_sequence(turns, enforce_sorted=False).data
        loss: Tensor = self.softmax(self.gru(before, states[None])[0].data, targets).loss
        return loss


class Reply(nn.Module):
    """The loss of picking each turn's reply out of the batch."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.layer = nn.Linear(encoder.gru.hidden_size, encoder.gru.hidden_size)

    def forward(self, encoder: Encoder, states: Tensor, replies: list[Tensor]) -> Tensor:
        """Returns the mean loss of (N, H) states and their replies."""
        first = nn.functional.normalize(states, dim=1)
        second = nn.functional.normalize(torch.tanh(self.layer(encoder(replies))), dim=1)
        return nn.functional.cross_entropy(_SCALE * first @ second.T, torch.arange(len(first)))


def train(arguments: argparse.Namespace) -> None:
    """Trains until the processor time is up, and writes the encoder."""
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    runs = [run for run in read(arguments.data) if len(run) > 2]
    counts = Counter(word for run in runs for turn in run for word in turn)
    words = [word for word, _ in counts.most_common(_WORDS)]
    encoder = Encoder(words, arguments.dim, arguments.hidden)
    turns = [[encoder.ids(turn) for turn in run] for run in runs]
    places = [(row, at) for row, run in enumerate(turns) for at in range(1, len(run) - 1)]
    print(f"{len(places):,} turns with neighbours, {len(counts):,} words", flush=True)
    is_skip = arguments.objective == "skip"
    losses = [Writer(encoder), Writer(encoder)] if is_skip else [Reply(encoder)]
    parts = nn.ModuleList([encoder, *losses])
    optimizer = torch.optim.Adam(parts.parameters(), _RATE)
    begun, step, mean = time.process_time(), 0, 0.0
    draw = np.random.default_rng(arguments.seed)
    while (spent := (time.process_time() - begun) / 60) < arguments.minutes:
        chosen = [places[row] for row in draw.integers(len(places), size=_BATCH)]
        states = encoder([turns[row][at] for row, at in chosen])
        sides = (1, -1)[: len(losses)]
        found = [
            loss(encoder, states, [turns[row][at + side] for row, at in chosen])
            for loss, side in zip(losses, sides, strict=True)
        ]
        optimizer.zero_grad()
        torch.stack(found).sum().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parts.parameters(), 10.0)
        for group in optimizer.param_groups:
            group["lr"] = _RATE * max(1 - spent / arguments.minutes, 0.02)
        optimizer.step()
        step, mean = step + 1, 0.99 * mean + 0.01 * float(found[0].detach())
        if step % 1_000 == 0:
            print(f"step {step:,}  loss {mean:.3f}  {spent:.1f} minutes", flush=True)
    shape = {"words": words, "dim": arguments.dim, "hidden": arguments.hidden}
    torch.save({"shape": shape, "state": encoder.state_dict()}, arguments.out)


def score(arguments: argparse.Namespace) -> None:
    """Prints a row for each task."""
    kept = torch.load(arguments.model, weights_only=True)
    encoder = Encoder(**kept["shape"])
    encoder.load_state_dict(kept["state"])
    for result in evaluate(encoder, arguments.tasks, data=arguments.data, skip_missing=True):
        print(json.dumps({"task": result.task, "split": result.split, **result.scores}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.set_defaults(run=train)
    one.add_argument("objective", choices=("skip", "reply"))
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--minutes", type=float, default=60.0)
    one.add_argument("--dim", type=int, default=200)
    one.add_argument("--hidden", type=int, default=400)
    one.add_argument("--seed", type=int, default=0)
    two = commands.add_parser("score")
    two.set_defaults(run=score)
    two.add_argument("model", type=Path)
    two.add_argument("--data", type=Path, required=True)
    two.add_argument("--tasks", default=TASKS)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
