"""Measures the shipped scorer: correlations, intervals, contrasts, speed; and what families add.

python benchmarks/scorer.py --data DATA [--folds] [--ablation] [--years] [--sources] [--difficult]
    [--test]
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.api.contrast_pairs import contrast_pairs
from rejoinder.api.scorer import WEIGHTS
from rejoinder.api.trees import fitted_regression
from rejoinder.datasets.files import read_bytes
from rejoinder.datasets.leaks.hashes import EvaluationHashes
from rejoinder.datasets.sts import GradedPairs, pair_keys, read_sts_year, read_stsb
from rejoinder.encoders.layers import Array
from rejoinder.evaluation.tasks.contrasts import KINDS, read_contrasts
from rejoinder.inference.scoring.families import FAMILIES
from rejoinder.inference.scoring.opened import Scorer
from rejoinder.inference.scoring.scorer import PairFeatures
from rejoinder.measures import pearson_correlation, spearman_correlation

YEARS = (12, 13, 14, 15)
DIFFICULT = (
    ("There is a cook preparing food.", "A cook is making food.", 5.0),
    ("The man is in a deserted field.", "The man is outside in the field.", 4.0),
    ("A girl in water without goggles or a swimming cap.",
     "A girl in water, with goggles and swimming cap.", 3.0),
    ("A man is carrying a canoe with a dog.", "A dog is carrying a man in a canoe.", 1.8),
    ("There is a young girl.", "There is a young boy with the woman.", 1.0),
    ("The kids are at the theater watching a movie.", "it is picture day for the boys", 0.2),
)  # fmt: skip
"""Pairs and what people gave."""
LEFT_OUT = ("deft-forum", "belief", "answers-students", "tweet-news", "deft-news")
"""The source that each fold leaves out."""
LIKE_TEST = {
    "MSRpar": 250, "headlines": 250, "MSRvid": 250, "images": 250, "track5.en-en": 125,
    "answers-forums": 85, "deft-forum": 85, "belief": 84,
}  # fmt: skip
"""How much the pairs of a source count together: as many pairs as the like of it has in test."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--years", action="store_true")
    parser.add_argument("--sources", action="store_true")
    parser.add_argument("--difficult", action="store_true")
    parser.add_argument("--test", action="store_true", help="Look at STS-B test, too.")
    arguments = parser.parse_args()
    scorer = Scorer()
    print(scorer, scorer.facts.pairs, "seed", scorer.facts.seed)
    splits = ("dev", "test") if arguments.test else ("dev",)
    correlations(scorer, arguments.data, splits)
    contrasts(scorer)
    speed(scorer, read_stsb(arguments.data, "train"))
    if arguments.folds:
        folds(scorer, arguments.data)
    if arguments.ablation:
        ablation(scorer, arguments.data)
    if arguments.years:
        years(scorer, arguments.data)
    if arguments.sources:
        sources(scorer, arguments.data, splits)
    if arguments.difficult:
        difficult(scorer)


def correlations(scorer: Scorer, data: Path, splits: Sequence[str]) -> None:
    for split in splits:
        pairs = read_stsb(data, split)
        scores = scorer.score(pairs.first, pairs.second)
        low, high = scorer.intervals(scores)
        inside = ((pairs.gold >= low) & (pairs.gold <= high)).mean()
        rank = spearman_correlation(scores.astype(float), pairs.gold)
        off = abs(scores - pairs.gold).mean()
        print(f"{split}: Pearson {pearson(scores, pairs):.4f}, Spearman {rank:.4f}")
        print(f"  mean distance {off:.3f}; in their interval {inside:.3f}")
        print(f"  mean width {(high - low).mean():.2f}", by_genre(scores, pairs))


def pearson(scores: Array, pairs: GradedPairs) -> float:
    return pearson_correlation(scores.astype(float), pairs.gold)


def by_genre(scores: Array, pairs: GradedPairs) -> dict[str, float]:
    found = {}
    for genre in sorted({*pairs.genres}):
        rows = [row for row, name in enumerate(pairs.genres) if name == genre]
        found[genre] = round(pearson(scores[rows], pairs.at(rows)), 4)
    return found


def contrasts(scorer: Scorer) -> None:
    frame = read_contrasts().frame
    for kind in KINDS:
        rows = frame.filter(frame["kind"] == kind)
        anchors, same, different = (
            rows[name].to_list() for name in ("anchor", "same", "different")
        )
        nearer = scorer.score(anchors, same) > scorer.score(anchors, different)
        cosines = [scorer.encoder.similarity_pairwise(anchors, each) for each in (same, different)]
        plain = (cosines[0] > cosines[1]).mean()
        print(f"contrasts {kind}: {nearer.mean():.3f} of {len(rows)}; cosine {plain:.3f}")


