"""Rankers of related questions on CQA 2016, subtask B, fitted on a part of its training data.

    python benchmarks/questions.py --data DATA [--ablation]
    python benchmarks/questions.py --data DATA --test 2016 --out predictions/

A ranker is a logistic regression on features of a question and a candidate, each less its mean over
the ten candidates. The first command gives MAP on train and dev by cross-validation over questions,
which features and the penalty were chosen by. The second fits on both, ranks a test set, compares
rankers by a paired permutation test over questions, and writes each ranking in the format of the
official scorer.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rejoinder import Scorer
from rejoinder.datasets.semeval import Question, RelatedQuestions, read_cqa
from rejoinder.encoders.layers import Array
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.tasks.ranking import average_precision, official_scores, ranked
from rejoinder.measures import Floats, Indices
from rejoinder.scoring.batch import stem
from rejoinder.text.normalize import words_of

PENALTY, FOLDS, REPEATS, DRAWS = 0.01, 10, 5, 20_000
K1, B = 1.2, 0.75
BEST_COMMENTS = 3
FIRST_OF_DEV = 268
"""Number of the first question of dev; those of train are lower."""
WHOLE, SUBJECT = ("both", "both"), ("subject", "subject")
SIDES = (WHOLE, SUBJECT, ("body", "body"), ("both", "subject"))
"""Texts that are compared: of the question, and of the candidate."""

Features = dict[str, Floats]
"""(N,) values by name, of N pairs of a question and a candidate."""


def names(*kinds: str, sides: Iterable[tuple[str, str]] = SIDES) -> tuple[str, ...]:
    return tuple(f"{kind} {a}-{b}" for kind in kinds for a, b in sides)


OTHER_SIDES = (WHOLE, SUBJECT, ("both", "subject"))
FAMILIES = {
    "cosine": names("cosine", sides=SIDES[:3]),
    "soft cosine": names("rows", sides=OTHER_SIDES),
    "scorer": names("scorer", sides=OTHER_SIDES),
    "words": names("tf-idf", "trigrams", sides=[WHOLE]),
    "comments": ("comments answer", "comments resemble", "thread covers"),
    "rank": ("rank",),
}
FITTED = {
    "features of SimBow": (*names("rows", "letters", "tf-idf"), "thread covers"),
    "features of KeLP": (
        *names("words", "bigrams", "trigrams", "tf-idf", "cosine"),
        "rank", "comments answer", "comments resemble",
    ),
    "all families": tuple(name for family in FAMILIES.values() for name in family),
}  # fmt: skip
PLAIN = {
    "search engine": "rank",
    "BM25": "BM25",
    "scorer": "scorer both-both",
    "cosine": "cosine both-both",
    "soft cosine": "rows both-both",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ablation", action="store_true", help="Leave out each family.")
    parser.add_argument("--test", choices=["2016", "2017"], help="Rank the test set of a year.")
    parser.add_argument("--out", type=Path, help="Folder for the rankings of the test set.")
    chosen = parser.parse_args()
    given = training(chosen.data)
    tested = read_cqa(chosen.data, chosen.test, "test").queries if chosen.test else []
    features = features_of([*given, *tested], given)
    count = sum(len(query.related) for query in given)
    kept = {name: values[:count] for name, values in features.items()}
    if tested:
        asked = {name: values[count:] for name, values in features.items()}
        test(given, kept, tested, asked, chosen.out)
        return
    for name, feature in PLAIN.items():
        show(name, given, [kept[feature]])
    rankers = dict(FITTED)
    for family in FAMILIES if chosen.ablation else ():
        rest = [names for name, names in FAMILIES.items() if name != family]
        rankers[f"all families but {family}"] = tuple(name for some in rest for name in some)
    for name, columns in rankers.items():
        show(name, given, validated(given, table(kept, columns, given)))


def training(data: Path) -> list[RelatedQuestions]:
    """Returns the queries of train and dev, of train those parts that are there."""
    queries = list[RelatedQuestions]()
    for split in ("train-part1", "train-part2", "dev"):
        try:
            found = read_cqa(data, "2016", split).queries
        except DataMissingError:
            continue
        print(f"{split}: {len(found)} questions")
        queries += found
    return queries


# features


def features_of(queries: list[RelatedQuestions], counted: list[RelatedQuestions]) -> Features:
    """Returns the features of all pairs; the words of threads of `counted` are counted for idf."""
    asked = [query.original for query in queries for _ in query.related]
    found = [one for query in queries for one in query.related]
    scorer, features = Scorer(), Features()
    features["rank"] = -np.log(np.concatenate([query.ranks for query in queries]))
    threads = [
        text for query in counted for one in query.related for text in (one.text(), *one.comments)
    ]
    whole = [" ".join([one.text(), *one.comments]) for one in found]
    bags = Bags(texts([*asked, *found], "both"), threads)
    rows = bags.nearness(scorer.encode) ** 2
    letters = bags.nearness(letters_of) ** 2
    features["BM25"] = bags.bm25(texts(asked, "both"), texts(found, "both"))
    features["thread covers"] = bags.covered(texts(asked, "both"), whole)
    for a, b in SIDES:
        pair, first, second = f"{a}-{b}", texts(asked, a), texts(found, b)
        embedded = scorer.encode(first), scorer.encode(second)
        features[f"cosine {pair}"] = np.einsum("nd,nd->n", *embedded).astype(np.float64)
        features[f"scorer {pair}"] = scorer.score(first, second).astype(np.float64)
        features[f"tf-idf {pair}"] = bags.soft_cosine(first, second)
        features[f"rows {pair}"] = bags.soft_cosine(first, second, rows)
        features[f"letters {pair}"] = bags.soft_cosine(first, second, letters)
        for size, name in enumerate(("words", "bigrams", "trigrams"), 1):
            features[f"{name} {pair}"] = shared(first, second, size)
    answer = scorer.encoder.encode_response
    wholes = scorer.encode(texts(asked, "both"))
    features["comments resemble"] = comments(wholes, found, scorer.encode)
    features["comments answer"] = comments(wholes, found, answer)
    return features


def texts(questions: Sequence[Question], part: str) -> list[str]:
    return [question.text(part) for question in questions]


def stems(text: str) -> list[str]:
    return [stem(word) for word in words_of(text)]


class Bags:
    """Texts as bags of stems, whose weights come from counting threads."""

    def __init__(self, known: Iterable[str], threads: Sequence[str]) -> None:
        words = sorted({word for text in known for word in words_of(text)})
        kept = {stem(word): word for word in reversed(words)}
        self.numbers = {name: number for number, name in enumerate(kept)}
        self.words = list(kept.values())
        """A word of each stem."""
        counts = Counter(name for text in threads for name in {*stems(text)})
        seen = np.array([counts[name] for name in kept])
        self.idf = np.log((len(threads) + 1) / (seen + 0.5))

    def counts(self, given: Sequence[str]) -> csr_matrix:
        """Returns (N, V) how often each text has each known stem."""
        numbers = self.numbers
        found = [[numbers[name] for name in stems(text) if name in numbers] for text in given]
        ends = np.cumsum([0, *map(len, found)])
        columns = np.concatenate([*found, []]).astype(np.int64)
        matrix = csr_matrix((np.ones(len(columns)), columns, ends), (len(given), len(self.words)))
        matrix.sum_duplicates()
        return matrix

    def weighted(self, given: Sequence[str]) -> Array:
        """Returns (N, V) tf-idf."""
        matrix = self.counts(given)
        matrix.data = 1 + np.log(matrix.data)
        return np.asarray(matrix.toarray() * self.idf, np.float32)

    def nearness(self, encode: Callable[[list[str]], Array]) -> Array:
        """Returns (V, V) cosines of the words of stems, from 0 to 1."""
        rows = np.asarray(encode(self.words), np.float32)
        near = np.clip(rows @ rows.T, 0, 1)
        np.fill_diagonal(near, 1)
        return np.asarray(near)

    def soft_cosine(self, first: list[str], second: list[str], near: Array | None = None) -> Floats:
        x, y = self.weighted(first), self.weighted(second)
        across, back = (x, y) if near is None else (x @ near, y @ near)
        scale = np.sqrt((across * x).sum(1) * (back * y).sum(1))
        return np.asarray((across * y).sum(1) / np.maximum(scale, 1e-9), np.float64)

    def bm25(self, queries: list[str], documents: list[str]) -> Floats:
        counts, asked = self.counts(documents), self.counts(queries).astype(bool)
        lengths = np.asarray(counts.sum(1)).ravel()
        scale = K1 * (1 - B + B * lengths / lengths.mean())
        dense = counts.toarray()
        weights = self.idf * dense * (K1 + 1) / (dense + scale[:, None])
        return np.asarray(asked.multiply(weights).sum(1)).ravel()

    def covered(self, queries: list[str], documents: list[str]) -> Floats:
        """Returns the share of a query's weight that is of stems of the document."""
        asked = self.counts(queries).astype(bool).toarray() * self.idf
        both = asked * self.counts(documents).astype(bool).toarray()
        return np.asarray(both.sum(1) / np.maximum(asked.sum(1), 1e-9))


