"""Twin networks: both texts go through one encoder, and layers compare what comes out.

The encoders are those of ECNU (mean, projected mean, deep averaging network, LSTM) and HCTI (a
convolution over words and the largest value of each filter). Word vectors stay as they are.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.datasets.semeval import GradedPairs
from rejoinder.measures import Floats, pearson_correlation
from rejoinder_papers.baselines.vectors import WordVectors
from rejoinder_papers.baselines.words import tokens

HIDDEN, WIDTH, MOST_WORDS = 300, 300, 25
_BATCH, _RATE, _EPOCHS = 64, 1e-3, 6
_HIGHEST = 5
ENCODERS = ("mean", "projected", "dan", "lstm", "cnn")

Side = tuple[Tensor, Tensor]
"""(N, L, D) rows of words, and (N,) numbers of words, at least 1."""


class Reader:
    """Makes rows of words: their vectors, and whether the other text has the word."""

    def __init__(self, vectors: WordVectors) -> None:
        unit = vectors.vectors / np.maximum(
            np.linalg.norm(vectors.vectors, axis=1, keepdims=True), 1e-9
        )
        padding = np.zeros((1, unit.shape[1]), np.float32)
        scale = np.float32(np.sqrt(unit.shape[1]))
        self._rows = torch.from_numpy(np.concatenate([unit * scale, padding]))
        self._ids, self.dim = vectors.ids, unit.shape[1] + 1

    def __call__(self, texts: Sequence[str], others: Sequence[str]) -> Side:
        words = [tokens(text)[:MOST_WORDS] for text in texts]
        known = [set(tokens(text)) for text in others]
        ids = torch.full((len(texts), max(map(len, words)) or 1), -1)
        marks = torch.zeros(ids.shape)
        for row, found in enumerate(words):
            ids[row, : len(found)] = torch.tensor([self._ids.get(word, -1) for word in found])
            marks[row, : len(found)] = torch.tensor([float(word in known[row]) for word in found])
        lengths = torch.tensor([max(len(found), 1) for found in words])
        return torch.cat([self._rows[ids], marks[:, :, None]], dim=2), lengths


class Twins(nn.Module):
    """The encoder by name, and layers from (|u - v|, u * v) to shares of the scores 0 to 5."""

    def __init__(self, encoder: str, dim: int) -> None:
        super().__init__()
        self.kind, size = encoder, HIDDEN
        if encoder == "mean":
            size = dim
        elif encoder == "projected":
            self.layers = nn.Sequential(nn.Linear(dim, HIDDEN))
        elif encoder == "dan":
            self.layers = nn.Sequential(
                nn.Linear(dim, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
            )
        elif encoder == "lstm":
            self.lstm = nn.LSTM(dim, HIDDEN, batch_first=True)
        else:
            self.filters = nn.Conv1d(dim, HIDDEN, 1)
        self.compare = nn.Sequential(
            nn.Linear(2 * size, WIDTH), nn.Tanh(), nn.Dropout(0.2), nn.Linear(WIDTH, _HIGHEST + 1)
        )

    def encode(self, side: Side) -> Tensor:
        """Returns (N, D)."""
        rows, lengths = side
        places = torch.arange(rows.shape[1])
        present = (places < lengths[:, None])[:, :, None]
        if self.kind == "lstm":
            states: Tensor = self.lstm(rows)[0]
            return states[torch.arange(len(rows)), lengths - 1]
        if self.kind == "cnn":
            found = torch.relu(self.filters(rows.transpose(1, 2))).transpose(1, 2)
            return (found * present).amax(dim=1)
        mean = (rows * present).sum(dim=1) / lengths[:, None]
        return mean if self.kind == "mean" else torch.as_tensor(self.layers(mean))

    def forward(self, first: Side, second: Side) -> Tensor:
        """Returns (N, 6) logarithms of shares."""
        u, v = self.encode(first), self.encode(second)
        compared: Tensor = self.compare(torch.cat([abs(u - v), u * v], dim=1))
        return compared.log_softmax(dim=1)

    def scores(self, first: Side, second: Side) -> Floats:
        """Returns (N,) scores from 0 to 5."""
        self.eval()
        with torch.no_grad():
            shares = self(first, second).exp()
        return np.asarray(shares.double() @ torch.arange(_HIGHEST + 1.0).double())


def _shares(gold: Floats) -> Tensor:
    """Returns (N, 6): a score between two whole ones is shared between them (Tai et al. 2015)."""
    low = np.clip(np.floor(gold), 0, _HIGHEST - 1).astype(np.int64)
    found = np.zeros((len(gold), _HIGHEST + 1), np.float32)
    found[np.arange(len(gold)), low] = 1 - (gold - low)
    found[np.arange(len(gold)), low + 1] = gold - low
    return torch.from_numpy(found)


def trained(
    encoder: str, reader: Reader, train: GradedPairs, dev: GradedPairs, seed: int
) -> tuple[Twins, int]:
    """Returns the twins after the epoch that was best on dev, and the number of that epoch."""
    torch.manual_seed(seed)
    model = Twins(encoder, reader.dim)
    optimizer = torch.optim.Adam(model.parameters(), _RATE)
    sides, shares = read(reader, train), _shares(train.gold)
    judged, best = read(reader, dev), (-1.0, 0, dict[str, Tensor]())
    for epoch in range(1, _EPOCHS + 1):
        model.train()
        for rows in torch.split(torch.randperm(len(train)), _BATCH):
            found = model(*((words[rows], lengths[rows]) for words, lengths in sides))
            loss = nn.functional.kl_div(found, shares[rows], reduction="batchmean")
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        reached = pearson_correlation(model.scores(*judged), dev.gold)
        if reached > best[0]:
            best = reached, epoch, {k: value.clone() for k, value in model.state_dict().items()}
    model.load_state_dict(best[2])
    return model, best[1]


def read(reader: Reader, pairs: GradedPairs) -> tuple[Side, Side]:
    """Returns both texts of pairs."""
    return reader(pairs.first, pairs.second), reader(pairs.second, pairs.first)
