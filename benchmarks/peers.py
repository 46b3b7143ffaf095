"""Compares speed and latency with model2vec and sentence-transformers.

    pip install model2vec sentence-transformers
    python benchmarks/peers.py --data ../shared/data --pairs pairs/

All three compute the same vectors: those of `--model` (default `rejoinder-base`) without buckets
for unknown words, as `rejoinder export --to` writes it for the other two. Rounds alternate, so that
other work on the machine slows all of them. Prints medians, and ratios to rejoinder.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.api.pairs import response_pairs
from rejoinder.datasets.semeval import read_stsb
from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.targets import export_to
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model, write_model
from rejoinder.models.smaller import ExportOptions, smaller

Encode = Callable[[list[str]], Any]


def main() -> None:
    arguments = _arguments()
    sentences = _sentences(arguments.data, arguments.pairs, arguments.replies)
    with tempfile.TemporaryDirectory() as work:
        encoders = _encoders(arguments.model, Path(work), arguments.threads)
        _check(encoders, sentences[:2_000])
        speeds: dict[str, list[float]] = {name: [] for name in encoders}
        alone: dict[str, list[float]] = {name: [] for name in encoders}
        for _ in range(arguments.rounds):
            for name, encode in encoders.items():
                speeds[name].append(len(sentences) / _seconds(encode, sentences))
                alone[name] += [_seconds(encode, [text]) for text in sentences[:500]]
    fastest = statistics.median(speeds["rejoinder"])
    rows = {
        name: {
            "sentences_per_second": round(statistics.median(speeds[name])),
            "ratio": round(statistics.median(speeds[name]) / fastest, 3),
            "microseconds_alone": round(statistics.median(alone[name]) * 1e6, 1),
        }
        for name in encoders
    }
    print(json.dumps({"sentences": len(sentences), "rounds": arguments.rounds, **rows}, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--model", default="rejoinder-base", help="name or folder of a linear model"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the STS Benchmark")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of rejoinder extract")
    parser.add_argument("--replies", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of rejoinder; default: all cores")
    return parser.parse_args()


def _sentences(data: Path, pairs: Path, replies: int) -> list[str]:
    """Returns the sentences of the STS Benchmark, and replies."""
    texts: list[str] = []
    for split in ("train", "dev", "test"):
        benchmark = read_stsb(data, split)
        texts += [*benchmark.first, *benchmark.second]
    held_out = [
        text for split in ("dev", "test") for text in response_pairs(pairs, split).responses
    ]
    return texts + held_out[:replies]


def _encoders(model: str, work: Path, threads: int | None) -> dict[str, Encode]:
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer

    contents = read_model(find_model(model))
    with suppress(InputError):  # it has none
        contents = smaller(contents, ExportOptions(letter_buckets=0, spelling=False))
    write_model(work / "ours", contents)
    for target in ("model2vec", "sentence-transformers"):
        export_to(work / "ours", work / target, target)
    static = StaticModel.from_pretrained(work / "model2vec")
    transformer = SentenceTransformer(str(work / "sentence-transformers"), device="cpu")
    return {
        "rejoinder": SentenceEncoder.load(work / "ours", threads=threads).encode,
        "model2vec": static.encode,
        "sentence-transformers": lambda texts: transformer.encode(texts, batch_size=1_024),
    }


def _check(encoders: dict[str, Encode], sentences: list[str]) -> None:
    """Encodes once, to warm up, and compares the vectors."""
    first, *others = (np.asarray(encode(sentences)) for encode in encoders.values())
    for vectors in others:
        np.testing.assert_allclose(vectors, first, atol=1e-4)


def _seconds(encode: Encode, texts: list[str]) -> float:
    begun = time.perf_counter()
    encode(texts)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
