"""Fits an adaptation of any encoder on graded pairs, and records what it was fitted on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rejoinder.datasets.sts import GradedPairs, pair_keys
from rejoinder.errors import InputError, ModelError
from rejoinder.models.adaptation.adapted import described, refuse_unadaptable
from rejoinder.models.adaptation.fitting import FitSettings, Graded, fit
from rejoinder.models.adaptation.linear import Adaptation
from rejoinder.protocols import Embeddings, Encodes, Prepares


def fit_adaptation(
    encoder: Encodes,
    train: GradedPairs,
    dev: GradedPairs,
    settings: FitSettings | None = None,
    *,
    name: str = "stsb",
) -> Adaptation:
    """Fits W on the pairs of `train`; those of `dev` select which W is kept.

    The adaptation records `name`, the name of the data.

    Raises:
        ModelError: the encoder can't be adapted, or does not return an (N, D) array.
        InputError: `encoder` is not an encoder, `train` or `dev` are not graded pairs, an
            embedding is not finite, or D is too large.
    """
    refuse_unadaptable(encoder)
    for which, pairs in (("train", train), ("dev", dev)):
        if not isinstance(pairs, GradedPairs):
            raise InputError(
                f"{which} must be GradedPairs, as read_stsb(folder, split) returns them; got a "
                f"{type(pairs).__name__}."
            )
    texts = list(dict.fromkeys([*train.first, *train.second, *dev.first, *dev.second]))
    if isinstance(encoder, Prepares):
        encoder.prepare(name, texts)
    embeddings = _embed(encoder, texts)
    index = {text: row for row, text in enumerate(texts)}

    def graded(pairs: GradedPairs) -> Graded:
        first, second = ([index[text] for text in side] for side in (pairs.first, pairs.second))
        return Graded(embeddings[first], embeddings[second], pairs.gold)

    fitted = fit(graded(train), graded(dev), settings)
    description = described(encoder)
    facts = {
        **fitted.facts,
        "data": {
            "name": name,
            "split": train.split,
            "form": train.form,
            "sha256": train.sha256,
            "dev_sha256": dev.sha256,
        },
        "encoder": {key: description[key] for key in ("name", "sha256") if key in description},
    }
    keys = np.unique(pair_keys(train.first, train.second))
    return replace(fitted, facts=facts, fitted_pairs=keys)


def _embed(encoder: Encodes, texts: Sequence[str]) -> Embeddings:
    returned = encoder.encode(texts)
    try:
        rows = np.asarray(returned, np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the encoder did not return an array of numbers: {error}.") from error
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ModelError(
            f"the encoder returned an array of shape {rows.shape} for {len(texts)} sentences; "
            "(N, D) is needed."
        )
    return rows
