"""Trains models: `train` makes one run, `train_seeds` makes a run per seed.

A run is trained in its output folder. A run that replaces another is trained next to it, in
`.NAME.unfinished`, and moved into place once it has a model. Until then the old run stays as it
was, and `--resume` continues the new one.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from rejoinder.api.pairs import DevScores, GivenPairs, folder_of_pairs
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError, TrainingError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import discard_unfinished, unfinished_folder
from rejoinder.io.files.claims import claim, refuse_occupied, swap_in
from rejoinder.io.files.storage import creation_errors, resolved
from rejoinder.training.config.loading import is_shipped_name, load_config
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import Data, PreparationProgress, Prepared
from rejoinder.training.loop.checkpoint import Reporter, SilentReporter
from rejoinder.training.loop.loop import Evaluate, Limits
from rejoinder.training.loop.run import RunResult, begin, go_on, removed_if_refused
from rejoinder.training.workers import Workers, joined_workers

Config = RunConfig | Path | str
"""A config, the path of a TOML file, or the name of a shipped config."""
_SPLIT = (95.0, 2.5, 2.5)
"""Shares of train, dev and test for pairs in memory, the same as in `extract`."""
_MOST_RANKED = 10_000
"""Inputs of the dev split to rank in an evaluation during training."""


@dataclass(frozen=True)
class Run(RunResult):
    """A run on disk and the outcome of its last session."""

    def load_encoder(self) -> SentenceEncoder:
        """Loads the trained model.

        Raises:
            TrainingError: the run was stopped before it exported a model.
        """
        if self.model is None:
            raise TrainingError(
                f"{self.folder} stopped at step {self.steps:,} and has no model yet; resume it."
            )
        return SentenceEncoder.load(self.model)


class SessionOptions(TypedDict, total=False):
    """Options that `train` and `train_seeds` share; `train` explains them."""

    pairs: GivenPairs | None
    data: Path | str | None
    overrides: Sequence[str]
    device: str
    threads: int | None
    stop_at: int | None
    minutes: float | None
    resume: bool
    overwrite: bool
    evaluate: Evaluate | None
    reporter: Reporter | None
    progress: PreparationProgress | None


def train(
    config: Config | None,
    *,
    out: Path | str,
    pairs: GivenPairs | None = None,
    data: Path | str | None = None,
    overrides: Sequence[str] = (),
    device: str = "auto",
    threads: int | None = None,
    stop_at: int | None = None,
    minutes: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    evaluate: Evaluate | None = None,
    reporter: Reporter | None = None,
    progress: PreparationProgress | None = None,
) -> Run:
    """Trains an encoder in the folder `out`; the model is `out/model`.

    Under `torchrun`, the processes train the model together, each on a part of every batch. All
    need the same arguments, and a shared folder.

    The same config, data, number of workers and number of threads give the same bytes, even if the
    run is stopped and resumed. SIGINT and SIGTERM stop it after the current step, with a
    checkpoint.

    Args:
        config: a config, the path of a TOML file or the name of a shipped config. With `resume`,
            None means the config of the run.
        out: the folder of the run.
        pairs: for the task `responses`: a folder that `extract` wrote; rows of message and reply;
            or a table of Polars, pandas or Arrow with these columns. Rows in memory are split by a
            hash of the message: 95 % train, 2.5 % dev and 2.5 % test.
        data: a folder of data sets with the files of `[[tasks]]`. If it holds the STS Benchmark,
            evaluations include its dev split.
        overrides: settings to replace, as `key=value` (see `docs/config.md`).
        device: `auto`, `cpu` or `cuda`.
        threads: number of CPU threads of torch during the call; None leaves torch's setting.
        stop_at: step to stop at, with a checkpoint but no model.
        minutes: minutes of training steps after which to stop, with a checkpoint and a model.
        resume: continue from the last checkpoint.
        overwrite: replace what is at `out` once the new run has a model. Until then the new run is
            next to it, in `.NAME.unfinished`, where `resume` finds it.
        evaluate: scores the model during training; None means `DevScores`.
        reporter: told about steps, evaluations and checkpoints.
        progress: called with the number of prepared pairs and the number of all pairs.

    Raises:
        RejoinderError: an option, the config or the data is not usable, or training fails. A new
            run that fails before its first checkpoint leaves no folder.
    """
    folder = Path(out)
    with joined_workers(device) as workers, ExitStack() as stack:
        with workers.agreed():
            session = _Session(
                workers,
                stack,
                pairs=pairs,
                data=data,
                overrides=overrides,
                device=device,
                threads=threads,
                stop_at=stop_at,
                minutes=minutes,
                resume=resume,
                overwrite=overwrite,
                evaluate=evaluate,
                reporter=reporter,
                progress=progress,
            )
            plan = session.plan(config, folder)
        return session.train(plan)


def train_seeds(
    config: Config | None,
    seeds: Sequence[int],
    *,
    out: Path | str,
    **options: Unpack[SessionOptions],
) -> Mapping[int, Run]:
    """Trains one run per seed, in the folders `out/seed-N`.

    With `resume`, unfinished runs continue and missing ones start. Limits apply to each run.

    Args:
        config: see `train`.
        seeds: seeds of the runs; each is trained once.
        out: the folder for the folders of the runs.
        options: see `train`.

    Returns:
        The runs by seed. A signal stops the current run, and later seeds are not trained.

    Raises:
        RejoinderError: see `train`.
    """
    folder = Path(out)
    with joined_workers(options.get("device", "auto")) as workers, ExitStack() as stack:
        with workers.agreed():
            session = _Session(workers, stack, **options)
            if not session.resume:
                refuse_occupied(folder, overwrite=session.overwrite)
            plans = {
                seed: session.plan(config, folder / f"seed-{seed}", seed)
                for seed in dict.fromkeys(seeds)
            }
            if workers.leads:
                stack.enter_context(claim(folder))
        runs: dict[int, Run] = {}
        for seed, plan in plans.items():
            runs[seed] = session.train(plan)
            if runs[seed].interrupted is not None:
                break
        return runs


@dataclass(frozen=True)
class _Plan:
    """A run to begin or to resume."""

    config: RunConfig
    source: Config
    """The source of the config."""
    folder: Path
    """The folder of the run."""
    work: Path
    """Where it is trained: next to `folder` while it replaces another run."""
    resume: bool


class _Session:
    """The options and data of one call, for one run or several."""

    def __init__(
        self, workers: Workers, stack: ExitStack, **options: Unpack[SessionOptions]
    ) -> None:
        self._workers, self._options = workers, options
        self.resume = options.get("resume", False)
        self.overwrite = options.get("overwrite", False)
        if self.resume and self.overwrite:
            raise InputError(
                "`resume=True` continues a run, `overwrite=True` replaces it: leave one out."
            )
        stop_at, minutes = options.get("stop_at"), options.get("minutes")
        if (stop_at is not None and stop_at < 1) or (minutes is not None and not minutes > 0):
            raise InputError(f"stop_at and minutes must be above 0; got {stop_at} and {minutes}.")
        self._limits = Limits(stop_at, None if minutes is None else 60 * minutes)
        pairs, data = options.get("pairs"), options.get("data")
        self._prepared: Prepared | None = None
        """The data that the first run prepared; the others differ in their seeds only."""
        opened = None
        if pairs is not None:
            opened = open_pairs(stack.enter_context(folder_of_pairs(pairs, _SPLIT)))
        self._data = Data(opened, None if data is None else Path(data))

    def plan(self, config: Config | None, run: Path, seed: int | None = None) -> _Plan:
        """Loads and checks the config of the run in a folder; `seed` means one of several runs."""
        work = self._place(run)
        begun = self.resume and (work / CONFIG).is_file()
        if self.resume and not begun and (config is None or seed is None):
            others = sorted(path.name.removeprefix("seed-") for path in run.glob("seed-*"))
            what = "no run to resume; without `resume=True` a new one begins"
            if others:
                what = (
                    f"runs of several seeds; resume with the same seeds: `seed={','.join(others)}`"
                )
            raise InputError(f"{run} holds {what}.")
        if config is None and not begun:
            raise InputError(
                "`config` is missing: a TOML file, or a name that `rejoinder config list` shows."
            )
        seeds = [] if seed is None else [f"training.seed={seed}"]
        source = work / CONFIG if config is None else config
        loaded = load_config(source, [*self._options.get("overrides", ()), *seeds])
        return _Plan(loaded, source, run, work, begun)

    def _place(self, out: Path) -> Path:
        """Returns where to train the run of an output."""
        place = place_of_run(out)
        if self.resume:
            return place
        if place != out and not self.overwrite:
            raise InputError(
                f"an interrupted run is at {place}; use `resume=True`, or `overwrite=True`."
            )
        is_full = out.is_dir() and any(out.iterdir())
        return unfinished_folder(out) if self.overwrite and is_full else out

    def train(self, plan: _Plan) -> Run:
        """Starts or resumes a run, and moves it to its folder once it has a model."""
        leads, work, threads = self._workers.leads, plan.work, self._options.get("threads")
        with ExitStack() as stack:
            with self._workers.agreed():  # the others wait until the run has begun
                if leads:
                    inputs = () if work == plan.folder else self._inputs(plan)
                    stack.enter_context(claim(plan.folder, inputs=inputs))
                    if work == plan.folder and not plan.resume:
                        discard_unfinished(plan.folder)
                if leads and not plan.resume:
                    self._prepared = begin(
                        plan.config,
                        self._data,
                        work,
                        overwrite=self.overwrite,
                        threads=threads,
                        progress=self._options.get("progress") or (lambda _done, _total: None),
                        prepared=self._prepared,
                    )
            if leads and not plan.resume:
                stack.enter_context(removed_if_refused(work))
            result = go_on(
                work,
                self._data,
                self._limits,
                config=plan.config,
                threads=threads,
                device=self._options.get("device", "auto"),
                workers=self._workers,
                evaluate=self._options.get("evaluate") or self._dev_scores(plan.config),
                reporter=self._options.get("reporter") or SilentReporter(),
            )
            run = Run(**vars(result))
            if work == plan.folder or run.model is None:
                return run
            with self._workers.agreed():
                if leads:
                    with creation_errors(plan.folder):
                        swap_in(work, resolved(plan.folder))
            return replace(run, folder=plan.folder, model=plan.folder / run.model.name)

    def _inputs(self, plan: _Plan) -> list[object]:
        """Returns the files and folders that a run reads, which it must not replace."""
        source = plan.source
        if isinstance(source, RunConfig) or is_shipped_name(str(source)):
            source = ""
        pairs = None if self._data.pairs is None else self._data.pairs.folder
        return [pairs, self._data.folder, plan.config.training.init_from, source]

    def _dev_scores(self, config: RunConfig) -> Evaluate:
        pairs = None if self._data.pairs is None else self._data.pairs.folder
        return DevScores(
            pairs,
            self._data.folder,
            max_inputs=_MOST_RANKED,
            without=self._data.selection(config).left_out,
        )


CONFIG = "config.toml"


def place_of_run(out: Path) -> Path:
    """Returns the folder that the run of an output is in now."""
    unfinished = unfinished_folder(out)
    return unfinished if (unfinished / CONFIG).is_file() else out
