"""SentEval's parameters: a dictionary with its keys as attributes, and its checks."""

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.classifiers.learners import NETWORK_KEYS, ClassifierSettings

CLASSIFIER_KEYS = ("nhid", *NETWORK_KEYS)
_DEFAULTS: Mapping[str, Any] = {"usepytorch": True, "seed": 1111, "batch_size": 128, "nhid": 0,
                                "kfold": 5, "mode": "fast"}  # fmt: skip
_KEYS = ("task_path", "classifier", "similarity", *_DEFAULTS)
_ELSEWHERE: Mapping[str, str] = {
    **{key: "it belongs in params['classifier']" for key in NETWORK_KEYS if key != "batch_size"},
    "cudaEfficient": "classifiers are trained on the CPU here; remove it",
    "noreg": "SentEval sets it itself, for SNLI; remove it",
}
"""Keys that SentEval does not read from its parameters, and what to do instead."""


class dotdict(dict[str, Any]):  # noqa: N801 -- the name that scripts import
    """A dictionary with its keys as attributes. A missing attribute is None, as in SentEval."""

    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


def completed(params: Mapping[str, Any]) -> dotdict:
    """Returns the parameters with SentEval's defaults. The user's own keys are kept.

    Raises:
        InputError: a parameter is missing, has a wrong value, or would have no effect.
    """
    if "task_path" not in params:
        raise InputError("params has no 'task_path', the folder of SentEval's data.")
    for key in params:
        if key in _ELSEWHERE:
            raise InputError(f"params[{key!r}] would have no effect: {_ELSEWHERE[key]}.")
        close = get_close_matches(key, _KEYS, n=1, cutoff=0.8)
        if key not in _KEYS and close:
            said = f"params[{key!r}] is not a parameter of SentEval; did you mean {close[0]!r}?"
            warnings.warn(said, stacklevel=4)
    full = dotdict({**_DEFAULTS, **params, "classifier": params.get("classifier") or {"nhid": 0}})
    size, classifier = full["batch_size"], full["classifier"]
    for key, right, needed in (
        ("batch_size", isinstance(size, int | np.integer) and size >= 1, "an integer from 1 on"),
        ("usepytorch", full["usepytorch"] in (True, False), "True or False"),
        ("similarity", callable(full.get("similarity", len)), "a function of two vectors"),
    ):
        if not right:
            raise InputError(f"params[{key!r}] is {full[key]!r}; {needed} is needed.")
    for key in classifier:
        if key not in CLASSIFIER_KEYS:
            raise InputError(f"params['classifier'][{key!r}]: {nearest(key, CLASSIFIER_KEYS)}.")
    if "nhid" not in classifier:
        raise InputError("params['classifier'] has no 'nhid', the number of hidden units, or 0.")
    if full["nhid"] not in (0, classifier["nhid"]):
        found = f"{full['nhid']!r} and params['classifier']['nhid'] is {classifier['nhid']!r}"
        raise InputError(f"params['nhid'] is {found}; only the latter is read, as in SentEval.")
    _warn_of_unused(settings_of(full))
    return full


def settings_of(params: Mapping[str, Any]) -> ClassifierSettings:
    """Returns the settings of classifiers in `params`, which `completed` returned.

    Raises:
        InputError: a value is out of its range.
    """
    return ClassifierSettings(
        mode=params["mode"],
        usepytorch=bool(params["usepytorch"]),
        kfold=params["kfold"],
        seed=params["seed"],
        **params["classifier"],
    )


def _warn_of_unused(settings: ClassifierSettings) -> None:
    """Warns of settings that only the network reads: many scripts set them."""
    usual = ClassifierSettings()
    unused = [key for key in NETWORK_KEYS if getattr(settings, key) != getattr(usual, key)]
    if unused and settings.classifier != "pytorch":
        warnings.warn(
            f"classifier: {', '.join(unused)} without effect: only the network of the original "
            "reads them; params['mode'] = 'compat' with params['usepytorch'] = True uses it.",
            stacklevel=4,
        )
