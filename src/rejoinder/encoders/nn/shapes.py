"""Tensor shapes of encoder kinds that do not list them: read off the module, without its memory."""

from collections.abc import Mapping
from typing import Any

import torch

from rejoinder.encoders.kinds import EncoderKind, Shapes, TextSizes
from rejoinder.errors import ConfigError, ModelError
from rejoinder.io.schema import check

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


def shapes_of(kind: EncoderKind, encoder: Mapping[str, Any], text: TextSizes, where: str) -> Shapes:
    """Returns the shapes of the tensors of `kind`; see `EncoderKind.shapes`."""
    config = encoder_config(kind, encoder, f"{where}: encoder")
    rows, buckets = text.rows, text.bigram_buckets
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
