"""Which tensors a model holds, and of which shapes, from its config: what loading checks."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from rejoinder.errors import ModelError

Shapes = dict[str, tuple[int, ...]]


def expected_shapes(config: Mapping[str, Any], where: str = "config.json") -> Shapes:
    """Names and shapes of the tensors of a model; -1 where the config does not fix a size.

    Args:
        config: the tables `text`, `encoder`, `head` and `entailment` of `config.json`.
        where: what messages call the model.

    Raises:
        ModelError: the config lacks a size, gives one that is none, or names an unknown kind.
    """
    encoder = _Table(config, "encoder", where)
    kind = encoder.values.get("kind")
    if kind == "dan":
        shapes = _dan(encoder, _Table(config, "text", where))
    elif kind == "transformer":
        shapes = _transformer(encoder, _Table(config, "text", where))
    elif kind == "bilstm":
        shapes = _bilstm(encoder, _Table(config, "text", where), where)
    else:
        raise ModelError(
            f"{where}: encoder.kind {kind!r} is unknown; known: 'bilstm', 'dan', 'transformer'."
        )
    dim = embedding_width(encoder.values)
    head = _Table(config, "head", where)
    layers = head.sizes("layers")
    head.word("activation")
    head.flag("residual")
    if layers and layers[-1] != dim:
        raise ModelError(
            f"{where}: head.layers {layers} end in {layers[-1]} units; embeddings have {dim}."
        )
    if config.get("entailment"):
        classifier = _Table(config, "entailment", where)
        classifier.word("activation")
        classifier.flag("residual")
        shapes |= _layers("entailment", 4 * dim, classifier.sizes("layers"))
    return shapes | _layers("head", dim, layers) | {"scale": ()}


def embedding_width(encoder: Mapping[str, Any]) -> int:
    """Width of the embeddings, from a checked table `encoder`.

    >>> embedding_width({"kind": "dan", "width": 300, "layers": [300, 500]})
    500
    """
    if encoder["kind"] == "dan":
        return int((encoder["layers"] or [encoder["width"]])[-1])
    return int(encoder["dim"])


class _Table:
    """A table of `config.json`, whose values are checked as they are taken."""

    def __init__(self, config: Mapping[str, Any], name: str, where: str) -> None:
        self.values: Mapping[str, Any] = config[name]
        self.name, self.where = name, where

    def size(self, key: str, least: int = 1) -> int:
        value = self.values.get(key)
        if not _is_size(value, least):
            raise self._fault(key, f"a number of at least {least}")
        return int(value)  # type: ignore[arg-type]

    def sizes(self, key: str) -> list[int]:
        value = self.values.get(key)
        if not isinstance(value, list | tuple) or not all(_is_size(item, 1) for item in value):
            raise self._fault(key, "a list of numbers of at least 1")
        return list(value)

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self._fault(key, "true or false")
        return value

    def word(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self._fault(key, "a word")
        return value

    def _fault(self, key: str, needed: str) -> ModelError:
        found = f"is {self.values[key]!r}" if key in self.values else "is missing"
        return ModelError(f"{self.where}: {self.name}.{key} {found}; {needed} is needed.")


def _is_size(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _dan(encoder: _Table, text: _Table) -> Shapes:
    width, layers = encoder.size("width"), encoder.sizes("layers")
    encoder.word("activation")
    encoder.word("combiner")
    words, buckets = _words(text), text.size("bigram_buckets", 0)
    shapes: Shapes = {"embedding": (-1 if buckets else words, width)}
    if buckets:
        shapes["bigram_rows"] = (buckets,)
    shapes |= _layers("dan", width, layers)
    if encoder.flag("residual") and layers and layers[-1] != width:
        shapes["skip.weight"] = (layers[-1], width)
    return shapes


def _layers(name: str, width: int, layers: list[int]) -> Shapes:
    shapes: Shapes = {}
    for number, (inside, outside) in enumerate(pairwise([width, *layers])):
        shapes[f"{name}.{number}.weight"] = (outside, inside)
        shapes[f"{name}.{number}.bias"] = (outside,)
    return shapes


def _transformer(encoder: _Table, text: _Table) -> Shapes:
    hidden, wide, dim = (encoder.size(key) for key in ("hidden", "filter", "dim"))
    encoder.size("heads")
    shapes: Shapes = {"embedding.weight": (text.size("subwords"), hidden)}
    for block in range(encoder.size("layers")):
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


def _bilstm(encoder: _Table, text: _Table, where: str) -> Shapes:
    width, hidden, dim = (encoder.size(key) for key in ("width", "hidden", "dim"))
    encoder.size("max_tokens")
    if text.size("bigram_buckets", 0):
        raise ModelError(f"{where}: text.bigram_buckets must be 0; a bilstm reads words alone.")
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


def _words(text: _Table) -> int:
    return text.size("words") + text.size("unknown_buckets", 0)
