"""Trains and evaluates the models of the tables, in stages; finished stages are not repeated."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rejoinder.api.pairs import response_pairs
from rejoinder.api.training import train
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.datasets.semeval import read_stsb
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.results import Result, read_results, write_results
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import decoded
from rejoinder.models.adaptation import Adapted, fit_adaptation, read_adaptation
from rejoinder.protocols import Encodes
from rejoinder.training.config.loading import parse_config
from rejoinder.training.loop.checkpoint import Reporter
from rejoinder.training.workers import describe_machine
from rejoinder_papers.budgets import NLI, Budget, multitask_config, response_config

MODELS = ("Reddit", "Reddit tuned", "Reddit+SNLI", "Reddit+SNLI tuned")
"""The paper's names of the four models."""
_PREPARATION, _EVALUATION = 40, 15
"""Training steps that take as long as preparing a run of two tasks, and as an evaluation."""
_TASKS = ("response/p@n", "stsb/angular", "snli/head", "cqa-b/2016", "cqa-b/2017")


@dataclass(frozen=True)
class Options:
    """The options of a reproduction."""

    data: Path
    out: Path
    encoder: str
    budget: Budget
    seed: int = 1
    device: str = "auto"
    threads: int | None = None
    also: tuple[Path, ...] = ()
    """Folders of models trained elsewhere, shown in the tables below the reproduction's rows."""


@dataclass(frozen=True)
class _Stored:
    """The contents of `options.json`."""

    options: Mapping[str, Any]
    stages: dict[str, Any]


def _point(share: float) -> str:
    """Returns the name of the run for a point of figure 8."""
    return f"multitask-{round(100 * share)}"


