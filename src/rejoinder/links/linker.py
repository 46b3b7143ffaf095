"""`Linker` predicts which earlier message each message of a chat answers, and how likely."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.outputs import one_core_each
from rejoinder.io.files.hashed import sha256_of_file
from rejoinder.io.files.system import default_workers
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.links.beliefs import CANDIDATES, Beliefs, best_candidates
from rejoinder.links.features import PAIRS, WINDOW, Floats, Ints, PieceFeatures, read_piece
from rejoinder.models.config import read_tensors
from rejoinder.protocols import Embeddings

SETTINGS = "rejoinder.links"
"""The key of the settings in the header of a file."""
FORMAT = "1"
_PIECE, _BEFORE, _AFTER = 2_048, 256, 64
"""Messages to decide at a time, and messages around them to read with them."""
_ROWS, _TEXTS = 256, 512
"""Messages whose pairs are in memory at a time, and messages to encode together."""
_LATE = 12 * 3_600.0
"""Seconds after which a message outside threads answers nothing. A verbatim repetition of another
person's message does not answer it either."""
SURE = 0.7
"""Least confidence of links to show to people: nine of ten are right."""
NONE, KEPT = -1, -2
"""Stand for messages that answer none, and for messages that were not linked again."""


class EncodesBoth(Protocol):
    """Encodes messages as unit rows, and converts these to rows of the messages as replies."""

    def encode(self, texts: list[str], /) -> Embeddings: ...  # noqa: D102
    def as_responses(self, rows: Embeddings, /) -> Embeddings: ...  # noqa: D102


class Said(Protocol):
    """A message of a channel."""

    @property
    def author(self) -> str | None:
        """Empty or None if unknown."""

    @property
    def time(self) -> float | None:
        """Seconds since any fixed moment."""

    @property
    def text(self) -> str:
        """The text."""

    @property
    def source(self) -> str | None:
        """Its channel."""


Message = TypeVar("Message", bound=Said)


@dataclass(frozen=True)
class Links:
    """The messages that N messages answer."""

    parents: Ints
    """(N,) int64: the index of the message that each most likely answers; -1 if it begins a
    conversation."""
    confidence: Floats
    """(N,) float32: the probability of this link; 1 if the link was given."""