def speed(scorer: Scorer, pairs: GradedPairs) -> None:
    rates, alone = [], []
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        scorer.score(pairs.first, pairs.second)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        rates.append((len(pairs) / wall, len(pairs) / processor))
    for first, second in zip(pairs.first[:300], pairs.second[:300], strict=True):
        begin = time.perf_counter()
        scorer.score(first, second)
        alone.append(time.perf_counter() - begin)
    wall, processor = max(rates)
    print(f"{wall:,.0f} pairs/s, {processor:,.0f} pairs per second of processor time")
    print(f"one pair: median {1e3 * statistics.median(alone):.2f} ms, best {1e3 * min(alone):.2f}")


def ablation(scorer: Scorer, data: Path) -> None:
    """Fits on STS-B train alone, with all families, without each, and with each alone."""
    train, dev = read_stsb(data, "train"), read_stsb(data, "dev")
    families = FAMILIES.values()
    compute = PairFeatures(scorer.encoder, families)
    given, asked = compute(train.first, train.second), compute(dev.first, dev.second)
    owner = np.array([family.name for family in families for _ in family.features])

    def correlation(columns: Sequence[bool]) -> float:
        kept = np.flatnonzero(columns)
        ones = np.ones(len(train), np.int64)
        fitted = fitted_regression(given[:, kept], train.gold, ones)
        return pearson(fitted(asked[:, kept]), dev)

    print(f"all families: {correlation(owner != ''):.4f}")
    for family in families:
        without, alone = correlation(owner != family.name), correlation(owner == family.name)
        print(f"{family.name}: without {without:.4f}, alone {alone:.4f}", flush=True)


def folds(scorer: Scorer, data: Path) -> None:
    """Scores STS-B train and dev by fits on four fifths that also leave a source out."""
    sets = [("stsb", read_stsb(data, "train")), ("dev", read_stsb(data, "dev"))]
    names = [name for split in ("train", "dev") for name in stsb_sources(data, split)]
    for year in YEARS:
        sets.append(("sts", read_sts_year(data, year)))
        names += [genre.removeprefix("surprise.") for genre in sets[-1][1].genres]
    sets.append(("contrasts", contrast_pairs(data)))
    names += sets[-1][1].genres
    owner = np.array([name for name, pairs in sets for _ in range(len(pairs))])
    first, second = ([text for _, each in sets for text in getattr(each, side)] for side in
                     ("first", "second"))  # fmt: skip
    gold, source = np.concatenate([each.gold for _, each in sets]), np.array(names)
    held = [EvaluationHashes.load((name,)).contains_pairs(pl.Series(first), pl.Series(second))
            for name in ("stsb-test", "stsb-dev", "sts2017")]  # fmt: skip
    kept = np.zeros(len(gold), np.bool_)
    kept[np.unique(pair_keys(first, second), return_index=True)[1]] = True
    in_dev = owner == "dev"
    kept = kept & ~np.any(held, axis=0) | in_dev
    starts = [min(pair) for pair in zip(first, second, strict=True)]
    distinct, groups = np.unique(starts, return_inverse=True)
    fold = (np.random.default_rng(0).permutation(len(distinct)) % len(LEFT_OUT))[groups]
    for number, name in enumerate(LEFT_OUT):
        fold[source == name] = number
    features = PairFeatures(scorer.encoder, FAMILIES.values())(first, second)
    weights = np.array([WEIGHTS.get(name, 1) for name in owner])
    scores = np.zeros(len(gold))
    for number in range(len(LEFT_OUT)):
        rows = kept & ~in_dev & (fold != number)
        fitted = fitted_regression(
            features[rows], gold[rows], weights[rows], constructed=owner[rows] == "contrasts"
        )
        inside = kept & (fold == number)
        scores[inside] = fitted(features[inside])
    shares = np.zeros(len(gold))
    for name, share in LIKE_TEST.items():
        rows = kept & (source == name) & ((owner != "sts") | (name == "belief"))
        shares[rows] = share / rows.sum()
    for name, values in (("scorer", scores), ("cosine", features[:, 0].astype(float))):
        together = np.cov(values, gold, aweights=shares)
        found = together[0, 1] / np.sqrt(together[0, 0] * together[1, 1])
        forums = in_dev & (source == "answers-forums")
        parts = [pearson_correlation(values[rows], gold[rows]) for rows in (in_dev, forums)]
        print(f"folds, {name}: {found:.4f}, dev {parts[0]:.4f}, its forums {parts[1]:.4f}")


