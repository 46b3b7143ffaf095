"""A run from data to a model folder: prepares or resumes it, trains, and exports the model."""

import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from rejoinder.corpus.shards import open_pairs
from rejoinder.errors import RejoinderError, TrainingError
from rejoinder.files.atomic import new_folder, write_text
from rejoinder.files.claims import claim, claim_output, sweep
from rejoinder.training import checkpoint
from rejoinder.training.batches import Stream
from rejoinder.training.checkpoint import TrainingState
from rejoinder.training.config import load_config, to_toml, to_tree
from rejoinder.training.events import RunLog
from rejoinder.training.export import export
from rejoinder.training.initial import open_initial, start_from
from rejoinder.training.labelled import Labelled, LabelledStream
from rejoinder.training.loop import Evaluate, Limits, Trainer
from rejoinder.training.machine import own_torch_state, pick_device
from rejoinder.training.mixture import Mixture, TaskStreams
from rejoinder.training.model import TrainableModel
from rejoinder.training.optimizers import phase_at
from rejoinder.training.preparation import Data, PreparationProgress, Prepared, prepare
from rejoinder.training.reporting import Reporter
from rejoinder.training.settings import RunConfig
from rejoinder.training.start import read_start, write_start
from rejoinder.training.stream import PairStream
from rejoinder.training.tasks import OBJECTIVES


@dataclass(frozen=True)
class RunOptions:
    """Options of one session of a run that are not in its config."""

    limits: Limits = field(default_factory=Limits)
    device: str = "auto"
    """`auto`, `cpu` or `cuda`."""
    threads: int | None = None
    """Number of CPU threads of torch while training. None leaves torch's setting, which is all
    cores unless it was changed. Results repeat bit for bit with the same number of threads."""


@dataclass(frozen=True)
class RunResult:
    """The outcome of one session of a run."""

    folder: Path
    """Folder of the run."""
    done: bool
    """Whether the config's steps are done; if not, the run can be resumed."""
    steps: int
    """Number of steps done, over all sessions."""
    seconds: float
    """Time spent in steps, over all sessions."""
    pairs: int
    """Number of training pairs, without leaks."""
    leaks: int
    """Number of training pairs left out because a text is an evaluation sentence."""
    scores: Mapping[str, float]
    """Scores of the last evaluation of this session, empty if there was none."""
    model: Path | None
    """The model folder, None if the run was stopped to be resumed later."""
    interrupted: signal.Signals | None = None
    """The signal that stopped the run, if one did."""
    warning: str = ""
    """A warning if the model was exported before its schedule was done, else empty."""


def open_data(pairs: Path | None, folder: Path | None) -> Data:
    """Opens a folder of pairs, and notes the folder that the paths of labelled files start from.

    Raises:
        InputError: the pairs are not usable.
    """
    return Data(None if pairs is None else open_pairs(pairs), folder)


def begin(
    config: RunConfig, data: Data, run: Path, *, overwrite: bool, progress: PreparationProgress
) -> None:
    """Makes the folder of a run with config, vocabulary and excluded rows; takes no step yet.

    Raises:
        RejoinderError: the data is not usable, or the folder can't be written.
    """
    with claim_output(run, overwrite=overwrite):
        initial = open_initial(config)
        with new_folder(run, overwrite=overwrite) as folder:
            features = None if initial is None else initial.features
            prepared = prepare(data, config, progress, features)
            write_start(folder, config, data, prepared, "" if initial is None else initial.sha256)


@contextmanager
def removed_if_refused(run: Path) -> Iterator[None]:
    """Removes the folder of a new run if the block fails before its first checkpoint.

    The corrected command then finds no folder in its way.
    """
    try:
        yield
    except RejoinderError:
        if checkpoint.latest(run) is None:
            shutil.rmtree(run, ignore_errors=True)
        raise


def go_on(
    run: Path,
    data: Data,
    options: RunOptions,
    *,
    config: RunConfig | None = None,
    evaluate: Evaluate,
    reporter: Reporter,
) -> RunResult:
    """Trains in the folder of a run, from its last checkpoint if it has one; exports the model.

    While it trains, torch's thread count and random generators are the run's; the caller's are
    restored at the end.

    Args:
        run: the folder that `begin` made.
        data: the data of the run, the same as at the start.
        options: limits, device and threads.
        config: the config of the run if its name, export or logging shall differ from those at the
            start; None reads `config.toml` of the run.
        evaluate: returns the scores on dev.
        reporter: told about steps, evaluations and checkpoints.

    Raises:
        TrainingError: the data or the config differ from those at the start, a file of the run is
            damaged, or training fails.
        BusyError: another process trains in this folder.
    """
    device = pick_device(options.device)
    with claim(run), own_torch_state(device, options.threads):
        sweep(run)
        return _go_on(run, data, device, options.limits, config, evaluate, reporter)


