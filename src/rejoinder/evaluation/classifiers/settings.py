"""How classifiers are trained: SentEval's settings under their names there."""

from dataclasses import dataclass

from rejoinder.errors import InputError, nearest

MODES = ("fast", "compat")


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

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"classifier mode {self.mode!r}: {nearest(self.mode, MODES)}.")
        if self.kfold < 2:
            raise InputError(f"kfold is {self.kfold}; 2 folds or more are needed.")

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

    @property
    def by_decay(self) -> bool:
        """Whether penalties are PyTorch's weight decay: its classifier, and every network."""
        return self.usepytorch or self.nhid > 0
