"""Rows with the same id: which of them stays, and how many go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.engines.local.carried import CarriedComments
from rejoinder.corpus.engines.local.rows import NO_HASHES, STRINGS, Rows, among
from rejoinder.corpus.engines.local.store import Store
from rejoinder.corpus.reading.strings import Hashes

_OLD = "_old"
_ORDER = ("text", "parent", "thread", "source", "rule")
"""The columns by which `query.unique` chooses a row."""


@dataclass(frozen=True)
class Doubles:
    """The removed rows and how many there are."""

    duplicates: int
    """Rows that repeat another row."""
    conflicts: int
    """Rows that differ from another row with the same id."""
    gone: Mapping[int, NDArray[np.int64]]
    """Rows to leave out, by part."""
    carried: Hashes
    """Hashes of the ids that carried comments have, in increasing order."""
    overruled: int
    """Number of carried ids for which one extraction of all dumps might have kept a new row."""


def find_doubles(
    store: Store,
    ids: Hashes,
    rules: list[str],
    carried: CarriedComments,
    known: Hashes,
) -> Doubles:
    """Compares the rows with the same id as the query of all engines does; carried ones stay.

    `ids` are the hashes of all ids, `known` those of carried comments, both in increasing order;
    `rules` are the names of the rules.
    """
    repeated = np.unique(ids[1:][ids[1:] == ids[:-1]])
    wanted = np.union1d(repeated, known)
    if not len(wanted):
        return Doubles(0, 0, {}, NO_HASHES, 0)
    given = _rows_with(wanted, store, rules)
    # as `query.unique`: strings are compared as bytes, and null is the largest
    best = given.sort("id", *_ORDER, nulls_last=True).unique("id", keep="first")
    different = given.select("id", *_ORDER).unique().height
    duplicates, conflicts = given.height - different, different - best.height
    rows, block = carried.comments(known)
    older = _frame(0, np.arange(len(rows)), rows, [block], rules)
    both = given.join(older, on="id", suffix=_OLD)
    equal = both.filter(_same_content()).get_column("id").n_unique()
    ids_of_both = both.get_column("id").unique()
    left = best.join(both, on=["part", "place"], how="anti")
    gone = given.join(left, on=["part", "place"], how="anti")
    by_part = gone.partition_by("part", as_dict=True)
    return Doubles(
        duplicates + equal,
        conflicts + len(ids_of_both) - equal,
        {int(key[0]): frame.get_column("place").to_numpy() for key, frame in by_part.items()},
        np.unique(both.get_column("hash").to_numpy()),
        _overruled(best, older),
    )


def _same_content() -> pl.Expr:
    """Whether a row has the content of the carried one. Of dropped ones the text is not known."""
    equal = [pl.col(name).eq_missing(pl.col(f"{name}{_OLD}")) for name in _ORDER if name != "text"]
    text = pl.col("rule").is_not_null() | (pl.col("text") == pl.col(f"text{_OLD}"))
    return pl.all_horizontal(*equal, text)


def _overruled(best: pl.DataFrame, older: pl.DataFrame) -> int:
    """Counts the carried comments that one extraction over everything might not have kept."""
    pairs = best.join(older, on="id", suffix=_OLD)
    revived = pl.col("rule").is_null() & pl.col(f"rule{_OLD}").is_not_null()
    before = pl.lit(False)
    for name in reversed(_ORDER):
        mine, old = pl.col(name), pl.col(f"{name}{_OLD}")
        less = mine.is_not_null() & (old.is_null() | (mine < old))
        before = less | (mine.eq_missing(old) & before)
    lost = pl.col(f"rule{_OLD}").is_null() & before
    return pairs.filter(revived | lost.fill_null(False)).height


def _rows_with(hashes: Hashes, store: Store, rules: list[str]) -> pl.DataFrame:
    """Returns the rows whose ids have the hashes, which are in increasing order."""
    frames = []
    for part in store.parts:
        rows, blocks = store.part(part)
        if len(found := np.flatnonzero(among(rows.id, hashes))):
            frames.append(_frame(part, found, rows[found], blocks, rules))
    return pl.concat(frames)


def _frame(
    part: int, places: NDArray[np.int64], rows: Rows, blocks: Any, rules: list[str]
) -> pl.DataFrame:
    """Returns rows with the columns of `query.classified`, their hash, part and place in it."""
    names = pl.Series([None, *rules], dtype=pl.String)
    strings = {name: rows.strings(blocks, name).to_polars() for name in STRINGS}
    return pl.DataFrame(strings).with_columns(
        parent=pl.when(pl.Series(rows.answers)).then("parent"),
        rule=names.gather(rows.rule),
        part=pl.lit(part, pl.Int64),
        place=pl.Series(places, dtype=pl.Int64),
        hash=pl.Series(rows.id, dtype=pl.UInt64),
    )
