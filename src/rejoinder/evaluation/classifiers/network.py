"""SentEval's classifier in PyTorch: a softmax, or one hidden layer, stopped early.

Follows tools/classifier.py of the original: steps, batches, optimiser, stopping and defaults are
its own. There one network is trained after the other; here the networks of several folds and of
all penalties are slices of the same arrays, and a step moves them all. The draws are the
original's too: it seeds the global generators anew before every network, so that all networks of
a run begin at the same weights, and all that are trained on as many rows go through them in the
same order. Here generators of their own are seeded alike.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, MissingExtraError
from rejoinder.evaluation.classifiers.learners import Features, Folds, Rows
from rejoinder.evaluation.classifiers.settings import ClassifierSettings

try:
    import torch
except ImportError:
    raise MissingExtraError("torch", "train") from None

_VALIDATION = 0.05
_OPTIMIZERS = ("adadelta", "adagrad", "adam", "adamax", "asgd", "rmsprop", "rprop", "sgd")
_NUMBERS_AT_ONCE = 1 << 20
"""Numbers in the parameters, or in the features, of the networks that are trained together: about
what the caches hold."""


class NetworkLearner:
    """The networks of folds and penalties, as many at once as pay."""

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Rows) -> None:
        self._settings = settings
        self._features = torch.from_numpy(np.ascontiguousarray(features))
        self._labels = torch.from_numpy(labels)
        self._classes = int(labels.max()) + 1

    def held_out(self, folds: Folds, grid: Sequence[float]) -> NDArray[np.float64]:
        """See `Learner`; the held-out rows also say when to stop, as in the original."""
        found = np.empty((len(folds), len(grid)))
        for places in self._together(folds, len(grid)):
            decays = [list(grid)] * len(places)
            networks = self._networks(decays)
            stop = [folds[place][1] for place in places]
            found[places] = networks.fit([folds[place][0] for place in places], stop)
        return found

    def predict(
        self,
        folds: Folds,
        penalties: Sequence[float],
        validation: Rows | None = None,
    ) -> list[Rows]:
        """See `Learner`."""
        parts, generators = [], []
        for train, test in folds:
            chance = np.random.RandomState(self._settings.seed)
            stop, rest = validation, train
            if stop is None:
                order = chance.permutation(len(train))
                cut = max(1, int(_VALIDATION * len(train)))
                stop, rest = train[order[:cut]], train[order[cut:]]
            parts.append((rest, stop, test))
            generators.append(chance)
        found: list[Rows] = [np.empty(0, np.int64)] * len(folds)
        for places in self._together([(rest, stop) for rest, stop, _ in parts], 1):
            networks = self._networks([[penalties[place]] for place in places])
            networks.fit(
                [parts[place][0] for place in places],
                [parts[place][1] for place in places],
                [generators[place] for place in places],
            )
            for place, predicted in zip(
                places, networks.predict([parts[place][2] for place in places]), strict=True
            ):
                found[place] = predicted[0].numpy()
        return found

    def _networks(self, decays: Sequence[Sequence[float]]) -> "Networks":
        return Networks(self._settings, self._features, self._labels, self._classes, decays)

    def _together(self, folds: Folds, penalties: int) -> Iterator[list[int]]:
        """Places of folds that are trained at once: all with as many steps an epoch."""
        size, width = self._settings.batch_size, self._features.shape[1]
        numbers = width * max(penalties * (self._settings.nhid or self._classes), size)
        most = max(1, _NUMBERS_AT_ONCE // numbers)
        steps: dict[int, list[int]] = {}
        for place, (train, _) in enumerate(folds):
            steps.setdefault(-(-len(train) // size), []).append(place)
        for places in steps.values():
            for start in range(0, len(places), most):
                yield places[start : start + most]


class Networks:
    """F x G classifiers and their optimiser: one for each fold and penalty."""

    def __init__(
        self,
        settings: ClassifierSettings,
        features: Any,
        labels: Any,
        classes: int,
        decays: Sequence[Sequence[float]],
    ) -> None:
        """Untrained networks.

        Args:
            settings: how they are trained.
            features: (N, D) float32 tensor; networks are given rows of it.
            labels: (N,) int64 tensor.
            classes: C, the number of scores.
            decays: F rows of G weight decays.
        """
        self._settings, self._features, self._labels = settings, features, labels
        self._shape = len(decays), len(decays[0])
        self._generator = torch.Generator().manual_seed(settings.seed)
        width, hidden = features.shape[1], settings.nhid
        # the axis of penalties: the first layer reads the same rows for all penalties, and so is
        # one product a fold
        self._axes = [2, 2, 1, 1] if hidden else [2, 2]
        self.parameters = self._layer(width, hidden or classes, axis=2)
        if hidden:
            self.parameters += self._layer(hidden, classes, axis=1)
        self._decays = [self._by_network(torch.tensor(decays), axis) for axis in self._axes]
        self._optimizer = optimizer_of(settings.optim, self.parameters)

    def _layer(self, inputs: int, outputs: int, axis: int) -> list[Any]:
        """Weights and bias as `torch.nn.Linear` draws them, the same ones for every network."""
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
        """(F, G) values in the shape that goes with a parameter."""
        folds, group = self._shape
        return (
            values.reshape(folds, group, 1, 1) if axis == 1 else values.reshape(folds, 1, group, 1)
        )

    def fit(
        self,
        train: Sequence[Rows],
        stop: Sequence[Rows],
        chances: Sequence[np.random.RandomState] | None = None,
    ) -> NDArray[np.float64]:
        """Train each until its accuracy on its `stop` rows has not grown `tenacity` times.

        Args:
            train: F arrays of rows that are trained on, all with as many batches.
            stop: F arrays of rows.
            chances: F generators of the orders of rows; none: each begins at the seed.

        Returns:
            (F, G) float64, the best accuracy on the rows of `stop`, 0 to 1.
        """
        if chances is None:
            chances = [np.random.RandomState(self._settings.seed) for _ in train]
        accuracy = np.full(self._shape, -1.0)
        waited = np.zeros(self._shape, np.int64)
        running = np.ones(self._shape, np.bool_)
        best = [parameter.detach().clone() for parameter in self.parameters]
        for _ in range(0, self._settings.max_epoch + 1, self._settings.epoch_size):
            for _ in range(self._settings.epoch_size):
                self._epoch(train, chances)
            found = self._accuracy(stop)
            better = running & (found > accuracy)
            # the original counts all evaluations without gain, not those in a row
            running &= better | (waited < self._settings.tenacity)
            waited += ~better
            accuracy[better] = found[better]
            gained = torch.from_numpy(better)
            for kept, parameter, axis in zip(best, self.parameters, self._axes, strict=True):
                torch.where(self._by_network(gained, axis), parameter.detach(), kept, out=kept)
            if not running.any():
                break
        for kept, parameter in zip(best, self.parameters, strict=True):
            parameter.data.copy_(kept)
        return accuracy

    def _epoch(self, train: Sequence[Rows], chances: Sequence[np.random.RandomState]) -> None:
        size = self._settings.batch_size
        steps = -(-len(train[0]) // size)
        rows = np.zeros((len(train), steps * size), np.int64)
        shares = np.zeros((len(train), steps * size), np.float32)
        for fold, (kept, chance) in enumerate(zip(train, chances, strict=True)):
            rows[fold, : len(kept)] = kept[chance.permutation(len(kept))]
            shares[fold, : len(kept)] = 1 / size
            shares[fold, (steps - 1) * size : len(kept)] = 1 / (len(kept) - (steps - 1) * size)
        for step in range(steps):
            part = slice(step * size, (step + 1) * size)
            self._step(torch.from_numpy(rows[:, part]), torch.from_numpy(shares[:, part]))

    def _step(self, rows: Any, shares: Any) -> None:
        """One step of all, on (F, B) rows that count `shares` in the mean of their batch."""
        group = self._shape[1]
        scores = self._scores(self._features[rows])
        targets = self._labels[rows][:, None].expand(-1, group, -1)
        losses = torch.nn.functional.cross_entropy(
            scores.flatten(0, 2), targets.flatten(), reduction="none"
        )
        loss = (losses.view(targets.shape) * shares[:, None]).sum()
        self._optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter, decay in zip(self.parameters, self._decays, strict=True):
                parameter.grad.addcmul_(parameter, decay)
        self._optimizer.step()

    def _scores(self, inputs: Any) -> Any:
        return _scores(self.parameters, inputs, self._settings.dropout, self._generator)

    def predict(self, rows: Sequence[Rows]) -> list[Any]:
        """Of each fold the (G, N) int64 classes of its rows, as a tensor."""
        with torch.no_grad():
            return [self._predicted(fold, kept) for fold, kept in enumerate(rows)]

    def _predicted(self, fold: int, rows: Rows) -> Any:
        parameters = [parameter[fold : fold + 1] for parameter in self.parameters]
        block = max(1, _NUMBERS_AT_ONCE // self._features.shape[1])
        found = [
            _scores(parameters, self._features[torch.from_numpy(rows[start : start + block])][None])
            for start in range(0, len(rows), block)
        ]
        return torch.cat([scores[0].argmax(dim=-1) for scores in found], dim=1)

    def _accuracy(self, rows: Sequence[Rows]) -> NDArray[np.float64]:
        right = [
            (found == self._labels[torch.from_numpy(kept)]).double().mean(dim=1).numpy()
            for found, kept in zip(self.predict(rows), rows, strict=True)
        ]
        return np.stack(right)


def _scores(
    parameters: Sequence[Any], inputs: Any, dropout: float = 0, generator: Any = None
) -> Any:
    """(F, G, N, C) scores of (F, N, D) features."""
    weights, bias = parameters[:2]
    hidden = torch.baddbmm(bias.flatten(2), inputs, weights.flatten(2))
    hidden = hidden.view(*hidden.shape[:2], *weights.shape[2:]).transpose(1, 2)
    if len(parameters) == 2:
        return hidden
    if dropout > 0:
        # every network of the original draws the same
        kept = torch.empty(hidden.shape[2:]).bernoulli_(1 - dropout, generator=generator)
        hidden = hidden * kept / (1 - dropout)
    return torch.sigmoid(hidden) @ parameters[2] + parameters[3]


def optimizer_of(text: str, parameters: Any) -> Any:
    """An optimiser from SentEval's way of writing it, as `adam` or `rmsprop,lr=0.01`.

    Raises:
        InputError: no such optimiser, or a parameter that it does not take.
    """
    name, _, rest = text.partition(",")
    if name not in _OPTIMIZERS:
        raise InputError(f"optim {text!r}: one of {', '.join(_OPTIMIZERS)} is needed.")
    values = {}
    for part in filter(None, rest.split(",")):
        found = re.fullmatch(r"\s*(\w+)=([0-9.eE+-]+)\s*", part)
        if found is None:
            raise InputError(f"optim {text!r}: {part!r} is no name=number.")
        values[found[1]] = float(found[2])
    kinds = {kind.lower(): kind for kind in vars(torch.optim) if kind[0].isupper()}
    if name == "sgd":
        values.setdefault("lr", 0.1)
    try:
        return getattr(torch.optim, kinds[name])(parameters, **values)
    except TypeError as error:
        raise InputError(f"optim {text!r}: {error}.") from None
