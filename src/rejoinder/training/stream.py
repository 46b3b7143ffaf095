"""Pairs as an endless stream of batches, in a new order each epoch, in bounded memory.

An epoch visits the blocks of the shards in random order, one window of blocks at a time, and the
pairs of a window in random order. Orders follow from (seed, epoch, window) alone: a position is
three numbers, and a run can continue from any position as if it had never stopped.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.shards import Block, Pairs
from rejoinder.errors import TrainingError
from rejoinder.text.features import TextFeatures
from rejoinder.training.batches import Batch, BatchSize, Position, drop_ids
from rejoinder.training.pair_rows import MessagesAndReplies, PairRows, PairTexts
from rejoinder.training.prefetch import Prefetcher

Excluded = Mapping[int, NDArray[np.int64]]
"""Indices of the rows to leave out, by the number of the block in `Pairs.blocks("train")`."""


class PairStream:
    """Batches of the train split of `pairs`, as ids of `features`, from any position on."""

    def __init__(
        self,
        pairs: Pairs,
        features: TextFeatures,
        *,
        window_pairs: int,
        seed: int,
        rows: PairRows | None = None,
        excluded: Excluded | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        """Prepares the stream; no pairs are read yet. `rows` None means messages and replies.

        Raises:
            TrainingError: the pairs hold no train split.
        """
        self.pairs, self.features, self.seed = pairs, features, seed
        self._kind = rows or MessagesAndReplies()
        self.excluded = excluded or {}
        self.word_dropout = word_dropout
        self.name = "responses"
        self.blocks = pairs.blocks("train")
        if not self.blocks:
            raise TrainingError(f"{pairs.folder} holds no pairs of the train split.")
        left_out = sum(map(len, self.excluded.values()))
        self.rows = sum(block.rows for block in self.blocks) - left_out
        self.windows = max(1, min(len(self.blocks), -(-self.rows // window_pairs)))

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Yields batches without end from `start`.

        The rest of a window that is too small for a batch is skipped. The next window is read in a
        thread while the present one is used.

        Raises:
            TrainingError: no window of an epoch holds a whole batch, or `start` is in no window.
        """
        if start.window >= self.windows:
            raise TrainingError(
                f"the checkpoint is in window {start.window} of {self.pairs.folder}, which has "
                f"{self.windows}; it was changed after it was written. Begin the run again."
            )
        without_batch = 0  # windows since the last batch
        with Prefetcher(self._windows(start), ahead=1) as windows:
            for position, window in windows:
                generator = self._generator(position.epoch, position.window, 0)
                order = generator.permutation(self._kind.usable(window))
                without_batch += 1
                offset = position.offset
                while (count := size()) <= len(order) - offset:
                    chosen = order[offset : offset + count]
                    yield self._batch(window, chosen, replace(position, offset=offset))
                    without_batch, offset = 0, offset + count
                if without_batch > self.windows:
                    raise TrainingError(
                        f"a batch of {count} rows is more than a window of {self.pairs.folder} "
                        f"holds ({len(order)}); lower batch_size."
                    )

    def _batch(self, window: PairTexts, chosen: NDArray[np.int64], position: Position) -> Batch:
        generator = self._generator(position.epoch, position.window, 1 + position.offset)
        rows = self._kind.take(window, chosen, generator)
        sentences = rows.sentences
        if self.word_dropout:
            sentences = drop_ids(sentences, self.word_dropout, generator)
        after = replace(position, offset=position.offset + len(chosen))
        return Batch(sentences, rows.left_keys, rows.right_keys, after)

    def _windows(self, position: Position) -> Generator[tuple[Position, PairTexts], None, None]:
        """Reads window after window without end; the first one from `position` on."""
        while True:
            yield position, self._read(position.epoch, position.window)
            if position.window + 1 < self.windows:
                position = Position(position.epoch, position.window + 1)
            else:
                position = Position(position.epoch + 1)

    def _generator(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *numbers])

    def _read(self, epoch: int, window: int) -> PairTexts:
        """Reads the pairs of a window, in the order of their blocks."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.blocks))
        frames = [
            self._frame(int(number)) for number in np.array_split(order, self.windows)[window]
        ]
        frame = pl.concat(frames)
        inputs, responses = frame.get_column("input"), frame.get_column("response")
        return PairTexts(
            self.features(inputs), self.features(responses), text_keys(inputs), text_keys(responses)
        )

    def _frame(self, number: int) -> pl.DataFrame:
        return read_without(self.pairs, self.blocks[number], self.excluded.get(number))


def read_without(pairs: Pairs, block: Block, left_out: NDArray[np.int64] | None) -> pl.DataFrame:
    """Returns the inputs and responses of a block without the rows `left_out`, indices or None."""
    frame = pairs.read(block, ["input", "response"])
    if left_out is None:
        return frame
    keep = np.ones(len(frame), bool)
    keep[left_out] = False
    return frame.filter(pl.Series(keep))


def text_keys(texts: pl.Series) -> NDArray[np.int64]:
    """Returns (N,) int64 keys that are equal for equal texts."""
    return texts.hash(seed=0).to_numpy().view(np.int64)
