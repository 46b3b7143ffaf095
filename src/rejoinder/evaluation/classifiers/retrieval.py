"""Projects captions and images into one space by SentEval's ranking loss (its tools/ranking.py).

As in the published protocol, both sides are projected linearly to 1,000 dimensions and normalised.
A caption and its image have to be closer than 30 others by a margin of 0.2, in both directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.learners import ClassifierSettings, Features
from rejoinder.evaluation.classifiers.relatedness import trained
from rejoinder.measures import Indices

try:
    import torch
    from torch.nn import functional
except ImportError:
    raise MissingExtraError("torch", "train") from None

_DIM = 1_000
_MARGIN = 0.2
_CONTRASTS = 30
_BATCH = 128
CUTOFFS = (1, 5, 10)
FOLD = 1_000
"""Number of images that are ranked together."""
PER_IMAGE = 5
"""Number of captions per image."""

Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """(M, F) features of images, and (5 M, D) embeddings of their captions, image after image."""

    images: Features
    captions: Features


def fit_retrieval(
    train: Side, dev: Side, test: Side, settings: ClassifierSettings
) -> tuple[dict[str, float], Ranks]:
    """Trains on one split, stops by the second, and ranks the third in folds of 1,000 images.

    Returns recalls in percent and median ranks on test, with the mean recall of the best epoch on
    dev, and the (5 M,) ranks of each caption's image among those of its fold, from 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        widths = train.images.shape[1], train.captions.shape[1]
        model: Any = torch.nn.ModuleList([torch.nn.Linear(width, _DIM) for width in widths])
    images, captions = torch.from_numpy(train.images), torch.from_numpy(train.captions)

    def loss(rows: Indices, others: Indices, generator: np.random.RandomState) -> Any:
        outside = others if len(others) else rows
        contrasts = [generator.choice(outside, (len(rows), _CONTRASTS)) for _ in range(2)]
        return _loss(model, images, captions, rows, contrasts)

    def score(model: Any) -> float:
        return float(np.mean([one for ranks in _ranks(model, dev) for one in recalls(ranks)]))

    best, on_dev = trained(model, len(captions), loss, score, settings.seed, batch=_BATCH, epochs=1)
    scores, ranks = {}, _ranks(best, test)
    for way, found, fold in zip(("i2t", "t2i"), ranks, (FOLD, PER_IMAGE * FOLD), strict=True):
        for cutoff, recall in zip(CUTOFFS, recalls(found), strict=True):
            scores[f"recall_{cutoff}_{way}"] = recall
        scores[f"median_rank_{way}"] = median_rank(found, fold)
    return {**scores, "dev_mean_recall": on_dev}, ranks[1]


def _loss(
    model: Any, images: Any, captions: Any, rows: Indices, contrasts: Sequence[Indices]
) -> Any:
    """Returns the loss of (B,) captions with (B, 30) wrong images, as captions, and captions."""
    to_images, to_captions = model
    image = functional.normalize(to_images(images[rows // PER_IMAGE]), dim=1)
    caption = functional.normalize(to_captions(captions[rows]), dim=1)
    other_images = functional.normalize(to_images(images[contrasts[0] // PER_IMAGE]), dim=2)
    other_captions = functional.normalize(to_captions(captions[contrasts[1]]), dim=2)
    right = (image * caption).sum(dim=1, keepdim=True)
    wrong_captions = torch.einsum("bd,bcd->bc", image, other_captions)
    wrong_images = torch.einsum("bd,bcd->bc", caption, other_images)
    # a contrast that belongs to the same image costs nothing
    own = (rows // PER_IMAGE)[:, None]
    apart = torch.from_numpy(np.stack([part // PER_IMAGE != own for part in contrasts[::-1]]))
    costs = torch.clamp(_MARGIN - right + torch.stack([wrong_captions, wrong_images]), min=0)
    return (costs * apart).sum()


def _ranks(model: Any, side: Side) -> tuple[Ranks, Ranks]:
    """Returns the ranks, from 0, of the best caption of each image and of each caption's image."""
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
        right = np.take_along_axis(scores, own, axis=1)  # ties count against the model
        above = (scores[:, None, :] >= right[:, :, None]).sum(axis=2) - 1
        of_images.append(above.min(axis=1))
        of_captions.append((scores >= right.ravel()).sum(axis=0) - 1)
    return np.concatenate(of_images), np.concatenate(of_captions)


def recalls(ranks: Ranks) -> list[float]:
    """Returns the share of ranks, which begin at 0, below each cut-off, in percent."""
    return [100 * float((ranks < cutoff).mean()) for cutoff in CUTOFFS]


def median_rank(ranks: Ranks, fold: int) -> float:
    """Returns the median rank, from 1 and rounded down; the mean over folds, as in SentEval.

    >>> median_rank(np.array([0, 1, 6, 7, 8, 9]), 3)
    5.5
    """
    parts = [ranks[start : start + fold] for start in range(0, len(ranks), fold)]
    return float(np.mean([np.floor(np.median(part)) + 1 for part in parts]))
