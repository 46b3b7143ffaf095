"""`coco/senteval`: captions of images and images of captions (SentEval's ImageCaptionRetrieval)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.datasets.coco import Captioned, read_coco
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.notes import row_notes
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.tasks.base import Context, Data, Family
from rejoinder.io.files.hashed import sha256_of

_NAME = "COCO"
_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class _Splits:
    """The splits, of which two are fitted and the third is scored, and their hash."""

    parts: list[Captioned]
    sha256: str


def _read(context: Context, ids: Sequence[str]) -> Data:
    parts = [read_coco(context.folder(ids[0]), split) for split in _SPLITS]
    sha256 = sha256_of("".join(part.sha256 for part in parts).encode())
    return {(ids[0], "test"): _Splits(parts, sha256)}


def _run(embedder: Embedder, context: Context, data: Data) -> list[Result]:
    [((task, _), splits)] = data.items()
    parts = splits.parts
    embedder.prepare(_NAME, [text for part in parts for text in part.captions])
    # torch is imported after the data was read: if both are missing, the data is reported
    from rejoinder.evaluation.classifiers.retrieval import (
        FOLD,
        PER_IMAGE,
        Side,
        fit_retrieval,
        median_rank,
        recalls,
    )

    def side(part: Captioned) -> Side:
        return Side(part.features, embedder.embed(part.captions, _NAME))

    train, dev, test = parts
    fitted = fit_retrieval(side(train), side(dev), side(test), context.classifiers)
    scores = {}
    directions = (
        ("i2t", fitted.caption_ranks, FOLD),
        ("t2i", fitted.image_ranks, PER_IMAGE * FOLD),
    )
    for direction, ranks, fold in directions:
        for cutoff, recall in zip((1, 5, 10), recalls(ranks), strict=True):
            scores[f"recall_{cutoff}_{direction}"] = recall
        scores[f"median_rank_{direction}"] = median_rank(ranks, fold)
    first = (fitted.image_ranks < 1).astype(np.float64)
    return [
        Result(
            task=task,
            split="test",
            n=len(test),
            main="recall_1_t2i",
            scores={**scores, "dev_mean_recall": fitted.dev_score},
            intervals={"recall_1_t2i": mean_interval(first, context.seed, unit=100)},
            groups={},
            seed=context.classifiers.seed,
            data={"name": _NAME, "sha256": splits.sha256, "dev_n": len(dev)},
            notes=(
                *row_notes("coco", dict(zip(_SPLITS, map(len, parts), strict=True))),
                "classifier pytorch",
                "ranked in folds of 1,000 images",
                "ties count against the model",
            ),
            items=Items(
                [f"test:{row}" for row in range(len(test.captions))],
                fitted.image_ranks.astype(np.float64),
                np.zeros(len(test.captions)),
                test.captions,
            ),
        )
    ]


FAMILIES = (Family({"coco/senteval": ("coco", "senteval")}, _read, _run, protocol="retrieval"),)
