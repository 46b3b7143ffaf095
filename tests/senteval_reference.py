"""The published protocol again, plainly and slowly: what the toolkit is held against."""

import copy
import functools
import hashlib
import math

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

DIM = 300


@functools.cache
def word_vector(word):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(DIM)


class HashedWords:
    """The mean of 300-dimensional normal vectors seeded by the SHA-256 of each token."""

    def encode(self, sentences):
        out = np.zeros((len(sentences), DIM), np.float32)
        for row, sentence in enumerate(sentences):
            words = sentence.split()
            for word in words:
                out[row] += word_vector(word)
            out[row] /= max(len(words), 1)
        return out


def folds(labels, k, seed=1111):
    return list(StratifiedKFold(k, shuffle=True, random_state=seed).split(labels, labels))


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


def cosine_of(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def sts_scores(folder, subsets, encoder, similarity=cosine_of):
    """Pearson of a similarity of two vectors as SentEval has it: mean, weighted mean, all."""
    rs, sizes, every, all_gold = [], [], [], []
    for name in subsets:
        gold_lines = (folder / f"STS.gs.{name}.txt").read_text("utf-8").split("\n")
        pair_lines = (folder / f"STS.input.{name}.txt").read_text("utf-8").split("\n")
        kept = [i for i, line in enumerate(gold_lines) if line.strip()]
        gold = [float(gold_lines[i]) for i in kept]
        first = encoder.encode([pair_lines[i].split("\t")[0] for i in kept]).astype(float)
        second = encoder.encode([pair_lines[i].split("\t")[1] for i in kept]).astype(float)
        scores = [similarity(a, b) for a, b in zip(first, second, strict=True)]
        rs.append(pearson(scores, gold))
        sizes.append(len(gold))
        every += scores
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


def stopped_network(rows, labels, classes, seed, decay, stop=None, rate=0.001, hidden=0):
    """The original's network, alone: both global generators are seeded anew before it.

    Returns the network, and its accuracy on the rows that stopped it: those given, or 5 %.
    """
    import torch

    chance = np.random.RandomState(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(rows.shape[1], hidden or classes)]
        if hidden:
            layers += [torch.nn.Sigmoid(), torch.nn.Linear(hidden, classes)]
    model = torch.nn.Sequential(*layers)
    steps = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    if stop is None:
        order = chance.permutation(len(rows))
        cut = int(0.05 * len(rows))
        stop = rows[order[:cut]], labels[order[:cut]]
        rows, labels = rows[order[cut:]], labels[order[cut:]]
    x, y, stop_x, stop_y = map(torch.from_numpy, (rows, labels, *stop))
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
            found = float((model(stop_x).argmax(1) == stop_y).double().mean())
        if found > best:
            best, kept = found, copy.deepcopy(model)
        elif misses >= 5:
            break
        else:
            misses += 1
    return kept, best


def network_kfold_accuracy(train, train_labels, test, test_labels, k, seed, rate=0.001):
    """Accuracy on test of the original's network, its decay chosen on folds of train."""
    import torch

    classes = int(train_labels.max()) + 1
    best, chosen = -1.0, None
    for decay in (1e-5, 1e-4, 1e-3, 1e-2):
        inner = [
            stopped_network(
                train[a], train_labels[a], classes, seed, decay, (train[b], train_labels[b]), rate
            )[1]
            for a, b in folds(train_labels, k, seed)
        ]
        if round(100 * np.mean(inner), 2) > best:
            best, chosen = round(100 * np.mean(inner), 2), decay
    model, _ = stopped_network(train, train_labels, classes, seed, chosen, rate=rate)
    with torch.no_grad():
        predicted = model(torch.from_numpy(test)).argmax(1).numpy()
    return 100 * float((predicted == test_labels).mean()), best


def network_regression(train, dev, test, seed):
    """The original's regression on grades 1 to 5: Pearson's r on dev, the predictions of test.

    Each of `train` and `dev` is (rows, scores); training stops on Pearson's r.
    """
    import torch

    chance = np.random.RandomState(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(test.shape[1], 5), torch.nn.Softmax(dim=-1))
    steps = torch.optim.Adam(model.parameters())
    targets = np.zeros((len(train[1]), 5), np.float32)
    for row, score in enumerate(train[1]):
        whole = math.floor(score)
        targets[row, whole - 1] = 1 - (score - whole)
        if score > whole:
            targets[row, whole] = score - whole
    x, y = torch.from_numpy(train[0]), torch.from_numpy(targets)

    def predict(rows):
        with torch.no_grad():
            return model(torch.from_numpy(rows)).numpy().astype(float) @ np.arange(1, 6)

    best, kept, misses = -1.0, None, 0
    for _ in range(21):
        for _ in range(50):
            order = torch.from_numpy(chance.permutation(len(x)))
            for start in range(0, len(x), 64):
                part = order[start : start + 64]
                loss = torch.nn.functional.mse_loss(model(x[part]), y[part])
                steps.zero_grad()
                loss.backward()
                steps.step()
        r = pearson(predict(dev[0]), dev[1])
        if r > best:
            best, kept = r, copy.deepcopy(model)
        elif misses >= 3:
            break
        else:
            misses += 1
    model = kept
    return best, predict(test)
