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


def trained_network(model, orders, rows, labels, decay, optimizer="Adam", batch=64):
    """The plain loop of the original's classifier: one network, an order of rows an epoch."""
    import torch

    steps = getattr(torch.optim, optimizer)(model.parameters(), weight_decay=decay)
    for order in orders:
        for start in range(0, len(order), batch):
            part = torch.from_numpy(order[start : start + batch])
            loss = torch.nn.functional.cross_entropy(model(rows[part]), labels[part])
            steps.zero_grad()
            loss.backward()
            steps.step()
    return model


def network_kfold_accuracy(train, train_labels, test, test_labels, k, seed, rate=0.001):
    """Accuracy on test of the original's network, its decay chosen on folds of train."""
    import torch

    torch.manual_seed(seed)
    chance = np.random.RandomState(seed)
    classes = int(train_labels.max()) + 1

    def fitted(x, y, stop_x, stop_y, decay):
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        stop_x, stop_y = torch.from_numpy(stop_x), torch.from_numpy(stop_y)
        model = torch.nn.Linear(x.shape[1], classes)
        steps = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
        best, kept, misses = -1.0, None, 0
        for _ in range(51):
            for _ in range(4):
                order = torch.from_numpy(chance.permutation(len(x)))
                for start in range(0, len(x), 64):
                    part = order[start : start + 64]
                    loss = torch.nn.functional.cross_entropy(model(x[part]), y[part])
                    steps.zero_grad()
                    loss.backward()
                    steps.step()
            with torch.no_grad():
                found = float((model(stop_x).argmax(1) == stop_y).float().mean())
            if found > best:
                best = found
                kept = [p.detach().clone() for p in model.parameters()]
            elif misses >= 5:
                break
            else:
                misses += 1
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), kept, strict=True):
                parameter.copy_(value)
        return model, best

    best, chosen = -1.0, None
    for decay in (1e-5, 1e-4, 1e-3, 1e-2):
        inner = [
            fitted(train[a], train_labels[a], train[b], train_labels[b], decay)[1]
            for a, b in folds(train_labels, k)
        ]
        if round(100 * np.mean(inner), 2) > best:
            best, chosen = round(100 * np.mean(inner), 2), decay
    order = chance.permutation(len(train))
    cut = len(train) // 20
    stop, rest = order[:cut], order[cut:]
    model, _ = fitted(train[rest], train_labels[rest], train[stop], train_labels[stop], chosen)
    with torch.no_grad():
        predicted = model(torch.from_numpy(test)).argmax(1).numpy()
    return 100 * float((predicted == test_labels).mean())