def _go_on(
    run: Path,
    data: Data,
    device: torch.device,
    limits: Limits,
    config: RunConfig | None,
    evaluate: Evaluate,
    reporter: Reporter,
) -> RunResult:
    stored = load_config(run / "config.toml")
    if config is None:
        config = stored
    prepared, initial_sha256 = read_start(run, data, config)
    if config != stored:
        write_text(run / "config.toml", to_toml(config))
    generator = torch.Generator().manual_seed(config.training.seed)
    model = TrainableModel(prepared.features.rows, config, generator)
    saved = checkpoint.latest(run)
    if saved is None and (initial := open_initial(config)) is not None:
        if initial.sha256 != initial_sha256:
            raise TrainingError(
                f"training.init_from {config.training.init_from} is not the model that {run} began "
                "with; put that model back, or begin the run again."
            )
        start_from(model, initial)
    mixture = _mixture(config, data, prepared)
    data.forget_labelled()  # the streams hold the ids
    trainer = Trainer(config, run, model.to(device), prepared.features, mixture, reporter, evaluate)
    if saved is not None:
        trainer.resume(saved)
    with RunLog(run, trainer.state.step, reporter) as log:
        trainer.reporter = log
        done = trainer.train(limits)
    folder = None
    if done or trainer.out_of_time:
        folder = run / "model"
        export(folder, trainer, _training_facts(config, data, prepared, trainer))
    return RunResult(
        folder=run,
        done=done,
        steps=trainer.state.step,
        seconds=trainer.state.seconds,
        pairs=prepared.pairs - prepared.leaks,
        leaks=prepared.leaks,
        scores=trainer.scores,
        model=folder,
        interrupted=trainer.interrupted,
        warning=_unfinished(config, trainer.state, limits) if folder and not done else "",
    )


def _unfinished(config: RunConfig, state: TrainingState, limits: Limits) -> str:
    """Returns a warning that a limit of time cut the schedule, with a number of steps that fits."""
    steps = state.step
    phase, within = phase_at(config.phases, max(steps - 1, 0))
    where = (
        f", inside the warm-up of {phase.warmup_steps:,} steps: it is hardly trained"
        if within < phase.warmup_steps
        else ""
    )
    seconds = limits.seconds or state.seconds
    fitting = max(1, int(steps * seconds / max(state.seconds, 1e-9)))
    total = config.steps
    settings = " ".join(
        f"phases.{number}.steps={max(1, fitting * phase.steps // total)}"
        for number, phase in enumerate(config.phases)
    )
    return (
        f"the model was exported after {steps:,} of {total:,} steps{where}. About {fitting:,} "
        f"steps fit into {seconds / 60:.2g} minutes here; a schedule of that length ends with low "
        f"learning rates: begin again with {settings}"
    )


def _mixture(config: RunConfig, data: Data, prepared: Prepared) -> Mixture:
    """Opens the streams of all tasks.

    Raises:
        TrainingError: a labelled file differs from the one that the run began with.
    """
    seed = config.training.seed
    tasks = []
    for task, files in data.labelled(config):
        dropout = task.word_dropout
        if dropout is None:
            dropout = config.objective.word_dropout
        if OBJECTIVES[task.objective].read is None:
            streams = [_pair_stream(config, data, prepared, dropout)]
        else:
            streams = [_labelled_stream(file, prepared, seed, dropout) for file in files]
        tasks.append(TaskStreams(task, tuple(streams)))
    return Mixture(tasks, seed)


def _pair_stream(config: RunConfig, data: Data, prepared: Prepared, dropout: float) -> Stream:
    if data.pairs is None:
        raise TrainingError("the task responses reads pairs; name their folder with --pairs.")
    return PairStream(
        data.pairs,
        prepared.features,
        window_pairs=config.training.window_pairs,
        seed=config.training.seed,
        excluded=prepared.excluded,
        word_dropout=dropout,
    )


def _labelled_stream(file: Labelled, prepared: Prepared, seed: int, dropout: float) -> Stream:
    if prepared.labelled[file.name]["sha256"] != file.content.sha256:
        raise TrainingError(
            f"{file.name} is not the file that the run began with; name the folder of that file "
            "with --data."
        )
    return LabelledStream(file, prepared.features, seed=seed, word_dropout=dropout)


def _training_facts(
    config: RunConfig, data: Data, prepared: Prepared, trainer: Trainer
) -> dict[str, object]:
    """Returns the facts about its training that a model keeps; no times: its bytes shall repeat."""
    labelled = prepared.labelled.values()
    return {
        "pairs": prepared.pairs - prepared.leaks,
        "labelled": prepared.labelled,
        "leaks_dropped": prepared.leaks + sum(file["leaks"] for file in labelled),
        "leak_sets": list(config.training.leak_sets) if config.training.exclude_leaks else [],
        "steps": trainer.state.step,
        "seed": config.training.seed,
        "data": {} if data.pairs is None else data.pairs.sources,
        "pairs_sha256": None if data.pairs is None else data.pairs.sha256,
        "config": to_tree(config),
    }
