"""An adaptation of any encoder to graded pairs: embed, fit, remember what it was fitted on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rejoinder.adaptation.adapted import described, refuse_unadaptable
from rejoinder.adaptation.fitting import FitSettings, fit
from rejoinder.adaptation.linear import Adaptation
from rejoinder.datasets.sts import GradedPairs, pair_keys
from rejoinder.errors import InputError, ModelError
from rejoinder.protocols import Embeddings, Encodes, Prepares


def adapt(
    encoder: Encodes,
    train: GradedPairs,
    dev: GradedPairs,
    settings: FitSettings | None = None,
    *,
    name: str = "stsb",
) -> Adaptation:
    """The adaptation of an encoder to `train`, ended early by `dev`.

    Args:
        encoder: anything that encodes.
        train: the pairs that W is fitted on.
        dev: the pairs that say which W is kept; none of them is fitted on.
        settings: see `FitSettings`.
        name: of the data, for what the adaptation says of itself.

    Raises:
        ModelError: the encoder can't be adapted, or returns what is no (N, D) array.
        InputError: something is no encoder or no graded pairs; an embedding is not finite, or
            too wide.
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
    known = _embedded(encoder, texts)
    places = {text: row for row, text in enumerate(texts)}

    def rows(sentences: Sequence[str]) -> Embeddings:
        return known[[places[text] for text in sentences]]

    fitted = fit(
        rows(train.first),
        rows(train.second),
        train.gold,
        rows(dev.first),
        rows(dev.second),
        dev.gold,
        settings,
    )
    about = described(encoder)
    facts = {
        **fitted.facts,
        "data": {
            "name": name,
            "split": train.split,
            "form": train.form,
            "sha256": train.sha256,
            "dev_sha256": dev.sha256,
        },
        "encoder": {key: about[key] for key in ("name", "sha256") if key in about},
    }
    keys = np.unique(pair_keys(train.first, train.second))
    return replace(fitted, facts=facts, fitted_pairs=keys)


def _embedded(encoder: Encodes, texts: Sequence[str]) -> Embeddings:
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
