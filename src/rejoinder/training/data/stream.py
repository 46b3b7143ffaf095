"""Pairs and labelled files as endless streams of batches, in a new order each epoch.

An epoch of pairs visits the blocks of the shards in random order, one window of blocks at a time,
and the pairs of a window in random order, in bounded memory. Orders depend only on (seed, epoch,
window): a position is three numbers, and a run can continue from any position as if it had never
stopped. The order of labelled rows depends on the seed, the file and the epoch.

Token ids of pairs are cached on disk so that each text is tokenised only once. The cache has a file
`SHARD-KEY/START.safetensors` for each block of a shard. The key covers the shard's SHA-256 and
everything that ids depend on, so that old ids are never used with other data, another vocabulary or
other rules of text. Files are renamed into place, checked by their SHA-256 when read, and made
again if damaged: a cache can be removed or truncated at any time, and training gives the same
result with and without it.
"""

import json
import shutil
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.corpus.writer import Block, Pairs
from rejoinder.encoders.layers import Tensors
from rejoinder.errors import BusyError, InputError, ModelError, StorageError, TrainingError
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import Count, Record, file_facts, sha256_number, sha256_of
from rejoinder.models.config import read_tensors
from rejoinder.text.features import TextFeatures
from rejoinder.text.ragged import Ragged, concatenate, offsets_of
from rejoinder.training.data.examples import Indices, Labelled


