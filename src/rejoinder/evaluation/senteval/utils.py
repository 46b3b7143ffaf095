"""SentEval's parameters: a dictionary whose keys are attributes too."""

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.classifiers.settings import ClassifierSettings

CLASSIFIER_KEYS = ("nhid", "optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout")
_KEYS = ("task_path", "usepytorch", "kfold", "seed", "batch_size", "classifier", "nhid", "mode")


class dotdict(dict[str, Any]):  # noqa: N801 -- the name that scripts import
    """A dictionary with attributes; an attribute that is not there is None, as in the original."""

    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


def completed(params: Mapping[str, Any]) -> dotdict:
    """The parameters with SentEval's defaults; keys of the user's own pass through.

    Raises:
        InputError: a key of `classifier` is unknown, or `nhid` is not among them.
    """
    found = dotdict(params)
    for key in found:
        close = get_close_matches(key, _KEYS, n=1, cutoff=0.8)
        if key not in _KEYS and close:
            warnings.warn(
                f"params[{key!r}] is not a parameter of SentEval; did you mean {close[0]!r}?",
                stacklevel=4,
            )
    defaults: dict[str, Any] = {"usepytorch": True, "seed": 1111, "batch_size": 128, "nhid": 0,
                                "kfold": 5, "mode": "fast"}  # fmt: skip
    for key, value in defaults.items():
        found.setdefault(key, value)
    if not found.get("classifier"):
        found["classifier"] = {"nhid": 0}
    for key in found["classifier"]:
        if key not in CLASSIFIER_KEYS:
            raise InputError(f"params['classifier'][{key!r}]: {nearest(key, CLASSIFIER_KEYS)}.")
    if "nhid" not in found["classifier"]:
        raise InputError(
            "params['classifier'] has no 'nhid', the number of hidden units; 0 is one."
        )
    return found


def settings_of(params: dotdict) -> ClassifierSettings:
    """The settings of classifiers that the parameters mean."""
    return ClassifierSettings(
        mode=params["mode"],
        usepytorch=bool(params["usepytorch"]),
        kfold=int(params["kfold"]),
        seed=int(params["seed"]),
        **params["classifier"],
    )
