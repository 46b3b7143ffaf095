"""Folders of pairs: Parquet shards with a fixed layout, where equal rows give equal bytes.

Any engine can write them. Training reads them by block, evaluation by split. The column `context`
has the turns before a message, and `confidence` the probability of links that a linker found. Both
are added to the output of an engine, so that all engines write the same.
"""

import io
import itertools
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import to_builtins
from msgspec.structs import replace
from numpy.typing import NDArray

from rejoinder.corpus.manifest import FILE, FORMAT, SPLITS, Manifest, Shard, WordsFile
from rejoinder.corpus.reading.columns import as_arrow, clean_and_letters, one_array
from rejoinder.corpus.reading.readers import mapped_ahead
from rejoinder.errors import InputError
from rejoinder.io.files.addresses import Address, AnyPath, any_path
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import check_file, read_sealed, sha256_of, sha256_of_file
from rejoinder.io.files.storage import read_errors
from rejoinder.text.columns import tokenize

COLUMNS = ("thread_id", "input_id", "response_id", "input", "response", "source", "split")
BLOCK_ROWS = 4_096
"""Number of rows in a Parquet row group, and in a block, the unit of reading."""
SHARD_ROWS = 64 * BLOCK_ROWS
_WORDS = "words.txt"
_REMEDY = "Extract the pairs again."


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one shard."""

    shard: Path
    start: int
    """Index of the first row, from 0."""
    rows: int


@dataclass(frozen=True)
class Pairs:
    """A checked folder of pairs."""

    folder: Path
    manifest: Manifest
    _checked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Splits whose shards have been compared with their hashes."""

    def count(self, split: str) -> int:
        """Returns the number of pairs in a split."""
        return self.manifest.splits.get(split, 0)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the hashes of all shards, in order."""
        joined = "\n".join(shard.sha256 for shard in self.manifest.shards)
        return sha256_of(joined.encode())

    @cached_property
    def words(self) -> frozenset[str] | None:
        """The words that a model of the pairs may know; None for all words.

        Raises:
            InputError: their file is missing or damaged.
        """
        facts = self.manifest.words
        if facts is None:
            return None
        path = self.folder / facts.file
        with read_errors(path):
            content = path.read_bytes()
        if sha256_of(content) != facts.sha256:
            raise InputError(f"{path} was changed after it was written. {_REMEDY}")
        return frozenset(content.decode().split("\n")) - {""}

    def blocks(self, split: str) -> list[Block]:
        """Returns the blocks of a split, of at most `BLOCK_ROWS` rows, in order.

        The first call for a split compares its shards with their hashes, so no damaged row is used.

        Raises:
            InputError: there is no such split, or one of its shards is damaged.
        """
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; splits: {', '.join(SPLITS)}.")
        if split not in self._checked:
            for shard in self.manifest.shards:
                path = self.folder / shard.file
                if shard.split == split:
                    check_file(path, to_builtins(shard), InputError, _REMEDY)
                    if (rows := pq.read_metadata(path).num_rows) != shard.rows:
                        said = f"{rows:,} rows, and {shard.rows:,} are listed"
                        raise InputError(f"{path} has {said}. {_REMEDY}")
            self._checked.add(split)
        return [
            Block(self.folder / shard.file, start, min(BLOCK_ROWS, shard.rows - start))
            for shard in self.manifest.shards
            if shard.split == split
            for start in range(0, shard.rows, BLOCK_ROWS)
        ]

    def read(self, block: Block, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
        """Returns the rows of a block. Only its row group is read."""
        rows = pl.scan_parquet(block.shard, glob=False).slice(block.start, block.rows)
        return rows.select(columns).collect()

    def iter_frames(self, split: str, columns: Sequence[str] = COLUMNS) -> Iterator[pl.DataFrame]:
        """Yields the pairs of a split, block by block, in order."""
        for block in self.blocks(split):
            yield self.read(block, columns)

    def frame(self, split: str, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
        """Returns all pairs of a split. Dev and test are small enough for this."""
        empty = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        return pl.concat([empty, *self.iter_frames(split, columns)])


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a folder of pairs.

    Raises:
        InputError: the manifest is missing, damaged, or of another format version.
    """
    if not folder.is_dir() and isinstance(address := any_path(folder), Address):
        raise InputError(
            f"{address} is an address, but pairs are read from this machine; copy the folder "
            "first, for example with aws s3 cp --recursive."
        )
    return read_sealed(
        folder / FILE,
        Manifest,
        FORMAT,
        InputError,
        "Name a folder that rejoinder extract wrote, or extract the pairs again.",
        unreadable=f"{folder} is not a finished folder of pairs",
    )


