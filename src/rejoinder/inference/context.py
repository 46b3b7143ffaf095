"""The embedding of a message together with the turns before it.

The sum of the message's embedding and those of the turns, each weighed less the farther back it is.
The numbers were chosen on dev threads of six corpora (docs/measurements/context.md).
"""

import numpy as np

from rejoinder.encoders.layers import unit_rows
from rejoinder.protocols import Embeddings

TURNS = 5
"""Turns that are read; earlier ones say little about the reply."""
WEIGHT, DECAY = 0.3, 0.7
"""Weight of the turn before the message, which weighs 1; of each turn by that of the one after."""


def with_turns(rows: Embeddings) -> Embeddings:
    """Returns (1, D) float32, of length 1 or 0, from rows of the turns, the message last.

    Args:
        rows: (T + 1, D) float32, unit or zero rows, the oldest turn first.

    >>> bool(with_turns(np.eye(2, dtype=np.float32))[0, 1] > 0.9)
    True
    """
    back = np.arange(len(rows) - 1, -1, -1, dtype=np.float32)
    weights = np.where(back > 0, WEIGHT * DECAY ** (back - 1), 1).astype(np.float32)
    return unit_rows(weights[None] @ rows)
