"""`coco/senteval`: captions of images and images of captions (SentEval's ImageCaptionRetrieval)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.datasets.labelled import Captioned, read_coco
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.metrics import Items
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of

_NAME = "COCO"
_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class _Splits:
    """Two splits to fit, one to score, and their hash."""

    parts: list[Captioned]
    sha256: str


def _read(context: Context, ids: Sequence[str]) -> Data:
    parts = [read_coco(context.folder(ids[0]), split) for split in _SPLITS]
    sha256 = sha256_of("".join(part.sha256 for part in parts).encode())
    return {(ids[0], "test"): _Splits(parts, sha256)}


def _run(embedder: Embedder, context: Context, _part: Part, splits: _Splits) -> Scored:
    embedder.prepare(_NAME, [text for part in splits.parts for text in part.captions])
    # torch is imported after the data was read: if both are missing, the data is reported
    from rejoinder.evaluation.classifiers.network import Side, fit_retrieval

    train, dev, test = (
        Side(part.features, embedder.embed(part.captions, _NAME)) for part in splits.parts
    )
    scores, image_ranks = fit_retrieval(train, dev, test, context.classifiers)
    first = (image_ranks < 1).astype(np.float64)
    *_, dev_part, scored = splits.parts
    return Scored(
        main="recall_1_t2i",
        scores=scores,
        intervals={"recall_1_t2i": mean_interval(first, context.seed, unit=100)},
        data={"name": _NAME, "dev_n": len(dev_part)},
        notes=[
            *row_notes("coco", dict(zip(_SPLITS, map(len, splits.parts), strict=True))),
            "classifier pytorch",
            "ranked in folds of 1,000 images",
            "ties count against the model",
        ],
        items=Items(
            [f"test:{row}" for row in range(len(scored.captions))],
            image_ranks.astype(np.float64),
            np.zeros(len(scored.captions)),
            scored.captions,
        ),
    )


FAMILIES = (Family({"coco/senteval": ("coco", "senteval")}, _read, _run, protocol="retrieval"),)
