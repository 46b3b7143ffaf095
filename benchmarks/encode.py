"""Sentences a second through `encode`, the time of one sentence, and the peak of memory.

    python benchmarks/encode.py                         # a random model, made-up sentences
    python benchmarks/encode.py --model RUN/model --sentences file.txt
    python benchmarks/encode.py --latency               # one sentence at a time as well
    python benchmarks/encode.py --model baseline:bow --sentences file.txt   # as evaluate takes it

Without a model, one of 100,000 words x 300 with layers 300, 300, 500 and random weights is written
to a temporary folder: the paper's sizes. Without sentences, they are drawn from its words, 10 each
on average. Prints one JSON object.
"""

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from rejoinder.api.evaluation import load_encoder
from rejoinder.encoders.layers import Tensors
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.outputs import BATCH_SIZE
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.protocols import Encodes, Prepares
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary

WORDS = 100_000
LATENCY_COUNT = 2_000
LAYERS = (300, 300, 500)


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        name = arguments.model or str(_random_model(Path(folder) / "model"))
        begun = time.perf_counter()
        encoder, model = _open(name)
        load_seconds = time.perf_counter() - begun
    sentences = _sentences(arguments.sentences, model)[: arguments.count]
    encode: Callable[[list[str]], object] = encoder.encode
    if isinstance(encoder, Prepares):
        encoder.prepare("speed", sentences)
    if isinstance(encoder, SentenceEncoder):
        encode = partial(encoder.encode, batch_size=arguments.batch_size)
    encode(sentences[:BATCH_SIZE])
    seconds = []
    for _ in range(arguments.repeats):
        begun = time.perf_counter()
        encode(sentences)
        seconds.append(time.perf_counter() - begun)
    ids = None if model is None else model.features(sentences[:BATCH_SIZE]).lengths
    report = {
        "sentences_per_second": round(len(sentences) / statistics.median(seconds)),
        "sentences": len(sentences),
        "ids_per_sentence": None if ids is None else round(float(ids.mean()), 1),
        "microseconds_alone": _alone(encode, sentences) if arguments.latency else None,
        "load_seconds": round(load_seconds, 2),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "model": repr(encoder),
        "repeats": arguments.repeats,
    }
    print(json.dumps(report))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--model", help="model folder, or what `rejoinder evaluate` takes; default: random weights"
    )
    parser.add_argument("--sentences", type=Path, help="one sentence a line; default: made up")
    parser.add_argument("--count", type=int, default=200_000, help="sentences at most")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--latency", action="store_true", help="encode the first 2,000 one by one as well: median"
    )
    return parser.parse_args()


def _alone(encode: Callable[[list[str]], object], sentences: list[str]) -> float:
    """Returns the median of microseconds in which one sentence is encoded."""
    seconds = []
    for sentence in sentences[:LATENCY_COUNT]:
        begun = time.perf_counter()
        encode([sentence])
        seconds.append(time.perf_counter() - begun)
    return round(statistics.median(seconds) * 1e6, 1)


def _open(name: str) -> tuple[Encodes, ModelContents | None]:
    """Returns an encoder, and what its folder contains if it is a model folder."""
    if not Path(name).is_dir():
        return load_encoder(name), None
    model = read_model(Path(name))
    return SentenceEncoder(model), model


def _sentences(place: Path | None, model: ModelContents | None) -> list[str]:
    if place is not None:
        return place.read_text("utf-8").splitlines()
    if model is None or not isinstance(model.features, WordFeatures):
        sys.exit("this model has no words to make sentences of; give --sentences")
    words = np.array(model.features.vocabulary.words)
    draw = np.random.default_rng(0)
    ranks = (len(words) ** draw.random((200_000, 10))).astype(np.int64) - 1  # as Zipf's law
    lengths = draw.integers(1, 20, len(ranks))
    return [
        " ".join(words[np.resize(row, length)])
        for row, length in zip(ranks, lengths.tolist(), strict=True)
    ]


def _random_model(place: Path) -> Path:
    draw = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu"))
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(draw.choice(letters, draw.integers(3, 9)))] = None
    tensors: Tensors = {
        "encoder.table.weight": draw.standard_normal((WORDS, LAYERS[0]), np.float32).astype(
            np.float16
        ),
        "scale": np.array(20.0, np.float32),
    }
    for number, (inside, outside) in enumerate(zip((LAYERS[0], *LAYERS), LAYERS, strict=False)):
        weight = draw.standard_normal((outside, inside), np.float32) / np.float32(inside**0.5)
        tensors |= {
            f"encoder.dnn.layers.{number}.weight": weight,
            f"encoder.dnn.layers.{number}.bias": np.zeros(outside, np.float32),
        }
    model = ModelContents(
        name="random",
        features=WordFeatures(Vocabulary(tuple(words))),
        encoder={
            "kind": "dan",
            "width": LAYERS[0],
            "layers": list(LAYERS),
            "activation": "tanh",
            "residual": False,
            "combiner": "sqrtn",
        },
        heads={"responses": {"inputs": 1, "layers": [], "activation": "tanh", "residual": False}},
        training={},
        tensors=tensors,
    )
    write_model(place, model)
    return place


if __name__ == "__main__":
    main()
