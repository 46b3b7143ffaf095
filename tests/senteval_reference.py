"""The published protocol again, plainly and slowly: what the toolkit is held against."""

import hashlib
import math

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

DIM = 300


class HashedWords:
    """The mean of 300-dimensional normal vectors seeded by the SHA-256 of each token."""

    def encode(self, sentences):
        out = np.zeros((len(sentences), DIM), np.float32)
        for row, sentence in enumerate(sentences):
            words = sentence.split()
            for word in words:
                seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
                out[row] += np.random.default_rng(seed).standard_normal(DIM)
            out[row] /= max(len(words), 1)
        return out


def folds(labels, k):
    return list(StratifiedKFold(k, shuffle=True, random_state=1111).split(labels, labels))


def accuracy(train, train_labels, test, test_labels, c):
    model = LogisticRegression(C=c, max_iter=2_000, tol=1e-6)
    return model.fit(train, train_labels).score(test, test_labels)


def nested_accuracy(features, labels, k):
    """Mean accuracy over outer folds, the penalty of each chosen on inner folds."""
    scores = []
    for train, test in folds(labels, k):
        x, y = features[train], labels[train]
        best, chosen = -1.0, None
        for power in range(-2, 4):
            inner = [accuracy(x[a], y[a], x[b], y[b], 2.0**power) for a, b in folds(y, k)]
            if round(100 * np.mean(inner), 2) > best:
                best, chosen = round(100 * np.mean(inner), 2), 2.0**power
        scores.append(100 * accuracy(x, y, features[test], labels[test], chosen))
    return float(np.mean(scores))


def kfold_accuracy(train, train_labels, test, test_labels, k):
    """Accuracy on test, the penalty chosen on folds of train."""
    best, chosen = -1.0, None
    for power in range(-1, 6):
        inner = [
            accuracy(train[a], train_labels[a], train[b], train_labels[b], 2.0**power)
            for a, b in folds(train_labels, k)
        ]
        if round(100 * np.mean(inner), 2) > best:
            best, chosen = round(100 * np.mean(inner), 2), 2.0**power
    return 100 * accuracy(train, train_labels, test, test_labels, chosen)


def pearson(x, y):
    x, y = [float(v) for v in x], [float(v) for v in y]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    over = math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return over / math.sqrt(
        math.fsum((a - mx) ** 2 for a in x) * math.fsum((b - my) ** 2 for b in y)
    )


def sts_scores(folder, subsets, encoder):
    """Pearson of cosine as SentEval has it: mean, weighted mean, all."""
    rs, sizes, every, all_gold = [], [], [], []
    for name in subsets:
        gold_lines = (folder / f"STS.gs.{name}.txt").read_text("utf-8").split("\n")
        pair_lines = (folder / f"STS.input.{name}.txt").read_text("utf-8").split("\n")
        kept = [i for i, line in enumerate(gold_lines) if line.strip()]
        gold = [float(gold_lines[i]) for i in kept]
        first = encoder.encode([pair_lines[i].split("\t")[0] for i in kept]).astype(float)
        second = encoder.encode([pair_lines[i].split("\t")[1] for i in kept]).astype(float)
        cosine = [
            float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
            for a, b in zip(first, second, strict=True)
        ]
        rs.append(pearson(cosine, gold))
        sizes.append(len(gold))
        every += cosine
        all_gold += gold
    weighted = sum(r * n for r, n in zip(rs, sizes, strict=True)) / sum(sizes)
    return sum(rs) / len(rs), weighted, pearson(every, all_gold)
