"""SentEval's engine: `SE(params, batcher, prepare).eval(tasks)`, with the keys of its results."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rejoinder.datasets.labelled import PROBING
from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.encoding import Embedder, embeddings_of, matrix_of
from rejoinder.evaluation.metrics import subsets_of
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.senteval.utils import completed, dotdict, settings_of
from rejoinder.evaluation.tasks import Context, families_of

Batcher = Callable[[dotdict, list[list[str]]], Any]
Prepare = Callable[[dotdict, list[list[str]]], Any]

_CLASSES = ("MR", "CR", "MPQA", "SUBJ", "SST2", "SST5", "TREC", "MRPC", "SNLI")
TASKS: Mapping[str, str] = {
    **{name: f"{name.lower()}/senteval" for name in (*_CLASSES, *PROBING)},
    **{f"STS{year}": f"sts{year}/cosine" for year in range(12, 17)},
    "SICKEntailment": "sick-e/senteval",
    "SICKRelatedness": "sick-r/senteval-regression",
    "STSBenchmark": "stsb/senteval-regression",
    "ImageCaptionRetrieval": "coco/senteval",
}
"""The id of each task of SentEval, by SentEval's name."""


class SE:
    """SentEval's engine.

    It has one parameter more than the original: `mode` is `fast` (a solver that reaches the
    optimum) or `compat` (the original's classifiers, just as slow).
    """

    def __init__(
        self, params: Mapping[str, Any], batcher: Batcher, prepare: Prepare | None = None
    ) -> None:
        """Checks the parameters before anything runs.

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

        Returns a task's results with the keys of the original; for several tasks, by name.

        Raises:
            InputError: a task is unknown, its data is missing, or the batcher returns something
                other than (n, D) finite numbers.
        """
        if not isinstance(name, str):
            self.results = {task: self.eval(task) for task in name}
            return self.results
        if name not in TASKS:
            raise InputError(f"{name!r} is not a task of SentEval: {nearest(name, TASKS)}.")
        data, settings = Path(self.params["task_path"]), settings_of(self.params)
        context = Context(data, form="senteval", classifiers=settings)
        [(family, ids)] = families_of([TASKS[name]])
        self.params["current_task"] = name
        encoder = _ScoringEncoder if "similarity" in self.params else _BatchEncoder
        embedder = Embedder(encoder(self.params, self.batcher, self.prepare))
        [(part, read)] = family.read(context, ids).items()
        self.results = _as_original(family.run(embedder, context, part, read))
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
        embeddings_of(embeddings, texts, "the batcher")  # refuses values that are not finite
        vectors = dict(zip(texts, embeddings, strict=True))
        scores = np.empty(len(first))
        for row, (one, other) in enumerate(zip(first, second, strict=True)):
            score = np.asarray(self._params["similarity"](vectors[one], vectors[other]))
            if score.size != 1 or not np.isfinite(score).all():
                found = f"{str(score)[:40]} for {one[:40]!r} and {other[:40]!r}"
                raise InputError(f"params['similarity'] returned {found}, not a finite number.")
            scores[row] = score.item()
        return scores


def _as_original(scored: Scored) -> dict[str, Any]:
    """Returns a task's results under the keys of the original."""
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
