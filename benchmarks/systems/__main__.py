"""Fits systems of SemEval-2017 by name on STS-B train, and scores them on STS-B.

    python benchmarks/systems --data DATA [--vectors words.bin] [--systems bit,hcti] [--test]

Prints a row for each, and appends it to `--out`. Dev decides; `--test` looks at test, too. What
each system is, and what differs from its paper: notebook/reproduction/leaderboard.md.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import families
import numpy as np
import twins
from wordnet import WordNet, content_words

from rejoinder.api.trees import fitted_regression
from rejoinder.datasets.semeval import GradedPairs, pair_keys, read_stsb
from rejoinder.encoders.layers import Array
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.measures import Floats, pearson_correlation
from rejoinder.scoring.families import FAMILIES
from rejoinder.scoring.scorer import PairFeatures
from rejoinder_papers.baselines.vectors import WordVectors, read_vectors
from rejoinder_papers.baselines.words import tokens

Scores = Mapping[str, Floats]
"""The scores of the pairs of each split."""

WORDS = "rejoinder-small"


class Work:
    """The pairs, and what several systems compute from them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.seed: int = arguments.seed
        self.splits = ("dev", "test") if arguments.test else ("dev",)
        held_out = [read_stsb(arguments.data, split) for split in ("dev", "test")]
        known = np.concatenate([pair_keys(each.first, each.second) for each in held_out])
        train = read_stsb(arguments.data, "train")
        kept = np.flatnonzero(~np.isin(pair_keys(train.first, train.second), known))
        self.pairs = {"train": train.at(kept.tolist()), "dev": held_out[0], "test": held_out[1]}
        self._arguments, self._features = arguments, dict[tuple[str, str], Array]()
        self.wordnet = WordNet(arguments.data / "lexical")
        families.register(self.wordnet)

    @cached_property
    def vectors(self) -> WordVectors:
        """The word vectors of `--vectors`, else the embeddings of words alone by `WORDS`."""
        if self._arguments.vectors:
            return read_vectors(self._arguments.vectors)
        found = {word for pairs in self.pairs.values() for word in _words(pairs)}
        ids = {word: row for row, word in enumerate(sorted(found))}
        rows = SentenceEncoder.load(WORDS).encode(list(ids))
        known = np.linalg.norm(rows, axis=1) > 0
        return WordVectors(WORDS, {word: row for word, row in ids.items() if known[row]}, rows)

    @cached_property
    def encoder(self) -> SentenceEncoder:
        return SentenceEncoder.load(self._arguments.model)

    def features(self, names: Sequence[str], split: str) -> Array:
        """Returns (N, F) features of the families of those names."""
        for name in names:
            if (name, split) not in self._features:
                compute = PairFeatures(self.encoder, [FAMILIES[name]], 1)
                found = compute(self.pairs[split].first, self.pairs[split].second)
                self._features[name, split] = found
        return np.concatenate([self._features[name, split] for name in names], axis=1)


def _words(pairs: GradedPairs) -> Iterator[str]:
    for text in (*pairs.first, *pairs.second):
        yield from tokens(text)
        yield from content_words(text)


@cache
def boosted(*names: str) -> Callable[[Work], Scores]:
    """A system of boosted trees and a linear part on families, as `rejoinder fit-scorer` fits."""

    @cache
    def run(work: Work) -> Scores:
        gold = work.pairs["train"].gold
        ones = np.ones(len(gold), np.int64)
        fitted = fitted_regression(work.features(names, "train"), gold, ones, work.seed)
        return {
            split: fitted(work.features(names, split)).astype(np.float64) for split in work.splits
        }

    return run


@cache
def forest(work: Work) -> Scores:
    """ECNU's random forest, on all of its families."""
    from sklearn.ensemble import RandomForestRegressor

    learner = RandomForestRegressor(
        200, min_samples_leaf=2, max_features=0.3, n_jobs=1, random_state=work.seed
    )
    learner.fit(work.features(ECNU, "train"), work.pairs["train"].gold)
    return {split: learner.predict(work.features(ECNU, split)) for split in work.splits}


def feature(family: str, name: str) -> Callable[[Work], Scores]:
    """A system without training: the value of one feature."""

    def run(work: Work) -> Scores:
        column = FAMILIES[family].features.index(name)
        return {
            split: work.features([family], split)[:, column].astype(np.float64)
            for split in work.splits
        }

    return run


@cache
def network(encoder: str) -> Callable[[Work], Scores]:
    """Twins with that encoder."""

    @cache
    def run(work: Work) -> Scores:
        reader, train, dev = twins.Reader(work.vectors), work.pairs["train"], work.pairs["dev"]
        model, epoch = twins.trained(encoder, reader, train, dev, work.seed)
        print(f"{encoder}: {epoch} epochs", flush=True)
        return {
            split: model.scores(*twins.read(reader, work.pairs[split])) for split in work.splits
        }

    return run