class Network:
    """A network that scores the candidates of a message, and that it answers none of them."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], name: str) -> None:
        """Takes the tensors whose names begin with `name`, from a file that `fit` wrote."""
        self._of = {
            key.removeprefix(name): np.asarray(value, np.float32)
            for key, value in tensors.items()
            if key.startswith(name)
        }

    def theirs(self, messages: Floats) -> Floats:
        """Returns the (N, H) terms of N messages as candidates; `messages` are (M, N) features."""
        result: Floats = messages.T @ self._of["candidate.1"].T
        return result

    def shares(
        self, pairs: Floats, own: Floats, theirs: Floats, valid: NDArray[np.bool_]
    ) -> Floats:
        """Returns (K + 1, rows) probabilities of K candidates, and last, of none.

        `pairs` are (P, K, rows), `own` (M, rows), `theirs` (K, rows, H), and `valid` (K, rows).
        """
        of, (count, most, size) = self._of, pairs.shape
        # max(x + b, 0) is max(x, -b) + b, and the b of a message is the same for all candidates
        bias = own.T @ of["message.1"].T + of["bias.1"]
        hidden = (pairs.reshape(count, -1).T @ of["pair.1"].T).reshape(most, size, -1)
        hidden += theirs
        np.maximum(hidden, -bias, out=hidden)
        bias = bias @ of["pair.2"].T + of["bias.2"]
        second = (hidden.reshape(most * size, -1) @ of["pair.2"].T).reshape(most, size, -1)
        np.maximum(second, -bias, out=second)
        scores = np.empty((most + 1, size), np.float32)
        scores[:most] = (second @ of["pair.3"].T)[..., 0] + bias @ of["pair.3"][0]
        scores[:most][~valid] = -np.inf
        mean = np.full(most, 1 / most, np.float32) @ pairs
        seen = np.concatenate([own, pairs.max(axis=1), mean])
        first = np.maximum(of["none.1"] @ seen + of["none.bias.1"][:, None], 0)
        again = np.maximum(of["none.2"] @ first + of["none.bias.2"][:, None], 0)
        scores[most] = of["none.3"] @ again + of["none.bias.3"]
        scores *= of["sharpness"]
        np.exp(scores - scores.max(axis=0), out=scores)
        scores /= scores.sum(axis=0)
        return scores


class Linker:
    """Predicts which earlier message of its channel each message answers.

    It compares a message with the 60 before it by time, turns, names, words and meaning. Later
    messages count too, so the last 64 messages are decided only when the channel ends.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        encoder: EncodesBoth | None = None,
        names: bool = True,
    ) -> None:
        """Reads a file that `fit` wrote, by default the one in the package.

        Args:
            path: The file.
            encoder: Encodes the messages. By default the shipped model that the file names.
            names: Whether to use names in texts; otherwise they are removed.

        Raises:
            ModelError: the file can't be read.
        """
        chosen = shipped_links() if path is None else Path(path)
        self.settings, self.sha256 = read_settings(chosen), sha256_of_file(chosen)
        tensors = read_tensors(chosen, remedy="fit it again.")
        self._first, self._second = Network(tensors, "first."), Network(tensors, "second.")
        self._given, self._names = encoder, names

    @cached_property
    def encoder(self) -> EncodesBoth:
        """The encoder of the messages."""
        return self._given or SentenceEncoder.load(self.settings["encoder"])

    def link(
        self,
        texts: Sequence[str],
        authors: Sequence[str | None] | None = None,
        times: Sequence[float | None] | None = None,
        *,
        sources: Sequence[str | None] | None = None,
        same: Mapping[str | None, int] = {},
    ) -> Links:
        """Returns which messages N messages answer. Each channel must be in order of time.

        Args:
            texts: The texts of the messages.
            authors: Their authors; None or an empty name if unknown.
            times: Their times, in seconds.
            sources: Their channels; None means that all are from the same channel.
            same: How many first messages of a channel are the same as in an earlier call. Their
                parents are `KEPT` if the messages after them are the same, too.

        Raises:
            InputError: the arguments have different lengths.
        """
        count = len(texts)
        given = {"authors": authors, "times": times, "sources": sources}
        for name, values in given.items():
            if values is not None and len(values) != count:
                raise InputError(f"{name} has {len(values)} rows, and texts {count}.")
        none = [None] * count
        rows = map(_Row, range(count), texts, authors or none, times or none, sources or none)
        sizes = Counter(sources or none)
        changed = (one for one in rows if same.get(one.source, 0) <= sizes[one.source])
        found, sure = np.full(count, KEPT, np.int64), np.ones(count, np.float32)
        for one, parent, confidence in self.stream(changed, same=same):
            found[one.row] = NONE if parent is None else parent.row
            sure[one.row] = confidence
        return Links(found, sure)

    def stream(
        self, messages: Iterable[Message], *, same: Mapping[str | None, int] = {}
    ) -> Iterator[tuple[Message, Message | None, float]]:
        """Yields each message, the message that it most likely answers or None, and how likely.

        The messages of a channel must be in order of time; memory holds about 2,400 per channel.
        Messages of `same` (see `link`) that are already decided are left out.
        """
        with ThreadPoolExecutor(default_workers()) as pool:
            running = deque[Future[list[tuple[Message, Message | None, float]]]]()
            for said, start, end in _pieces(messages, same):
                running.append(pool.submit(self._answers, said, start, end))
                if len(running) > default_workers():
                    yield from running.popleft().result()
            for answers in running:
                yield from answers.result()

    def _answers(
        self, said: list[Message], start: int, end: int
    ) -> list[tuple[Message, Message | None, float]]:
        near, sure = self._decided(
            [one.text for one in said], [one.author or "" for one in said],
            np.array([one.time for one in said], np.float64), start, end,
        )  # fmt: skip
        parents = [None if parent < 0 else said[parent] for parent in near.tolist()]
        return list(zip(said[start:end], parents, sure.tolist(), strict=True))

    def _decided(
        self, texts: list[str], authors: list[str], times: NDArray[np.float64],
        start: int, end: int,
    ) -> tuple[Ints, Floats]:  # fmt: skip
        """Returns the parents of messages `start` to `end`, -1 for none, and their confidence."""
        piece = read_piece(authors, times, texts, names=self._names)
        with one_core_each():
            features = PieceFeatures(piece, *self._encoded(piece.texts))
            shares, columns, pairs = self._first_look(features, len(texts))
            parents, sure = self._second_look(features, Beliefs(piece.authors, shares), columns,
                                              pairs, start, end)  # fmt: skip
        said = [text.casefold() for text in texts]
        again = [
            parent >= 0 and said[parent] == said[row] and authors[parent] != authors[row]
            for row, parent in enumerate(parents.tolist(), start)
        ]
        late = (parents >= 0) & (times[start:end] - times[parents] > _LATE)
        none = late | np.array(again, np.bool_)
        return np.where(none, NONE, parents), np.where(none, 1 - sure, sure)

    def _encoded(self, texts: list[str]) -> tuple[Embeddings, Embeddings]:
        """Returns (N, D) rows of messages and of replies, in batches that fit the CPU cache."""
        parts = [texts[start : start + _TEXTS] for start in range(0, len(texts), _TEXTS)]
        rows = [self.encoder.encode(part) for part in parts]
        replies = [self.encoder.as_responses(part) for part in rows]
        return np.concatenate(rows), np.concatenate(replies)

    def _first_look(self, features: PieceFeatures, count: int) -> tuple[Floats, Ints, Floats]:
        """Returns (N, 61) probabilities, (N, 16) best candidates and their (P, 16, N) features."""
        shares = np.empty((count, WINDOW + 1), np.float32)
        columns = np.empty((count, CANDIDATES), np.int64)
        kept = np.empty((PAIRS, CANDIDATES, count), np.float32)
        theirs = self._first.theirs(np.pad(features.messages, ((0, 0), (WINDOW, 0))))
        theirs = sliding_window_view(theirs, count, axis=0)[:WINDOW].swapaxes(1, 2)
        for start in range(0, count, _ROWS):
            own = slice(start, min(start + _ROWS, count))
            pairs = features.pairs(own.start, own.stop)
            shares[own] = self._first.shares(
                pairs, features.messages[:, own], theirs[:, own], features.valid[:, own]
            ).T
            columns[own] = best_candidates(shares[own])
            places = columns[own].T * pairs.shape[2] + np.arange(pairs.shape[2])
            kept[..., own] = np.take(pairs.reshape(PAIRS, -1), places, axis=1)
        return shares, columns, kept

    def _second_look(
        self, features: PieceFeatures, beliefs: Beliefs, columns: Ints, pairs: Floats,
        start: int, end: int,
    ) -> tuple[Ints, Floats]:  # fmt: skip
        messages = np.concatenate([features.messages, beliefs.messages])
        theirs = self._second.theirs(messages)
        parents, sure = np.empty(end - start, np.int64), np.empty(end - start, np.float32)
        for first in range(start, end, _ROWS):
            last = min(first + _ROWS, end)
            places = np.arange(first, last) - WINDOW + columns[first:last].T
            shares = self._second.shares(
                np.concatenate([pairs[..., first:last], beliefs.pairs(first, columns[first:last])]),
                messages[:, first:last],
                np.take(theirs, np.maximum(places, 0), axis=0),
                places >= 0,
            )
            best = shares.argmax(axis=0)
            found = np.append(places, np.full((1, last - first), NONE), axis=0)
            parents[first - start : last - start] = found[best, np.arange(last - first)]
            sure[first - start : last - start] = shares.max(axis=0)
        return parents, sure


