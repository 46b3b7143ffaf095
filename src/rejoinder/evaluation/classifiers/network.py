"""SentEval's networks in PyTorch: the classifier, grades, and image-caption retrieval.

The classifier is a softmax, or one hidden layer, with early stopping. Steps, batches, optimiser,
stopping and defaults follow SentEval's tools/classifier.py. SentEval trains one network after
another. Here the networks of several folds and of all penalties are slices of the same arrays, and
a step updates all of them.

The random draws follow SentEval, too. It seeds the global generators before every network, so that
all networks of a run begin with the same weights, and networks with the same number of training
rows see them in the same order. Here each network has its own generator with the same seed.

Captions and images are projected into one space by SentEval's ranking loss (its tools/ranking.py):
both sides linearly to 1,000 dimensions, and normalised. A caption and its image have to be closer
than 30 others by a margin of 0.2, in both directions.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, MissingExtraError, nearest
from rejoinder.evaluation.classifiers.learners import (
    ClassifierSettings,
    Features,
    Fold,
    Graded,
    Labels,
    grade_distribution,
)
from rejoinder.measures import Floats, Indices, pearson_correlation

try:
    import torch
    from torch.nn import functional
except ImportError:
    raise MissingExtraError("torch", "train") from None

Chances = Sequence[np.random.RandomState]
"""The random generator of each fold."""
_STOP_SHARE = 0.05
"""Share of the training rows that decide when to stop, if no other rows are given."""
_OPTIMIZERS = ("adadelta", "adagrad", "adam", "adamax", "asgd", "rmsprop", "rprop", "sgd")
_NUMBERS_AT_ONCE = 1 << 20
"""Largest number of parameters, or of features in a batch, of the networks that are trained
together: about what fits the caches."""


class NetworkLearner:
    """Trains the networks of folds and penalties, in groups of the fastest size."""

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Labels) -> None:
        self.settings = settings
        self.features = torch.from_numpy(np.ascontiguousarray(features))
        self.labels = torch.from_numpy(labels)
        self.classes = int(labels.max()) + 1

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """See `Learner`."""
        generators, splits = [np.random.RandomState(self.settings.seed) for _ in folds], []
        for fold, generator, decays in zip(folds, generators, penalties, strict=True):
            rows, stop_rows = fold.train, fold.stop
            if stop_rows is None:
                order = rows[generator.permutation(len(rows))]
                stop_rows, rows = np.split(order, [max(1, int(_STOP_SHARE * len(order)))])
            splits.append((rows, stop_rows, decays))
        predictions: dict[int, Labels] = {}
        for group, networks in self._trained(splits, generators):
            predicted = networks.predict([folds[index].test for index in group])
            predictions |= zip(group, (classes.numpy() for classes in predicted), strict=True)
        return [predictions[index] for index in range(len(folds))]

    def _trained(
        self, splits: Sequence[tuple[Indices, Indices, Sequence[float]]], generators: Chances
    ) -> Iterator[tuple[list[int], "Networks"]]:
        """Yields groups of folds with their networks.

        `splits` are the train rows, stop rows and decays of each fold. The folds of a group have as
        many steps per epoch as each other.
        """
        batch, width = self.settings.batch_size, self.features.shape[1]
        outputs = len(splits[0][2]) * (self.settings.nhid or self.classes)
        most = max(1, _NUMBERS_AT_ONCE // (width * max(outputs, batch)))
        by_steps: dict[int, list[int]] = {}
        for index, (rows, _, _) in enumerate(splits):
            by_steps.setdefault(-(-len(rows) // batch), []).append(index)
        for indices in by_steps.values():
            for start in range(0, len(indices), most):
                group = indices[start : start + most]
                train, stop, decays = zip(*(splits[index] for index in group), strict=True)
                networks = Networks(self, decays)
                networks.fit(train, stop, [generators[i] for i in group])
                yield group, networks


class Networks:
    """The networks of F folds and G penalties each, and their optimiser."""

    def __init__(self, learner: NetworkLearner, decays: Sequence[Sequence[float]]) -> None:
        """Initialises networks of C classes on (N, D) float32 features and (N,) int64 labels.

        `decays` are F rows of G weight decays.
        """
        settings, features, classes = learner.settings, learner.features, learner.classes
        self._settings, self._features, self._labels = settings, features, learner.labels
        self._shape = len(decays), len(decays[0])
        self._generator = torch.Generator().manual_seed(settings.seed)
        width, hidden = features.shape[1], settings.nhid
        # the axis of penalties in each parameter: the first layer reads the same rows for all
        # penalties, so it is one product per fold
        self._axes = [2, 2, 1, 1] if hidden else [2, 2]
        self.parameters = self._layer(width, hidden or classes, axis=2)
        if hidden:
            self.parameters += self._layer(hidden, classes, axis=1)
        self._decays = [self._by_network(torch.tensor(decays), axis) for axis in self._axes]
        self._optimizer = optimizer_of(settings.optim, self.parameters)

    def _layer(self, inputs: int, outputs: int, axis: int) -> list[Any]:
        """Returns weights and a bias as `torch.nn.Linear` draws them, equal for all networks."""
        folds, group = self._shape
        bound = inputs**-0.5
        weights = torch.empty(outputs, inputs).uniform_(-bound, bound, generator=self._generator)
        bias = torch.empty(outputs, 1).uniform_(-bound, bound, generator=self._generator)
        return [
            values.T.unsqueeze(axis - 1)
            .expand(folds, *((group, -1, -1) if axis == 1 else (-1, group, -1)))
            .clone(memory_format=torch.contiguous_format)
            .requires_grad_()
            for values in (weights, bias)
        ]

    def _by_network(self, values: Any, axis: int) -> Any:
        """Returns (F, G) values in a shape that broadcasts with a parameter."""
        folds, group = self._shape
        return values.reshape((folds, group, 1, 1) if axis == 1 else (folds, 1, group, 1))

    def fit(self, train: Sequence[Indices], stop: Sequence[Indices], generators: Chances) -> None:
        """Trains each network until its accuracy on the stop rows failed to grow `tenacity` times.

        The train rows of all F folds have the same number of batches. `generators` draw their
        order.
        """
        accuracy = np.full(self._shape, -1.0)
        waited = np.zeros(self._shape, np.int64)
        running = np.ones(self._shape, np.bool_)
        best = [parameter.detach().clone() for parameter in self.parameters]
        for _ in range(0, self._settings.max_epoch + 1, self._settings.epoch_size):
            for _ in range(self._settings.epoch_size):
                self._epoch(train, generators)
            latest = self._accuracy(stop)
            better = running & (latest > accuracy)
            # as in SentEval, evaluations without gain are counted in total, not in a row
            running &= better | (waited < self._settings.tenacity)
            waited += ~better
            accuracy[better] = latest[better]
            gained = torch.from_numpy(better)
            for kept, parameter, axis in zip(best, self.parameters, self._axes, strict=True):
                torch.where(self._by_network(gained, axis), parameter.detach(), kept, out=kept)
            if not running.any():
                break
        for kept, parameter in zip(best, self.parameters, strict=True):
            parameter.data.copy_(kept)

    def _epoch(self, train: Sequence[Indices], generators: Chances) -> None:
        size = self._settings.batch_size
        steps = -(-len(train[0]) // size)
        rows = np.zeros((len(train), steps * size), np.int64)
        shares = np.zeros((len(train), steps * size), np.float32)
        for fold, (kept, generator) in enumerate(zip(train, generators, strict=True)):
            rows[fold, : len(kept)] = kept[generator.permutation(len(kept))]
            shares[fold, : len(kept)] = 1 / size
            shares[fold, (steps - 1) * size : len(kept)] = 1 / (len(kept) - (steps - 1) * size)
        for step in range(steps):
            part = slice(step * size, (step + 1) * size)
            self._step(torch.from_numpy(rows[:, part]), torch.from_numpy(shares[:, part]))

    def _step(self, rows: Any, shares: Any) -> None:
        """Takes a step of all networks on (F, B) rows with weights in the loss, 0 for padding."""
        group = self._shape[1]
        dropout = self._settings.dropout
        scores = _scores(self.parameters, self._features[rows], dropout, self._generator)
        targets = self._labels[rows][:, None].expand(-1, group, -1)
        losses = functional.cross_entropy(scores.flatten(0, 2), targets.flatten(), reduction="none")
        loss = (losses.view(targets.shape) * shares[:, None]).sum()
        self._optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter, decay in zip(self.parameters, self._decays, strict=True):
                parameter.grad.addcmul_(parameter, decay)
        self._optimizer.step()

    def predict(self, rows: Sequence[Indices]) -> list[Any]:
        """Returns the (G, N) int64 tensor of predicted classes of the rows of each fold."""
        block = max(1, _NUMBERS_AT_ONCE // self._features.shape[1])
        predicted = []
        for fold, kept in enumerate(rows):
            every: Any = torch.from_numpy(kept)
            parameters = [parameter.detach()[fold : fold + 1] for parameter in self.parameters]
            blocks = [
                _scores(parameters, self._features[some][None])[0].argmax(dim=-1)
                for some in every.split(block)
            ]
            predicted.append(torch.cat(blocks, dim=1))
        return predicted

    def _accuracy(self, rows: Sequence[Indices]) -> Floats:
        right = [
            (predicted == self._labels[torch.from_numpy(kept)]).double().mean(dim=1).numpy()
            for predicted, kept in zip(self.predict(rows), rows, strict=True)
        ]
        return np.stack(right)


def _scores(
    parameters: Sequence[Any], inputs: Any, dropout: float = 0, generator: Any = None
) -> Any:
    """Returns (F, G, N, C) scores of (F, N, D) features."""
    weights, bias = parameters[:2]
    hidden = torch.baddbmm(bias.flatten(2), inputs, weights.flatten(2))
    hidden = hidden.view(*hidden.shape[:2], *weights.shape[2:]).transpose(1, 2)
    if len(parameters) == 2:
        return hidden
    if dropout > 0:
        # all networks share the draw, because SentEval's networks all draw the same
        kept = torch.empty(hidden.shape[2:]).bernoulli_(1 - dropout, generator=generator)
        hidden = hidden * kept / (1 - dropout)
    return torch.sigmoid(hidden) @ parameters[2] + parameters[3]


def optimizer_of(text: str, parameters: Any) -> Any:
    """Returns the optimiser named in SentEval's notation: `adam`, `rmsprop,lr=0.01`.

    Raises:
        InputError: the optimiser is unknown, or does not have this parameter.
    """
    name, *parts = text.split(",")
    if name not in _OPTIMIZERS:
        raise InputError(f"optim {text!r}: {nearest(name, _OPTIMIZERS)}.")
    kinds = {kind.lower(): kind for kind in vars(torch.optim) if kind[0].isupper()}
    try:
        values = {key.strip(): float(value) for key, value in (p.split("=") for p in parts if p)}
        if name == "sgd":
            values.setdefault("lr", 0.1)
        return getattr(torch.optim, kinds[name])(parameters, **values)
    except (TypeError, ValueError) as error:
        raise InputError(f"optim {text!r}: {error}; write NAME,KEY=NUMBER.") from None


Loss = Callable[[Indices, Indices, np.random.RandomState], Any]
"""Takes the rows of a batch, the others, and the generator of the batches."""
Score = Callable[[Any], float]
"""Scores a module; higher is better."""


def trained(
    model: Any, rows: int, loss: Loss, score: Score, seed: int, *, batch: int, epochs: int
) -> tuple[Any, float]:
    """Trains a PyTorch module by Adam, and returns the best one with its score.

    A module is scored after every `epochs`. Training stops at the fourth score without gain, in
    total as in SentEval, or after 21 scores: the original intends 20, but compares their number by
    <=.
    """
    generator = np.random.RandomState(seed)
    optimizer = torch.optim.Adam(model.parameters())
    best, highest, left = copy.deepcopy(model), -1.0, 3
    for _ in range(21):
        for _ in range(epochs):
            order = generator.permutation(rows)
            for start in range(0, rows, batch):
                end = start + batch
                optimizer.zero_grad()
                others = np.concatenate([order[:start], order[end:]])
                loss(order[start:end], others, generator).backward()
                optimizer.step()
        if (found := score(model)) > highest:
            best, highest = copy.deepcopy(model), found
            continue
        left -= 1
        if left < 0:
            break
    return best, highest


def fit_grades(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> tuple[Floats, Floats]:
    """Trains as SentEval's relatedness.py: by Adam, with an evaluation on dev every 50 epochs."""
    values = np.arange(grades[0], grades[1] + 1)
    inputs = torch.from_numpy(np.ascontiguousarray(train.features))
    targets = torch.from_numpy(grade_distribution(train.gold, *grades).astype(np.float32))
    with torch.random.fork_rng(devices=[]):  # as in SentEval, NumPy draws the batches
        torch.manual_seed(settings.seed)
        linear = torch.nn.Linear(inputs.shape[1], len(values))
    model: Any = torch.nn.Sequential(linear, torch.nn.Softmax(dim=-1))

    def predict(model: Any, part: Graded) -> Floats:
        with torch.no_grad():
            shares = model(torch.from_numpy(np.ascontiguousarray(part.features)))
        return np.asarray(shares.numpy(), np.float64) @ values

    def loss(rows: Indices, *_: Any) -> Any:
        return functional.mse_loss(model(inputs[rows]), targets[rows])

    def score(model: Any) -> float:
        on_dev = predict(model, dev)
        # r of equal predictions is undefined; SentEval uses 0
        return pearson_correlation(on_dev, dev.gold) if np.ptp(on_dev) > 0 else 0.0

    best, _ = trained(model, len(inputs), loss, score, settings.seed, batch=64, epochs=50)
    return predict(best, dev), predict(best, test)