class Position(Record, frozen=True):
    """Position of a stream: its next row is row `offset` of window `window` of epoch `epoch`."""

    epoch: Count = 0
    window: Count = 0
    offset: Count = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A worker's part of every batch, one of `count` nearly equal parts."""

    index: int = 0
    count: int = 1

    def of(self, size: int) -> slice:
        """Returns the part of a sequence; all parts in order make up the sequence.

        >>> [Part(index, 3).of(8) for index in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        """
        return slice(size * self.index // self.count, size * (self.index + 1) // self.count)

    def check(self, rows: int, what: str) -> None:
        """Checks that each part has at least two rows, so that a row has another to compare with.

        Raises:
            InputError: a part has fewer.
        """
        if self.count > 1 and rows < 2 * self.count:
            raise InputError(
                f"batches of {what} have {rows} rows; allowed: from {2 * self.count} rows, two for "
                "each worker."
            )

    def seed(self) -> tuple[int, ...]:
        """Returns numbers that make the random draws of parts differ; none for a single part."""
        return () if self.count == 1 else (self.index, self.count)


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Batch:
    """A part with b of B rows, as token ids: left sides, then right sides, then others.

    The sides are inputs and responses, premises and hypotheses, or two sentences of a group.
    Sentences from 2b on are additional candidates that belong to no row.
    """

    sentences: Ragged
    """The sentences of `part`."""
    left_keys: NDArray[np.int64]
    """(B,) int64, equal for equal texts of left sides, for all parts."""
    right_keys: NDArray[np.int64]
    """(B,) int64, equal for equal texts of right sides, for all parts."""
    after: Position
    """Position of the stream after this batch."""
    labels: NDArray[np.int64] | None = None
    """(B,) int64, classes of the rows of all parts, if a classifier learns from them."""
    part: Part = WHOLE


BatchSize = Callable[[], int]
"""Returns the number of rows of the next batch, which changes with the phase."""


class Stream(Protocol):
    """The extension point for data: an endless sequence of batches, from any position."""

    name: str
    rows: int
    """Number of rows in an epoch."""

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Yields batches without end from `start`."""
        ...


def drop_ids(batch: Ragged, share: float, generator: np.random.Generator) -> Ragged:
    """Returns `batch` without a random `share` of its ids; a sentence may lose all of them."""
    return batch.only(generator.random(len(batch.ids), dtype=np.float32) >= share)


Item = TypeVar("Item")


def prefetched(items: Generator[Item, None, None], ahead: int) -> Generator[Item, None, None]:
    """Yields `items`, which a thread computes up to `ahead` in advance. No item may be None.

    Closing it waits for the item in progress, if any, and closes `items`. An error of `items` is
    raised after the items before it.
    """
    thread = ThreadPoolExecutor(1, "prefetch")
    try:
        upcoming = deque(thread.submit(next, items, None) for _ in range(ahead))
        while (item := upcoming.popleft().result()) is not None:
            upcoming.append(thread.submit(next, items, None))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)
        items.close()


_FORMAT = 1
_DIGITS = 16
"""Hexadecimal digits of a key in the name of a folder."""
_ARRAYS = ("input_ids", "input_lengths", "response_ids", "response_lengths", "keys")


@dataclass(frozen=True, slots=True)
class PairTexts:
    """Pairs as token ids, and keys that are equal for equal texts."""

    inputs: Ragged
    responses: Ragged
    input_keys: NDArray[np.int64]
    response_keys: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.inputs)


class IdCache:
    """The ids of the blocks of `pairs`, stored in a folder of at most `most_bytes`.

    Once the limit is reached or the disk is full, further blocks are not stored.
    """

    def __init__(
        self, folder: Path, pairs: Pairs, text: str, most_bytes: float, workers: int = 1
    ) -> None:
        """Opens the cache; removes folders of other shards or another `text` (see `text_key`).

        All `workers` share the space, and each stores different blocks.
        """
        self._folders: Mapping[Path, Path] = {
            pairs.folder / shard.file: folder
            / f"{Path(shard.file).stem}-{sha256_of(f'{shard.sha256} {text}'.encode())[:_DIGITS]}"
            for shard in pairs.manifest.shards
        }
        if folder.is_dir():
            for old in set(folder.iterdir()) - set(self._folders.values()):
                shutil.rmtree(old, ignore_errors=True)
        stored = sum(path.stat().st_size for path in folder.glob("*/*.safetensors"))
        self._left = (most_bytes - stored) / workers

    def read(self, block: Block) -> PairTexts | None:
        """Returns the ids of a block; None if they are not stored, or damaged."""
        try:
            tensors = read_tensors(self._path(block), mapped=True)
        except ModelError:
            return None
        if tensors.keys() != {*_ARRAYS, "sha256"} or tensors["sha256"].tobytes() != _hash(tensors):
            return None
        if len(tensors["input_lengths"]) != block.rows:  # blocks of another size
            return None
        inputs, responses = (
            Ragged(tensors[f"{side}_ids"], offsets_of(tensors[f"{side}_lengths"]))
            for side in ("input", "response")
        )
        return PairTexts(inputs, responses, *tensors["keys"])

    def write(self, block: Block, texts: PairTexts) -> None:
        """Stores the ids of a block, if there is space."""
        tensors: Tensors = {
            "input_ids": texts.inputs.ids,
            "input_lengths": texts.inputs.lengths.astype(np.int32),
            "response_ids": texts.responses.ids,
            "response_lengths": texts.responses.lengths.astype(np.int32),
            "keys": np.stack([texts.input_keys, texts.response_keys]),
        }
        content = save({**tensors, "sha256": np.frombuffer(_hash(tensors), np.uint8)})
        if len(content) > self._left:
            self._left = 0
            return
        try:
            write_bytes(self._path(block), content)
        except (StorageError, BusyError):  # go on; the run fails later if it must use the disk
            self._left = 0
        self._left -= len(content)

    def _path(self, block: Block) -> Path:
        return self._folders[block.shard] / f"{block.start}.safetensors"


def text_key(vocabulary: Path, config: Mapping[str, object]) -> str:
    """Returns a hash of everything that ids depend on, except the text.

    Args:
        vocabulary: the folder that `TextFeatures.save` wrote.
        config: the result of `TextFeatures.config`.
    """
    files = file_facts(vocabulary, sorted(path.name for path in vocabulary.iterdir()))
    # keys of texts are Polars' hashes, which differ between versions
    facts = {"format": _FORMAT, "files": files, "text": dict(config), "polars": pl.__version__}
    return sha256_of(json.dumps(facts, sort_keys=True).encode())


def _hash(tensors: Mapping[str, NDArray[np.generic]]) -> bytes:
    shapes = json.dumps([tensors[name].shape for name in _ARRAYS]).encode()
    return bytes.fromhex(sha256_of(shapes, *(tensors[name].tobytes() for name in _ARRAYS)))


Excluded = Mapping[int, NDArray[np.int64]]
"""Indices of the rows to leave out, by the number of the block in `Pairs.blocks("train")`."""


_NONE = np.empty(0, np.int64)
WINDOW_PAIRS = 524_288
"""Number of pairs to shuffle together; bounds the memory used for data."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The pairs that are shuffled together."""

    texts: PairTexts
    kept: NDArray[np.bool_]
    """(pairs,) bool, false for pairs that are left out."""


class PairStream:
    """Batches of the train split of `pairs`, as ids of `features`, from any position."""

    def __init__(
        self,
        pairs: Pairs,
        features: TextFeatures,
        *,
        seed: int,
        window_pairs: int = WINDOW_PAIRS,
        excluded: Excluded | None = None,
        word_dropout: float = 0.0,
        cache: IdCache | None = None,
        part: Part = WHOLE,
    ) -> None:
        """Prepares the stream; no pairs are read yet.

        With a `cache`, texts are tokenised only once, not in every epoch. The stream yields the
        sentences of `part` of each batch.

        Raises:
            TrainingError: the pairs have no train split.
        """
        self.pairs, self.features, self.seed = pairs, features, seed
        self.excluded = excluded or {}
        self.word_dropout = word_dropout
        self._cache, self._part = cache, part
        self.name = "responses"
        self.blocks = pairs.blocks("train")
        if not self.blocks:
            raise TrainingError(f"{pairs.folder} has no pairs in the train split.")
        left_out = sum(map(len, self.excluded.values()))
        self.rows = sum(block.rows for block in self.blocks) - left_out
        self.windows = max(1, min(len(self.blocks), -(-self.rows // window_pairs)))

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Yields batches without end from `start`.

        A remainder of a window that is too small for a batch is skipped. A thread reads the next
        window while the current one is used.

        Raises:
            TrainingError: no window of an epoch holds a full batch, or `start` is in no window.
        """
        if start.window >= self.windows:
            raise TrainingError(
                f"the checkpoint is in window {start.window} of {self.pairs.folder}, which has "
                f"{self.windows}. Begin the run again."
            )
        without_batch = 0  # windows since the last batch
        with closing(prefetched(self._windows(start), ahead=1)) as windows:
            for position, window in windows:
                generator = self._generator(position.epoch, position.window, 0)
                order = generator.permutation(np.flatnonzero(window.kept))
                without_batch += 1
                offset = position.offset
                while (count := size()) <= len(order) - offset:
                    chosen = order[offset : offset + count]
                    yield self._batch(window.texts, chosen, replace(position, offset=offset))
                    without_batch, offset = 0, offset + count
                if without_batch > self.windows:
                    raise TrainingError(
                        f"a batch of {count} rows is larger than a window of {self.pairs.folder} "
                        f"({len(order)} rows); lower batch_size."
                    )

    def _batch(self, window: PairTexts, chosen: NDArray[np.int64], position: Position) -> Batch:
        numbers = (position.epoch, position.window, 1 + position.offset)
        generator = self._generator(*numbers, *self._part.seed())
        own = chosen[self._part.of(len(chosen))]
        sentences = concatenate(window.inputs.take(own), window.responses.take(own))
        if self.word_dropout:
            sentences = drop_ids(sentences, self.word_dropout, generator)
        after = replace(position, offset=position.offset + len(chosen))
        keys = window.input_keys[chosen], window.response_keys[chosen]
        return Batch(sentences, *keys, after, part=self._part)

    def _windows(self, position: Position) -> Generator[tuple[Position, _Window], None, None]:
        """Reads windows without end; the first window starts at `position`."""
        while True:
            yield position, self._read(position.epoch, position.window)
            epochs, window = divmod(position.window + 1, self.windows)
            position = Position(position.epoch + epochs, window)

    def _generator(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *numbers])

    def _read(self, epoch: int, window: int) -> _Window:
        """Reads the pairs of a window, in the order of their blocks."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.blocks))
        numbers = np.array_split(order, self.windows)[window].tolist()
        # workers first store their own parts, then find the parts of the others
        own = set(range(len(numbers))[self._part.of(len(numbers))])
        first = sorted(range(len(numbers)), key=lambda at: at not in own)
        found = {at: self._texts(self.blocks[numbers[at]], store=at in own) for at in first}
        texts = _joined([found[at] for at in range(len(numbers))])
        kept = np.ones(len(texts), bool)
        start = 0
        for number in numbers:
            kept[start + self.excluded.get(number, _NONE)] = False
            start += self.blocks[number].rows
        return _Window(texts, kept)

    def _texts(self, block: Block, *, store: bool) -> PairTexts:
        """Returns the ids of all pairs of a block."""
        if self._cache is not None and (stored := self._cache.read(block)) is not None:
            return stored
        frame = self.pairs.read(block, ["input", "response"])
        inputs, responses = frame.get_column("input"), frame.get_column("response")
        texts = PairTexts(
            self.features(inputs), self.features(responses), text_keys(inputs), text_keys(responses)
        )
        if self._cache is not None and store:
            self._cache.write(block, texts)
        return texts


def _joined(parts: Sequence[PairTexts]) -> PairTexts:
    """Returns the pairs of all parts together."""
    return PairTexts(
        concatenate(*(part.inputs for part in parts)),
        concatenate(*(part.responses for part in parts)),
        np.concatenate([part.input_keys for part in parts]),
        np.concatenate([part.response_keys for part in parts]),
    )


def read_without(pairs: Pairs, block: Block, left_out: NDArray[np.int64] | None) -> pl.DataFrame:
    """Returns the inputs and responses of a block without the rows `left_out`, indices or None."""
    frame = pairs.read(block, ["input", "response"])
    if left_out is None:
        return frame
    return frame[np.setdiff1d(np.arange(len(frame)), left_out)]


def text_keys(texts: pl.Series) -> NDArray[np.int64]:
    """Returns (N,) int64 keys that are equal for equal texts."""
    return texts.hash(seed=0).to_numpy().view(np.int64)


class LabelledStream:
    """The examples of a file as endless batches, from any position."""

    def __init__(
        self,
        labelled: Labelled,
        features: TextFeatures,
        *,
        seed: int,
        word_dropout: float = 0.0,
        part: Part = WHOLE,
    ) -> None:
        """Tokenises the texts. Batches hold the sentences of `part`."""
        self.name = labelled.name
        self.rows = len(labelled.examples)
        self._examples = labelled.examples
        texts = pl.Series(labelled.content.texts, dtype=pl.String)
        self._sentences, self._keys = features(texts), text_keys(texts)
        self._seed = (seed, sha256_number(labelled.name.encode(), 4))
        self._word_dropout, self._part = word_dropout, part

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Yields batches without end from `start`.

        A file smaller than a batch yields all its rows each time. Rows that do not fill a batch at
        the end of an epoch are left out.
        """
        position = start
        while True:
            order = self._generator(position.epoch, 0).permutation(self.rows)
            while (count := min(size(), self.rows)) <= self.rows - position.offset:
                chosen = order[position.offset : position.offset + count]
                after = Position(position.epoch, 0, position.offset + count)
                generator = self._generator(position.epoch, 1 + position.offset)
                yield self._batch(chosen, generator, after)
                position = after
            position = Position(position.epoch + 1)

    def _batch(self, chosen: Indices, generator: np.random.Generator, after: Position) -> Batch:
        picked = self._examples.pick(chosen, generator)  # the same in all parts
        sides = picked.left, picked.right, picked.more
        own = [side[self._part.of(len(side))] for side in sides]
        sentences = self._sentences.take(np.concatenate(own))
        if self._word_dropout:
            if self._part.count > 1:
                generator = self._generator(after.epoch, 1 + after.offset, *self._part.seed())
            sentences = drop_ids(sentences, self._word_dropout, generator)
        keys = self._keys[picked.left], self._keys[picked.right]
        return Batch(sentences, *keys, after, picked.labels, self._part)

    def _generator(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([*self._seed, *numbers])
