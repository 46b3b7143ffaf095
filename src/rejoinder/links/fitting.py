"""Fits a `Linker` on channels whose links are known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.errors import InputError, require
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import write_bytes
from rejoinder.links.beliefs import BELIEFS, Beliefs, best_candidates
from rejoinder.links.features import NAMES, PAIR_NAMES, WINDOW, Ints, PieceFeatures, read_piece
from rejoinder.links.linker import FORMAT, SETTINGS
from rejoinder.links.threads import AROUND, Channel
from rejoinder.models.config import read_tensors

if TYPE_CHECKING:
    from torch import Tensor

_ROWS = 64
_BATCH = 128


@dataclass(frozen=True)
class Recipe:
    """How to fit both networks."""

    widths: tuple[int, int] = (48, 96)
    """Of the networks for the first and the second look."""
    second: int = 32
    """Units of the second layer."""
    epochs: tuple[int, int] = (3, 4)
    rate: float = 0.002
    dropout: float = 0.2
    without_names: float = 0.4
    """Share of messages with hidden names, so that the network also works for chats without."""
    seed: int = 0


@dataclass(frozen=True)
class _Look:
    """The inputs of a network for N messages with K candidates each, with names or without."""

    pairs: "Tensor"
    """(N, K, P)."""
    messages: "Tensor"
    """(60 + N, M); the first 60 rows are zeros."""
    columns: "Tensor"
    """(N, K) which of the 60 messages before are candidates."""


@dataclass(frozen=True)
class _Rows:
    """Messages of all channels, one channel after another."""

    looks: tuple[_Look, _Look]
    """With names and without."""
    answers: "Tensor"
    """(N, 61) bool: the messages that each answers; the last column means none."""
    valid: "Tensor"
    """(N, 60) bool: which candidates exist."""
    known: "Tensor"
    """(L,) the rows whose answers are known."""
    authors: dict[int, Ints]
    """Of each channel, by its number."""


def fit(
    channels: Iterable[Channel],
    encoder: SentenceEncoder,
    path: Path,
    *,
    learned_from: str,
    held_out: Iterable[Channel],
    groups: Sequence[int] | None = None,
    runs_with: str | None = None,
    begin_with: Path | None = None,
    recipe: Recipe | None = None,
) -> dict[str, Any]:
    """Fits the networks on channels, writes their file, and returns its settings.

    The second look learns from first looks by networks that saw neither the channel nor others of
    its group: `groups` has a number per channel, equal for channels that share messages. The
    confidence is calibrated on the channels `held_out`. `learned_from` names the data and its
    licence. `runs_with` names the encoder that a `Linker` loads, by default `encoder`; don't fit
    with an encoder trained on the channels' replies, or the networks trust it too much. Training
    starts from the networks in the file `begin_with`, with their widths; by default from random.

    Raises:
        InputError: no message of the channels has a link that can be learned.
        MissingExtraError: torch is not installed.
    """
    require("train", "torch")
    import torch

    recipe = recipe or Recipe()
    begun = {} if begin_with is None else read_tensors(begin_with, remedy="fit it again.")
    rows, others = _read(channels, encoder), _read(held_out, encoder)
    halves = torch.cat([
        torch.full((len(authors),), (groups[number] if groups else number) % 2)
        for number, authors in rows.authors.items()
    ])  # fmt: skip
    first = _fitted(rows, rows.known, recipe, 0, begun)
    folds = [
        _fitted(rows, rows.known[halves[rows.known] == half], recipe, 0, begun) for half in (0, 1)
    ]
    crossed = []
    for hide in (False, True):
        one, other = (_shares(net, rows, hide) for net in folds)
        crossed.append(torch.where(halves[:, None] == 1, one, other))
    again = _second_look(rows, crossed)
    held = _second_look(others, [_shares(first, others, hide) for hide in (False, True)])
    second = _fitted(again, again.known, recipe, 1, begun)
    settings = {
        "format": FORMAT,
        "encoder": runs_with or encoder.describe()["name"],
        "learned_from": learned_from,
        "messages": len(rows.known),
        "seed": recipe.seed,
    }
    tensors: dict[str, NDArray[Any]] = {}
    for name, net, sharpness in (
        ("first", first, 1.0),
        ("second", second, _sharpness(second, held)),
    ):
        tensors |= {f"{name}.{key}": value.detach().numpy() for key, value in net.items()}
        tensors[f"{name}.sharpness"] = np.array([sharpness])
    halved = {name: value.astype(np.float16) for name, value in sorted(tensors.items())}
    write_bytes(path, save(halved, {SETTINGS: dumps(settings)}))
    return settings


def _read(channels: Iterable[Channel], encoder: SentenceEncoder) -> _Rows:
    import torch

    pairs, messages, answers, valid, known, who = [], [], [], [], [], dict[int, Ints]()
    count = 0
    for number, channel in enumerate(channels):
        labels = channel.labels
        if not labels:
            continue
        low = max(min(labels) - AROUND[0], 0)
        high = min(max(labels) + 1 + AROUND[1], len(channel.texts))
        times = np.array(channel.times[low:high], np.float64)
        piece = read_piece(channel.authors[low:high], times, channel.texts[low:high])
        rows = encoder.encode(piece.texts)
        features = PieceFeatures(piece, rows, encoder.as_responses(rows))
        size = high - low
        for start in range(0, size, _ROWS):
            made = features.pairs(start, min(start + _ROWS, size))
            pairs.append(made.transpose(2, 1, 0).astype(np.float16))
        answered = np.zeros((size, WINDOW + 1), np.bool_)
        for row, those in labels.items():
            for one in those:
                column = WINDOW if one == row else one - row + WINDOW
                if column >= 0:
                    answered[row - low, column] = True
        messages.append(features.messages.T)
        answers.append(answered)
        valid.append(features.valid.T)
        known.append(np.array(sorted(labels), np.int64) - low + count)
        who[number] = piece.authors
        count += size
    if not known:
        raise InputError("no channel has a message whose link is known.")
    messages.insert(0, np.zeros((WINDOW, messages[0].shape[1]), np.float32))
    compared, numbers = (torch.from_numpy(np.concatenate(one)) for one in (pairs, messages))
    nameless = numbers.clone()
    nameless[:, -NAMES:] = 0
    columns = torch.arange(WINDOW).expand(count, -1)
    looks = _Look(compared, numbers, columns), _Look(compared, nameless, columns)
    right, there, places = (
        torch.from_numpy(np.concatenate(one)) for one in (answers, valid, known)
    )
    return _Rows(looks, right, there, places, who)


def _second_look(rows: _Rows, shares: "list[Tensor]") -> _Rows:
    """Returns the second network's inputs, from (N, 61) probabilities with and without names."""
    import torch

    looks = []
    for look, each in zip(rows.looks, shares, strict=True):
        columns = torch.from_numpy(best_candidates(each.numpy()))
        start, pairs, messages = 0, [], [torch.zeros(WINDOW, BELIEFS)]
        for authors in rows.authors.values():
            end = start + len(authors)
            beliefs = Beliefs(authors, each[start:end].numpy())
            made = beliefs.pairs(0, columns[start:end].numpy())
            pairs.append(torch.from_numpy(made.transpose(2, 1, 0).astype(np.float16)))
            messages.append(torch.from_numpy(beliefs.messages.T))
            start = end
        chosen = look.pairs.gather(1, columns[..., None].expand(-1, -1, look.pairs.shape[2]))
        looks.append(_Look(
            torch.cat([chosen, torch.cat(pairs)], dim=2),
            torch.cat([look.messages, torch.cat(messages)], dim=1), columns,
        ))  # fmt: skip
    return replace(rows, looks=(looks[0], looks[1]))


