"""Fits a `Linker` on channels whose links are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.errors import InputError, require
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import write_bytes
from rejoinder.links.features import NAMES, PAIR_NAMES, WINDOW, PieceFeatures, read_piece
from rejoinder.links.linker import SETTINGS, before_first

if TYPE_CHECKING:
    from torch import Tensor

_AROUND = 300, 64
"""Messages before the first known link and after the last one that are read with them."""
_ROWS = 64
_BATCH = 128


class LinkedChannel(Protocol):
    """Messages of a channel, and what some of them answer."""

    @property
    def authors(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def times(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def texts(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def labels(self) -> Mapping[int, Sequence[int]]:
        """What some messages answer, by index; themselves where they begin a conversation."""


@dataclass(frozen=True)
class Recipe:
    """How to fit."""

    width: int = 128
    second: int = 32
    epochs: int = 4
    rate: float = 0.002
    dropout: float = 0.2
    without_names: float = 0.4
    """Share of messages whose names are hidden, so that one network serves chats without."""
    seed: int = 0


@dataclass(frozen=True)
class _Rows:
    """The numbers of messages whose links are known."""

    pairs: NDArray[np.float16]
    """(L, 60, P)."""
    messages: NDArray[np.float32]
    """(60 + N, M), the first of which are zeros."""
    places: NDArray[np.int64]
    """(L,) where each stands among them."""
    answers: NDArray[np.bool_]
    """(L, 61) what it answers, the last for none."""
    valid: NDArray[np.bool_]
    """(L, 60) which candidates there are."""


def fit(
    channels: Iterable[LinkedChannel],
    encoder: SentenceEncoder,
    path: Path,
    *,
    learned_from: str,
    held_out: Iterable[LinkedChannel],
    recipe: Recipe | None = None,
) -> dict[str, Any]:
    """Fits a network on channels, writes its file, and returns its settings.

    `held_out` are other channels, on which its confidence is calibrated. `learned_from` names the
    data and its licence.

    Raises:
        InputError: no message of the channels has a link that can be learned.
        MissingExtraError: torch is not installed.
    """
    require("train", "torch")
    import torch

    recipe = recipe or Recipe()
    rows, others = _read(channels, encoder), _read(held_out, encoder)
    if not rows.answers.any():
        raise InputError("no message answers one of the 60 before it: there is nothing to learn.")
    torch.manual_seed(recipe.seed)
    numbers, count = rows.pairs.shape[2], rows.messages.shape[1]
    net = _network(numbers, count, recipe)
    usable = torch.from_numpy(np.flatnonzero(rows.answers.any(axis=1)))
    steps = recipe.epochs * -(-len(usable) // _BATCH)
    optimizer = torch.optim.AdamW(list(net.values()), recipe.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.rate, steps, pct_start=0.1)
    for _ in range(recipe.epochs):
        for some in torch.split(usable[torch.randperm(len(usable))], _BATCH):
            hidden = torch.rand(len(some)) < recipe.without_names
            loss = _loss(_scores(net, rows, some, hidden, recipe.dropout), rows, some)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    every = torch.arange(len(others.places))
    with torch.no_grad():
        both = [
            torch.cat([
                _scores(net, others, some, torch.full(some.shape, without))
                for some in torch.split(every, _BATCH)
            ])
            for without in (False, True)
        ]  # fmt: skip
        sharpness = min(
            np.linspace(0.5, 1.5, 41).tolist(),
            key=lambda by: float(sum(_loss(scores * by, others, every) for scores in both)),
        )
    settings = {
        "format": "1",
        "encoder": encoder.describe()["name"],
        "learned_from": learned_from,
        "messages": len(usable),
        "seed": recipe.seed,
    }
    tensors = {name: value.detach().numpy().astype(np.float16) for name, value in net.items()}
    tensors["sharpness"] = np.array([sharpness], np.float16)
    write_bytes(path, save(tensors, {SETTINGS: dumps(settings)}))
    return settings


def _read(channels: Iterable[LinkedChannel], encoder: SentenceEncoder) -> _Rows:
    pairs, messages, places, answers, valid = [], [], [], [], []
    count = WINDOW
    for channel in channels:
        labels = channel.labels
        if not labels:
            continue
        low = max(min(labels) - _AROUND[0], 0)
        high = min(max(labels) + 1 + _AROUND[1], len(channel.texts))
        times = np.array(channel.times[low:high], np.float64)
        piece = read_piece(channel.authors[low:high], times, channel.texts[low:high])
        rows = encoder.encode(piece.texts)
        features = PieceFeatures(piece, rows, encoder.as_responses(rows))
        known = np.array(sorted(labels), np.int64) - low
        for start in range(0, high - low, _ROWS):
            end = min(start + _ROWS, high - low)
            some = known[(known >= start) & (known < end)] - start
            if len(some):
                made = features.pairs(start, end)[:, some].transpose(1, 2, 0)
                pairs.append(made.astype(np.float16))
                valid.append(~before_first(start, end)[some])
        for row in known.tolist():
            answers.append(np.zeros(WINDOW + 1, np.bool_))
            for one in labels[row + low]:
                column = WINDOW if one == row + low else one - low - row + WINDOW
                if column >= 0:
                    answers[-1][column] = True
        messages.append(features.messages.T)
        places.append(known + count)
        count += high - low
    if not pairs:
        raise InputError("no channel has a message whose link is known.")
    messages.insert(0, np.zeros((WINDOW, messages[0].shape[1]), np.float32))
    return _Rows(
        np.concatenate(pairs), np.concatenate(messages), np.concatenate(places),
        np.array(answers), np.concatenate(valid),
    )  # fmt: skip


def _network(numbers: int, count: int, recipe: Recipe) -> "dict[str, Tensor]":
    """Returns the tensors that `linker.Network` reads, which say how it is built."""
    import torch

    width, second = recipe.width, recipe.second
    into = {
        "pair.1": (width, numbers), "message.1": (width, count), "candidate.1": (width, count),
        "pair.2": (second, width), "pair.3": (1, second),
        "none.1": (width, count + 2 * numbers), "none.2": (second, width), "none.3": (1, second),
    }  # fmt: skip
    biases = {"bias.1": width, "bias.2": second, "none.bias.1": width, "none.bias.2": second,
              "none.bias.3": 1}  # fmt: skip
    net = {name: (torch.rand(shape) * 2 - 1) / shape[1] ** 0.5 for name, shape in into.items()}
    net |= {name: torch.zeros(size) for name, size in biases.items()}
    for value in net.values():
        value.requires_grad_()
    return net


def _scores(
    net: "dict[str, Tensor]", rows: _Rows, some: "Tensor", hidden: "Tensor", dropout: float = 0.0
) -> "Tensor":
    """Returns (B, 61) scores of rows, without the names of those that are `hidden` (B,) bool."""
    import torch
    from torch.nn.functional import dropout as dropped

    places = torch.from_numpy(rows.places)[some]
    around = places[:, None] - WINDOW + torch.arange(WINDOW)
    all_messages = torch.from_numpy(rows.messages)
    pairs = torch.from_numpy(rows.pairs)[some].float()
    own, theirs = all_messages[places], all_messages[around]
    pairs[hidden, :, :PAIR_NAMES] = 0
    own[hidden, -NAMES:] = 0
    theirs[hidden, :, -NAMES:] = 0
    first = pairs @ net["pair.1"].T + (own @ net["message.1"].T + net["bias.1"])[:, None]
    first = dropped((first + theirs @ net["candidate.1"].T).relu(), dropout)
    scores = ((first @ net["pair.2"].T + net["bias.2"]).relu() @ net["pair.3"].T)[..., 0]
    scores = scores.masked_fill(~torch.from_numpy(rows.valid)[some], -torch.inf)
    seen = torch.cat([own, pairs.amax(dim=1), pairs.mean(dim=1)], dim=1)
    first = dropped((seen @ net["none.1"].T + net["none.bias.1"]).relu(), dropout)
    again = (first @ net["none.2"].T + net["none.bias.2"]).relu()
    return torch.cat([scores, again @ net["none.3"].T + net["none.bias.3"]], dim=1)


def _loss(scores: "Tensor", rows: _Rows, some: "Tensor") -> "Tensor":
    """Returns the mean of -log of the probability of what is right; several answers are one."""
    import torch

    right = torch.from_numpy(rows.answers)[some]
    known = right.any(dim=1)
    scores, right = scores[known], right[known]
    chosen = scores.masked_fill(~right, -torch.inf).logsumexp(dim=1)
    return (scores.logsumexp(dim=1) - chosen).mean()