class Work:
    """The stages of one reproduction in the folder `out/work`."""

    def __init__(
        self,
        options: Options,
        reporter: Callable[[int], AbstractContextManager[Reporter]],
        tell: Callable[[str, float | None], None],
    ) -> None:
        """Starts a reproduction, or continues the one in its folder.

        `reporter` returns the reporter of a run, given its steps. `tell` is called before each
        stage with its name and about how many seconds are left, None if unknown.

        Raises:
            InputError: the folder holds another reproduction.
        """
        self.options, self._reporter, self._tell = options, reporter, tell
        self.folder = options.out / "work"
        self.results: dict[str, Sequence[Result]] = {}
        """Results by the paper's name of the model, then of `also` models and of "NAME tuned"."""
        self.also: tuple[str, ...] = ()
        """Names of models trained elsewhere."""
        self.curve: dict[float, Sequence[Result]] = {}
        """Results by share of the NLI data."""
        self.missing: list[str] = []
        """Evaluation tasks without a result because their data is missing."""
        self.facts: Mapping[str, Any] = {}
        """Seconds and steps of each stage, number of pairs, hardware."""
        self._weights: dict[str, float] = {}
        """Approximate duration of each stage, in training steps."""
        budget = asdict(options.budget)
        wanted = {"encoder": options.encoder, "budget": budget, "seed": options.seed}
        wanted = json.loads(json.dumps(wanted))  # tuples become lists, as in the file
        self._stored = self._read(wanted) or _Stored(wanted, {})
        self._remember()

    def _read(self, wanted: Mapping[str, Any]) -> _Stored | None:
        """Returns the folder's stored state, and refuses a folder with other options."""
        out, path = self.options.out, self.folder / "options.json"
        if not path.is_file():
            if out.exists() and any(out.iterdir()):
                raise InputError(f"{out} is not empty; name another folder with `out`.")
            return None
        try:
            stored = decoded(_Stored, json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is damaged: {error}. Remove {out}, or name another folder with `out`."
            ) from None
        if stored.options != wanted:
            found = ", ".join(f"{name} {value}" for name, value in stored.options.items())
            raise InputError(
                f"{out} holds a reproduction with other options ({found}); name another folder "
                "with `out`."
            )
        return stored

    def _remember(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / "options.json", json.dumps(asdict(self._stored), indent=1) + "\n")

    def run(self) -> None:
        """Runs all unfinished stages.

        Raises:
            RejoinderError: data is missing, a model of `also` can't be loaded or has the name of
                another, or a stage fails; finished stages stay.
        """
        also = self._also()  # first, so that a wrong path fails before hours of training
        self._weights = self._weighed(also)
        self._stage("extraction", self.folder / "pairs" / "manifest.json", self._extract)
        options, budget = self.options, self.options.budget
        tree = response_config(options.encoder, budget, options.seed)
        base = self._trained("responses", tree, 1.0)
        nli = self._nli()
        both = self._trained("multitask", multitask_config(tree, budget, str(base), nli), 0.5)
        for name, folder in (("Reddit", base), ("Reddit+SNLI", both)):
            made = folder.parent / "adaptation.safetensors"
            self._evaluate(name, SentenceEncoder.load(folder), name, made)
        self.also = tuple(also)
        for name, encoder in also.items():
            stem = f"also-{encoder.describe()['sha256'][:12]}"
            self._evaluate(name, encoder, stem, self.folder / "also" / f"{stem}.safetensors")
        for share in budget.curve:
            config = multitask_config(tree, budget, str(base), nli, share)
            name = _point(share)
            model = SentenceEncoder.load(self._trained(name, config, 0.125))
            self.curve[share] = self._evaluated(name, model, ("stsb/angular",), name)
        count = open_pairs(self.folder / "pairs").count("train")
        stages = self._stored.stages
        self.facts = {"stages": stages, "machine": describe_machine(), "pairs": count}

    def _stage(self, name: str, made: Path, work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Runs `work` unless the file `made` exists; records its seconds and facts."""
        if made.exists():
            return
        self._tell(name, self._seconds_left())
        begun = time.perf_counter()
        facts = work() or {}
        self._stored.stages[name] = {"seconds": round(time.perf_counter() - begun, 1), **facts}
        self._remember()

    def _weighed(self, also: Iterable[str]) -> dict[str, float]:
        """Returns the weights of the stages to run, including models of `also`."""
        budget = self.options.budget
        weights: dict[str, float] = {"extraction": _EVALUATION, "responses": budget.steps}
        weights["multitask"] = budget.more_steps + _PREPARATION
        for share in budget.curve:
            weights[_point(share)] = budget.curve_steps + _PREPARATION
        for name in ("Reddit", "Reddit+SNLI", *also):
            for stage in (f"{name}: evaluation", f"{name} tuned", f"{name} tuned: evaluation"):
                weights[stage] = _EVALUATION
        return weights

    def _seconds_left(self) -> float | None:
        """Returns an estimate from the finished stages."""
        stages, weights = self._stored.stages, self._weights
        done = [name for name in weights if name in stages]
        if not done:
            return None
        left = sum(weights[name] for name in weights if name not in stages)
        seconds = sum(stages[name]["seconds"] for name in done)
        return float(seconds) * left / sum(weights[name] for name in done)

    def _extract(self) -> None:
        dumps = [self.options.data / pattern for pattern in self.options.budget.dumps]
        extract(dumps, self.folder / "pairs")

    def _nli(self) -> str:
        for name in NLI:
            if (self.options.data / name).is_file():
                return name
        raise DataMissingError(
            f"SNLI's train split is not below {self.options.data}; looked for {', '.join(NLI)}. "
            "`rejoinder data list` says where to get it."
        )

    def _trained(self, name: str, tree: Mapping[str, Any], part: float) -> Path:
        """Returns the model folder of a run, after starting or continuing it if unfinished."""
        run = self.folder / "runs" / name
        model = run / "model"
        self._stage(name, model / "config.json", lambda: self._train(name, run, tree, part))
        return model

    def _train(self, name: str, run: Path, tree: Mapping[str, Any], part: float) -> dict[str, Any]:
        """Trains a model in the folder `run`, within a share `part` of the budget's minutes."""
        options, phase = self.options, tree["phases"][0]
        minutes = options.budget.minutes
        begun = (run / "manifest.json").is_file()
        with self._reporter(phase["steps"]) as reporter:
            result = train(
                None if begun else parse_config(tree, name),
                out=run,
                pairs=self.folder / "pairs",
                data=options.data,
                device=options.device,
                threads=options.threads,
                minutes=None if minutes is None else minutes * part,
                resume=begun,
                overwrite=not begun,
                evaluate=lambda _encoder: {},
                reporter=reporter,
            )
        if result.interrupted is not None:
            raise KeyboardInterrupt  # the run has a checkpoint; the same command continues it
        return {
            "steps": result.steps,
            "minutes of training": round(result.seconds / 60, 2),
            "leaks": result.leaks,
            "batch size": phase["batch_size"],
        }

    def _evaluate(self, name: str, encoder: SentenceEncoder, stem: str, made: Path) -> None:
        """Scores a model, then with its adaptation, the file `made`, which is fitted if missing.

        The results files are called `stem` and "stem tuned".
        """
        self.results[name] = self._evaluated(name, encoder, _TASKS, stem)
        if encoder.describe()["adaptation"] is not None:
            return

        def work() -> None:
            train, dev = (read_stsb(self.options.data, split) for split in ("train", "dev"))
            fit_adaptation(encoder, train, dev).write(made)

        tuned = f"{name} tuned"
        self._stage(tuned, made, work)
        adapted = Adapted(encoder, read_adaptation(made))
        self.results[tuned] = self._evaluated(tuned, adapted, _TASKS, f"{stem} tuned")

    def _also(self) -> dict[str, SentenceEncoder]:
        """Returns the models trained elsewhere, by name."""
        models: dict[str, SentenceEncoder] = {}
        for place in self.options.also:
            encoder = SentenceEncoder.load(place, threads=self.options.threads)
            name = encoder.describe()["name"]
            if name in models or name in MODELS:
                raise InputError(
                    f"`also` {place}: there is another model {name!r} in the tables; give one of "
                    "them another name with `rejoinder export MODEL --name NAME --out DIR`."
                )
            models[name] = encoder
        return models

    def _evaluated(
        self, name: str, encoder: Encodes, tasks: Sequence[str], stem: str
    ) -> list[Result]:
        """Returns the results of an encoder on tasks, from the file `stem`."""
        path = self.folder / "results" / f"{stem}.json"
        pairs = self.folder / "pairs"
        context = Context(self.options.data, pairs=lambda: response_pairs(pairs, "test"))

        def work() -> None:
            write_results(path, score_tasks(encoder, tasks, context, skip_missing=True))

        self._stage(f"{name}: evaluation", path, work)
        results = read_results(path)
        done = {result.task for result in results}
        self.missing += [f"{task} of {name}" for task in tasks if task not in done]
        return results
