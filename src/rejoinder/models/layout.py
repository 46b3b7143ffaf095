"""Which tensors a model holds, and of which shapes, from its config: what loading checks."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from rejoinder.errors import ModelError
from rejoinder.models.tables import Table

Shapes = dict[str, tuple[int, ...]]

ACTIVATIONS = ("gelu", "none", "relu", "tanh")
COMBINERS = ("mean", "sqrtn", "sum")
KINDS = {"bilstm": "words", "dan": "words", "transformer": "subwords"}
"""Kinds of encoders, with the kind of text that each reads."""
_CLASSES = 3
"""Contradiction, neutral, entailment."""
_MOST_BLOCKS = 1_000
"""Of a Transformer: the shapes of each are listed."""


def expected_shapes(config: Mapping[str, Any], where: str = "config.json") -> Shapes:
    """Names and shapes of the tensors of a model; -1 where the config does not fix a size.

    Args:
        config: the tables `text`, `encoder`, `head` and `entailment` of `config.json`.
        where: what messages call the model.

    Raises:
        ModelError: the config lacks a size, gives one that is none, or names an unknown kind.
    """
    encoder, text = Table(config, "encoder", where), Table(config, "text", where)
    kind = encoder.values.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(
            f"{where}: encoder.kind {kind!r} is unknown; known: {', '.join(map(repr, KINDS))}."
        )
    if text.word("kind", sorted(set(KINDS.values()))) != KINDS[kind]:
        raise ModelError(
            f"{where}: text.kind is {text.values['kind']!r}; a {kind} reads {KINDS[kind]}."
        )
    shapes = _ENCODERS[kind](encoder, text)
    dim = embedding_width(encoder.values)
    head = Table(config, "head", where)
    layers = head.sizes("layers")
    head.word("activation", ACTIVATIONS)
    head.flag("residual")
    if layers and layers[-1] != dim:
        raise ModelError(
            f"{where}: head.layers {layers} end in {layers[-1]} units; embeddings have {dim}."
        )
    if config.get("entailment") is not None:
        shapes |= _classifier(Table(config, "entailment", where), dim)
    return shapes | _layers("head", dim, layers) | {"scale": ()}


def embedding_width(encoder: Mapping[str, Any]) -> int:
    """Width of the embeddings, from a checked table `encoder`.

    >>> embedding_width({"kind": "dan", "width": 300, "layers": [300, 500]})
    500
    """
    if encoder["kind"] == "dan":
        return int((encoder["layers"] or [encoder["width"]])[-1])
    return int(encoder["dim"])


def _dan(encoder: Table, text: Table) -> Shapes:
    width, layers = encoder.size("width"), encoder.sizes("layers")
    encoder.word("activation", ACTIVATIONS)
    encoder.word("combiner", COMBINERS)
    words, buckets = _words(text), text.size("bigram_buckets", 0)
    shapes: Shapes = {"embedding": (-1 if buckets else words, width)}
    if buckets:
        shapes["bigram_rows"] = (buckets,)
    shapes |= _layers("dan", width, layers)
    if encoder.flag("residual") and layers and layers[-1] != width:
        shapes["skip.weight"] = (layers[-1], width)
    return shapes


def _classifier(table: Table, dim: int) -> Shapes:
    """Of the classifier of pairs, which reads four features of the width of an embedding."""
    table.word("activation", ACTIVATIONS)
    layers = table.sizes("layers")
    if not layers or layers[-1] != _CLASSES:
        raise table.fault("layers", f"a list that ends in {_CLASSES}, a unit for each class,")
    if table.flag("residual"):
        raise table.fault("residual", "false")
    return _layers("entailment", 4 * dim, layers)


def _layers(name: str, width: int, layers: list[int]) -> Shapes:
    shapes: Shapes = {}
    for number, (inside, outside) in enumerate(pairwise([width, *layers])):
        shapes[f"{name}.{number}.weight"] = (outside, inside)
        shapes[f"{name}.{number}.bias"] = (outside,)
    return shapes


def _transformer(encoder: Table, text: Table) -> Shapes:
    hidden, wide, dim = (encoder.size(key) for key in ("hidden", "filter", "dim"))
    heads = encoder.size("heads")
    if hidden % (2 * heads):
        raise encoder.fault("hidden", f"a multiple of 2 * heads ({2 * heads:,})")
    shapes: Shapes = {"embedding.weight": (text.size("subwords"), hidden)}
    for block in range(encoder.size("layers", most=_MOST_BLOCKS)):
        linear = {
            "query_key_value": (3 * hidden, hidden),
            "out": (hidden, hidden),
            "filter_in": (wide, hidden),
            "filter_out": (hidden, wide),
        }
        for name, (outside, inside) in linear.items():
            shapes[f"blocks.{block}.{name}.weight"] = (outside, inside)
            shapes[f"blocks.{block}.{name}.bias"] = (outside,)
        for name in ("attention_norm", "filter_norm"):
            shapes[f"blocks.{block}.{name}.weight"] = (hidden,)
            shapes[f"blocks.{block}.{name}.bias"] = (hidden,)
    shapes |= {"norm.weight": (hidden,), "norm.bias": (hidden,)}
    shapes |= {"projection.weight": (dim, hidden), "projection.bias": (dim,)}
    return {f"transformer.{name}": shape for name, shape in shapes.items()}


def _bilstm(encoder: Table, text: Table) -> Shapes:
    width, hidden, dim = (encoder.size(key) for key in ("width", "hidden", "dim"))
    encoder.size("max_tokens")
    if text.size("bigram_buckets", 0):
        raise ModelError(
            f"{text.where}: text.bigram_buckets must be 0; a bilstm reads words alone."
        )
    shapes: Shapes = {}
    for direction in ("forwards", "backwards"):
        shapes[f"{direction}.weight_ih_l0"] = (4 * hidden, width)
        shapes[f"{direction}.weight_hh_l0"] = (4 * hidden, hidden)
        shapes[f"{direction}.bias_ih_l0"] = (4 * hidden,)
        shapes[f"{direction}.bias_hh_l0"] = (4 * hidden,)
    if dim != 2 * hidden:
        shapes |= {"projection.weight": (dim, 2 * hidden), "projection.bias": (dim,)}
    named = {f"bilstm.{name}": shape for name, shape in shapes.items()}
    return {"embedding": (_words(text), width)} | named


def _words(text: Table) -> int:
    return text.size("words") + text.size("unknown_buckets", 0)


_ENCODERS: dict[str, Callable[[Table, Table], Shapes]] = {
    "bilstm": _bilstm,
    "dan": _dan,
    "transformer": _transformer,
}
