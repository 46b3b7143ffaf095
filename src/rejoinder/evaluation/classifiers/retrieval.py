"""Captions and images in one space, by SentEval's pairwise ranking loss (its tools/ranking.py).

Follows the published protocol: both sides are projected linearly to 1,000 dimensions and
normalised; a pair has to be closer than 30 others by a margin of 0.2, both ways.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.settings import ClassifierSettings

try:
    import torch
    from torch.nn import functional
except ImportError:
    raise MissingExtraError("torch", "train") from None

_WIDTH = 1_000
_MARGIN = 0.2
_CONTRASTS = 30
_BATCH = 128
_EPOCHS = 20
_PATIENCE = 3
FOLD = 1_000
"""Images that are ranked together."""
PER_IMAGE = 5

Features = NDArray[np.float32]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """One split: (M, F) features of images, (5 M, D) embeddings of their captions."""

    images: Features
    captions: Features


@dataclass(frozen=True)
class Retrieved:
    """What was found on test, and how good dev was."""

    dev_score: float
    """Mean of the six recalls, in percent; the best of all epochs."""
    caption_ranks: Ranks
    """(M,), from 0: the best place of an image's captions among those of its fold."""
    image_ranks: Ranks
    """(5 M,), from 0: the place of a caption's image among those of its fold."""


def fit_retrieval(train: Side, dev: Side, test: Side, settings: ClassifierSettings) -> Retrieved:
    """Train on one split, stop by the second, rank the third in folds of 1,000 images."""
    chance = np.random.RandomState(settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model: Any = torch.nn.ModuleList(
            [
                torch.nn.Linear(train.images.shape[1], _WIDTH),
                torch.nn.Linear(train.captions.shape[1], _WIDTH),
            ]
        )
    optimizer = torch.optim.Adam(model.parameters())
    images, captions = torch.from_numpy(train.images), torch.from_numpy(train.captions)
    best, kept, waited = -1.0, copy.deepcopy(model), 0
    # the original compares the number of epochs done with 20 by <=, and so does one more
    for _ in range(_EPOCHS + 1):
        order = chance.permutation(len(captions))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            outside = np.concatenate([order[:start], order[start + _BATCH :]])
            if not len(outside):
                outside = order
            count = _CONTRASTS * len(rows)
            contrasts = [chance.choice(outside, count).reshape(len(rows), -1) for _ in range(2)]
            loss = _loss(model, images, captions, rows, contrasts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = float(
            np.mean([recall for ranks in _ranks(model, dev) for recall in recalls(ranks)])
        )
        if score > best:
            best, kept = score, copy.deepcopy(model)
        elif waited >= _PATIENCE:
            break
        else:
            waited += 1
    return Retrieved(best, *_ranks(kept, test))


def _loss(model: Any, images: Any, captions: Any, rows: Ranks, contrasts: Sequence[Ranks]) -> Any:
    """The loss of a batch; `contrasts` are rows of (B, 30) images and of as many captions."""
    to_images, to_captions = model
    image = functional.normalize(to_images(images[rows // PER_IMAGE]), dim=1)
    caption = functional.normalize(to_captions(captions[rows]), dim=1)
    other_images = functional.normalize(to_images(images[contrasts[0] // PER_IMAGE]), dim=2)
    other_captions = functional.normalize(to_captions(captions[contrasts[1]]), dim=2)
    right = (image * caption).sum(dim=1, keepdim=True)
    wrong_captions = torch.einsum("bd,bcd->bc", image, other_captions)
    wrong_images = torch.einsum("bd,bcd->bc", caption, other_images)
    # a contrast of the same image is no mistake
    own = (rows // PER_IMAGE)[:, None]
    apart = torch.from_numpy(np.stack([part // PER_IMAGE != own for part in contrasts[::-1]]))
    costs = torch.clamp(_MARGIN - right + torch.stack([wrong_captions, wrong_images]), min=0)
    return (costs * apart).sum()


def _ranks(model: Any, side: Side) -> tuple[Ranks, Ranks]:
    """Places from 0 of the first right caption of each image, and of each caption's image."""
    to_images, to_captions = model
    with torch.no_grad():
        images = functional.normalize(to_images(torch.from_numpy(side.images)), dim=1).numpy()
        captions = functional.normalize(to_captions(torch.from_numpy(side.captions)), dim=1).numpy()
    of_images, of_captions = [], []
    for start in range(0, len(images), FOLD):
        part = images[start : start + FOLD]
        rows = captions[PER_IMAGE * start : PER_IMAGE * (start + len(part))]
        scores = part @ rows.T
        own = np.arange(len(rows)).reshape(len(part), PER_IMAGE)
        right = np.take_along_axis(scores, own, axis=1)
        # ties count against the model
        above = (scores[:, None, :] >= right[:, :, None]).sum(axis=2) - 1
        of_images.append(above.min(axis=1))
        places = np.arange(len(rows)) // PER_IMAGE
        diagonal = scores[places, np.arange(len(rows))]
        of_captions.append((scores >= diagonal[None, :]).sum(axis=0) - 1)
    return np.concatenate(of_images), np.concatenate(of_captions)


def recalls(ranks: Ranks, cutoffs: Sequence[int] = (1, 5, 10)) -> list[float]:
    """Share of the ranks, from 0, below each cut-off, in percent."""
    return [100 * float((ranks < cutoff).mean()) for cutoff in cutoffs]


def median_rank(ranks: Ranks, fold: int) -> float:
    """The median place, from 1, rounded down: the mean over folds, as in the original.

    >>> median_rank(np.array([0, 1, 6, 7, 8, 9]), 3)
    5.5
    """
    parts = [ranks[start : start + fold] for start in range(0, len(ranks), fold)]
    return float(np.mean([np.floor(np.median(part)) + 1 for part in parts]))