def open_pairs(folder: Path) -> Pairs:
    """Opens a folder that `rejoinder extract` wrote, and checks the sizes of its shards.

    Raises:
        InputError: the folder is not finished, or a shard is missing or cut short.
    """
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        check_file(folder / shard.file, to_builtins(shard), InputError, _REMEDY, content=False)
    return Pairs(folder, manifest)


_SCHEMA = pa.schema([(name, pa.large_string()) for name in COLUMNS])
_REPEATED = ["thread_id", "source", "split"]
"""Columns written with a dictionary, because values repeat within a row group."""
_TEXTS = ("input", "response")
_TURNS = pa.list_(pa.large_string())
_ADDED = {"context": _TURNS, "confidence": pa.float32()}


def _schema(names: Container[str]) -> pa.Schema:
    """Returns the schema of pairs with the added columns that are among the names."""
    return pa.schema([*_SCHEMA, *(pa.field(*one) for one in _ADDED.items() if one[0] in names)])


@dataclass
class Written:
    """The written shards and their counts."""

    shards: list[Shard] = field(default_factory=list)
    rows: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    sources: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """Number of pairs by source and split."""
    unique_inputs: int = 0
    unique_responses: int = 0

    def add(self, shard: Shard, sources: pl.Series) -> None:
        """Counts the rows of a shard by their (N,) sources."""
        self.shards.append(shard)
        self.rows += shard.rows
        self.splits[shard.split] += shard.rows
        for source, rows in sources.value_counts().iter_rows():
            self.sources[source][shard.split] = self.sources[source].get(shard.split, 0) + rows

    def count_unique(self, hashes: Sequence[Sequence[pl.Series]]) -> None:
        """Counts distinct texts by their hashes, those of `_TEXTS` for each shard."""
        none = [pl.Series(dtype=pl.UInt64)] * len(_TEXTS)
        distinct = [pl.concat(column).n_unique() for column in zip(none, *hashes, strict=True)]
        self.unique_inputs, self.unique_responses = distinct


def write_shards(folder: AnyPath, tables: Iterator[pa.Table], threads: int = 1) -> Written:
    """Writes pairs, ordered by `part` (0 train, 1 dev, 2 test), as shards of one split each.

    Writes `threads` shards at a time while collecting the rows of the next shard. With one thread,
    it writes a shard before collecting the next.
    """

    def write(job: tuple[int, tuple[str, pa.Table]]) -> tuple[Shard, pl.Series, list[pl.Series]]:
        number, (split, table) = job
        shard = write_shard(folder, number, split, table)
        sources = pl.Series("source", table["source"])
        # keeps hashes, because they take 8 bytes per text
        return shard, sources, [pl.Series(table[name]).hash(seed=0) for name in _TEXTS]

    written = Written()
    hashes: list[list[pl.Series]] = []
    jobs = enumerate(_shards(tables))
    done = mapped_ahead(write, jobs, threads) if threads > 1 else map(write, jobs)
    for shard, sources, found in done:
        written.add(shard, sources)
        hashes.append(found)
    written.count_unique(hashes)
    return written