class _Row(NamedTuple):
    """A message by its index."""

    row: int
    text: str
    author: str | None
    time: float | None
    source: str | None


def _pieces(
    messages: Iterable[Message], same: Mapping[str | None, int]
) -> Iterator[tuple[list[Message], int, int]]:
    """Yields pieces of a channel, with the messages to decide, as soon as they are complete.

    The first piece of a channel is the first that may differ from the `same` messages.
    """
    waiting: dict[str | None, tuple[list[Message], int]] = {}
    for one in messages:
        first = max(same.get(one.source, 0) - _AFTER, 0) // _PIECE * _PIECE
        said, decided = waiting.get(one.source, ([], first))
        said.append(one)
        if len(said) == decided + _PIECE + _AFTER:
            yield _piece(said, decided)
            cut = max(decided + _PIECE - _BEFORE, 0)
            said, decided = said[cut:], decided + _PIECE - cut
        waiting[one.source] = said, decided
    for said, decided in waiting.values():
        for start in range(decided, len(said), _PIECE):
            yield _piece(said, start)


def _piece(said: list[Message], start: int) -> tuple[list[Message], int, int]:
    low, end = max(start - _BEFORE, 0), min(start + _PIECE, len(said))
    return said[low : end + _AFTER], start - low, end - low


def shipped_links() -> Path:
    """Returns the file in the package."""
    return Path(str(files("rejoinder").joinpath("data", "links", "ubuntu-irc.safetensors")))


def read_settings(path: Path) -> dict[str, Any]:
    """Returns the settings in the header of a file: its encoder and its training data.

    Raises:
        ModelError: the file can't be read, or has another format.
    """
    from safetensors import safe_open

    try:
        with safe_open(path, "numpy") as file:
            settings: dict[str, Any] = loads((file.metadata() or {})[SETTINGS])
    except (*UNREADABLE, KeyError, JSONDecodeError) as error:
        raise ModelError(f"{path} is not a linker ({error}). Fit it again.") from None
    if settings.get("format") != FORMAT:
        raise ModelError(f"{path} was written by another version of this package. Fit it again.")
    return settings
