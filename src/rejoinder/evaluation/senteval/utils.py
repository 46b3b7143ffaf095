"""SentEval's parameters: a dictionary with its keys as attributes, and its checks."""

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.classifiers.settings import NETWORK_KEYS, ClassifierSettings

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
    params = dotdict(params)
    _check_keys(params)
    for key, value in _DEFAULTS.items():
        params.setdefault(key, value)
    if not params.get("classifier"):
        params["classifier"] = {"nhid": 0}
    _check_values(params)
    _check_classifier(params)
    _warn_of_unused(params, settings_of(params))
    return params


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


def _check_keys(params: Mapping[str, Any]) -> None:
    if "task_path" not in params:
        raise InputError("params has no 'task_path', the folder of SentEval's data.")
    for key in params:
        if key in _ELSEWHERE:
            raise InputError(f"params[{key!r}] would have no effect: {_ELSEWHERE[key]}.")
        close = get_close_matches(key, _KEYS, n=1, cutoff=0.8)
        if key not in _KEYS and close:
            warnings.warn(
                f"params[{key!r}] is not a parameter of SentEval; did you mean {close[0]!r}?",
                stacklevel=5,
            )


def _check_values(params: dotdict) -> None:
    size = params["batch_size"]
    if not isinstance(size, int | np.integer) or size < 1:
        raise InputError(f"params['batch_size'] is {size!r}; an integer of at least 1 is needed.")
    if params["usepytorch"] not in (True, False):
        raise InputError(
            f"params['usepytorch'] is {params['usepytorch']!r}; True or False is needed."
        )
    if "similarity" in params and not callable(params["similarity"]):
        raise InputError(
            f"params['similarity'] is {params['similarity']!r}; it has to be a function of two "
            "vectors. Remove it to use the cosine."
        )


def _check_classifier(params: dotdict) -> None:
    classifier = params["classifier"]
    for key in classifier:
        if key not in CLASSIFIER_KEYS:
            raise InputError(f"params['classifier'][{key!r}]: {nearest(key, CLASSIFIER_KEYS)}.")
    if "nhid" not in classifier:
        raise InputError(
            "params['classifier'] has no 'nhid', the number of hidden units; 0 means none."
        )
    if params["nhid"] not in (0, classifier["nhid"]):
        raise InputError(
            f"params['nhid'] is {params['nhid']!r} and params['classifier']['nhid'] is "
            f"{classifier['nhid']!r}. As in SentEval, only the latter is read; set it there."
        )


def _warn_of_unused(params: Mapping[str, Any], settings: ClassifierSettings) -> None:
    """Warns of settings that only the network reads. Many scripts set them, so it is no error."""
    default = ClassifierSettings()
    unused = [
        key
        for key in NETWORK_KEYS
        if params["classifier"].get(key, getattr(default, key)) != getattr(default, key)
    ]
    if settings.classifier == "pytorch" or not unused:
        return
    if settings.mode == "fast":
        reason = (
            "mode 'fast' reaches the optimum; params['mode'] = 'compat' trains as SentEval does"
        )
    else:
        reason = "scikit-learn has no such settings; params['usepytorch'] = True uses the network"
    warnings.warn(f"classifier: {', '.join(unused)} without effect: {reason}.", stacklevel=4)