def mean_of(*runs: Callable[[Work], Scores]) -> Callable[[Work], Scores]:
    """A system that gives the mean of the scores of others."""

    def run(work: Work) -> Scores:
        found = [each(work) for each in runs]
        return {
            split: np.asarray(np.mean([each[split] for each in found], axis=0))
            for split in work.splits
        }

    return run


KIND_WEIGHTS = (0.5, 1.0, 1.5)
"""What LIM-LIG may weigh a part of speech by; nouns count 1."""


def weighted(work: Work) -> Scores:
    """LIM-LIG: the cosine of sums of word vectors, by idf and part of speech."""
    kinds = ("verb", "adjective", "adverb", "other")
    split_bags = {split: _bags(work, pairs) for split, pairs in work.pairs.items()}

    def cosines(split: str, weights: Mapping[str, float]) -> Floats:
        first, second = (
            np.sum([weights[kind] * bag[kind] for kind in bag], axis=0) for bag in split_bags[split]
        )
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        return np.asarray((first * second).sum(axis=1) / np.maximum(lengths, 1e-9), np.float64)

    gold = work.pairs["train"].gold
    grid = np.stack(np.meshgrid(*[KIND_WEIGHTS] * len(kinds)), -1).reshape(-1, len(kinds))
    chosen = [dict(zip(kinds, row, strict=True)) | {"noun": 1.0} for row in grid.tolist()]
    best = max(chosen, key=lambda each: pearson_correlation(cosines("train", each), gold))
    print("weights:", best)
    return {split: cosines(split, best) for split in work.splits}


def _bags(work: Work, pairs: GradedPairs) -> list[dict[str, Array]]:
    """Returns for each side the (N, D) sums of the vectors of each part of speech, by idf."""
    found = []
    for texts in (pairs.first, pairs.second):
        shape = (len(texts), work.vectors.vectors.shape[1])
        sums = {
            kind: np.zeros(shape, np.float32)
            for kind in ("noun", "verb", "adjective", "adverb", "other")
        }
        for row, text in enumerate(texts):
            for word in content_words(text):
                if word in work.vectors.ids:
                    vector = work.vectors.vectors[work.vectors.ids[word]]
                    sums[work.wordnet.kind(word)][row] += work.wordnet.idf(word) * vector
        found.append(sums)
    return found


@dataclass(frozen=True)
class System:
    """A system, and its published Pearson's r on STS-B dev and test, where there is one."""

    run: Callable[[Work], Scores]
    published: tuple[float | None, float | None] = (None, None)


OVERLAP = ("overlap", "characters", "edits", "sequences")
ECNU = (*OVERLAP, "translation", "alignment", "bags", "pooled", "embeddings", "lengths")
_DEEP = tuple(map(network, ("mean", "projected", "dan", "lstm")))

SYSTEMS = {
    "ecnu-alignment": System(boosted("alignment"), (0.816, 0.775)),
    "ecnu-overlap": System(boosted(*OVERLAP), (0.782, 0.745)),
    "ecnu-embeddings": System(boosted("pooled", "embeddings"), (0.801, 0.713)),
    "ecnu-bags": System(boosted("bags"), (0.764, 0.685)),
    "ecnu-translation": System(boosted("translation")),
    "ecnu-boosting": System(boosted(*ECNU), (0.836, 0.802)),
    "ecnu-forest": System(forest, (0.833, 0.799)),
    "ecnu-ensemble": System(mean_of(boosted(*ECNU), forest, *_DEEP), (0.847, 0.810)),
    "bit-information": System(feature("information", "shared information")),
    "bit-alignment": System(boosted("information", "alignment")),
    "bit": System(boosted("information", "embeddings"), (0.829, 0.809)),
    "dt-team": System(
        mean_of(boosted("overlap", "alignment", "lengths", "kinds"), *map(network, ("dan", "cnn"))),
        (0.830, 0.792),
    ),
    "hcti": System(network("cnn"), (0.834, 0.784)),
    "lim-lig": System(weighted),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--vectors", type=Path, help=f"word vectors of networks and lim-lig; default: of {WORDS}"
    )
    parser.add_argument("--model", default="rejoinder-base", help="the encoder of the families")
    parser.add_argument("--systems", help=f"of {', '.join(SYSTEMS)}; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="look at test, too")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    work = Work(arguments)
    print("train", len(work.pairs["train"]), "dev", len(work.pairs["dev"]))
    for name in arguments.systems.split(",") if arguments.systems else SYSTEMS:
        found = SYSTEMS[name].run(work)
        row: dict[str, object] = {"system": name, "published": SYSTEMS[name].published}
        for split, scores in found.items():
            row[split] = round(pearson_correlation(scores, work.pairs[split].gold), 4)
        row |= {"seed": work.seed, "model": arguments.model, "n": len(work.pairs["train"])}
        row |= {"vectors": str(arguments.vectors)} if arguments.vectors else {}
        print(json.dumps(row), flush=True)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
