"""What `rejoinder evaluate` runs: what is asked for, saved result by result, or a repetition."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rejoinder.cli.evaluation_inputs import open_encoder, response_pairs
from rejoinder.cli.progress import task_bar
from rejoinder.errors import InputError
from rejoinder.evaluation.calls import identity
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.evaluation.results import Missing, Result
from rejoinder.evaluation.results_file import ResultsFile, open_results, read_results
from rejoinder.evaluation.run import evaluate
from rejoinder.evaluation.tasks.base import Context
from rejoinder.protocols import Encodes

Asked = Mapping[str, Any]
"""How results are asked for: encoder, tasks, data and settings, as the command line has them."""
_OPTIONAL = (str, type(None))
_KINDS: Mapping[str, Any] = {
    "encoder": str,
    "adaptation": _OPTIONAL,
    "tasks": str,
    "data": _OPTIONAL,
    "pairs": _OPTIONAL,
    "split": str,
    "form": _OPTIONAL,
    "text": str,
    "seed": int,
    "classifiers": Mapping,
}


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    results: list[Result]
    """Those that were asked for, whether scored now or before."""
    missing: list[Missing]
    reused: int = 0
    """How many of the results were there already."""


@dataclass(frozen=True)
class Repetition:
    """A result and the same asked for once more."""

    before: Result
    now: Result | None
    """None: its data is missing now, or the task no longer gives it."""


def run_asked(asked: Asked, out: Path | None, cache: Path | None, *, overwrite: bool) -> Outcome:
    """Score what was asked for; results are saved one by one, those that `out` has are kept."""
    opened = nullcontext(None) if out is None else open_results(out, overwrite=overwrite)
    with opened as file:
        encoder = _encoder(asked)
        done: Sequence[Result] = ()
        if file is not None:
            file.keep(identity(encoder), overwrite=overwrite)
            done = () if overwrite else tuple(file.results)
        return _run(encoder, asked, done, file, cache)


def repeat(path: Path, cache: Path | None) -> tuple[list[Repetition], list[Missing]]:
    """Score every result of a file again, each as it was asked for.

    Raises:
        InputError: the file is damaged, or a result does not say how it was asked for.
    """
    groups: dict[str, list[Result]] = {}
    for number, result in enumerate(read_results(path)):
        _check_asked(result.run, f"{path}: results[{number}].run")
        groups.setdefault(json.dumps({**result.run, "tasks": ""}, sort_keys=True), []).append(
            result
        )
    encoders: dict[tuple[str, str | None], Encodes] = {}
    found, missing = [], []
    for results in groups.values():
        tasks = ",".join(dict.fromkeys(result.task for result in results))
        asked = {**results[0].run, "tasks": tasks}
        name = (asked["encoder"], asked["adaptation"])
        encoders.setdefault(name, _encoder(asked))
        outcome = _run(encoders[name], asked, (), None, cache)
        again = {(one.task, one.split): one for one in outcome.results}
        found += [Repetition(one, again.get((one.task, one.split))) for one in results]
        missing += outcome.missing
    return found, missing


def _run(
    encoder: Encodes,
    asked: Asked,
    done: Sequence[Result],
    file: ResultsFile | None,
    cache: Path | None,
) -> Outcome:
    results: list[Result] = []
    missing: list[Missing] = []
    reused = 0
    with _progress() as (progress, tell):
        wanted = asked["tasks"].split(",")
        outcomes = evaluate(
            encoder, wanted, _context(asked, tell), done=done, progress=progress, cache=cache
        )
        for outcome in outcomes:
            if isinstance(outcome, Missing):
                missing.append(outcome)
            elif any(outcome is one for one in done):
                reused += 1
                results.append(outcome)
            else:
                result = replace(outcome, run={**asked, "tasks": outcome.task})
                results.append(result if file is None else file.add(result))
    return Outcome(results, missing, reused)


def _encoder(asked: Asked) -> Encodes:
    adaptation = asked["adaptation"]
    return open_encoder(asked["encoder"], None if adaptation is None else Path(adaptation))


def _context(asked: Asked, tell: Any) -> Context:
    pairs = asked["pairs"]
    return Context(
        data=None if asked["data"] is None else Path(asked["data"]),
        pairs=None if pairs is None else lambda: response_pairs(Path(pairs), asked["split"]),
        form=asked["form"],
        seed=asked["seed"],
        classifiers=ClassifierSettings(**asked["classifiers"]),
        text=asked["text"],
        tell=tell,
    )


@contextmanager
def _progress() -> Iterator[tuple[Any, Any]]:
    """Two functions: of tasks done, all of them and the next; and of what this one is doing."""
    now = (0, 0, "")

    with task_bar() as show:

        def progress(done: int, total: int, following: str) -> None:
            nonlocal now
            now = (done, total, following)
            show(*now)

        def tell(doing: str) -> None:
            done, total, task = now
            show(done, total, f"{task}: {doing}")

        yield progress, tell


def _check_asked(run: Asked, where: str) -> None:
    if not run:
        raise InputError(
            f"{where} is empty: the result was not made by `rejoinder evaluate`, and can't be "
            "repeated."
        )
    for name, kind in _KINDS.items():
        if not isinstance(run.get(name), kind):
            raise InputError(f"{where}.{name} is {run.get(name)!r}; it is damaged.")
    known = ClassifierSettings.__dataclass_fields__
    wrong = next((name for name in run["classifiers"] if name not in known), None)
    if wrong is not None or set(run) != set(_KINDS):
        raise InputError(f"{where} has an unknown key; it is damaged.")
