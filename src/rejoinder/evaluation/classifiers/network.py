"""SentEval's classifier in PyTorch: a softmax, or one hidden layer, stopped early.

Follows tools/classifier.py of the original: the sum of steps, the order of draws and the defaults
are its own. Its random draws come from the global generators of NumPy and PyTorch there; here
from generators of their own, seeded alike, so that nothing else moves them.
"""

import copy
import re
from collections.abc import Sequence
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


class NetworkLearner:
    """One network after the other."""

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Rows) -> None:
        self._settings, self._features, self._labels = settings, features, labels

    def _network(self, strength: float) -> "Network":
        classes = int(self._labels.max()) + 1
        return Network(self._settings, self._features.shape[1], classes, strength)

    def held_out(self, folds: Folds, grid: Sequence[float]) -> NDArray[np.float64]:
        """See `Learner`; the held-out rows also say when to stop, as in the original."""
        features, labels = self._features, self._labels
        found = [
            [
                self._network(strength)
                .fit(features[train], labels[train], features[test], labels[test])
                .accuracy(features[test], labels[test])
                for strength in grid
            ]
            for train, test in folds
        ]
        return np.array(found)

    def predict(
        self,
        folds: Folds,
        penalties: Sequence[float],
        validation: Rows | None = None,
    ) -> list[Rows]:
        """See `Learner`."""
        features, labels = self._features, self._labels
        found = []
        for (train, test), strength in zip(folds, penalties, strict=True):
            network = self._network(strength)
            if validation is None:
                order = network.chance.permutation(len(train))
                cut = int(_VALIDATION * len(train))
                stop, rest = train[order[:cut]], train[order[cut:]]
            else:
                stop, rest = validation, train
            network.fit(features[rest], labels[rest], features[stop], labels[stop])
            found.append(network.predict(features[test]))
        return found


class Network:
    """A classifier with its optimiser."""

    def __init__(
        self, settings: ClassifierSettings, width: int, classes: int, decay: float
    ) -> None:
        """A network from `width` features to `classes` scores."""
        self.chance = np.random.RandomState(settings.seed)
        self._settings = settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            if settings.nhid == 0:
                self._model: Any = torch.nn.Sequential(torch.nn.Linear(width, classes))
            else:
                self._model = torch.nn.Sequential(
                    torch.nn.Linear(width, settings.nhid),
                    torch.nn.Dropout(p=settings.dropout),
                    torch.nn.Sigmoid(),
                    torch.nn.Linear(settings.nhid, classes),
                )
        self._optimizer = optimizer_of(settings.optim, self._model.parameters())
        for group in self._optimizer.param_groups:
            group["weight_decay"] = decay

    def fit(
        self, features: Features, labels: Rows, stop_features: Features, stop_labels: Rows
    ) -> "Network":
        """Train until accuracy on the second rows has not grown `tenacity` times."""
        inputs = torch.from_numpy(np.ascontiguousarray(features))
        targets = torch.from_numpy(labels)
        best, best_accuracy, waited, epoch = copy.deepcopy(self._model), -1.0, 0, 0
        while epoch <= self._settings.max_epoch:
            self._train(inputs, targets)
            epoch += self._settings.epoch_size
            accuracy = self.accuracy(stop_features, stop_labels)
            if accuracy > best_accuracy:
                best, best_accuracy = copy.deepcopy(self._model), accuracy
            else:
                # the original counts all evaluations without gain, not those in a row
                if waited >= self._settings.tenacity:
                    break
                waited += 1
        self._model = best
        return self

    def _train(self, inputs: Any, targets: Any) -> None:
        self._model.train()
        size = self._settings.batch_size
        for _ in range(self._settings.epoch_size):
            order = torch.from_numpy(self.chance.permutation(len(inputs)))
            for start in range(0, len(inputs), size):
                rows = order[start : start + size]
                scores = self._model(inputs[rows])
                loss = torch.nn.functional.cross_entropy(scores, targets[rows])
                self._optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self._optimizer.step()

    def predict(self, features: Features) -> Rows:
        """(N,) classes."""
        self._model.eval()
        with torch.no_grad():
            scores = self._model(torch.from_numpy(np.ascontiguousarray(features)))
        return np.asarray(scores.argmax(dim=1).numpy(), np.int64)

    def accuracy(self, features: Features, labels: Rows) -> float:
        """Share of rows whose class is right, 0 to 1."""
        return float((self.predict(features) == labels).mean())


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
