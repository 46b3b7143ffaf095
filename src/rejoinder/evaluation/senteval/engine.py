"""`SE(params, batcher, prepare).eval(tasks)`, with the results of the original, key for key."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.items import subsets_of
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.senteval.utils import completed, dotdict, settings_of
from rejoinder.evaluation.tasks import families_of
from rejoinder.evaluation.tasks.base import Context
from rejoinder.protocols import Embeddings

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
"""Names in SentEval, and the ids of the same tasks here."""


class SE:
    """SentEval's engine.

    Beside the original's parameters, `mode` is `fast` (a proper solver) or `compat` (the
    original's classifiers, as slow as there).
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        batcher: Batcher,
        prepare: Prepare | None = None,
    ) -> None:
        """Take the parameters, and the user's two functions.

        Args:
            params: `task_path` at least; each key is checked here, before anything runs.
            batcher: params and a batch of token lists to (n, D) embeddings.
            prepare: params and all token lists of a task, called before the task's first batch.

        Raises:
            InputError: a parameter is wrong.
        """
        self.params = completed(params)
        self.batcher = batcher
        self.prepare: Prepare = prepare or (lambda _params, _samples: None)
        self.list_tasks = list(TASKS)

    def eval(self, name: str | Sequence[str]) -> dict[str, Any]:
        """The results of a task, or of a list of tasks by name.

        Raises:
            InputError: no such task, its data is not there, or the batcher misbehaves.
        """
        if not isinstance(name, str):
            self.results = {one: self.eval(one) for one in name}
            return self.results
        if name not in TASKS:
            raise InputError(f"{name!r} is no task of SentEval: {nearest(name, TASKS)}.")
        context = Context(
            data=Path(self.params["task_path"]),
            form="senteval",
            classifiers=settings_of(self.params),
        )
        [(family, ids)] = families_of([TASKS[name]])
        self.params["current_task"] = name
        kind = _Scored if "similarity" in self.params else _Batched
        embedder = Embedder(kind(self.params, self.batcher, self.prepare))
        [result] = family.run(embedder, context, ids)
        self.results = _as_original(result)
        return self.results


class _Batched:
    """The user's functions as something that encodes."""

    def __init__(self, params: dotdict, batcher: Batcher, prepare: Prepare) -> None:
        self._params, self._batcher, self._prepare = params, batcher, prepare

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        self._prepare(self._params, [text.split() for text in sentences])

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        return self._encoded(sentences).astype(np.float32, copy=False)

    def _encoded(self, sentences: Sequence[str]) -> NDArray[Any]:
        """(N, D) vectors of the type that the batcher returns."""
        # alike in length, as in the original: batches need less padding
        order = sorted(range(len(sentences)), key=lambda row: len(sentences[row].split()))
        size = int(self._params["batch_size"])
        parts = []
        for start in range(0, len(order), size):
            batch = [sentences[row].split() for row in order[start : start + size]]
            found = np.asarray(self._batcher(self._params, batch))
            if found.ndim != 2 or len(found) != len(batch):
                raise InputError(
                    f"the batcher returned an array of shape {found.shape} for {len(batch)} "
                    "sentences; (n, D) is needed."
                )
            parts.append(found)
        embeddings = np.concatenate(parts)
        out = np.empty_like(embeddings)
        out[order] = embeddings
        return out


class _Scored(_Batched):
    """The same with `similarity`, a function of two vectors, as the original calls it."""

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """(N,) float64: a call of `similarity` a pair, with its two vectors (D,)."""
        texts = list(dict.fromkeys([*first, *second]))
        embeddings = self._encoded(texts)
        finite = np.isfinite(embeddings).all(axis=1)
        if not finite.all():
            wrong = texts[int(np.argmin(finite))]
            raise InputError(f"the embedding of {wrong[:60]!r} is not finite.")
        vectors = dict(zip(texts, embeddings, strict=True))
        return np.array([self._scored(a, b, vectors) for a, b in zip(first, second, strict=True)])

    def _scored(self, first: str, second: str, vectors: Mapping[str, NDArray[Any]]) -> float:
        found = np.asarray(self._params["similarity"](vectors[first], vectors[second]))
        if found.size != 1 or not np.isfinite(found).all():
            raise InputError(
                f"params['similarity'] returned {str(found)[:40]} for {first[:40]!r} and "
                f"{second[:40]!r}; a finite number is needed."
            )
        return float(found.reshape(()))


def _as_original(result: Result) -> dict[str, Any]:
    if result.main == "accuracy":
        found = {"devacc": result.scores["dev_accuracy"], "acc": result.scores["accuracy"]}
        if "f1" in result.scores:
            found["f1"] = result.scores["f1"]
        return {**found, "ndev": result.data["dev_n"], "ntest": result.n}
    if result.main == "pearson_trained":
        return {
            "devpearson": result.scores["dev_pearson_trained"],
            "pearson": result.scores["pearson_trained"],
            "spearman": result.scores["spearman_trained"],
            "mse": result.scores["mse"],
            "yhat": result.items.predictions if result.items else None,
            "ndev": result.data["dev_n"],
            "ntest": result.n,
        }
    if result.main == "recall_1_t2i":
        ways = [
            (*(result.scores[f"recall_{n}_{way}"] for n in (1, 5, 10)),
             result.scores[f"median_rank_{way}"])
            for way in ("i2t", "t2i")
        ]  # fmt: skip
        dev = 6 * result.scores["dev_mean_recall"]  # the original adds its six recalls up
        return {"devacc": dev, "acc": ways, "ndev": result.data["dev_n"], "ntest": result.n}
    return _subsets(result)


def _subsets(result: Result) -> dict[str, Any]:
    items = result.items
    if items is None:
        raise InputError(f"{result.task} has no items.")
    found: dict[str, Any] = {}
    for subset, rows in subsets_of(items.ids).items():
        scores, gold = items.predictions[rows], items.gold[rows]
        found[subset] = {
            "pearson": stats.pearsonr(scores, gold),
            "spearman": stats.spearmanr(scores, gold),
            "nsamples": len(rows),
        }
    found["all"] = {
        kind: {
            "all": result.scores[f"{kind}_all"],
            "mean": result.scores[f"{kind}_mean"],
            "wmean": result.scores[f"{kind}_weighted_mean"],
        }
        for kind in ("pearson", "spearman")
    }
    return found
