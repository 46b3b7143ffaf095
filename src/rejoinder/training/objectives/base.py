"""The record of an objective kind. Importing this needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.training.config.tasks import Task

if TYPE_CHECKING:
    from rejoinder.datasets.leaks import EvaluationHashes
    from rejoinder.encoders.settings import Activation
    from rejoinder.training.data.examples import Examples, LabelledText
    from rejoinder.training.losses.in_batch import StepInputs, StepLoss


@dataclass(frozen=True)
class Head:
    """Dense layers after embeddings, trained by one objective and stored with the model."""

    layers: tuple[int, ...]
    """Units of its layers; empty for the identity."""
    activation: "Activation"
    inputs: int = 1
    """Width of its input, as a multiple of the embedding dimension."""
    residual: bool = False

    def describe(self) -> dict[str, Any]:
        """Its table in `config.json`, under `heads`."""
        return {
            "inputs": self.inputs,
            "layers": list(self.layers),
            "activation": self.activation,
            "residual": self.residual,
        }


def mutual_loss(step: "StepInputs") -> "StepLoss":
    """Each side of a row picks the other among those of the batch, as neither comes first."""
    from rejoinder.training.losses.in_batch import in_batch_softmax

    return in_batch_softmax(
        *(step.left, step.right, step.scale),
        same=step.same,
        symmetric=True,
        nested=step.nested,
    )


@dataclass(frozen=True, kw_only=True)
class ObjectiveKind:
    """One kind of objective: its table in a config, its data, its loss, its head."""

    name: str
    """The value of `objective` in a table of `[[tasks]]`."""
    task: type[Task]
    """The class of that table: `PairsTask`, or `LabelledTask` with a field `data`."""
    loss: "Callable[[StepInputs], StepLoss]"
    """The loss of a step."""
    read: "Callable[[Any, Path, EvaluationHashes | None], LabelledText] | None" = None
    """Reads a labelled file without its leaks; None means that the objective reads pairs."""
    examples: "Callable[[Any, Any], Examples] | None" = None
    """Makes the examples of a task from what `read` returned."""
    head: "Callable[[Any], Head] | None" = None
    """The head that the objective trains, by the `RunConfig`; None means that it has none."""
    ranks: bool = True
    """Whether it ranks candidates of the batch. It then has a learned scale, and `loss` heeds
    `same` and `nested` of its inputs, as `in_batch_softmax` does."""