_DIM = 1_000
_MARGIN = 0.2
_CONTRASTS = 30
_BATCH = 128
CUTOFFS = (1, 5, 10)
FOLD = 1_000
"""Number of images that are ranked together."""
PER_IMAGE = 5
"""Number of captions per image."""

Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """(M, F) features of images, and (5 M, D) embeddings of their captions, image after image."""

    images: Features
    captions: Features


def fit_retrieval(
    train: Side, dev: Side, test: Side, settings: ClassifierSettings
) -> tuple[dict[str, float], Ranks]:
    """Trains on one split, stops by another, and ranks the third in folds of 1,000 images.

    Returns recalls in percent and median ranks on test, with the mean recall of the best epoch on
    dev, and the (5 M,) ranks of each caption's image within its fold, from 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        widths = train.images.shape[1], train.captions.shape[1]
        model: Any = torch.nn.ModuleList([torch.nn.Linear(width, _DIM) for width in widths])
    images, captions = torch.from_numpy(train.images), torch.from_numpy(train.captions)

    def loss(rows: Indices, others: Indices, generator: np.random.RandomState) -> Any:
        outside = others if len(others) else rows
        contrasts = [generator.choice(outside, (len(rows), _CONTRASTS)) for _ in range(2)]
        return _loss(model, images, captions, rows, contrasts)

    def score(model: Any) -> float:
        return float(np.mean([one for ranks in _ranks(model, dev) for one in recalls(ranks)]))

    best, on_dev = trained(model, len(captions), loss, score, settings.seed, batch=_BATCH, epochs=1)
    scores, ranks = {}, _ranks(best, test)
    for way, found, fold in zip(("i2t", "t2i"), ranks, (FOLD, PER_IMAGE * FOLD), strict=True):
        for cutoff, recall in zip(CUTOFFS, recalls(found), strict=True):
            scores[f"recall_{cutoff}_{way}"] = recall
        scores[f"median_rank_{way}"] = median_rank(found, fold)
    return {**scores, "dev_mean_recall": on_dev}, ranks[1]


def _loss(model: Any, images: Any, captions: Any, rows: Indices, others: Sequence[Indices]) -> Any:
    """Returns the loss of (B,) captions with (B, 30) wrong images, as captions, and captions."""
    to_images, to_captions = model
    image = functional.normalize(to_images(images[rows // PER_IMAGE]), dim=1)
    caption = functional.normalize(to_captions(captions[rows]), dim=1)
    other_images = functional.normalize(to_images(images[others[0] // PER_IMAGE]), dim=2)
    other_captions = functional.normalize(to_captions(captions[others[1]]), dim=2)
    right = (image * caption).sum(dim=1, keepdim=True)
    wrong_captions = torch.einsum("bd,bcd->bc", image, other_captions)
    wrong_images = torch.einsum("bd,bcd->bc", caption, other_images)
    # a wrong pair of the same image costs nothing
    own = (rows // PER_IMAGE)[:, None]
    apart = torch.from_numpy(np.stack([part // PER_IMAGE != own for part in others[::-1]]))
    costs = torch.clamp(_MARGIN - right + torch.stack([wrong_captions, wrong_images]), min=0)
    return (costs * apart).sum()


def _ranks(model: Any, side: Side) -> tuple[Ranks, Ranks]:
    """Returns the ranks, from 0, of the best caption of each image and of each caption's image."""
    to_images, to_captions = model
    with torch.no_grad():
        images = functional.normalize(to_images(torch.from_numpy(side.images)), dim=1).numpy()
        captions = functional.normalize(to_captions(torch.from_numpy(side.captions)), dim=1).numpy()
    of_images, of_captions = [], []
    for start in range(0, len(images), FOLD):
        part = images[start : start + FOLD]
        rows = captions[PER_IMAGE * start : PER_IMAGE * (start + len(part))]
        scores = part @ rows.T
        own = np.arange(len(rows)).reshape(len(part), PER_IMAGE)
        right = np.take_along_axis(scores, own, axis=1)  # ties count against the model
        above = (scores[:, None, :] >= right[:, :, None]).sum(axis=2) - 1
        of_images.append(above.min(axis=1))
        of_captions.append((scores >= right.ravel()).sum(axis=0) - 1)
    return np.concatenate(of_images), np.concatenate(of_captions)


def recalls(ranks: Ranks) -> list[float]:
    """Returns the share of ranks, which begin at 0, below each cut-off, in percent."""
    return [100 * float((ranks < cutoff).mean()) for cutoff in CUTOFFS]


def median_rank(ranks: Ranks, fold: int) -> float:
    """Returns the median rank, from 1 and rounded down; the mean over folds, as in SentEval.

    >>> median_rank(np.array([0, 1, 6, 7, 8, 9]), 3)
    5.5
    """
    parts = [ranks[start : start + fold] for start in range(0, len(ranks), fold)]
    return float(np.mean([np.floor(np.median(part)) + 1 for part in parts]))
