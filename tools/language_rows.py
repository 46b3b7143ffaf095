"""Fits the rows of the words of a language, and of their letters, to the English of a model.

    python tools/language_rows.py MODEL DATA OUT

A word is the sum of its letters' rows and, if the model knows it, of a row for what they do not
tell. These learn to find the English of each sentence among those of its batch, and the other way
round, while all other rows of MODEL stay as they are. So forms of a word help each other, and words
that training never met have rows that were trained. The sentences are those of the translations
that `rejoinder-multi` trains on, below DATA. OUT has weights of 16 bits.

Turkish and Arabic words begin from nothing, Spanish ones from their rows in MODEL: with six times
as many translations these are better. Arabic words read letters that no other word reads. Letters
of all others are fitted again to the words of MODEL and to the Turkish ones that it lacks.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder import SentenceEncoder
from rejoinder.encoders.layers import BagSums, dequantized
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.models.smaller import fit_letters, letter_counts
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
_RECIPE = "rejoinder-multi"
_BATCH = 1_024
_WARMUP = 50
_SCALE = 10.0
_TIMES = 2
"""A word is of a language that has it more than so many times as often as all other text."""


@dataclass(frozen=True)
class Language:
    """How the rows of a language are fitted."""

    code: str
    buckets: int
    """Number of rows of letters."""
    rate: float = 0.1
    from_known: bool = False
    """Whether known words begin from the rows that they have."""


TURKISH, SPANISH, ARABIC = (
    Language("tr", 30_000),
    Language("es", 30_000, rate=0.02, from_known=True),
    Language("ar", 20_000),
)


@dataclass(frozen=True)
class Translations:
    """The pairs of English and a language that the recipe trains on, without its leaks."""

    english: Sequence[str]
    others: Sequence[str]
    weights: NDArray[np.float64]
    """(N,) how often each is drawn: small files more often, as in training."""
    words: frozenset[str]
    """The words of the language, which it has more often than all other text (`_TIMES`)."""


class Corpus:
    """All labelled text of the recipe, below a folder."""

    def __init__(self, data: Path, features: WordFeatures) -> None:
        self._features, config = features, load_config(_RECIPE)
        self._labelled = Data(None, data).labelled(config, config.training.excluded_sets)
        texts = {
            text: None
            for _, files in self._labelled
            for file in files
            for text in file.content.texts
        }
        self._counts = self._counted(texts)

    def _counted(self, texts: Iterable[str]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(tokens_of(self._features.normalize(text)))
        return counts

    def translations(self, language: str) -> Translations:
        """Returns the pairs of a language, each once.

        Of files of several languages, which have words, the Arabic ones are told by their script.
        """
        found: dict[tuple[str, str], float] = {}
        wanted = f"en-{language}"
        for task, files in self._labelled:
            if not isinstance(task, ParaphraseTask) or not task.interleave:
                continue
            for source, file in zip(task.data, files, strict=True):
                known = source.where.get("lang")
                if known != wanted and (known or wanted != "en-ar"):
                    continue
                assert isinstance(file.content, GroupText)  # noqa: S101 -- a task of groups
                members = [file.content.texts[at] for at in file.content.members.tolist()]
                starts = file.content.starts.tolist()
                weight = len(starts) ** (task.power - 1)
                for low, high in pairwise(starts):
                    group = members[low:high]
                    if len(group) == 2 and (known or [*map(_arabic, group)] == [False, True]):
                        found.setdefault((group[0], group[1]), weight)
        weights = np.array([*found.values()])
        english, others = zip(*found, strict=True)
        here = self._counted(dict.fromkeys(others))
        words = frozenset(
            word
            for word, count in here.items()
            if word.isalpha() and count > _TIMES * (self._counts[word] - count)
        )
        return Translations(english, others, weights / weights.sum(), words)


def _arabic(text: str) -> bool:
    return any(map(is_arabic, tokens_of(text)))


class LanguageRows:
    """The rows that are fitted: of the words of a language, and of buckets of letters."""

    def __init__(
        self,
        features: WordFeatures,
        words: frozenset[str],
        buckets: int,
        width: int,
        *,
        known: Rows | None = None,
        seed: int,
    ) -> None:
        self.features, self.words, self.buckets = features, words, buckets
        vocabulary = features.vocabulary.words
        self.known = np.array([at for at, word in enumerate(vocabulary) if word in words])
        self._own = {vocabulary[at]: number for number, at in enumerate(self.known.tolist())}
        generator = np.random.default_rng(seed)
        size = (len(self.known) + buckets, width)
        self.rows = generator.standard_normal(size, np.float32) * np.float32(0.01)
        self.rows[len(self.known) :] *= np.float32(0.2)
        if known is not None:
            self.rows[: len(self.known)] = known[self.known]
        self._squares = np.zeros_like(self.rows)

    @property
    def unknown(self) -> list[str]:
        """The words of the language that the model does not know, in order."""
        return sorted(self.words - self._own.keys())

    def parts(self, words: Sequence[str]) -> sp.csr_matrix:
        """Returns (W, rows) float32: how often each word has each row."""
        own = [(row, self._own[word]) for row, word in enumerate(words) if word in self._own]
        row, column = np.array(own, np.int64).reshape(-1, 2).T
        shape = (len(words), len(self.known))
        known = sp.csr_matrix((np.ones(len(own), np.float32), (row, column)), shape)
        return sp.hstack([known, letter_counts(words, self.buckets)], "csr", np.float32)

    def of_texts(self, texts: Sequence[str]) -> tuple[sp.csr_matrix, list[str]]:
        """Returns (N, rows) float32 for the language's words of texts, and their other tokens."""
        tokens = [tokens_of(self.features.normalize(text)) for text in texts]
        ours = [[word for word in row if word in self.words] for row in tokens]
        numbers = {word: at for at, word in enumerate(sorted({w for row in ours for w in row}))}
        flat = np.array([numbers[word] for row in ours for word in row])
        shape = (len(texts), len(numbers))
        offsets = offsets_of(np.array([*map(len, ours)]))
        counts = sp.csr_matrix((np.ones(len(flat), np.float32), flat, offsets), shape)
        rest = [" ".join(token for token in row if token not in self.words) for row in tokens]
        return (counts @ self.parts([*numbers])).tocsr(), rest

    def step(self, texts: sp.csr_matrix, gradients: Rows, rate: float) -> None:
        """Moves rows by Adagrad against the gradients (N, D) of the sums of texts."""
        gradient = np.asarray(texts.T.tocsr() @ gradients)
        self._squares += gradient**2
        self.rows -= np.float32(rate) * gradient / (np.sqrt(self._squares) + np.float32(1e-8))

    def vectors(self, words: Sequence[str]) -> Rows:
        """Returns (W, D) float32 rows of words."""
        return np.asarray(self.parts(words) @ self.rows)


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
    rows: LanguageRows,
    pairs: Translations,
    targets: Rows,
    others: Rows,
    *,
    steps: int,
    rate: float,
    seed: int,
) -> list[float]:
    """Fits rows so that texts find their targets (N, D), and returns the loss of each step.

    `others` is the table of all other tokens.
    """
    generator = np.random.default_rng(seed)
    texts, rest = rows.of_texts(pairs.others)
    fixed = BagSums(others)(rows.features(rest))
    losses, size = [], min(_BATCH, len(pairs.others))
    for step in range(steps):
        chosen = generator.choice(len(pairs.others), size, replace=False, p=pairs.weights)
        batch = texts[chosen]
        sums = fixed[chosen] + np.asarray(batch @ rows.rows)
        loss, gradient = loss_gradient(sums, targets[chosen], _SCALE)
        rows.step(batch, gradient, rate * min(1, (step + 1) / _WARMUP) * (1 - step / steps))
        losses.append(loss)
    return losses


