"""Scores PV-DBOW (Le and Mikolov 2014), which `baselines.py` trains with gensim.

    python benchmarks/doc2vec.py doc2vec.safetensors --data ../shared/data --out results.json

Word vectors are trained together with those of texts, and frequent words are skipped more often
than usual. Lau and Baldwin (2016, §3 and §5) found that both matter for pairs of sentences.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from rejoinder import evaluate
from rejoinder.datasets.semeval import read_stsb
from rejoinder.measures import Floats, cosines, pearson_correlation
from rejoinder.protocols import Embeddings
from rejoinder_papers.baselines.words import tokens

_EPOCHS = 200
"""Number of epochs of the inference of a sentence."""
_OPTIONS = {
    "dm": 0,
    "dbow_words": 1,
    "window": 10,
    "negative": 5,
    "hs": 0,
    "min_count": 2,
    "seed": 1,
}
"""PV-DBOW that also trains the word vectors."""


MEASURES = ("cosine", "bray-curtis", "correlation")
"""Those of SEF@UHH (Duma and Menzel 2017)."""


class ParagraphVectors:
    """A model that infers the vectors of new sentences, always from the same random state."""

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._name = name

    def describe(self) -> dict[str, object]:
        """Returns the identity of the baseline."""
        dim = self._model.vector_size
        return {"name": f"doc2vec:{self._name}", "dim": dim, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32; zeros where no word is known."""
        out = np.zeros((len(sentences), self._model.vector_size), np.float32)
        for row, text in enumerate(sentences):
            words = [word for word in tokens(text) if word in self._model.wv.key_to_index]
            if words:
                # seeded for each sentence, so that the order of sentences has no effect
                self._model.random.seed(1)
                out[row] = self._model.infer_vector(words, epochs=_EPOCHS)
        return out

    @classmethod
    def load(cls, path: Path) -> "ParagraphVectors":
        """Reads a model that `baselines.py` wrote."""
        with safe_open(path, "numpy") as file:
            output = file.get_tensor("output")
            counts = json.loads(file.metadata()["counts"])
        # with a sample of 0, inference skips no word: short sentences need all of theirs
        model = untrained(output.shape[1], sample=0.0)
        model.build_vocab_from_freq(counts)
        model.syn1neg = output.copy()
        return cls(model, path.name)


def similarity(measure: str, u: Embeddings, v: Embeddings) -> Floats:
    """Returns (N,) similarities of (N, D) rows, the higher the more alike."""
    if measure == "bray-curtis":
        apart, whole = abs(u - v).sum(axis=1), abs(u + v).sum(axis=1)
        return np.asarray(-apart / np.maximum(whole, 1e-9), np.float64)
    if measure == "correlation":
        u, v = (rows - rows.mean(axis=1, keepdims=True) for rows in (u, v))
    return cosines(u, v)[0]


def untrained(dim: int, *, sample: float, epochs: int = 1, workers: int = 1) -> Any:
    """Returns a model of gensim before training.

    Words above the frequency `sample`, a share of all words, are skipped in some of their places.
    """
    from gensim.models.doc2vec import Doc2Vec

    return Doc2Vec(vector_size=dim, epochs=epochs, workers=workers, sample=sample, **_OPTIONS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--tasks", default="stsb")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--out", type=Path, help="results file; not needed with --measures")
    parser.add_argument("--measures", action="store_true", help="STS-B by each of MEASURES")
    chosen = parser.parse_args()
    encoder = ParagraphVectors.load(chosen.model)
    if not chosen.measures:
        if chosen.out is None:
            parser.error("give --out, or --measures")
        evaluate(encoder, chosen.tasks, data=chosen.data, pairs=chosen.pairs, out=chosen.out)
        return
    for split in ("dev", "test"):
        pairs = read_stsb(chosen.data, split)
        u, v = encoder.encode(pairs.first), encoder.encode(pairs.second)
        for measure in MEASURES:
            scores = similarity(measure, u, v)
            print(split, measure, round(pearson_correlation(scores, pairs.gold), 4), flush=True)


if __name__ == "__main__":
    main()
