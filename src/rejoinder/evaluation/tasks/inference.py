"""Natural language inference by the encoder's own classifier, on SNLI's official dev and test."""

from collections.abc import Sequence

import numpy as np

from rejoinder.datasets.inference import InferencePairs, read_snli_split
from rejoinder.datasets.sentence_pairs import NLI_CLASSES
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.calls import call, numbers_of
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks.base import Context, Data, Family, Part
from rejoinder.measures import Indices
from rejoinder.protocols import Entails


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder = context.folder(ids[0])
    return {(ids[0], split): read_snli_split(folder, split) for split in context.splits}


def _run(embedder: Embedder, context: Context, part: Part, pairs: InferencePairs) -> Scored:
    encoder, (task, split) = embedder.encoder, part
    if not isinstance(encoder, Entails) or not encoder.entails:
        raise DataMissingError(f"{task} needs an encoder with a classifier, a method entail.")
    who = embedder.who(task, "entail")
    returned = call(encoder.entail, pairs.premises, pairs.hypotheses, who=who)
    shape = len(pairs), len(NLI_CLASSES)
    probabilities = numbers_of(returned, shape, who, "(N, 3) probabilities are")
    if not np.isfinite(probabilities).all():
        raise InputError(f"{who} returned a value that is not finite; probabilities are needed.")
    predicted = probabilities.argmax(axis=1)
    right = (predicted == pairs.labels).astype(np.float64)
    return Scored(
        main="accuracy",
        scores={"accuracy": 100 * float(right.mean())},
        intervals={"accuracy": mean_interval(right, context.seed, unit=100)},
        groups=_confusions(pairs.labels, predicted),
        notes=row_notes("snli", {split: len(pairs)}),
        data={"name": "snli", "unlabelled": pairs.dropped},
        items=Items(
            [f"{split}:{row}" for row in range(len(right))],
            predicted.astype(np.float64),
            pairs.labels.astype(np.float64),
            joined(pairs.premises, pairs.hypotheses),
        ),
    )


def _confusions(gold: Indices, predicted: Indices) -> dict[str, Group]:
    """Returns the cells of the confusion matrix: counts, and shares of the gold class, 0 to 1."""
    cells = {}
    for label, name in enumerate(NLI_CLASSES):
        answers = predicted[gold == label]
        for answer, other in enumerate(NLI_CLASSES):
            count = int((answers == answer).sum())
            share = count / max(len(answers), 1)
            cells[f"is {name}, said {other}"] = Group(count, {"share": share})
    return cells


FAMILIES = (Family({"snli/head": ("snli",)}, _read, _run),)
