"""The items of a result: what was predicted for each of them, and what is right."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.measures import Floats, Indices


@dataclass(frozen=True)
class Items:
    """Predictions and gold of N items. Tests, plots and recomputed scores work on these."""

    ids: Sequence[str]
    """Each item has its own id; `subset:row` puts it into a subset."""
    predictions: Floats
    """(N,) float64."""
    gold: Floats
    """(N,) float64."""
    texts: Sequence[str] = ()
    """The text of each item, for people. Not written to disk; empty for items read from a file."""
    folds: Indices | None = None
    """(N,) the fold in which an item was held out, if the score is a mean over folds."""


def joined(*columns: Sequence[str]) -> list[str]:
    """Returns what a person reads of each row of columns of texts, such as `a cat | a dog`."""
    return [" | ".join(row) for row in zip(*columns, strict=True)]


def subsets_of(ids: Sequence[str]) -> dict[str, Indices]:
    """Returns the indices of the items of each subset: the part of an id before the last colon.

    >>> {name: rows.tolist() for name, rows in subsets_of(["a:0", "b:0", "a:1"]).items()}
    {'a': [0, 2], 'b': [1]}
    """
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(ids):
        rows.setdefault(name.rpartition(":")[0], []).append(row)
    return {subset: np.array(chosen) for subset, chosen in rows.items()}
