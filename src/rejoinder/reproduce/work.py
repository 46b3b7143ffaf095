"""The work behind the tables, in stages: what a stage has left is not made again."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rejoinder.adaptation.adapted import Adapted
from rejoinder.adaptation.linear import read_adaptation
from rejoinder.adaptation.sts import adapt
from rejoinder.corpus.extract import extract
from rejoinder.corpus.shards import open_pairs
from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.results_file import read_results, write_results
from rejoinder.evaluation.run import iter_results
from rejoinder.evaluation.tasks.base import Context
from rejoinder.evaluation.tasks.response import ResponsePairs
from rejoinder.files.atomic import write_text
from rejoinder.protocols import Encodes
from rejoinder.reproduce.budgets import NLI, Budget, multitask_config, response_config
from rejoinder.runtime.encoder import SentenceEncoder
from rejoinder.training.config import parse_config
from rejoinder.training.loop import Limits, Reporter
from rejoinder.training.machine import describe_machine
from rejoinder.training.run import RunOptions, begin, go_on, open_data

MODELS = ("Reddit", "Reddit tuned", "Reddit+SNLI", "Reddit+SNLI tuned")
"""The paper's names of the four models."""
_TASKS = ("response/p@n", "stsb/angular", "snli/head", "cqa-b/2016", "cqa-b/2017")


@dataclass(frozen=True)
class Options:
    """What is reproduced."""

    data: Path
    out: Path
    encoder: str
    budget: Budget
    seed: int = 1
    device: str = "auto"
    threads: int | None = None


@dataclass(frozen=True)
class Reproduced:
    """Everything that the tables and figures show."""

    results: Mapping[str, Sequence[Result]]
    """By the paper's name of the model."""
    curve: Mapping[float, Sequence[Result]]
    """By the share of the NLI data."""
    missing: tuple[str, ...]
    facts: Mapping[str, Any]
    """Seconds and steps of each stage, pairs, hardware."""


