"""Fits the rows of Arabic words, and of their letters, to the English of a model.

    python tools/arabic_rows.py MODEL DATA OUT

A word is the sum of its letters' rows and, if the model knows it, of a row for what they do not
tell. These learn to find the English of each sentence among those of its batch, and the other way
round, while all other rows of MODEL stay as they are. So forms of a word help each other, and words
that training never met have rows that were trained. The sentences are those of the translations
that `rejoinder-multi` trains on, below DATA.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder import SentenceEncoder
from rejoinder.encoders.layers import BagSums, dequantized, quantize_rows, scales_name
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.models.smaller import letter_counts
from rejoinder.text.features import WordFeatures
from rejoinder.text.normalize import tokens_of
from rejoinder.text.ragged import offsets_of
from rejoinder.text.vocabulary import is_arabic
from rejoinder.training.config.loading import load_config
from rejoinder.training.data.examples import GroupText
from rejoinder.training.data.preparation import Data
from rejoinder.training.objectives import ParaphraseTask

Rows = NDArray[np.float32]
TABLE = "encoder.table.weight"
BUCKETS = 20_000
_RECIPE = "rejoinder-multi"
_BATCH = 1_024
_RATE = 0.1
_WARMUP = 50


def read_translations(data: Path) -> tuple[list[str], list[str]]:
    """Returns the pairs of English and Arabic that the recipe trains on, without its leaks."""
    config = load_config(_RECIPE)
    labelled = Data(None, data).labelled(config, config.training.excluded_sets)
    found: dict[tuple[str, str], None] = {}
    for task, files in labelled:
        if isinstance(task, ParaphraseTask) and task.interleave:
            for file in files:
                assert isinstance(file.content, GroupText)  # noqa: S101 -- a task of groups
                members = [file.content.texts[at] for at in file.content.members.tolist()]
                for low, high in pairwise(file.content.starts.tolist()):
                    group = members[low:high]
                    if [_arabic(text) for text in group] == [False, True]:
                        found[group[0], group[1]] = None
    english, arabic = zip(*found, strict=True)
    return [*english], [*arabic]


def _arabic(text: str) -> bool:
    return any(map(is_arabic, tokens_of(text)))


class ArabicRows:
    """The rows that are fitted: of the Arabic words of a vocabulary, and of buckets of letters."""

    def __init__(self, features: WordFeatures, buckets: int, width: int, seed: int) -> None:
        self.features, self.buckets = features, buckets
        words = features.vocabulary.words
        self.known = np.array([at for at, word in enumerate(words) if is_arabic(word)])
        self._own = {words[at]: number for number, at in enumerate(self.known.tolist())}
        generator = np.random.default_rng(seed)
        size = (len(self.known) + buckets, width)
        self.rows = generator.standard_normal(size, np.float32) * np.float32(0.01)
        self.rows[len(self.known) :] *= np.float32(0.2)
        self._squares = np.zeros_like(self.rows)

    def parts(self, words: Sequence[str]) -> sp.csr_matrix:
        """Returns (W, rows) float32: how often each word has each row."""
        own = [(row, self._own[word]) for row, word in enumerate(words) if word in self._own]
        row, column = np.array(own, np.int64).reshape(-1, 2).T
        shape = (len(words), len(self.known))
        known = sp.csr_matrix((np.ones(len(own), np.float32), (row, column)), shape)
        letters = letter_counts(words, 1, self.buckets)[:, 1:]
        return sp.hstack([known, letters], "csr", np.float32)

    def of_texts(self, texts: Sequence[str]) -> tuple[sp.csr_matrix, list[str]]:
        """Returns (N, rows) float32 for the Arabic words of texts, and their other tokens."""
        tokens = [tokens_of(self.features.normalize(text)) for text in texts]
        arabic = [[*filter(is_arabic, row)] for row in tokens]
        numbers = {word: at for at, word in enumerate(sorted({w for row in arabic for w in row}))}
        flat = np.array([numbers[word] for row in arabic for word in row])
        shape = (len(texts), len(numbers))
        offsets = offsets_of(np.array([*map(len, arabic)]))
        counts = sp.csr_matrix((np.ones(len(flat), np.float32), flat, offsets), shape)
        rest = [" ".join(token for token in row if not is_arabic(token)) for row in tokens]
        return (counts @ self.parts([*numbers])).tocsr(), rest

    def step(self, texts: sp.csr_matrix, gradients: Rows, rate: float) -> None:
        """Moves rows by Adagrad against the gradients (N, D) of the sums of texts."""
        gradient = np.asarray(texts.T.tocsr() @ gradients)
        self._squares += gradient**2
        self.rows -= np.float32(rate) * gradient / (np.sqrt(self._squares) + np.float32(1e-8))

    def vectors(self) -> tuple[Rows, Rows]:
        """Returns the rows of the known words, and those of letters."""
        words = [self.features.vocabulary.words[at] for at in self.known.tolist()]
        return np.asarray(self.parts(words) @ self.rows), self.rows[len(self.known) :]


def loss_gradient(sums: Rows, targets: Rows, scale: float) -> tuple[float, Rows]:
    """Returns the loss of sums (N, D) that find their unit targets (N, D), and its gradient.

    It is the mean of both directions' softmax loss. Pairs of equal targets are not opposed.
    """
    count = np.float32(len(sums))
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.float32(1e-6))
    unit = sums / lengths
    scores = np.float32(scale) * unit @ targets.T
    same = targets @ targets.T > 0.9999
    np.fill_diagonal(same, val=False)
    scores[same] = -1e4
    gradient, loss = np.zeros_like(scores), 0.0
    for axis in (0, 1):
        odds = np.exp(scores - scores.max(axis=axis, keepdims=True))
        odds /= odds.sum(axis=axis, keepdims=True)
        loss -= float(np.log(odds.diagonal() + 1e-30).mean()) / 2
        np.fill_diagonal(odds, odds.diagonal() - 1)
        gradient += odds / (2 * count)
    moved = np.float32(scale) * gradient @ targets
    return loss, (moved - unit * (unit * moved).sum(axis=1, keepdims=True)) / lengths


def fit(
    rows: ArabicRows,
    arabic: Sequence[str],
    targets: Rows,
    others: Rows,
    *,
    steps: int,
    scale: float,
    seed: int,
) -> list[float]:
    """Fits rows so that texts find their targets (N, D), and returns the loss of each step.

    `others` is the table of all other tokens.
    """
    generator = np.random.default_rng(seed)
    texts, rest = rows.of_texts(arabic)
    fixed = BagSums(others)(rows.features(rest))
    losses = []
    for step in range(steps):
        chosen = generator.choice(len(arabic), min(_BATCH, len(arabic)), replace=False)
        batch = texts[chosen]
        sums = fixed[chosen] + np.asarray(batch @ rows.rows)
        loss, gradient = loss_gradient(sums, targets[chosen], scale)
        rows.step(batch, gradient, _RATE * min(1, (step + 1) / _WARMUP) * (1 - step / steps))
        losses.append(loss)
    return losses


def with_arabic_rows(model: ModelContents, rows: ArabicRows) -> ModelContents:
    """Returns a model with the fitted rows; all others, and their order, stay as they are."""
    assert isinstance(model.features, WordFeatures)  # noqa: S101 -- rows are of words
    known, letters = rows.vectors()
    first = len(model.features.vocabulary) + model.features.letter_buckets
    tensors, scales = dict(model.tensors), scales_name(TABLE)
    table = np.array(tensors[TABLE][:first])
    if table.dtype == np.int8:
        fitted, of_fitted = quantize_rows(np.concatenate([known, letters]))
        factors = np.array(tensors[scales][:first])
        factors[rows.known] = of_fitted[: len(known)]
        tensors[scales] = np.concatenate([factors, of_fitted[len(known) :]])
    else:
        fitted = np.concatenate([known, letters]).astype(table.dtype)
    table[rows.known] = fitted[: len(known)]
    tensors[TABLE] = np.concatenate([table, fitted[len(known) :]])
    features = replace(model.features, arabic_letter_buckets=rows.buckets)
    return replace(model, features=features, tensors=tensors, sha256="")


def main() -> None:
    """Reads a model and translations, and writes the model with other rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--buckets", type=int, default=BUCKETS)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    model = read_model(given.model)
    if not isinstance(model.features, WordFeatures) or not model.features.letter_buckets:
        parser.error(f"{given.model} does not read unknown words by their letters.")
    table = np.asarray(dequantized(model.tensors)[TABLE], np.float32)
    rows = ArabicRows(model.features, given.buckets, table.shape[1], given.seed)
    english, arabic = read_translations(given.data)
    targets = SentenceEncoder(given.model).encode(english)
    options = {"steps": given.steps, "scale": given.scale, "seed": given.seed}
    losses = fit(rows, arabic, targets, table, **options)
    print(f"{len(arabic):,} pairs, loss {losses[0]:.3f} to {losses[-1]:.3f}")
    made = with_arabic_rows(model, rows)
    facts = {"pairs": len(arabic), "buckets": given.buckets, **options}
    write_model(given.out, replace(made, training={**made.training, "arabic_rows": facts}))


if __name__ == "__main__":
    main()