def stsb_sources(data: Path, split: str) -> list[str]:
    """Returns the source of each pair of a split."""
    rows = read_bytes(data / "raw" / "STSBenchmark" / f"sts-{split}.csv").decode().splitlines()
    return [row.split("\t")[1] for row in rows]


def difficult(scorer: Scorer) -> None:
    """Scores the difficult pairs of STS 2017, track 5, that Cer et al. (2017, table 13) name."""
    for first, second, gold in DIFFICULT:
        [pair] = scorer.explain(first, second)
        print(
            f"{gold:.1f}: {pair.score:.1f} ({pair.low:.1f} to {pair.high:.1f}) {first} | {second}"
        )


def sources(scorer: Scorer, data: Path, splits: Sequence[str]) -> None:
    """Scores each fifth of the sources of STS (headlines, images, belief, …) by a fit on the rest.

    Also scores splits of STS-B by a fit without STS-B train.
    """
    names = stsb_sources(data, "train")
    sets = [read_stsb(data, "train"), *(read_sts_year(data, year) for year in YEARS)]
    for pairs in sets[1:]:
        names += [genre.removeprefix("surprise.") for genre in pairs.genres]
    first, second = ([text for each in sets for text in getattr(each, side)] for side in
                     ("first", "second"))  # fmt: skip
    gold, in_train = np.concatenate([each.gold for each in sets]), len(sets[0])
    keys = pair_keys(first, second)
    held_out = EvaluationHashes.load(("stsb-dev", "stsb-test", "sts2017"))
    leaks = held_out.contains_pairs(pl.Series(first), pl.Series(second))
    kept = np.sort(np.unique(keys, return_index=True)[1])
    kept = kept[~leaks[kept]]
    compute = PairFeatures(scorer.encoder, FAMILIES.values())
    features = compute([first[row] for row in kept], [second[row] for row in kept])
    source, gold = np.array(names)[kept], gold[kept]
    distinct, numbers = np.unique(source, return_inverse=True)
    scores, ones = np.zeros(len(gold)), np.ones(len(gold), np.int64)
    for fold in range(5):
        inside = numbers % 5 == fold
        fitted = fitted_regression(features[~inside], gold[~inside], ones[~inside])
        scores[inside] = fitted(features[inside])
    for name, values in (("scorer", scores), ("cosine", features[:, 0].astype(float))):
        found = [
            pearson_correlation(values[source == each], gold[source == each])
            for each in distinct
            if (source == each).sum() >= 100
        ]
        pooled = pearson_correlation(values, gold)
        print(f"sources held out, {name}: {pooled:.4f} together, mean {np.mean(found):.4f}")
    other = kept >= in_train
    fitted = fitted_regression(features[other], gold[other], ones[other])
    for split in splits:
        pairs = read_stsb(data, split)
        reached = pearson(fitted(compute(pairs.first, pairs.second)), pairs)
        print(f"without STS-B train, {split}: {reached:.4f} ({other.sum():,} pairs)", flush=True)


def years(scorer: Scorer, data: Path) -> None:
    """Scores each year of STS by a fit on the pairs of STS-B train and the other years."""
    sets = {year: read_sts_year(data, year) for year in YEARS}
    pairs = [read_stsb(data, "train"), *sets.values()]
    compute, found = PairFeatures(scorer.encoder, FAMILIES.values()), []
    features = [compute(each.first, each.second) for each in pairs]
    keys = [pair_keys(each.first, each.second) for each in pairs]
    for number, (year, held) in enumerate(sets.items(), 1):
        kept = [~np.isin(each, keys[number]) for each in keys]
        rows = np.concatenate([each[which] for each, which in zip(features, kept, strict=True)])
        gold = np.concatenate([each.gold[which] for each, which in zip(pairs, kept, strict=True)])
        ones = np.ones(len(gold), np.int64)
        fitted = fitted_regression(rows, gold, ones)
        found.append(pearson(fitted(features[number]), held))
        cosine = pearson(features[number][:, 0], held)
        print(f"STS{year}: {found[-1]:.4f} of {len(held):,}, cosine {cosine:.4f}", flush=True)
    print(f"mean {statistics.mean(found):.4f}")


if __name__ == "__main__":
    main()
