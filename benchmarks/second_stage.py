"""Whether the shipped scorer orders other sets' pairs better than the cosine that proposes them.

python benchmarks/second_stage.py --data DATA

Average precision of labelled pairs, 6,000 of a set, and MAP of related questions (CQA 2016 dev):
by the cosine, the score, and the sum of the cosine and a fifth of the score. Then the precision of
pairs with a cosine of at least .85, and with a score of at least 4 as well, and the share of the
right ones that are left.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from dedupe import labelled_pairs
from rejoinder import Scorer
from rejoinder.datasets.semeval import read_cqa
from rejoinder.evaluation.tasks.ranking import average_precision, ranked
from rejoinder.measures import Floats
from rejoinder.scoring.scorer import HIGHEST

SETS = ("quora_labelled", "twitter_url_labelled", "medical_question_pairs", "parade")
PAIRS, LEAST_COSINE, LEAST_SCORE = 6_000, 0.85, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    data, scorer = parser.parse_args().data, Scorer()
    for name in SETS:
        first, second, same = labelled(data, name)
        measures = measured(scorer, first, second)
        found = {way: average_precision_score(same, each) for way, each in measures.items()}
        near = measures["cosine"] >= LEAST_COSINE
        both = near & (measures["score"] >= LEAST_SCORE)
        found |= {"from .85": same[near].mean(), "and from 4": same[both].mean()}
        found["left"] = same[both].sum() / same[near].sum()
        show(name, found)
    queries = read_cqa(data, "2016", "dev").queries
    for part in ("both", "subject"):
        asked = [query.original.text(part) for query in queries for _ in query.related]
        texts = [one.text(part) for query in queries for one in query.related]
        ends = np.cumsum([len(query.related) for query in queries])[:-1]
        found = {}
        for way, each in measured(scorer, asked, texts).items():
            lists = zip(np.split(each, ends), queries, strict=True)
            flags = [ranked(scores, query.relevant) for scores, query in lists]
            found[way] = np.mean([average_precision(each) for each in flags])
        show(f"CQA 2016 dev, {part}", found)


def labelled(data: Path, name: str) -> tuple[list[str], list[str], np.ndarray]:
    """Returns pairs drawn with seed 0, and which of them say the same."""
    pairs = labelled_pairs(data, name)
    drawn = [pairs[row] for row in np.random.default_rng(0).permutation(len(pairs))[:PAIRS]]
    first, second, same = zip(*drawn, strict=True)
    return list(first), list(second), np.array(same)


def measured(scorer: Scorer, first: list[str], second: list[str]) -> dict[str, Floats]:
    cosine = scorer.encoder.similarity_pairwise(first, second).astype(np.float64)
    score = scorer.score(first, second).astype(np.float64)
    return {"cosine": cosine, "score": score, "sum": cosine + score / HIGHEST}


def show(name: str, found: dict[str, float]) -> None:
    print(f"{name}:", ", ".join(f"{way} {value:.3f}" for way, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