def _fitted(
    rows: _Rows, known: "Tensor", recipe: Recipe, look: int, begun: Mapping[str, NDArray[Any]]
) -> "dict[str, Tensor]":
    """Returns the tensors of a network fitted on the rows `known`, starting from `begun`."""
    import torch

    torch.manual_seed(recipe.seed)
    numbers, count = rows.looks[0].pairs.shape[2], rows.looks[0].messages.shape[1]
    net = _network(numbers, count, recipe.widths[look], recipe.second)
    if begun:
        name = ("first.", "second.")[look]
        sharpness = float(begun[f"{name}sharpness"][0])
        for key, value in net.items():
            by = sharpness if ".3" in key else 1.0
            value.data = torch.from_numpy(begun[name + key].astype(np.float32)) * by
    epochs = recipe.epochs[look]
    optimizer = torch.optim.AdamW(list(net.values()), recipe.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, epochs * -(-len(known) // _BATCH), pct_start=0.1
    )
    for _ in range(epochs):
        for some in torch.split(known[torch.randperm(len(known))], _BATCH):
            hidden = torch.rand(len(some)) < recipe.without_names
            loss = _loss(*_scores(net, rows, some, hidden, recipe.dropout))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return net


def _network(numbers: int, count: int, width: int, second: int) -> "dict[str, Tensor]":
    """Returns the tensors for `linker.Network`; their shapes define its structure."""
    import torch

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
) -> "tuple[Tensor, Tensor]":
    """Returns (B, K + 1) scores of rows, and which are right; `hidden` (B,) bool hides names."""
    import torch
    from torch.nn.functional import dropout as dropped

    named, nameless = rows.looks

    def seen_by(read: "Callable[[_Look], Tensor]") -> "Tensor":
        both = read(named), read(nameless)
        mask = hidden.reshape(-1, *[1] * (both[0].dim() - 1))
        return torch.where(mask, both[1], both[0])

    columns = seen_by(lambda look: look.columns[some])
    pairs = seen_by(lambda look: look.pairs[some].float())
    pairs[hidden, :, :PAIR_NAMES] = 0
    own = seen_by(lambda look: look.messages[some + WINDOW])
    theirs = seen_by(lambda look: look.messages[some[:, None] + columns])
    first = pairs @ net["pair.1"].T + (own @ net["message.1"].T + net["bias.1"])[:, None]
    first = dropped((first + theirs @ net["candidate.1"].T).relu(), dropout)
    scores = ((first @ net["pair.2"].T + net["bias.2"]).relu() @ net["pair.3"].T)[..., 0]
    scores = scores.masked_fill(~rows.valid[some].gather(1, columns), -torch.inf)
    seen = torch.cat([own, pairs.amax(dim=1), pairs.mean(dim=1)], dim=1)
    first = dropped((seen @ net["none.1"].T + net["none.bias.1"]).relu(), dropout)
    again = (first @ net["none.2"].T + net["none.bias.2"]).relu()
    scores = torch.cat([scores, again @ net["none.3"].T + net["none.bias.3"]], dim=1)
    right = rows.answers[some]
    return scores, torch.cat([right.gather(1, columns), right[:, WINDOW:]], dim=1)


