"""Measures the shipped scorer: correlations, intervals, contrasts, speed; and what families add.

python benchmarks/scorer.py --data DATA [--sources] [--strict] [--ablation] [--difficult]
    [--test]
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.api.scorer import calibration, training_pairs
from rejoinder.api.trees import fitted_regression
from rejoinder.datasets.groups import read_graded
from rejoinder.datasets.leaks import EvaluationHashes
from rejoinder.datasets.semeval import GradedPairs, pair_keys, read_stsb
from rejoinder.encoders.layers import Array
from rejoinder.evaluation.tasks.contrasts import KINDS, read_contrasts
from rejoinder.measures import Floats, pearson_correlation, spearman_correlation
from rejoinder.scoring.families import FAMILIES
from rejoinder.scoring.scorer import HIGHEST, PairFeatures, Scorer, interval_ends

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
SETS = ("stsb", "sts", "contrasts")
KINDS_OF_SOURCES = {
    "MSRvid": "videos", "images": "images", "track5.en-en": "images", "MSRpar": "news",
    "SMTnews": "news", "headlines": "headlines", "deft-news": "tweets", "tweet-news": "tweets",
    "OnWN": "glosses", "FNWN": "glosses", "SMTeuroparl": "parliament", "deft-forum": "forums",
    "answers-forums": "forums", "belief": "forums", "answers-students": "students",
}  # fmt: skip
"""Sources that are left out together, because their texts are alike."""
NEVER_FITTED = ("graded/cxc_captions_val.jsonl", "graded/semrel2024_en.jsonl")
MOST = 6_000
"""Most pairs of such a file that are scored."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--sources", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--difficult", action="store_true")
    parser.add_argument("--test", action="store_true", help="Look at STS-B test, too.")
    arguments = parser.parse_args()
    scorer = Scorer()
    print(scorer, scorer.facts.pairs, "seed", scorer.facts.seed)
    splits = ("dev", "test") if arguments.test else ("dev",)
    correlations(scorer, arguments.data, splits)
    contrasts(scorer)
    speed(scorer, read_stsb(arguments.data, "train"))
    if arguments.ablation:
        ablation(scorer, arguments.data)
    if arguments.sources:
        sources(scorer, arguments.data)
    if arguments.strict:
        strict(scorer, arguments.data, splits)
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


def difficult(scorer: Scorer) -> None:
    """Scores the difficult pairs of STS 2017, track 5, that Cer et al. (2017, table 13) name."""
    for first, second, gold in DIFFICULT:
        [pair] = scorer.explain(first, second)
        print(
            f"{gold:.1f}: {pair.score:.1f} ({pair.low:.1f} to {pair.high:.1f}) {first} | {second}"
        )


def sources(scorer: Scorer, data: Path) -> None:
    """Scores each kind of sources by a fit without them, and what is never fitted by the scorer.

    A fit also leaves out pairs with a sentence of the sources that it is judged on. Prints r of the
    score and the cosine, how many true scores are in the intervals that the other sources give, and
    their mean width.
    """
    training, dev = training_pairs(data, SETS), read_stsb(data, "dev")
    fresh = [row for row, name in enumerate(dev.sources) if name not in {*training.sources}]
    dev = dev.at(fresh)
    first, second = training.first + dev.first, training.second + dev.second
    gold = np.concatenate([training.gold, dev.gold])
    source = np.concatenate([training.sources, dev.sources])
    kinds = np.array([KINDS_OF_SOURCES.get(name, "") for name in source.tolist()])
    kinds[: len(training.gold)][training.constructed] = ""
    features = PairFeatures(scorer.encoder, FAMILIES.values())(first, second)
    fitted, scores = np.arange(len(gold)) < len(training.gold), np.zeros(len(gold))
    for kind in sorted({*kinds.tolist()} - {""}):
        inside = kinds == kind
        texts = {text for row in np.flatnonzero(inside) for text in (first[row], second[row])}
        shares = np.array([not texts.isdisjoint(pair) for pair in zip(first, second, strict=True)])
        rows = np.flatnonzero(fitted & ~shares)
        regression = fitted_regression(
            features[rows], gold[rows], training.weights[rows], 0, 1, training.constructed[rows],
            training.sources[rows],
        )  # fmt: skip
        scores[inside] = regression(features[inside])
    found = []
    for name in sorted({*source[kinds != ""].tolist()}):
        rows, others = source == name, (kinds != "") & (source != name)
        slope, intercept, interval = calibration(scores[others], gold[others], source[others])
        calibrated = np.clip(slope * scores[rows] + intercept, 0, HIGHEST)
        cosine = features[rows, 0].astype(float)
        found.append(
            judged(name, calibrated, cosine, gold[rows], interval_ends(calibrated, interval))
        )
    print("mean of sources left out:", np.mean(found, axis=0).round(3), flush=True)
    for path in NEVER_FITTED:
        pairs = read_graded(data / path)
        kept = np.flatnonzero(~np.isin(pair_keys(pairs.first, pairs.second), training.keys))
        pairs = pairs.at(kept[:: len(kept) // MOST + 1].tolist())
        scored = scorer.score(pairs.first, pairs.second)
        cosine = scorer.encoder.similarity_pairwise(pairs.first, pairs.second).astype(float)
        judged(Path(path).name, scored, cosine, pairs.gold, scorer.intervals(scored))


def judged(
    name: str, scores: Array | Floats, cosine: Floats, gold: Floats, ends: tuple[Array, Array]
) -> tuple[float, ...]:
    reached, plain = (pearson_correlation(np.asarray(each, np.float64), gold)
                      for each in (scores, cosine))  # fmt: skip
    inside, width = ((ends[0] <= gold) & (gold <= ends[1])).mean(), (ends[1] - ends[0]).mean()
    print(f"{name}: {len(gold):,} pairs, {reached:.3f}, cosine {plain:.3f}, "
          f"{reached - plain:+.3f}; in the interval {inside:.3f}, width {width:.2f}",
          flush=True)  # fmt: skip
    return reached, plain, inside, width


def strict(scorer: Scorer, data: Path, splits: Sequence[str]) -> None:
    """Scores splits of STS-B by a fit without pairs that share a sentence with them."""
    training = training_pairs(data, SETS)
    compute = PairFeatures(scorer.encoder, FAMILIES.values())
    features = compute(training.first, training.second)
    fitted_on = {*training.first, *training.second}
    for split in splits:
        held_out, pairs = EvaluationHashes.load((f"stsb-{split}",)), read_stsb(data, split)
        known = [held_out.contains(pl.Series(side)) for side in (training.first, training.second)]
        rows = np.flatnonzero(~(known[0] | known[1]))
        regression = fitted_regression(
            features[rows], training.gold[rows], training.weights[rows], 0, 1,
            training.constructed[rows], training.sources[rows],
        )  # fmt: skip
        scores = regression(compute(pairs.first, pairs.second))
        shared = sum(not fitted_on.isdisjoint(pair)
                     for pair in zip(pairs.first, pairs.second, strict=True))  # fmt: skip
        print(f"{split}, {shared} of whose pairs share a sentence: {pearson(scores, pairs):.4f} "
              f"by a fit on {len(rows):,} pairs", by_genre(scores, pairs), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
