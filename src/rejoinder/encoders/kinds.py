"""The record of an encoder kind: everything the rest of the package knows about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from rejoinder.io.formats.json_tables import Table
from rejoinder.registry import resolve

Shapes = dict[str, tuple[int, ...]]
"""Shapes of tensors by name; -1 stands for any size."""

ACTIVATIONS = ("gelu", "none", "relu", "tanh")


def _configured_dim(encoder: Mapping[str, Any]) -> int:
    return int(encoder["dim"])


@dataclass(frozen=True, kw_only=True)
class EncoderKind:
    """One kind of encoder. Tensors have the same names in training and in model folders."""

    name: str
    """The value of `encoder.kind` in a config."""
    text: Literal["words", "subwords"]
    """The text features it reads."""
    config: Any
    """Its config class, a subclass of `EncoderSettings`, or `"module:class"`."""
    module: Any
    """Its `nn.Module`, a `TrainableEncoder` built from (rows, config, generator), or
    `"module:class"`."""
    table: str | None = None
    """Name of the tensor with one row per token and bucket, the weight of a `SparseTable`. Rows
    never trained are dropped at export. None means that all tensors are dense."""
    embedding: str | None = None
    """Name of a dense tensor with one row per token, of a kind without a `table`; see
    `token_rows`."""
    bigrams: bool = False
    """Whether it reads hashed bigrams."""
    runtime: Any = None
    """What computes its embeddings without torch, an `inference.runtimes.Runtime` built from
    (`ModelContents`, number of threads or None), or `"module:class"`. None means its module."""
    dim: Callable[[Mapping[str, Any]], int] = _configured_dim
    """Embedding dimension of a valid `encoder` table; by default its key `dim`."""
    shapes: Callable[[Table, Table], Shapes] | None = None
    """Tensor shapes of a model from the tables `encoder` and `text` of its `config.json`, without
    torch. None means that they are read off the module, which needs torch.

    Raises `ModelError` for a table that is no such encoder's."""

    @property
    def token_rows(self) -> str | None:
        """Name of the tensor with one row per token, whose first rows `training.row_init` turns."""
        return self.table or self.embedding

    @property
    def config_class(self) -> Any:
        """The config class, imported."""
        return resolve(self.config)

    @property
    def module_class(self) -> Any:
        """The `nn.Module`, imported."""
        return resolve(self.module)

    def tensor_shapes(self, encoder: Table, text: Table) -> Shapes:
        """Shapes of its tensors in a model folder, without the prefix `encoder.`.

        Raises:
            ModelError: the tables describe no such encoder.
            MissingExtraError: the kind has no `shapes`, and torch is not installed.
        """
        if self.shapes is not None:
            return self.shapes(encoder, text)
        shapes: Shapes = resolve("rejoinder.encoders.nn.shapes:shapes_of")(self, encoder, text)
        return shapes


def dense_shapes(name: str, width: int, layers: list[int], *, residual: bool) -> Shapes:
    """Shapes of dense layers (`encoders.nn.dense.FeedForward`) called `name` on inputs of `width`.

    >>> dense_shapes("dnn", 3, [2], residual=True)["dnn.skip.weight"]
    (2, 3)
    """
    shapes: Shapes = {}
    for number, (inside, outside) in enumerate(pairwise([width, *layers])):
        shapes[f"{name}.layers.{number}.weight"] = (outside, inside)
        shapes[f"{name}.layers.{number}.bias"] = (outside,)
    if residual and layers and layers[-1] != width:
        shapes[f"{name}.skip.weight"] = (layers[-1], width)
    return shapes


def word_rows(text: Table) -> int:
    """Number of rows of words: known ones, and buckets of the others."""
    return text.size("words") + text.size("unknown_buckets", 0)
