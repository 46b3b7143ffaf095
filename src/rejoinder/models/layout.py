"""Names and shapes of a model's tensors, from its `config.json`: loading checks them."""

from collections.abc import Collection, Mapping
from typing import Any

from rejoinder.encoders import ENCODERS, EncoderKind
from rejoinder.encoders.kinds import ACTIVATIONS, Shapes, dense_shapes
from rejoinder.errors import ModelError
from rejoinder.io.formats.json_tables import Table

RESPONSES = "responses"
"""The head of the response side, F in v' = F(v)."""
ENTAILMENT = "entailment"
"""The classifier of premise and hypothesis."""
CLASSES = 3
"""Contradiction, neutral, entailment."""
PAIR_FEATURES = 4
"""Embeddings and functions of them that the classifier reads: u1, u2, |u1 - u2|, u1 * u2."""
_MAX_INPUTS = 64
"""Embeddings, or functions of them, that a head may read side by side."""


def expected_shapes(config: Mapping[str, Any], where: str = "config.json") -> Shapes:
    """Returns the shapes of a model's tensors by name; -1 where the config does not fix a size.

    `config` has the tables `text`, `encoder` and `heads` of `config.json`, and `export` if there is
    one; messages name `where`. The scales of an int8 table are not among them.

    Raises:
        ModelError: a size is missing or invalid, or a kind is unknown.
        MissingExtraError: the encoder kind needs a package that is not installed.
    """
    encoder, text = Table(config, "encoder", where), Table(config, "text", where)
    kind = known_kind(encoder.values, where)
    if text.word("kind", ["subwords", "words"]) != kind.text:
        raise ModelError(
            f"{where}: text.kind is {text.values['kind']!r}; a {kind.name} reads {kind.text}."
        )
    shapes = {f"encoder.{name}": shape for name, shape in kind.tensor_shapes(encoder, text).items()}
    dim = kind.dim(encoder.values)
    heads = Table(config, "heads", where)
    for name in heads.values:
        shapes |= _head_shapes(name, Table(heads.values, name, where, "heads."), dim)
    if RESPONSES not in heads.values and RESPONSES not in _dropped(config):
        raise heads.fault(RESPONSES, "a table")
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


def _dropped(config: Mapping[str, Any]) -> Collection[Any]:
    """The heads that an export left out, as `config.json` says."""
    export = config.get("export")
    dropped = export.get("dropped") if isinstance(export, Mapping) else None
    return dropped if isinstance(dropped, list | tuple) else ()


def _head_shapes(name: str, table: Table, dim: int) -> Shapes:
    """Shapes of the dense layers of a head, `heads.NAME.layers.0.weight` and so on."""
    inputs, layers = table.size("inputs", most=_MAX_INPUTS), table.sizes("layers")
    table.word("activation", ACTIVATIONS)
    residual = table.flag("residual")
    if name == RESPONSES and layers and (inputs, layers[-1]) != (1, dim):
        raise ModelError(
            f"{table.where}: {table.name}.layers {layers} end in {layers[-1]} units; embeddings "
            f"have {dim}."
        )
    if name == ENTAILMENT:
        if layers[-1:] != [CLASSES]:
            raise table.fault("layers", f"a list that ends in {CLASSES}, a unit for each class,")
        if inputs != PAIR_FEATURES:
            raise table.fault("inputs", str(PAIR_FEATURES))
    return dense_shapes(f"heads.{name}", inputs * dim, layers, residual=residual)
