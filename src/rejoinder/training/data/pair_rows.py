"""Pairs of messages and replies as the rows of objectives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.ragged import Ragged, concatenate

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairTexts:
    """Pairs as token ids, and keys that are equal for equal texts."""

    inputs: Ragged
    responses: Ragged
    input_keys: Indices
    response_keys: Indices

    def __len__(self) -> int:
        return len(self.inputs)


def joined(parts: Sequence[PairTexts]) -> PairTexts:
    """Returns the pairs of all parts in one."""
    inputs, responses = (
        concatenate(*(getattr(part, side) for part in parts)) for side in ("inputs", "responses")
    )
    keys = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("input_keys", "response_keys")
    )
    return PairTexts(inputs, responses, *keys)


class PairRows(Protocol):
    """How pairs become the two sides of the rows of an objective."""

    def usable(self, pairs: PairTexts) -> Indices:
        """Returns the indices of the pairs that can be rows, ascending."""
        ...

    def take(self, pairs: PairTexts, chosen: Indices, generator: np.random.Generator) -> Ragged:
        """Returns the left sides of the pairs `chosen`, followed by their right sides."""
        ...

    def keys(self, pairs: PairTexts, chosen: Indices) -> tuple[Indices, Indices]:
        """Returns keys that are equal for equal left sides, and for equal right sides."""
        ...


class MessagesAndReplies:
    """Rows of a message and its reply."""

    def usable(self, pairs: PairTexts) -> Indices:
        """Returns all indices."""
        return np.arange(len(pairs))

    def take(self, pairs: PairTexts, chosen: Indices, generator: np.random.Generator) -> Ragged:  # noqa: ARG002
        """Returns the messages, followed by their replies."""
        return concatenate(pairs.inputs.take(chosen), pairs.responses.take(chosen))

    def keys(self, pairs: PairTexts, chosen: Indices) -> tuple[Indices, Indices]:
        """Returns the keys of messages and of replies."""
        return pairs.input_keys[chosen], pairs.response_keys[chosen]


@dataclass(frozen=True)
class Crops:
    """Rows of two random spans of one reply (Izacard et al. 2022, Contriever, §3.1).

    The two are drawn independently of each other and may overlap.
    """

    min_words: int
    """Shorter replies are left out."""
    least: float
    """Smallest share of the words that a span has."""
    most: float
    """Largest share of the words that a span has."""

    def usable(self, pairs: PairTexts) -> Indices:
        """Returns the indices of long replies."""
        return np.flatnonzero(pairs.responses.lengths >= self.min_words)

    def take(self, pairs: PairTexts, chosen: Indices, generator: np.random.Generator) -> Ragged:
        """Returns two spans of each of the replies `chosen`."""
        whole = pairs.responses.take(chosen)
        return concatenate(*(self._spans(whole, generator) for _ in range(2)))

    def keys(self, pairs: PairTexts, chosen: Indices) -> tuple[Indices, Indices]:
        """Returns the keys of the replies, for both sides."""
        return pairs.response_keys[chosen], pairs.response_keys[chosen]

    def _spans(self, texts: Ragged, generator: np.random.Generator) -> Ragged:
        shares = generator.uniform(self.least, self.most, len(texts))
        lengths = np.maximum(1, (texts.lengths * shares).round().astype(np.int64))
        rest = texts.lengths - lengths
        starts = (generator.random(len(texts)) * (rest + 1)).astype(np.int64)
        return texts.spans(starts, lengths)
