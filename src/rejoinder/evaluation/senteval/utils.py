"""SentEval's parameters: a dictionary with its keys as attributes, and its checks.

SentEval's engine: `SE(params, batcher, prepare).eval(tasks)`, with the keys of its results.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.calls import embeddings_of, matrix_of
from rejoinder.evaluation.classifiers.learners import NETWORK_KEYS, ClassifierSettings
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.items import subsets_of
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.tasks import families_of
from rejoinder.evaluation.tasks.base import Context

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
            warnings.warn(
                f"params[{key!r}] is not a parameter of SentEval; did you mean {close[0]!r}?",
                stacklevel=4,
            )
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
        raise InputError(
            "params['classifier'] has no 'nhid', the number of hidden units; 0 means none."
        )
    if full["nhid"] not in (0, classifier["nhid"]):
        raise InputError(
            f"params['nhid'] is {full['nhid']!r} and params['classifier']['nhid'] is "
            f"{classifier['nhid']!r}. As in SentEval, only the latter is read; set it there."
        )
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


Batcher = Callable[[dotdict, list[list[str]]], Any]
Prepare = Callable[[dotdict, list[list[str]]], Any]

_CLASSES = ("MR", "CR", "MPQA", "SUBJ", "SST2", "SST5", "TREC", "MRPC", "SNLI")
_PROBING = ("Length", "WordContent", "Depth", "TopConstituents", "BigramShift", "Tense",
            "SubjNumber", "ObjNumber", "OddManOut", "CoordinationInversion")  # fmt: skip
TASKS: Mapping[str, str] = {
    **{name: f"{name.lower()}/senteval" for name in (*_CLASSES, *_PROBING)},
    **{f"STS{year}": f"sts{year}/cosine" for year in range(12, 17)},
    "SICKEntailment": "sick-e/senteval",
    "SICKRelatedness": "sick-r/senteval-regression",
    "STSBenchmark": "stsb/senteval-regression",
    "ImageCaptionRetrieval": "coco/senteval",
}
"""The id of each task of SentEval, by SentEval's name."""


class SE:
    """SentEval's engine.

    It has one more parameter than the original: `mode` is `fast` (a solver that reaches the
    optimum) or `compat` (the original's classifiers, which are as slow as there).
    """

    def __init__(
        self, params: Mapping[str, Any], batcher: Batcher, prepare: Prepare | None = None
    ) -> None:
        """Checks the parameters, before anything runs.

        Args:
            params: SentEval's parameters; `task_path`, the folder of the data, is required.
            batcher: takes the parameters and a batch of n token lists, returns (n, D) embeddings.
            prepare: called with the parameters and all token lists of a task, before its first
                batch.

        Raises:
            InputError: a parameter is wrong.
        """
        self.params = completed(params)
        self.batcher = batcher
        self.prepare: Prepare = prepare or (lambda _params, _samples: None)
        self.list_tasks = list(TASKS)

    def eval(self, name: str | Sequence[str]) -> dict[str, Any]:
        """Evaluates a task, named as in SentEval, such as `MR`, or several tasks.

        Returns the results of a task with the keys of the original; of several tasks, by name.

        Raises:
            InputError: a task is unknown, its data is missing, or the batcher returns something
                other than (n, D) finite numbers.
        """
        if not isinstance(name, str):
            self.results = {task: self.eval(task) for task in name}
            return self.results
        if name not in TASKS:
            raise InputError(f"{name!r} is not a task of SentEval: {nearest(name, TASKS)}.")
        context = Context(
            data=Path(self.params["task_path"]),
            form="senteval",
            classifiers=settings_of(self.params),
        )
        [(family, ids)] = families_of([TASKS[name]])
        self.params["current_task"] = name
        encoder = _ScoringEncoder if "similarity" in self.params else _BatchEncoder
        embedder = Embedder(encoder(self.params, self.batcher, self.prepare))
        [(part, data)] = family.read(context, ids).items()
        scored = family.run(embedder, context, part, data)
        self.results = _as_original(scored)
        return self.results


class _BatchEncoder:
    """An encoder made of the user's functions."""

    def __init__(self, params: dotdict, batcher: Batcher, prepare: Prepare) -> None:
        self._params, self._batcher, self._prepare = params, batcher, prepare

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        self._prepare(self._params, [text.split() for text in sentences])

    def encode(self, sentences: Sequence[str]) -> NDArray[Any]:
        """Returns (N, D) vectors with the dtype of the batcher."""
        # sorted by length, as in the original, so that batches need less padding
        order = sorted(range(len(sentences)), key=lambda row: len(sentences[row].split()))
        size = int(self._params["batch_size"])
        parts = []
        for start in range(0, len(order), size):
            batch = [sentences[row].split() for row in order[start : start + size]]
            parts.append(matrix_of(self._batcher(self._params, batch), len(batch), "the batcher"))
        embeddings = np.concatenate(parts)
        out = np.empty_like(embeddings)
        out[order] = embeddings
        return out


class _ScoringEncoder(_BatchEncoder):
    """An encoder with the user's `similarity` of two vectors."""

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """Returns (N,) float64: the user's `similarity` of the (D,) vectors of each pair."""
        texts = list(dict.fromkeys([*first, *second]))
        embeddings = self.encode(texts)
        embeddings_of(embeddings, texts, "the batcher")  # refuses what is not finite
        vectors = dict(zip(texts, embeddings, strict=True))
        scores = np.empty(len(first))
        for row, (one, other) in enumerate(zip(first, second, strict=True)):
            score = np.asarray(self._params["similarity"](vectors[one], vectors[other]))
            if score.size != 1 or not np.isfinite(score).all():
                raise InputError(
                    f"params['similarity'] returned {str(score)[:40]} for {one[:40]!r} and "
                    f"{other[:40]!r}; it has to return a finite number."
                )
            scores[row] = score.item()
        return scores


def _as_original(scored: Scored) -> dict[str, Any]:
    """Returns what a task found under the keys of the original."""
    original: dict[str, Any] = {}
    scores, items = scored.scores, scored.items
    if scored.main == "accuracy":
        original = {"devacc": scores["dev_accuracy"], "acc": scores["accuracy"]}
        original |= {"f1": scores["f1"]} if "f1" in scores else {}
    elif scored.main == "pearson_trained":
        original = {"devpearson": scores["dev_pearson_trained"], "mse": scores["mse"]}
        original |= {name: scores[f"{name}_trained"] for name in ("pearson", "spearman")}
        original["yhat"] = items.predictions
    elif scored.main == "recall_1_t2i":
        directions = [
            (*(scores[f"recall_{n}_{way}"] for n in (1, 5, 10)), scores[f"median_rank_{way}"])
            for way in ("i2t", "t2i")
        ]
        # the original adds up its six recalls
        original = {"devacc": 6 * scores["dev_mean_recall"], "acc": directions}
    else:
        for subset, rows in subsets_of(items.ids).items():
            pairs = items.predictions[rows], items.gold[rows]
            original[subset] = {
                "pearson": stats.pearsonr(*pairs),
                "spearman": stats.spearmanr(*pairs),
                "nsamples": len(rows),
            }
        means = {"all": "all", "mean": "mean", "wmean": "weighted_mean"}
        original["all"] = {
            kind: {key: scores[f"{kind}_{mean}"] for key, mean in means.items()}
            for kind in ("pearson", "spearman")
        }
        return original
    return {**original, "ndev": scored.data["dev_n"], "ntest": len(items.ids)}
