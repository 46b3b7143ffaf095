"""Which tensors a model holds, and of which shapes, from its config: what loading checks."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from rejoinder.errors import ModelError

Shapes = dict[str, tuple[int, ...]]


def expected_shapes(config: Mapping[str, Any]) -> Shapes:
    """Names and shapes of the tensors of a model; -1 where the config does not fix a size.

    Raises:
        ModelError: the config lacks a size, or names a kind that is unknown.
    """
    try:
        encoder, head = config["encoder"], config["head"]
        kind = encoder["kind"]
        if kind == "dan":
            shapes = _dan(encoder, config["text"])
            dim = encoder["layers"][-1] if encoder["layers"] else encoder["width"]
        elif kind == "transformer":
            shapes = _transformer(encoder, config["text"])
            dim = encoder["dim"]
        else:
            raise ModelError(f"encoder kind {kind!r} is unknown; known: 'dan', 'transformer'.")
        shapes |= _layers("head", dim, head["layers"])
    except (KeyError, TypeError, IndexError) as error:
        raise ModelError(f"config.json lacks a size that the model needs: {error!r}.") from None
    return shapes | {"scale": ()}


def _dan(encoder: Mapping[str, Any], text: Mapping[str, Any]) -> Shapes:
    width, layers = encoder["width"], encoder["layers"]
    buckets = text["bigram_buckets"]
    shapes: Shapes = {"embedding": (-1 if buckets else text["words"], width)}
    if buckets:
        shapes["bigram_rows"] = (buckets,)
    shapes |= _layers("dan", width, layers)
    if encoder["residual"] and layers and layers[-1] != width:
        shapes["skip.weight"] = (layers[-1], width)
    return shapes


def _layers(name: str, width: int, layers: list[int]) -> Shapes:
    shapes: Shapes = {}
    for number, (inside, outside) in enumerate(pairwise([width, *layers])):
        shapes[f"{name}.{number}.weight"] = (outside, inside)
        shapes[f"{name}.{number}.bias"] = (outside,)
    return shapes


def _transformer(encoder: Mapping[str, Any], text: Mapping[str, Any]) -> Shapes:
    hidden, wide, dim = encoder["hidden"], encoder["filter"], encoder["dim"]
    shapes: Shapes = {"embedding.weight": (text["subwords"], hidden)}
    for block in range(encoder["layers"]):
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