def with_letters_again(table: Rows, rows: LanguageRows) -> Rows:
    """Returns a table whose letters are fitted to its words, and to those that it lacks.

    Letters of rare words add up to as long a row as before.
    """
    features, more = rows.features, rows.unknown
    words, buckets = features.vocabulary.words, features.letter_buckets
    known, before, after = np.split(table, [len(words), len(words) + buckets])
    counts = letter_counts([*words, *more], buckets)
    letters = fit_letters(counts, np.concatenate([known, rows.vectors(more)]))
    rare = counts[len(words) * 3 // 4 : len(words)]
    long, short = (
        float(np.median(np.linalg.norm(rare @ each, axis=1))) for each in (before, letters)
    )
    return np.concatenate([known, letters * np.float32(long / short), after])


def with_language(
    model: ModelContents,
    language: Language,
    pairs: Translations,
    targets: Rows,
    *,
    steps: int,
    seed: int,
) -> tuple[ModelContents, list[float]]:
    """Returns a model with the fitted rows of a language, and the loss of each step."""
    features, tensors = model.features, dict(dequantized(model.tensors))
    assert isinstance(features, WordFeatures)  # noqa: S101 -- rows are of words
    table = np.array(tensors[TABLE], np.float32)
    start = table if language.from_known else None
    rows = LanguageRows(
        features, pairs.words, language.buckets, table.shape[1], known=start, seed=seed
    )
    losses = fit(rows, pairs, targets, table, steps=steps, rate=language.rate, seed=seed)
    vocabulary = features.vocabulary.words
    table[rows.known] = rows.vectors([vocabulary[at] for at in rows.known.tolist()])
    if language == TURKISH:
        table = with_letters_again(table, rows)
    elif language == ARABIC:
        first = len(vocabulary) + features.letter_buckets
        table = np.concatenate([table[:first], rows.rows[len(rows.known) :]])
        features = replace(features, arabic_letter_buckets=rows.buckets)
    tensors[TABLE] = table.astype(np.float16)
    return replace(model, features=features, tensors=tensors, sha256=""), losses


def main() -> None:
    """Reads a model and translations, and writes the model with other rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    model = read_model(given.model)
    if not isinstance(model.features, WordFeatures) or not model.features.letter_buckets:
        parser.error(f"{given.model} does not read unknown words by their letters.")
    corpus, english = Corpus(given.data, model.features), SentenceEncoder(given.model)
    facts = {}
    for language in (TURKISH, SPANISH, ARABIC):
        pairs = corpus.translations(language.code)
        targets = english.encode(pairs.english)
        model, losses = with_language(
            model, language, pairs, targets, steps=given.steps, seed=given.seed
        )
        facts[language.code] = {"pairs": len(pairs.others), "words": len(pairs.words)}
        print(f"{language.code}: {facts[language.code]}, loss {losses[0]:.3f} to {losses[-1]:.3f}")
    fitted = {"steps": given.steps, "seed": given.seed, "languages": facts}
    training = {**model.training, "language_rows": fitted}
    write_model(given.out, replace(model, training=training))


if __name__ == "__main__":
    main()