def letters_of(words: list[str]) -> Array:
    """Returns unit rows of the two to four letters in a row of words."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), dtype=np.float32)
    return np.asarray(vectorizer.fit_transform(words).toarray())


def shared(first: list[str], second: list[str], size: int) -> Floats:
    """Returns the Jaccard indices of the n-grams of stems."""

    def grams(text: str) -> set[tuple[str, ...]]:
        found = stems(text)
        return {tuple(found[at : at + size]) for at in range(len(found) - size + 1)}

    pairs = [(grams(a), grams(b)) for a, b in zip(first, second, strict=True)]
    return np.array([len(a & b) / max(len(a | b), 1) for a, b in pairs])


def comments(
    asked: Array, found: Sequence[Question], encode: Callable[[list[str]], Array]
) -> Floats:
    """Returns the mean product of a question with the best comments on a candidate."""
    sizes = [len(one.comments) for one in found]
    rows = np.asarray(encode([text for one in found for text in one.comments]))
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    best = (
        np.sort(part @ row)[::-1][:BEST_COMMENTS] for part, row in zip(parts, asked, strict=True)
    )
    return np.array([each.mean() if len(each) else 0.0 for each in best])


# rankers


def groups_of(queries: Sequence[RelatedQuestions]) -> Indices:
    return np.repeat(np.arange(len(queries)), [len(query.related) for query in queries])


def table(
    features: Features, columns: Sequence[str], queries: Sequence[RelatedQuestions]
) -> Floats:
    """Returns (N, F) features, each less its mean over the candidates of its question."""
    rows, groups = np.column_stack([features[name] for name in columns]), groups_of(queries)
    sums = np.zeros((len(queries), len(columns)))
    np.add.at(sums, groups, rows)
    return np.asarray(rows - (sums / np.bincount(groups)[:, None])[groups])


def fit(rows: Floats, relevant: NDArray[np.bool_]) -> Floats:
    """Returns the (F,) weights of features."""
    spread = rows.std(axis=0) + 1e-9
    learner = LogisticRegression(C=PENALTY, max_iter=1_000).fit(rows / spread, relevant)
    return np.asarray(learner.coef_[0] / spread)


def validated(queries: Sequence[RelatedQuestions], rows: Floats) -> list[Floats]:
    """Returns scores by fits that have not seen the question, from several draws of folds."""
    groups, relevant = groups_of(queries), np.concatenate([query.relevant for query in queries])
    found = []
    for seed in range(REPEATS):
        drawn = np.random.default_rng(seed).permutation(len(queries)) % FOLDS
        scores, folds = np.zeros(len(rows)), drawn[groups]
        for fold in range(FOLDS):
            rest, asked = folds != fold, folds == fold
            scores[asked] = rows[asked] @ fit(rows[rest], relevant[rest])
        found.append(scores)
    return found


def flags_of(queries: Sequence[RelatedQuestions], scores: Floats) -> list[NDArray[np.bool_]]:
    parts = np.split(scores, np.cumsum([len(query.related) for query in queries])[:-1])
    return [ranked(part, query.relevant) for part, query in zip(parts, queries, strict=True)]


def show(name: str, queries: Sequence[RelatedQuestions], draws: list[Floats]) -> None:
    """Prints MAP of all questions, and of train and dev apart."""
    all_precisions = [
        [average_precision(flags) for flags in flags_of(queries, scores)] for scores in draws
    ]
    means = 100 * np.mean(all_precisions, axis=0)
    is_dev = np.array([int(query.original.id[1:]) >= FIRST_OF_DEV for query in queries])
    parts = means, means[~is_dev], means[is_dev]
    print(f"{name}: MAP", ", ".join(f"{part.mean():.2f}" for part in parts), flush=True)


def test(
    given: list[RelatedQuestions], known: Features,
    tested: list[RelatedQuestions], asked: Features, out: Path | None,
) -> None:  # fmt: skip
    relevant = np.concatenate([query.relevant for query in given])
    scores = {name: asked[feature] for name, feature in PLAIN.items()}
    for name, columns in FITTED.items():
        weights = fit(table(known, columns, given), relevant)
        scores[name] = table(asked, columns, tested) @ weights
    lists = {name: flags_of(tested, each) for name, each in scores.items()}
    precisions = {
        name: np.array([average_precision(flags) for flags in each]) for name, each in lists.items()
    }
    for name, each in lists.items():
        said = {score: round(value, 2) for score, value in official_scores(each).items()}
        chances = {
            other: round(chance(precisions[name] - precisions[other]), 5)
            for other in ("search engine", "cosine")
            if other != name
        }
        print(f"{name}: {said}; p by permutation: {chances}")
        if out:
            write(out / f"{name.replace(' ', '-')}.pred", tested, scores[name])


def chance(differences: Floats) -> float:
    """Returns how often a mean is as far from 0 if the sign of each difference is drawn."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (DRAWS, len(differences)))
    beyond = np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9
    return float((1 + beyond.sum()) / (1 + DRAWS))


def write(path: Path, queries: Sequence[RelatedQuestions], scores: Floats) -> None:
    """Writes rows of question, candidate, rank, score and judgement."""
    pairs = [(query, one) for query in queries for one in query.related]
    ranks = np.concatenate([query.ranks for query in queries])
    rows = (
        f"{query.original.id}\t{one.id}\t{rank}\t{score:.6f}\ttrue\n"
        for (query, one), rank, score in zip(pairs, ranks.tolist(), scores.tolist(), strict=True)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(rows), "utf-8")


if __name__ == "__main__":
    main()
