"""Tensor shapes of encoder kinds that do not list them: read off the module, without its memory."""

from collections.abc import Mapping
from typing import Any

import torch

from rejoinder.encoders.kinds import EncoderKind, Shapes, word_rows
from rejoinder.errors import ConfigError, ModelError
from rejoinder.io.formats.json_tables import Table
from rejoinder.io.schema.faults import check

BOOKKEEPING = ".seen"
"""Ending of buffers that training keeps and a model folder does not."""


def encoder_config(kind: EncoderKind, values: Mapping[str, Any], where: str) -> Any:
    """Returns the config of an encoder from the table `encoder` of its `config.json`.

    Raises:
        ModelError: a size is not valid for the kind.
    """
    try:
        return check(kind.config_class, dict(values), where)
    except ConfigError as error:
        raise ModelError(f"{error} The folder is damaged.") from None


def shapes_of(kind: EncoderKind, encoder: Table, text: Table) -> Shapes:
    """Returns the shapes of the tensors of `kind`; see `EncoderKind.shapes`."""
    config = encoder_config(kind, encoder.values, f"{encoder.where}: encoder")
    rows = text.size("subwords") if kind.text == "subwords" else word_rows(text)
    buckets = text.size("bigram_buckets", 0) if kind.bigrams else 0
    with torch.device("meta"):
        module = kind.module_class(rows + buckets, config, torch.Generator())
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in module.state_dict().items()
        if not name.endswith(BOOKKEEPING)
    }
    if buckets and kind.table is not None:
        shapes[kind.table] = (-1, *shapes[kind.table][1:])
        shapes["bigram_rows"] = (buckets,)
    return shapes