def _shards(tables: Iterator[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Cuts and joins tables to the size of shards; yields them with their splits."""
    parts = (part for table in tables for part in _parts(table))
    for number, group in itertools.groupby(parts, lambda part: part[0]):
        held: list[pa.Table] = []
        for _, part in group:
            held.append(part)
            while sum(map(len, held)) >= SHARD_ROWS:
                together = pa.concat_tables(held)
                yield SPLITS[number], together.slice(0, SHARD_ROWS)
                held = [together.slice(SHARD_ROWS)]
        if sum(map(len, held)):
            yield SPLITS[number], pa.concat_tables(held)


def _parts(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yields the numbers of the splits in a table, in order, with their rows."""
    if len(table):
        parts = pl.Series(one_array(table["part"])).to_numpy()
        table = table.select(COLUMNS[:-1]).cast(pa.schema(list(_SCHEMA)[:-1]))
        borders = np.searchsorted(parts, np.arange(len(SPLITS) + 1))
        for number, (first, last) in enumerate(itertools.pairwise(borders.tolist())):
            if last > first:
                yield number, table.slice(first, last - first)


def write_shard(folder: AnyPath, number: int, split: str, table: pa.Table) -> Shard:
    """Writes the ordered pairs of one shard. Its bytes depend only on the pairs.

    `table` has the columns of `COLUMNS` except the split.
    """
    path = folder / f"part-{number:05d}.parquet"
    content = io.BytesIO()
    splits = as_arrow(pl.repeat(split, BLOCK_ROWS, dtype=pl.String, eager=True))
    with _parquet_writer(content if isinstance(path, Address) else path, _SCHEMA) as writer:
        for start in range(0, len(table), BLOCK_ROWS):
            # in one piece: pages must not depend on how the rows arrived
            rows = table.slice(start, BLOCK_ROWS).combine_chunks()
            writer.write_table(rows.append_column("split", splits[: len(rows)]), BLOCK_ROWS)
    if isinstance(path, Path):
        return _shard_at(path, split, len(table))
    written = content.getvalue()
    path.put(written)
    return Shard(path.name, split, len(table), len(written), sha256_of(written))


def _shard_at(path: Path, split: str, rows: int) -> Shard:
    return Shard(path.name, split, rows, path.stat().st_size, sha256_of_file(path))


def _parquet_writer(target: Path | io.BytesIO, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        target,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=_REPEATED,
        write_statistics=False,
        store_schema=False,
    )


def write_words(words: Iterable[str], folder: AnyPath) -> WordsFile:
    """Writes the words that a model of the pairs may know, sorted."""
    lines = [f"{word}\n" for word in sorted(words)]
    content = "".join(lines).encode()
    write_bytes(folder / _WORDS, content)
    return WordsFile(_WORDS, len(lines), sha256_of(content))


def whole_blocks(pairs: Pairs, split: str) -> Iterator[tuple[Path, pl.DataFrame]]:
    """Yields the shard and all columns, including `context`, of each block of a split."""
    for block in pairs.blocks(split):
        yield block.shard, pairs.read(block, [*pl.read_parquet_schema(block.shard)])


def rewrite(pairs: Pairs, out: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Manifest:
    """Writes a folder of pairs again; `change` returns the rows to keep of each block.

    The words that a model may know are limited to the remaining words.

    Raises:
        InputError: a shard is damaged, or no pair is left.
    """
    written, words = Written(), set[str]()
    hashes: list[list[pl.Series]] = []
    for split in SPLITS:
        for shard, blocks in itertools.groupby(whole_blocks(pairs, split), lambda block: block[0]):
            frame = pl.concat([change(block) for _, block in blocks])
            if not len(frame):
                continue
            path, schema = out / shard.name, _schema(frame.columns)
            with _parquet_writer(path, schema) as writer:
                writer.write_table(frame.to_arrow().cast(schema), BLOCK_ROWS)
            written.add(_shard_at(path, split, len(frame)), frame["source"])
            hashes.append([frame[name].hash(seed=0) for name in _TEXTS])
            if pairs.words is not None:
                words.update(*(tokenize(frame[name]).explode().drop_nulls() for name in _TEXTS))
    if not written.shards:
        raise InputError(f"no pair of {pairs.folder} would be left; remove the folder instead.")
    written.count_unique(hashes)
    about = pairs.manifest
    facts = None if pairs.words is None else write_words(pairs.words & words, out)
    counts = replace(
        about.counts,
        pairs=written.rows,
        unique_inputs=written.unique_inputs,
        unique_responses=written.unique_responses,
    )
    about = replace(
        about, counts=counts, splits={split: written.splits[split] for split in SPLITS},
        sources=dict(sorted(written.sources.items())),
        shards=tuple(written.shards), malformed=(), words=facts,
    )  # fmt: skip
    about.write(out)
    return about


_NONE = -1
Rows = NDArray[np.int64]


class _Link(msgspec.Struct):
    id: str
    before: str | None = None
    confidence: float = 1.0


class _Said(msgspec.Struct):
    text: str


def add_columns(
    folder: Path, shards: Sequence[Shard], files: Sequence[Path], turns: int | None
) -> list[Shard]:
    """Adds `context`, up to `turns` texts, oldest first, and `confidence` where links have one.

    `files` come from `convert`; their messages name the message before them.
    """
    with ExitStack() as stack:
        said = _Messages([stack.enter_context(path.open("rb")) for path in files])
        names = {"context": turns, "confidence": said.are_found}
        schema = _schema([name for name, wanted in names.items() if wanted])
        return [_with_columns(folder / one.file, one, said, schema, turns) for one in shards]


def _with_columns(
    path: Path, shard: Shard, said: "_Messages", schema: pa.Schema, turns: int | None
) -> Shard:
    """Writes a shard again with the columns."""
    changed = path.with_suffix(".changed")
    with pq.ParquetFile(path) as file, _parquet_writer(changed, schema) as writer:
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number).cast(_SCHEMA)
            if turns:
                context = said.before(rows["input_id"].to_pylist(), turns)
                rows = rows.append_column("context", context)
            if said.are_found:
                sure = said.confidence(rows["response_id"].to_pylist())
                rows = rows.append_column("confidence", pa.array(sure))
            writer.write_table(rows, BLOCK_ROWS)
    changed.replace(path)
    return _shard_at(path, shard.split, shard.rows)


class _Messages:
    """Messages by id, in 32 bytes each; texts stay in the files."""

    def __init__(self, files: Sequence[IO[bytes]]) -> None:
        self._files = files
        self._firsts: list[int] = []
        """Row of the first message of each file."""
        decoder = msgspec.json.Decoder(_Link)
        ids, links, starts, sure = array("q"), array("q"), array("q"), array("f")
        for file in files:
            self._firsts.append(len(ids))
            start = 0
            for line in file:
                link = decoder.decode(line)
                ids.append(_key(link.id))
                links.append(0 if link.before is None else _key(link.before))
                starts.append(start)
                sure.append(link.confidence)
                start += len(line)
        self._starts, self._sure = np.array(starts), np.array(sure)
        self.are_found = bool((self._sure < 1).any())
        """Whether a linker found any of the links."""
        unordered = np.array(ids)
        # the first copy of a message counts
        self._order = np.argsort(unordered, kind="stable").astype(np.int32)
        self._ids = unordered[self._order]
        self._before = self._rows(np.array(links)).astype(np.int32)

    def _rows(self, keys: Rows) -> Rows:
        """Returns the (N,) rows of messages by the keys of their ids."""
        places = np.searchsorted(self._ids, keys)
        places[places == len(self._ids)] = 0
        return np.where(self._ids[places] == keys, self._order[places], _NONE)

    def confidence(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Returns (N,) probabilities of the messages' links, 1 if the export states them."""
        found: NDArray[np.float32] = self._sure[self._rows(np.array([_key(one) for one in ids]))]
        return found

    def before(self, ids: Sequence[str], turns: int) -> pa.Array:
        """Returns (N,) lists of the texts before messages, oldest first."""
        rows = self._rows(np.array([_key(one) for one in ids]))
        chain: list[Rows] = []
        for _ in range(turns):
            rows = np.where(rows == _NONE, _NONE, self._before[rows]).astype(np.int64)
            chain.insert(0, rows)
        table = np.stack(chain, axis=1)
        said = table != _NONE
        wanted, which = np.unique(table[said], return_inverse=True)
        texts = _clean(self._texts(wanted.tolist())).gather(which)
        borders = np.zeros(len(ids) + 1, np.int32)
        np.cumsum(said.sum(axis=1), out=borders[1:])
        buffers = [None, pa.py_buffer(borders)]
        return pa.Array.from_buffers(_TURNS, len(ids), buffers, children=[as_arrow(texts)])

    def _texts(self, rows: Iterable[int]) -> Iterator[str]:
        decoder = msgspec.json.Decoder(_Said)
        for row in rows:
            number = int(np.searchsorted(self._firsts, row, side="right")) - 1
            file = self._files[number]
            file.seek(int(self._starts[row]))
            yield decoder.decode(file.readline()).text


def _key(id_: str) -> int:
    return hash(id_.removeprefix("t1_"))  # as extraction calls it


def _clean(texts: Iterable[str]) -> pl.Series:
    """Returns texts cleaned as in the pairs."""
    given = pl.Series(list(texts), dtype=pl.String)
    clean, _ = clean_and_letters(as_arrow(given))
    return pl.select(pl.coalesce(pl.Series(clean, dtype=pl.String), given)).to_series()
