"""Names and shapes of a model's tensors, from its `config.json`: loading checks them."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from rejoinder.encoders import ENCODERS, EncoderKind
from rejoinder.encoders.kinds import ActivationName, Shapes, Size, checked, dense_shapes
from rejoinder.errors import ModelError

RESPONSES = "responses"
"""The head of the response side, F in v' = F(v)."""
ENTAILMENT = "entailment"
"""The classifier of premise and hypothesis."""
CLASSES = 3
"""Contradiction, neutral, entailment."""
PAIR_FEATURES = 4
"""Embeddings and functions of them that the classifier reads: u1, u2, |u1 - u2|, u1 * u2."""


class _Head(Struct, frozen=True):
    inputs: Annotated[int, Meta(ge=1, le=64)]
    """Embeddings, or functions of them, that the head reads side by side."""
    layers: list[Size]
    activation: ActivationName
    residual: bool


def expected_shapes(config: Mapping[str, Any], where: str = "config.json") -> Shapes:
    """Returns the shapes of a model's tensors by name; -1 where the config does not fix a size.

    `config` has the tables `text`, `encoder` and `heads` of `config.json`, and `export` if there is
    one; messages name `where`. The scales of an int8 table are not among them.

    Raises:
        ModelError: a size is missing or invalid, or a kind is unknown.
        MissingExtraError: the encoder kind needs a package that is not installed.
    """
    encoder, text, heads = config["encoder"], config["text"], config["heads"]
    kind = known_kind(encoder, where)
    if text.get("kind") != kind.text:
        raise ModelError(
            f"{where}: text.kind is {text.get('kind')!r}; a {kind.name} reads {kind.text!r}."
        )
    of_encoder = kind.tensor_shapes(encoder, text, where)
    shapes = {f"encoder.{name}": shape for name, shape in of_encoder.items()}
    dim = kind.dim(encoder)
    for name, table in heads.items():
        shapes |= _head_shapes(name, checked(_Head, table, where, f"heads.{name}"), dim, where)
    if RESPONSES not in heads and RESPONSES not in (config.get("export") or {}).get("dropped", ()):
        raise ModelError(f"{where}: heads.{RESPONSES} is missing. The folder is damaged.")
    return shapes | {"scale": ()}


def known_kind(encoder: Mapping[str, Any], where: str) -> EncoderKind:
    """The kind of an encoder, from the table `encoder` of `config.json`.

    Raises:
        ModelError: the kind is unknown.
    """
    name = encoder.get("kind")
    if not isinstance(name, str) or name not in ENCODERS:
        known = ", ".join(map(repr, sorted(ENCODERS)))
        raise ModelError(f"{where}: encoder.kind {name!r} is unknown; known: {known}.")
    return ENCODERS[name]


def _head_shapes(name: str, head: _Head, dim: int, where: str) -> Shapes:
    """Shapes of the dense layers of a head, `heads.NAME.layers.0.weight` and so on."""
    given = (head.inputs, *head.layers[-1:])
    if name == RESPONSES and head.layers and given != (1, dim):
        raise ModelError(
            f"{where}: heads.{name} reads {head.inputs} embeddings and ends in {head.layers[-1]} "
            f"units; it reads 1, and embeddings have {dim}."
        )
    if name == ENTAILMENT and given != (PAIR_FEATURES, CLASSES):
        raise ModelError(
            f"{where}: heads.{name} has inputs {head.inputs} and layers {head.layers}; inputs "
            f"{PAIR_FEATURES} and layers that end in {CLASSES}, a unit for each class, are needed."
        )
    return dense_shapes(f"heads.{name}", head.inputs * dim, head.layers, residual=head.residual)