class Work:
    """The stages of one reproduction in the folder `out/work`."""

    def __init__(
        self,
        options: Options,
        reporter: Callable[[str, int], AbstractContextManager[Reporter]],
        pairs: Callable[[Path, str], ResponsePairs],
    ) -> None:
        """A reproduction that begins, or goes on.

        Args:
            options: what is wanted.
            reporter: told the name of a run and its steps, gives who listens to it.
            pairs: reads a split of a folder of pairs for the response task.

        Raises:
            InputError: the folder holds another reproduction.
        """
        self.options, self._reporter, self._pairs = options, reporter, pairs
        self.folder = options.out / "work"
        self._facts: dict[str, Any] = {}
        self._missing: dict[str, None] = {}
        self._open()

    def _open(self) -> None:
        """Refuse a folder of other options; remember these."""
        wanted = {
            "encoder": self.options.encoder,
            "budget": asdict(self.options.budget),
            "seed": self.options.seed,
        }
        wanted = json.loads(json.dumps(wanted))
        place = self.folder / "options.json"
        if place.is_file():
            found = json.loads(place.read_text("utf-8"))
            if found["options"] != wanted:
                raise InputError(
                    f"{self.options.out} holds a reproduction with other options "
                    f"({found['options']['encoder']}, {found['options']['budget']['name']}); name "
                    "another folder with --out."
                )
            self._facts = found["stages"]
        elif self.options.out.exists() and any(self.options.out.iterdir()):
            raise InputError(f"{self.options.out} is not empty; name another folder with --out.")
        self._wanted = wanted
        self._remember()

    def _remember(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        tree = {"options": self._wanted, "stages": self._facts}
        write_text(self.folder / "options.json", json.dumps(tree, indent=1) + "\n")

    def run(self) -> Reproduced:
        """All that is not done yet.

        Raises:
            RejoinderError: data is missing, or a stage fails; what is done stays.
        """
        self._stage("extraction", self.folder / "pairs" / "manifest.json", self._extract)
        tree = response_config(self.options.encoder, self.options.budget, self.options.seed)
        base = self._trained("responses", tree, 1.0)
        nli = self._nli()
        budget = self.options.budget
        both = self._trained("multitask", multitask_config(tree, budget, str(base), nli), 0.5)
        results = {
            name: self._evaluated(name, model, _TASKS)
            for name, model in zip(MODELS, self._with_tuned(base, both), strict=True)
        }
        curve = {}
        for share in budget.curve:
            config = multitask_config(tree, budget, str(base), nli, share)
            name = f"multitask-{round(100 * share)}"
            model = SentenceEncoder.load(self._trained(name, config, 0.125))
            curve[share] = self._evaluated(name, model, ("stsb/angular",))
        pairs = open_pairs(self.folder / "pairs")
        facts = {
            "stages": self._facts,
            "machine": describe_machine(),
            "pairs": pairs.count("train"),
        }
        return Reproduced(results, curve, tuple(self._missing), facts)

    def _stage(self, name: str, made: Path, work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Do `work` unless what it makes is there."""
        if made.exists():
            return
        begun = time.perf_counter()
        facts = work() or {}
        self._facts[name] = {"seconds": round(time.perf_counter() - begun, 1), **facts}
        self._remember()

    def _extract(self) -> None:
        dumps = [self.options.data / pattern for pattern in self.options.budget.dumps]
        extract(dumps, self.folder / "pairs")

    def _nli(self) -> str:
        for name in NLI:
            if (self.options.data / name).is_file():
                return name
        raise DataMissingError(
            f"SNLI's train split is not below {self.options.data}; looked for {', '.join(NLI)}. "
            "`rejoinder data list` says where it is to be had."
        )

    def _trained(self, name: str, tree: Mapping[str, Any], part: float) -> Path:
        """The model folder of a run; one that was broken off goes on from its checkpoint."""
        run = self.folder / "runs" / name
        model = run / "model"
        self._stage(name, model / "config.json", lambda: self._train(name, run, tree, part))
        return model

    def _train(self, name: str, run: Path, tree: Mapping[str, Any], part: float) -> dict[str, Any]:
        options = self.options
        data = open_data(self.folder / "pairs", options.data)
        if not (run / "manifest.json").is_file():
            config = parse_config(tree, name)
            begin(config, data, run, overwrite=True, progress=lambda _done, _all: None)
        minutes = options.budget.minutes
        limits = Limits(seconds=None if minutes is None else 60 * minutes * part)
        with self._reporter(name, tree["phases"][0]["steps"]) as reporter:
            result = go_on(
                run,
                data,
                RunOptions(limits, options.device, options.threads),
                evaluate=lambda _encoder: {},
                reporter=reporter,
            )
        if result.interrupted is not None:
            raise KeyboardInterrupt  # the run has a checkpoint; the same command continues it
        return {
            "steps": result.steps,
            "minutes of training": round(result.seconds / 60, 2),
            "leaks": result.leaks,
            "batch size": tree["phases"][0]["batch_size"],
        }

    def _with_tuned(self, base: Path, both: Path) -> list[Encodes]:
        """Of each model itself and its adaptation."""
        train, dev = (read_stsb(self.options.data, split) for split in ("train", "dev"))
        models: list[Encodes] = []
        for place in (base, both):
            encoder = SentenceEncoder.load(place)
            made = place.parent / "adaptation.safetensors"

            def work(encoder: SentenceEncoder = encoder, made: Path = made) -> None:
                adapt(encoder, train, dev).write(made)

            self._stage(f"{place.parent.name} tuned", made, work)
            models += [encoder, Adapted(encoder, read_adaptation(made))]
        return models

    def _evaluated(self, name: str, encoder: Encodes, tasks: Sequence[str]) -> list[Result]:
        place = self.folder / "results" / f"{name}.json"
        folder = self.folder / "pairs"
        context = Context(self.options.data, pairs=lambda: self._pairs(folder, "test"))

        def work() -> None:
            outcomes = iter_results(encoder, tasks, context)
            write_results(place, [one for one in outcomes if isinstance(one, Result)])

        self._stage(f"{name}: evaluation", place, work)
        results = read_results(place)
        done = {result.task for result in results}
        self._missing |= {f"{task} of {name}": None for task in tasks if task not in done}
        return results
