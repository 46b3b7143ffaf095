"""Evaluates encoders: `evaluate` scores tasks and saves the results, `repeat` computes them again.

`load_encoder` opens encoders by name: models of this package, and encoders of other libraries.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.api.pairs import (
    GivenPairs,
    Graded,
    folder_of_pairs,
    graded_in_memory,
    response_pairs,
)
from rejoinder.datasets.groups import read_graded
from rejoinder.errors import InputError, ModelError, RejoinderError
from rejoinder.evaluation.classifiers.learners import ClassifierSettings
from rejoinder.evaluation.encoding import Meter, identity, raised, speed
from rejoinder.evaluation.results import Missing, Result, open_results, read_results
from rejoinder.evaluation.run import EvaluationProgress, Results, score_tasks
from rejoinder.evaluation.tasks import Context, families_of, resolve
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.hashed import decoded
from rejoinder.models.adaptation import Adapted, read_adaptation
from rejoinder.models.find import shipped_models
from rejoinder.protocols import CachesItself, Encodes, Prepares
from rejoinder.registry import Registry

_ALL_IN = {"train": (1.0, 0.0, 0.0), "dev": (0.0, 1.0, 0.0), "test": (0.0, 0.0, 1.0)}
"""Shares of the splits for pairs in memory: all of them are ranked."""


@dataclass(frozen=True)
class Request:
    """The settings of an evaluation, which every result in a results file contains."""

    encoder: str
    adaptation: str | None
    tasks: str
    data: str | None
    pairs: str | None
    split: str
    form: str | None
    text: str
    seed: int
    classifiers: ClassifierSettings

    def context(self) -> Context:
        """Returns the settings of the tasks."""
        pairs, data = self.pairs, self.data
        return Context(
            data=None if data is None else Path(data),
            pairs=None if pairs is None else lambda: response_pairs(Path(pairs), self.split),
            graded=None if data is None else lambda: read_graded(Path(data)),
            form=self.form,
            seed=self.seed,
            classifiers=self.classifiers,
            text=self.text,
        )

    def refuse_idle(self) -> None:
        """Refuses settings that have no effect on any of the tasks.

        Raises:
            InputError: a setting has no effect, or a task is unknown.
        """
        tasks, context = resolve(self.tasks.split(",")), self.context()
        usual = {
            "pairs": None,
            "split": "test",
            "form": None,
            "text": "both",
            **vars(ClassifierSettings()),
        }
        chosen = {**vars(self), **vars(self.classifiers)}
        given = [name for name, value in usual.items() if chosen[name] != value]
        families = [family for family, _ in families_of(tasks)]
        for name in given:
            if not any(family.heeds(name, context) for family in families):
                what = name.removeprefix("use")
                raise InputError(f"{what} has no effect on {', '.join(tasks)}; leave it out.")
        if "usepytorch" in given and "mode" not in given:
            raise InputError("pytorch has no effect in the mode fast; set mode to compat too.")


@dataclass(frozen=True)
class Repeated:
    """The results of a file, compared with the same results computed again."""

    same: int
    """Number of equal scores."""
    differences: tuple[tuple[str, str, str, Any, Any], ...]
    """Task, split, name, value before and value now of each difference."""
    missing: tuple[Missing, ...]
    """Tasks whose data is missing now."""
    speeds: tuple[float | None, float | None] = (None, None)
    """Sentences per second before and now; None if no sentence was encoded."""


def evaluate(
    encoder: str | Path | Encodes,
    tasks: str | Sequence[str] = "graded",
    *,
    data: Graded | None = None,
    pairs: GivenPairs | None = None,
    split: str = "test",
    form: str | None = None,
    text: str = "both",
    seed: int = 0,
    mode: str = "fast",
    pytorch: bool = False,
    nhid: int = 0,
    kfold: int = 10,
    adaptation: str | Path | None = None,
    out: str | Path | None = None,
    cache: str | Path | None = None,
    overwrite: bool = False,
    skip_missing: bool = False,
    progress: EvaluationProgress = lambda _done, _total, _task: None,
) -> Results:
    """Scores an encoder on evaluation tasks.

    Args:
        encoder: a name for `load_encoder`, or any object with `encode(list[str]) -> (N, D)`.
        tasks: ids or groups of tasks, as a sequence or joined by commas: `stsb`, `sts,senteval`.
        data: folder of data sets, for all tasks but `response` and `graded`. For `graded`, pairs
            with your scores from 0 (unrelated) to 5 (same meaning): a file for
            `datasets.graded.read_graded`, rows of two sentences and a score, or a Polars, pandas
            or Arrow table with the columns sentence1, sentence2 and score.
        pairs: for `response`: folder of `rejoinder extract`, rows of message and reply, or a table
            with these columns. All rows in memory are ranked.
        split: split of the pairs to rank: `train`, `dev` or `test`.
        form: form of the STS data, `official` or `senteval`. None takes whichever exists, official
            first.
        text: for community question answering, the part of a question: `subject`, `body` or `both`.
        seed: seeds the random negatives and the intervals.
        mode: how classifiers are fitted: `fast`, or `compat` (as SentEval fits them).
        pytorch: in `compat`, use SentEval's PyTorch classifier and its penalties.
        nhid: number of hidden units of the classifiers; 0 is logistic regression.
        kfold: number of folds of cross-validation.
        adaptation: the file or folder that `rejoinder adapt` wrote for the encoder.
        out: results file, written after each task. If it has results of the same encoder, data and
            settings, they are reused; results of other settings are kept.
        cache: folder that keeps embeddings for later runs of the encoder.
        overwrite: compute again the results in `out`, and drop those of another encoder.
        skip_missing: list tasks whose data is missing in `Results.missing`, instead of raising an
            error at the first of them.
        progress: called before each task, and by long tasks in between.

    Returns:
        The results, a sequence.

    Raises:
        DataMissingError: the data of a task is missing. Results before it are saved in `out`.
        InputError: a task or setting is unknown, a setting has no effect on any task, data is
            damaged, the encoder misbehaves, or `out` holds results of another encoder.
        ModelError: the model is damaged.
        BusyError: another process writes `out`.
        StorageError: `out` can't be written.
    """
    rows = None if data is None or isinstance(data, str | Path) else graded_in_memory(data)
    # an encoder without a name can't be opened again, so its results can't be repeated
    is_named = rows is None and isinstance(encoder, str | Path)
    is_named = is_named and (pairs is None or isinstance(pairs, str | Path))
    with ExitStack() as stack:
        folder = None
        if pairs is not None:
            shares = _ALL_IN.get(split, _ALL_IN["test"])
            folder = stack.enter_context(folder_of_pairs(pairs, shares))
        request = Request(
            encoder=str(encoder) if isinstance(encoder, str | Path) else "",
            tasks=tasks if isinstance(tasks, str) else ",".join(tasks),
            data=_text(data) if rows is None else None,
            adaptation=_text(adaptation),
            pairs=_text(folder),
            split=split,
            form=form,
            text=text,
            seed=seed,
            classifiers=ClassifierSettings(mode=mode, usepytorch=pytorch, nhid=nhid, kfold=kfold),
        )
        request.refuse_idle()
        file = None
        if out is not None:
            inputs = [*places_of(encoder), adaptation, data, pairs, cache]
            opened = open_results(Path(out), overwrite=overwrite, inputs=inputs)
            file = stack.enter_context(opened)
        loaded = _loaded(encoder, adaptation)
        about = identity(loaded)
        if file is not None:
            file.keep(about, overwrite=overwrite)
        context = request.context()
        return score_tasks(
            loaded,
            request.tasks.split(","),
            context if rows is None else replace(context, graded=lambda: rows),
            known=() if file is None or overwrite else tuple(file.results),
            progress=progress,
            cache=None if cache is None else Path(cache),
            about=about,
            costs=dict if file is None else lambda: _costs(encoder, loaded),
            request=asdict(request) if is_named else None,
            keep=(lambda result: result) if file is None else file.add,
            skip_missing=skip_missing,
        )


def repeat(
    path: str | Path,
    *,
    cache: str | Path | None = None,
    progress: EvaluationProgress = lambda _done, _total, _task: None,
) -> Repeated:
    """Computes every result of a file again, with its recorded settings.

    Args:
        path: the results file. It is not changed.
        cache: folder that keeps embeddings for later runs of the encoder.
        progress: called before each task, and by long tasks in between.

    Raises:
        InputError: the file is damaged, or a result does not contain its settings.
    """
    groups: dict[Request, list[Result]] = {}
    for number, result in enumerate(read_results(Path(path))):
        if not result.run:
            raise InputError(
                f"{path}: results[{number}].run is empty; `rejoinder evaluate` did not make it."
            )
        try:
            request = decoded(Request, result.run)
        except ValueError as error:
            raise InputError(f"{path}: results[{number}].run is damaged: {error}.") from None
        groups.setdefault(replace(request, tasks=""), []).append(result)

    @lru_cache
    def opened(name: str, adaptation: str | None) -> tuple[Encodes, Mapping[str, Any]]:
        loaded = load_encoder(name, adaptation)
        return loaded, identity(loaded)

    same = 0
    costs: list[Mapping[str, float]] = []
    differences: list[tuple[str, str, str, Any, Any]] = []
    missing: list[Missing] = []
    for request, results in groups.items():
        loaded, about = opened(request.encoder, request.adaptation)
        again = score_tasks(
            loaded,
            list(dict.fromkeys(result.task for result in results)),
            request.context(),
            progress=progress,
            cache=None if cache is None else Path(cache),
            about=about,
            skip_missing=True,
        )
        by_part = {(result.task, result.split): result for result in again}
        costs += (result.cost for result in again)
        for before in results:
            now = by_part.get((before.task, before.split))
            scores = {} if now is None else now.scores
            found: list[tuple[str, Any, Any]] = [
                (name, value, scores.get(name, "–"))
                for name, value in before.scores.items()
                if scores.get(name) != value
            ]
            same += len(before.scores) - len(found)
            for what in ("data", "encoder") if now else ():
                old, new = (dict(getattr(result, what)) for result in (before, now))
                if old != new:
                    one, other = (part.get("sha256", part.get("name")) for part in (old, new))
                    found.append((what, str(one)[:24], str(other)[:24]))
            differences += [(before.task, before.split, *row) for row in found]
        missing += again.missing
    earlier = (result.cost for results in groups.values() for result in results)
    return Repeated(same, tuple(differences), tuple(missing), (speed(earlier), speed(costs)))


def _text(path: object) -> str | None:
    return None if path is None else str(path)


def _loaded(encoder: str | Path | Encodes, adaptation: str | Path | None) -> Encodes:
    if isinstance(encoder, str | Path):
        return load_encoder(encoder, adaptation)
    if not isinstance(encoder, Encodes):
        raise InputError(
            f"a {type(encoder).__name__} is not an encoder: it has no encode(list[str]) -> (N, D)."
        )
    return encoder if adaptation is None else Adapted(encoder, read_adaptation(Path(adaptation)))


PREFIXES: Registry[Callable[[str], Encodes]] = Registry(
    "encoder",
    {
        "baseline": "rejoinder_papers.baselines:open_baseline",
        "openai": "rejoinder.evaluation.adapters:open_openai",
        "py": "rejoinder.evaluation.adapters:open_function",
        "scorer": "rejoinder.scoring.scorer:Scorer",
        "st": "rejoinder.evaluation.adapters:SentenceTransformers",
        "tei": "rejoinder.evaluation.adapters:open_tei",
        "vectors": "rejoinder.evaluation.adapters:StoredVectors",
    },
)
"""Functions that open an encoder, by the prefix of its name. A name without a prefix is a model."""
_MAY_BE_FOREIGN = re.compile(r"[\w-]+/[\w.-]+")
"""Names in the hub of Sentence Transformers: an owner and a model."""


def load_encoder(
    name: str | Path, adaptation: str | Path | None = None, *, sha256: str | None = None
) -> Encodes:
    """Opens an encoder by name.

    Args:
        name: a model as `SentenceEncoder.load` takes it (name, folder, https address), or a prefix
            and a name: `baseline:NAME`, `py:MODULE:FUNCTION` (a function of a list of strings),
            `scorer:FOLDER` (of `fit_scorer`), `st:NAME` (Sentence Transformers), `vectors:FILE`
            (stored embeddings), `openai:MODEL@URL` and `tei:URL` (servers).
        adaptation: a file of `rejoinder adapt`, or its folder, to apply to the embeddings.
        sha256: SHA-256 of the archive, required for an https address.

    Raises:
        RejoinderError: there is no such encoder, the adaptation does not fit it, or `sha256` is
            given for a name that is not an https address.
    """
    if adaptation is not None:
        fitted = read_adaptation(Path(adaptation))
        return Adapted(load_encoder(name, sha256=sha256), fitted)
    prefix, colon, rest = str(name).partition(":")
    if colon and prefix in PREFIXES:
        if sha256 is not None:
            raise InputError(f"sha256 is for a model at an https address; {name} is not one.")
        return PREFIXES[prefix](rest)
    try:
        return SentenceEncoder.load(name, sha256=sha256)
    except ModelError as error:
        if not isinstance(name, str) or not _MAY_BE_FOREIGN.fullmatch(name) or Path(name).exists():
            raise
        raise ModelError(f"{error} For Sentence Transformers, write st:{name}.") from None


REFERENCES = ("rejoinder-small", "baseline:bow")
"""Encoders whose speed goes into each results file."""


_PARTS = (20, 80, 400, 1_500, 6_000, 12_000)
"""Numbers of reference sentences in the parts, which are encoded one after another."""
_WORDS = (4, 24)


@cache
def _reference() -> list[str]:
    """Returns fixed sentences.

    Their words are from `rejoinder-small`, drawn about as often as people use them (Zipf's law).
    """
    model = files("rejoinder").joinpath("data/models/rejoinder-small/vocabulary.txt")
    words = np.array(model.read_text("utf-8").split())
    generator = np.random.default_rng(0)
    lengths = generator.integers(*_WORDS, sum(_PARTS), endpoint=True)
    ranks = (len(words) ** generator.random(lengths.sum())).astype(np.int64) - 1
    return [" ".join(part) for part in np.split(words[ranks], np.cumsum(lengths)[:-1])]


def reference_speed(encoder: Encodes) -> float:
    """Returns how many sentences per second an encoder reaches on 20,000 fixed sentences.

    It encodes larger and larger parts until one takes a second, and returns the speed on that part.
    To compare machines, divide it by the speed of another encoder on the same machine.
    """
    texts, done, meter = _reference(), 0, Meter()
    if isinstance(encoder, Prepares):
        encoder.prepare("reference", texts)
    for count in _PARTS:
        meter = Meter()
        with meter.running(count):
            encoder.encode(texts[done : done + count])
        done += count
        if meter.seconds > 1:
            break
    return round(meter.sentences / meter.seconds, 1)


@cache
def _reference_speeds() -> dict[str, float]:
    return {name: reference_speed(load_encoder(name)) for name in REFERENCES}


def _costs(encoder: str | Path | Encodes, loaded: Encodes) -> dict[str, float]:
    """Returns speeds on the reference sentences, and the bytes of a model stored in files.

    Servers are not measured, and stored vectors don't have these sentences. If an encoder fails on
    them, a warning says so.
    """
    speeds = dict(_reference_speeds())
    try:
        if not isinstance(loaded, CachesItself):
            speeds["reference"] = reference_speed(loaded)
    except RejoinderError:  # stored vectors
        pass
    except Exception as error:
        reason = f"on the reference sentences, encode {raised(error)}"
        warnings.warn(f"the speed is left out: {reason}", stacklevel=2)
    path = Path(str(encoder).partition(":")[2] or str(encoder))
    path = shipped_models().get(str(encoder), path)
    size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
    return {**speeds, "model_bytes": size} if size else speeds


def places_of(encoder: object) -> tuple[object, str]:
    """Returns the possible path that an encoder is read from, such as FILE in `vectors:FILE`."""
    return encoder, str(encoder).partition(":")[2]
