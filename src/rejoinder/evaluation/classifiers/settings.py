"""Settings of classifiers, under SentEval's names."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.errors import InputError, nearest

MODES = ("fast", "compat")
PUBLISHED_FOLDS = 1111
"""The seed of SentEval's folds of MR, CR, SUBJ and MPQA. SentEval's `seed` does not change it."""
NETWORK_KEYS = ("optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout")
"""Settings that only the PyTorch network has."""

_LEAST = {"kfold": 2, "seed": 0, "nhid": 0, "batch_size": 1, "tenacity": 0, "epoch_size": 1,
          "max_epoch": 0}  # fmt: skip


@dataclass(frozen=True)
class ClassifierSettings:
    """Settings of the classifiers that an evaluation trains.

    Raises:
        InputError: a value is out of its range.
    """

    mode: str = "fast"
    """`fast` uses a solver that reaches the optimum; `compat` trains as SentEval does."""
    usepytorch: bool = False
    """Whether `compat` uses SentEval's PyTorch classifier or its scikit-learn classifier. Each has
    its own grid of penalties."""
    kfold: int = 10
    seed: int = 1111
    """Seed of the folds (see `fold_seed`), of the initial weights of networks and of batches."""
    nhid: int = 0
    """Number of hidden units; 0 means logistic regression."""
    optim: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    """Number of evaluations without gain after which training stops."""
    epoch_size: int = 4
    """Number of epochs between two evaluations."""
    max_epoch: int = 200
    dropout: float = 0.0
    noreg: bool = False
    """Whether there is one negligible penalty instead of a grid, as in SentEval on SNLI."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"classifier mode {self.mode!r}: {nearest(self.mode, MODES)}.")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or not least <= value < 1 << 32:
                raise InputError(
                    f"classifier: {name} is {value!r}; an integer of at least {least} and below "
                    "2^32 is needed."
                )
        if not 0 <= self.dropout < 1:
            raise InputError(
                f"classifier: dropout is {self.dropout!r}; at least 0 and below 1 is needed."
            )

    def grid(self, protocol: str) -> tuple[float, ...]:
        """Returns the penalties of a protocol: scikit-learn's C, or PyTorch's weight decay.

        As in SentEval's validation.py, C is 2^-2 to 2^3 for `nested` and `split`, and 2^-1 to 2^5
        for `kfold`. Weight decay is 10^-5 to 10^-2 for all three.
        """
        if self.by_decay:
            return (1e-9,) if self.noreg else (1e-5, 1e-4, 1e-3, 1e-2)
        if self.noreg:
            return (1e9,)
        low, high = (-1, 5) if protocol == "kfold" else (-2, 3)
        return tuple(2.0**power for power in range(low, high + 1))

    def fold_seed(self, protocol: str) -> int:
        """Returns the seed of the folds of `nested` or `kfold`.

        In SentEval's validation.py, and so in `compat`, the folds of `nested` are the same for
        every seed.
        """
        return PUBLISHED_FOLDS if protocol == "nested" and self.mode == "compat" else self.seed

    @property
    def classifier(self) -> str:
        """The implementation of classifiers: `fast`, `scikit-learn` or `pytorch`."""
        if self.nhid > 0 or (self.mode == "compat" and self.usepytorch):
            return "pytorch"
        return "scikit-learn" if self.mode == "compat" else "fast"

    @property
    def regressor(self) -> str:
        """The implementation of regressions: `fast`, or `pytorch` in `compat`, as in SentEval."""
        return "pytorch" if self.mode == "compat" else "fast"

    def describe(self, protocol: str) -> dict[str, Any]:
        """Returns the settings that affect a protocol of `Family`, as plain values for a result.

        >>> ClassifierSettings(mode="compat").describe("split")["classifier"]
        'scikit-learn'
        """
        if protocol == "retrieval":
            return {"classifier": "pytorch", "mode": self.mode, "seed": self.seed}
        if protocol == "regression":
            seed = {"seed": self.seed} if self.regressor == "pytorch" else {}
            return {"classifier": self.regressor, "mode": self.mode, **seed}
        described: dict[str, Any] = {"classifier": self.classifier, "mode": self.mode}
        described |= {"nhid": self.nhid, "penalties": list(self.grid(protocol))}
        if protocol != "split":
            described |= {"kfold": self.kfold, "fold_seed": self.fold_seed(protocol)}
        if self.classifier == "pytorch":
            described |= {"seed": self.seed, **{name: getattr(self, name) for name in NETWORK_KEYS}}
        return described

    @property
    def by_decay(self) -> bool:
        """Whether penalties are weight decays: for PyTorch's classifier and for all networks."""
        return self.usepytorch or self.nhid > 0
