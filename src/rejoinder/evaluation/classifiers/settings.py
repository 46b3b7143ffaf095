"""How classifiers are trained: SentEval's settings under their names there."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.errors import InputError, nearest

MODES = ("fast", "compat")
PUBLISHED_FOLDS = 1111
"""The seed of the original's folds of MR, CR, SUBJ and MPQA, which its `seed` does not reach."""
NETWORK_KEYS = ("optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout")
"""Settings of the network in PyTorch alone."""

_LEAST = {"kfold": 2, "seed": 0, "nhid": 0, "batch_size": 1, "tenacity": 0, "epoch_size": 1,
          "max_epoch": 0}  # fmt: skip


@dataclass(frozen=True)
class ClassifierSettings:
    """Settings of all classifiers of a run."""

    mode: str = "fast"
    """`fast`: a solver that reaches the optimum; `compat`: what the original ran."""
    usepytorch: bool = False
    """In `compat`: the original's PyTorch classifier, or else scikit-learn's; both have their
    own grid of penalties."""
    kfold: int = 10
    seed: int = 1111
    """Of the folds, of the network's first weights and of its batches; see `fold_seed`."""
    nhid: int = 0
    """Hidden units; 0: logistic regression."""
    optim: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    """Evaluations without gain after which training stops."""
    epoch_size: int = 4
    """Epochs between two evaluations."""
    max_epoch: int = 200
    dropout: float = 0.0
    noreg: bool = False
    """One penalty that is next to none; the original does without a choice on SNLI."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"classifier mode {self.mode!r}: {nearest(self.mode, MODES)}.")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise InputError(
                    f"classifier: {name} is {value!r}; a whole number from {least} on is needed."
                )
        if self.seed >= 1 << 32:
            raise InputError(f"classifier: seed is {self.seed}; below 2^32 is needed.")
        if not 0 <= self.dropout < 1:
            raise InputError(
                f"classifier: dropout is {self.dropout!r}; from 0 to below 1 is needed."
            )

    def grid(self, protocol: str) -> tuple[float, ...]:
        """The penalties of a protocol: C of scikit-learn, or the weight decay of PyTorch.

        SentEval, validation.py: `nested` and `split` have C of 2^-2 to 2^3, `kfold` 2^-1 to 2^5;
        PyTorch 10^-5 to 10^-2 for all.
        """
        if self.by_decay:
            return (1e-9,) if self.noreg else (1e-5, 1e-4, 1e-3, 1e-2)
        if self.noreg:
            return (1e9,)
        low, high = (-1, 5) if protocol == "kfold" else (-2, 3)
        return tuple(2.0**power for power in range(low, high + 1))

    def fold_seed(self, protocol: str) -> int:
        """The seed of the folds of a protocol.

        SentEval, validation.py: folds of `nested` are the same for every seed, and `compat` keeps
        to that.
        """
        return PUBLISHED_FOLDS if protocol == "nested" and self.mode == "compat" else self.seed

    @property
    def classifier(self) -> str:
        """Who fits the classifiers: `fast`, `scikit-learn` or `pytorch`."""
        if self.nhid > 0 or (self.mode == "compat" and self.usepytorch):
            return "pytorch"
        return "scikit-learn" if self.mode == "compat" else "fast"

    @property
    def regressor(self) -> str:
        """Who fits the regressions: `fast`, or in `compat` always `pytorch`, as in the original."""
        return "pytorch" if self.mode == "compat" else "fast"

    def describe(self, protocol: str) -> dict[str, Any]:
        """The settings that act on a protocol, as plain values for a result.

        Args:
            protocol: `nested`, `kfold` or `split` (classification), `regression` or `retrieval`.

        >>> ClassifierSettings(mode="compat").describe("split")["classifier"]
        'scikit-learn'
        """
        if protocol == "retrieval":
            return {"classifier": "pytorch", "mode": self.mode, "seed": self.seed}
        if protocol == "regression":
            seed = {"seed": self.seed} if self.regressor == "pytorch" else {}
            return {"classifier": self.regressor, "mode": self.mode, **seed}
        told: dict[str, Any] = {"classifier": self.classifier, "mode": self.mode}
        told |= {"nhid": self.nhid, "penalties": list(self.grid(protocol))}
        if protocol != "split":
            told |= {"kfold": self.kfold, "fold_seed": self.fold_seed(protocol)}
        if self.classifier == "pytorch":
            told |= {"seed": self.seed, **{name: getattr(self, name) for name in NETWORK_KEYS}}
        return told

    @property
    def by_decay(self) -> bool:
        """Whether penalties are PyTorch's weight decay: its classifier, and every network."""
        return self.usepytorch or self.nhid > 0
