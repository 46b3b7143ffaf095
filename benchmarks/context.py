"""P@1 of 100 with the turns before a message, and without.

    python benchmarks/context.py pairs/chitchat pairs/task pairs/spoken --split dev --grid
    python benchmarks/context.py pairs/chitchat pairs/task pairs/spoken --split test

The folders are those of `rejoinder extract`. The turns before a message are those that it answers,
within its thread. `--grid` tries other weights and decays. The negatives of a message are the same
in all rows. Prints a line of JSON for each row.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder import SentenceEncoder
from rejoinder.corpus.writer import open_pairs
from rejoinder.evaluation.intervals import mcnemar
from rejoinder.evaluation.responses import NEGATIVES, draw_negatives, true_ranks
from rejoinder.inference.search import DECAY, TURNS, WEIGHT

NUMBERS = (0, 1, 3, TURNS)
WEIGHTS, DECAYS = (0.2, 0.3, 0.4, 0.5), (0.5, 0.7, 0.85, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args()
    encoder = SentenceEncoder(chosen.model, threads=chosen.threads)
    for folder in chosen.folders:
        measure(folder, encoder, chosen)


def measure(folder: Path, encoder: SentenceEncoder, chosen: argparse.Namespace) -> None:
    generator = np.random.default_rng(chosen.seed)
    messages, responses, turns = rows_of(folder, chosen.split, chosen.messages, generator)
    texts = sorted({*messages, *(text for some in turns for text in some)})
    places = {text: row for row, text in enumerate(texts)}
    rows, answers = encoder.encode(texts), encoder.encode_response(responses)
    said = np.zeros((len(messages), TURNS, encoder.dim), np.float32)
    for at, some in enumerate(turns):
        for back, text in enumerate(some):
            said[at, back] = rows[places[text]]
    inputs = rows[[places[text] for text in messages]]
    every = np.arange(len(messages))
    negatives = draw_negatives(every, len(every), min(NEGATIVES, len(every) - 1), generator)
    candidates = np.column_stack([every, negatives])

    def right(number: int, weight: float, decay: float) -> NDArray[np.bool_]:
        factors = np.float32(weight) * np.float32(decay) ** np.arange(number)
        queries = inputs + np.einsum("nkd,k->nd", said[:, :number], factors)
        return np.asarray(true_ranks(queries.astype(np.float32), every, answers, candidates) == 1)

    without = right(0, WEIGHT, DECAY)
    has_turns = np.array([len(some) for some in turns]) > 0
    settings = [(WEIGHT, DECAY)]
    if chosen.grid:
        settings = [(weight, decay) for weight in WEIGHTS for decay in DECAYS]
    for weight, decay in settings:
        for number in NUMBERS:
            found = right(number, weight, decay)
            gains = found.astype(float) - without
            row: dict[str, Any] = {
                "pairs": folder.name, "split": chosen.split, "messages": len(every),
                "weight": weight, "decay": decay, "turns": number,
                "p@1": round(float(found.mean()), 4),
                "gain": round(float(gains.mean()), 4),
                "p": float(f"{mcnemar(found, without).p:.2g}"),
                "have_turns": int(has_turns.sum()),
                "gain_of_these": round(float(gains[has_turns].mean()), 4),
            }  # fmt: skip
            print(json.dumps(row), flush=True)


def rows_of(
    folder: Path, split: str, most: int, generator: np.random.Generator
) -> tuple[list[str], list[str], list[Sequence[str]]]:
    """Returns messages, responses, and the turns before each message, the last one first."""
    frame = open_pairs(folder).frame(split)
    texts = dict(zip(frame["input_id"], frame["input"], strict=True))
    asked = dict(zip(frame["response_id"], frame["input_id"], strict=True))
    drawn = np.sort(generator.permutation(len(frame))[:most])
    frame = frame[drawn]
    turns = list[Sequence[str]]()
    for name in frame["input_id"].to_list():
        some = list[str]()
        while (before := asked.get(name)) is not None and len(some) < TURNS:
            some.append(texts[before])
            name = before
        turns.append(some)
    return frame["input"].to_list(), frame["response"].to_list(), turns


if __name__ == "__main__":
    main()