def _loss(scores: "Tensor", right: "Tensor") -> "Tensor":
    """Returns the mean of -log of the probability of a right answer; several add up."""
    known = right.any(dim=1)
    scores, right = scores[known], right[known]
    chosen = scores.masked_fill(~right, -float("inf")).logsumexp(dim=1)
    return (scores.logsumexp(dim=1) - chosen).mean()


def _shares(net: "dict[str, Tensor]", rows: _Rows, hide: bool) -> "Tensor":
    """Returns the (N, 61) probabilities of a first look."""
    import torch

    with torch.no_grad():
        return torch.cat([
            _scores(net, rows, some, torch.full(some.shape, hide))[0].softmax(dim=1)
            for some in torch.split(torch.arange(len(rows.valid)), _BATCH)
        ])  # fmt: skip


def _sharpness(net: "dict[str, Tensor]", rows: _Rows) -> float:
    """Returns the factor of scores that makes the right answers most probable."""
    import torch

    with torch.no_grad():
        both = [
            _scores(net, rows, rows.known, torch.full(rows.known.shape, hide))
            for hide in (False, True)
        ]
        tried: list[float] = np.linspace(0.5, 1.5, 41).tolist()
        return min(
            tried, key=lambda by: sum(float(_loss(scores * by, right)) for scores, right in both)
        )
