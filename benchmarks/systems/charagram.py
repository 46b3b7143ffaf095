"""Trains Charagram (Wieting et al. 2016) on paraphrases: rows of hashed character sequences.

    python benchmarks/systems/charagram.py --data DATA --out charagram.safetensors
    rejoinder evaluate baseline:charagram:charagram.safetensors --tasks stsb/cosine --data DATA

The sentences of STS-B dev and test are left out.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl
import torch
from safetensors.numpy import save_file

from rejoinder.datasets.groups import read_groups
from rejoinder.datasets.leaks import EvaluationHashes
from rejoinder_papers.baselines.charagram import character_ids

FILES = (
    "lexical/counterfit_ppdb_synonyms.txt.zst",
    "lexical/ppdb10_xxxl_lexical_extended_synonyms.txt.zst",
    "paraphrases/asset.jsonl.zst",
    "paraphrases/meteor15_phrase_pairs.jsonl.zst",
    "paraphrases/mlqe_postedits.jsonl.zst",
    "paraphrases/news_wmt19_translations.jsonl.zst",
    "paraphrases/news_wmt21_23_translations.jsonl.zst",
    "paraphrases/parade.jsonl.zst",
    "paraphrases/quora_labelled.jsonl.zst",
    "paraphrases/tatoeba_pivot.jsonl.zst",
)
_LEAKS = ("stsb-dev", "stsb-test")
_MOST = 200
"""Characters of a text that are read in training."""
_SCALE, _START = 20.0, 0.02


def read(data: Path, most: int, seed: int) -> list[tuple[str, str]]:
    """Returns pairs of texts that mean the same, `most` of a file, without evaluation sentences."""
    held_out, found = EvaluationHashes.load(_LEAKS), []
    draw = np.random.default_rng(seed)
    for name in FILES:
        groups = read_groups(data / name)
        leaks = held_out.contains(pl.Series(groups.sentences))
        pairs = [(row, row + 1) for row in groups.offsets[:-1].tolist()]
        kept = [(a, b) for a, b in pairs if not leaks[a] and not leaks[b]]
        chosen = draw.permutation(len(kept))[:most]
        found += [
            (groups.sentences[kept[row][0]][:_MOST], groups.sentences[kept[row][1]][:_MOST])
            for row in chosen
        ]
        print(f"{name}: {len(chosen):,} of {len(groups):,} pairs", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--buckets", type=int, default=100_000)
    parser.add_argument("--most", type=int, default=4_000, help="pairs of a file")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    generator, begun = torch.Generator().manual_seed(args.seed), time.perf_counter()
    pairs = read(args.data, args.most, args.seed)
    ids = [[torch.from_numpy(character_ids(text, args.buckets)) for text in pair] for pair in pairs]
    rows = torch.randn(args.buckets, args.dim, generator=generator) * _START
    rows.requires_grad_()
    bias = torch.zeros(args.dim, requires_grad=True)
    optimizer = torch.optim.Adagrad([rows, bias], args.rate)
    for epoch in range(args.epochs):
        sums = list[float]()
        for batch in torch.split(torch.randperm(len(ids), generator=generator), args.batch):
            texts = [ids[row][side] for side in (0, 1) for row in batch.tolist()]
            lengths = torch.tensor([0, *map(len, texts[:-1])]).cumsum(0)
            bags = torch.nn.functional.embedding_bag(
                torch.cat(texts), rows, lengths, mode="sum", sparse=True
            )
            unit = torch.nn.functional.normalize(torch.tanh(bags + bias), dim=1)
            first, second = torch.split(unit, len(batch))
            scores, same = _SCALE * first @ second.T, torch.arange(len(batch))
            loss = torch.nn.functional.cross_entropy(scores, same)
            loss = loss + torch.nn.functional.cross_entropy(scores.T, same)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            sums.append(loss.item())
        minutes = (time.perf_counter() - begun) / 60
        print(f"epoch {epoch + 1}: loss {np.mean(sums):.3f}, {minutes:.1f} minutes", flush=True)
    found = {"rows": rows.detach().numpy().astype(np.float16), "bias": bias.detach().numpy()}
    save_file(found, args.out)


if __name__ == "__main__":
    main()
