"""Rows with the same id: which of them stays, and how many go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus import query
from rejoinder.corpus.engines.duckdb import DuckDBEngine
from rejoinder.corpus.parted.rows import GONE, Rows
from rejoinder.corpus.parted.store import Store


@dataclass(frozen=True)
class Doubles:
    """The rows that go, and their number."""

    duplicates: int = 0
    """Rows that repeat another row."""
    conflicts: int = 0
    """Rows that differ from another row with the same id."""
    gone: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)
    """Rows to leave out, by part."""

    def without(self, part: int, rows: Rows) -> Rows:
        """Returns the rows of a part with the rule `GONE` where they go."""
        if part in self.gone:
            rows.rule[self.gone[part]] = GONE
        return rows


def find_doubles(
    store: Store, ids: NDArray[np.uint64], rules: list[str], engine: DuckDBEngine
) -> Doubles:
    """Compares the rows with the same id by the query of all engines.

    `ids` are the hashes of all ids in increasing order, `rules` the names of the rules.
    """
    repeated = np.unique(ids[1:][ids[1:] == ids[:-1]])
    if not len(repeated):
        return Doubles()
    frames = []
    for part in store.parts():
        rows, blocks = store.part(part)
        if len(found := np.flatnonzero(np.isin(rows.id, repeated))):
            frames.append(_frame(part, found, rows[found], blocks, rules))
    table = engine.take("doubles", pl.concat(frames))
    columns = table.drop("part", "place")
    same_ids = engine.keep("repeated", query.repeated_ids(columns))
    counts = engine.rows(query.repeated_counts(same_ids))
    left = engine.rows(query.unique(table, same_ids).select("part", "place"))
    gone = pl.concat(frames).join(left, on=["part", "place"], how="anti")
    by_part = gone.partition_by("part", as_dict=True)
    duplicates, conflicts = counts.row(0)
    return Doubles(
        int(duplicates or 0),
        int(conflicts or 0),
        {int(key[0]): frame.get_column("place").to_numpy() for key, frame in by_part.items()},
    )


def _frame(
    part: int, places: NDArray[np.int64], rows: Rows, blocks: Any, rules: list[str]
) -> pl.DataFrame:
    """Returns rows with the columns of `query.classified`, and their part and place in it."""
    names = pl.Series([None, *rules], dtype=pl.String)
    strings = {
        name: rows.strings(blocks, name).to_polars()
        for name in ("id", "parent", "thread", "source", "text")
    }
    return pl.DataFrame(strings).with_columns(
        parent=pl.when(pl.Series(rows.answers)).then("parent"),
        rule=names.gather(rows.rule),
        part=pl.lit(part, pl.Int64),
        place=pl.Series(places, dtype=pl.Int64),
    )
