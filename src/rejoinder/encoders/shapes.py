"""Tensor shapes of encoder kinds that do not list them: read off the module, without its memory."""

from collections.abc import Callable

import torch

from rejoinder.errors import ConfigError, ModelError
from rejoinder.kinds.base import EncoderKind, Shapes, word_rows
from rejoinder.kinds.tables import Table
from rejoinder.schema.faults import check

BOOKKEEPING = ".seen"
"""Ending of buffers that training keeps and a model folder does not."""


def shapes_of(kind: EncoderKind) -> Callable[[Table, Table], Shapes]:
    """Returns the function that derives the shapes of `kind`; see `EncoderKind.shapes`."""

    def shapes(encoder: Table, text: Table) -> Shapes:
        try:
            config = check(kind.config_class, dict(encoder.values), f"{encoder.where}: encoder")
        except ConfigError as error:
            raise ModelError(f"{error} The folder is damaged.") from None
        rows = text.size("subwords") if kind.text == "subwords" else word_rows(text)
        buckets = text.size("bigram_buckets", 0) if kind.bigrams else 0
        with torch.device("meta"):
            module = kind.module_class(rows + buckets, config, torch.Generator())
        found = {
            name: tuple(tensor.shape)
            for name, tensor in module.state_dict().items()
            if not name.endswith(BOOKKEEPING)
        }
        if buckets and kind.table is not None:
            found[kind.table] = (-1, *found[kind.table][1:])
            found["bigram_rows"] = (buckets,)
        return found

    return shapes
