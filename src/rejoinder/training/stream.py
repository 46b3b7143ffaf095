"""Pairs as an endless stream of batches, in a new order each epoch, in bounded memory.

An epoch visits the blocks of the shards in random order, a window of blocks at a time, and the
pairs of a window in random order. Orders follow from (seed, epoch, window) alone, so that a
position is three numbers and a run can go on from any of them as if it had never stopped.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.shards import Block, Pairs
from rejoinder.errors import TrainingError
from rejoinder.text.features import TextFeatures
from rejoinder.text.ragged import Ragged, concatenate
from rejoinder.training.batches import Batch, BatchSize, Position, drop_ids

Excluded = Mapping[int, NDArray[np.int64]]
"""Rows to leave out, by the number of the block in `Pairs.blocks("train")`."""


@dataclass(frozen=True, slots=True)
class _Window:
    inputs: Ragged
    responses: Ragged
    input_keys: NDArray[np.int64]
    response_keys: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.inputs)


class PairStream:
    """The train split of `pairs`, featurised by `features`, from any position on."""

    def __init__(
        self,
        pairs: Pairs,
        features: TextFeatures,
        *,
        window_pairs: int,
        seed: int,
        excluded: Excluded | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        """A stream; nothing is read yet.

        Raises:
            TrainingError: the pairs hold no train split.
        """
        self.pairs, self.features, self.seed = pairs, features, seed
        self.excluded = excluded or {}
        self.word_dropout = word_dropout
        self.name = "responses"
        self.blocks = pairs.blocks("train")
        if not self.blocks:
            raise TrainingError(f"{pairs.folder} holds no pairs of the train split.")
        self.rows = sum(block.rows for block in self.blocks)
        self.windows = max(1, min(len(self.blocks), -(-self.rows // window_pairs)))

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Batches without end from `start`; the rest of a window too small for one is left out.

        The window after the present one is read meanwhile, in a thread of its own.

        Raises:
            TrainingError: a whole epoch is smaller than one batch, or `start` is in no window.
        """
        if start.window >= self.windows:
            raise TrainingError(
                f"the checkpoint is in window {start.window} of {self.pairs.folder}, which has "
                f"{self.windows}; it was changed after it was written. Begin the run again."
            )
        number, unfruitful = 0, 0
        place = start
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._read, place.epoch, place.window)
            while True:
                window = coming.result()
                following = self._after_window(place)
                coming = reader.submit(self._read, following.epoch, following.window)
                order = self._generator(place.epoch, place.window, 0).permutation(len(window))
                unfruitful += 1
                while (count := size(number)) <= len(window) - place.offset:
                    chosen = order[place.offset : place.offset + count]
                    after = Position(place.epoch, place.window, place.offset + count)
                    yield self._batch(window, chosen, place, after)
                    number, unfruitful, place = number + 1, 0, after
                if unfruitful > self.windows:
                    raise TrainingError(
                        f"a batch of {count} pairs is more than a window of {self.pairs.folder} "
                        f"holds ({len(window)}); lower batch_size."
                    )
                place = following

    def _batch(
        self, window: _Window, chosen: NDArray[np.int64], place: Position, after: Position
    ) -> Batch:
        sentences = concatenate(window.inputs.take(chosen), window.responses.take(chosen))
        if self.word_dropout:
            generator = self._generator(place.epoch, place.window, 1 + place.offset)
            sentences = drop_ids(sentences, self.word_dropout, generator)
        return Batch(sentences, window.input_keys[chosen], window.response_keys[chosen], after)

    def _after_window(self, place: Position) -> Position:
        if place.window + 1 < self.windows:
            return Position(place.epoch, place.window + 1)
        return Position(place.epoch + 1)

    def _generator(self, *place: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *place])

    def _read(self, epoch: int, window: int) -> _Window:
        """The pairs of a window, in the order of their blocks."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.blocks))
        frames = [
            self._frame(int(number)) for number in np.array_split(order, self.windows)[window]
        ]
        frame = pl.concat(frames)
        inputs, responses = frame.get_column("input"), frame.get_column("response")
        return _Window(
            self.features(inputs), self.features(responses), text_keys(inputs), text_keys(responses)
        )

    def _frame(self, number: int) -> pl.DataFrame:
        block: Block = self.blocks[number]
        frame = self.pairs.read(block, ["input", "response"])
        left_out = self.excluded.get(number)
        if left_out is None:
            return frame
        keep = np.ones(len(frame), bool)
        keep[left_out] = False
        return frame.filter(pl.Series(keep))


def text_keys(texts: pl.Series) -> NDArray[np.int64]:
    """(N,) int64, equal where two texts are."""
    return texts.hash(seed=0).to_numpy().view(np.int64)
