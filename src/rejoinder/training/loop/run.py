"""Prepares or resumes a run, trains the model, and exports it to a model folder."""

import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.encoders import BIGRAM_ROWS, ENCODERS
from rejoinder.encoders.layers import dequantized
from rejoinder.encoders.nn.layers import BOOKKEEPING
from rejoinder.errors import ConfigError, RejoinderError, TrainingError
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.claims import claim, claim_output, sweep
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.config.loading import VOCABULARY_KEYS, load_config, to_toml, to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data import preparation
from rejoinder.training.initial_rows import learn_rows, turn_rows
from rejoinder.training.loop import checkpoint
from rejoinder.training.loop.loop import Evaluate, Limits, Trainer
from rejoinder.training.loop.model import RESPONSES, TrainableModel, phase_at
from rejoinder.training.workers import (
    ALONE,
    Workers,
    check_batches,
    compile_blocks,
    kept_memory,
    own_torch_state,
    worker_device,
)


@dataclass(frozen=True)
class RunResult:
    """The outcome of one session of a run."""

    folder: Path
    """Folder of the run."""
    done: bool
    """Whether all steps of the config are done; if not, the run can be resumed."""
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
    """A warning if the model was exported before the end of its schedule, else empty."""
    workers: int = 1
    """Number of workers of this session."""
    workers_before: int = 1
    """Number of workers of the previous session; a change alters the order of batches."""


def begin(
    config: RunConfig,
    data: preparation.Data,
    run: Path,
    *,
    overwrite: bool,
    progress: preparation.PreparationProgress,
    threads: int | None = None,
    prepared: preparation.Prepared | None = None,
) -> preparation.Prepared:
    """Makes the folder of a run with config, vocabulary and excluded rows, without any step.

    `threads` is the number of CPU threads of torch; None leaves torch's setting. With the same
    number, initial rows are reproduced bit for bit. `prepared` is the result for another run with
    the same data and a config that differs only in its seed: it is used as it is.

    Raises:
        RejoinderError: the data is not usable, or the folder can't be written.
    """
    with claim_output(run, overwrite=overwrite):
        initial = open_initial(config)
        with new_folder(run, overwrite=overwrite) as folder:
            if prepared is None:
                features = None if initial is None else initial.features
                prepared = preparation.prepare(data, config, progress, features)
                rows = None
                if config.training.row_init != "random":
                    with own_torch_state(torch.device("cpu"), threads):
                        rows = learn_rows(config, data, prepared, progress)
                prepared = replace(prepared, rows=rows, initial=_facts_of(initial))
            checkpoint.write_start(folder, config, data, prepared)
            return prepared


@contextmanager
def removed_if_refused(run: Path) -> Iterator[None]:
    """Removes the folder of a new run if the block fails before its first checkpoint.

    The corrected command then does not find the output occupied.
    """
    try:
        yield
    except RejoinderError:
        if checkpoint.latest(run) is None:
            shutil.rmtree(run, ignore_errors=True)
        raise


def go_on(
    run: Path,
    data: preparation.Data,
    limits: Limits,
    *,
    evaluate: Evaluate,
    reporter: checkpoint.Reporter,
    config: RunConfig | None = None,
    device: str = "auto",
    threads: int | None = None,
    workers: Workers = ALONE,
) -> RunResult:
    """Trains in the folder of a run, from its last checkpoint if it has one, and exports the model.

    During training, torch's thread count and random generators are set for the run; they are
    restored at the end.

    Args:
        run: the folder that `begin` made.
        data: the data of the run, the same as at the start.
        limits: when to stop before all steps are done.
        evaluate: returns the scores on dev.
        reporter: told about steps, evaluations and checkpoints.
        config: the config of the run, if its name, export or logging changed since the start; None
            reads `config.toml` of the run.
        device: `auto`, `cpu` or `cuda`.
        threads: number of CPU threads of torch; None leaves torch's setting, by default all cores.
            Results are the same bit for bit with the same number of threads.
        workers: the workers of the run. All must call this together, with a shared folder. Worker 0
            writes, evaluates and reports.

    Raises:
        TrainingError: the data or the config differ from those at the start, a file of the run is
            damaged, or training fails.
        BusyError: another process trains in this folder.
    """
    with ExitStack() as stack:
        with workers.agreed():
            torch_device = worker_device(device)
            if workers.leads:
                stack.enter_context(claim(run))
                sweep(run)
        stack.enter_context(own_torch_state(torch_device, threads))
        stack.enter_context(kept_memory())
        with workers.agreed():
            if not (run / "config.toml").is_file():
                raise TrainingError(
                    f"worker {workers.rank} finds no run at {run}; all workers need that folder."
                )
            stored = load_config(run / "config.toml")
            config = config or stored
            prepared = checkpoint.read_start(run, data, config)
            if config != stored and workers.leads:
                write_text(run / "config.toml", to_toml(config))
            check_batches(config, workers)
            saved = checkpoint.latest(run)
            model = _drawn_model(run, config, prepared, fresh=saved is None)
            cache = preparation.open_cache(run, config, data, prepared, workers.count)
            mixture = preparation.open_mixture(config, data, prepared, cache, workers.part)
            data.forget_labelled()  # the streams hold the ids
            told = reporter if workers.leads else checkpoint.SilentReporter()
            model = model.to(torch_device)
            trainer = Trainer(
                config, run, model, prepared.features, mixture, told, evaluate, workers
            )
            if saved is not None:
                trainer.resume(saved)
        if workers.leads:
            trainer.reporter = log = checkpoint.RunLog(run, trainer.state, reporter)
            if trainer.workers_before != workers.count:
                log.workers_changed(trainer.state.step, trainer.workers_before, workers.count)
        done = trainer.train(limits)
        folder = run / "model" if done or trainer.out_of_time else None
        with workers.agreed():
            if folder is not None and workers.leads:
                export(folder, trainer, _training_facts(config, data, prepared, trainer))
            if done and workers.leads:
                preparation.remove_cache(run)
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
        workers=workers.count,
        workers_before=trainer.workers_before,
    )


def _drawn_model(
    run: Path, config: RunConfig, prepared: preparation.Prepared, *, fresh: bool
) -> TrainableModel:
    """Returns the model before the first step; a `fresh` run gets the weights of `init_from`."""
    generator = torch.Generator().manual_seed(config.training.seed)
    model = TrainableModel(prepared.features.rows, config, generator)
    if prepared.rows is not None:
        rows = model.get_parameter(f"encoder.{ENCODERS[config.encoder.kind].token_rows}")
        turn_rows(rows, torch.from_numpy(prepared.rows))
    if fresh and (initial := open_initial(config)) is not None:
        if initial.sha256 != prepared.initial.get("sha256"):
            raise TrainingError(
                f"training.init_from {config.training.init_from} is not what {run} began with."
            )
        start_from(model, initial)
    if config.training.compile:
        compile_blocks(model.get_submodule("encoder"))
    return model


def _unfinished(config: RunConfig, state: checkpoint.TrainingState, limits: Limits) -> str:
    """Returns a warning that a time limit cut the schedule, with a number of steps that fits."""
    steps = state.step
    phase, within = phase_at(config.phases, max(steps - 1, 0))
    warming = within < phase.warmup_steps
    where = ", inside the warm-up: it is hardly trained" if warming else ""
    seconds, total = limits.seconds or state.seconds, config.steps
    fitting = max(1, int(steps * seconds / max(state.seconds, 1e-9)))
    settings = " ".join(
        f"phases.{number}.steps={max(1, fitting * phase.steps // total)}"
        for number, phase in enumerate(config.phases)
    )
    return (
        f"the model was exported after {steps:,} of {total:,} steps{where}. About {fitting:,} "
        f"steps fit into {seconds / 60:.2g} minutes here; a schedule of that length ends with low "
        f"learning rates: begin again with {settings}"
    )


def _facts_of(initial: ModelContents | None) -> dict[str, Any]:
    """Returns the training data of the initial model, whose terms are inherited."""
    if initial is None:
        return {}
    kept = ("data", "labelled", "inputs", "initial")
    training = {name: initial.training[name] for name in kept if name in initial.training}
    return {"name": initial.name, "sha256": initial.sha256, "training": training}


def _training_facts(
    config: RunConfig, data: preparation.Data, prepared: preparation.Prepared, trainer: Trainer
) -> dict[str, object]:
    """Returns the facts of training for the model, without times to keep it reproducible."""
    labelled = prepared.labelled.values()
    selection = data.selection(config)
    inputs = data.needed_pairs().manifest.inputs if config.reads_pairs else ()
    return {
        "pairs": prepared.pairs - prepared.leaks,
        "labelled": prepared.labelled,
        "leaks_dropped": prepared.leaks + sum(file["leaks"] for file in labelled),
        "leaks_by_set": prepared.leaks_by_set,
        "leak_sets": list(prepared.leak_sets),
        "steps": trainer.state.step,
        "seed": config.training.seed,
        "data": dict(selection.chosen),
        "sources_left_out": dict(selection.left_out),
        "inputs": [str(file["file"]) for file in inputs],
        "pairs_sha256": data.pairs_sha256,
        "config": to_tree(config),
        **({"initial": dict(prepared.initial)} if prepared.initial else {}),
    }


def export(folder: Path, trainer: Trainer, training: dict[str, object]) -> None:
    """Writes or replaces the model folder of a run, with facts of its training."""
    config = trainer.config
    features: TextFeatures = trainer.features
    kept = np.dtype(config.export.dtype)
    weights = {name: value.detach().cpu() for name, value in trainer.model.state_dict().items()}
    kind = ENCODERS[config.encoder.kind]
    table = None if kind.table is None else f"encoder.{kind.table}"
    tensors: dict[str, NDArray[np.generic]] = {}
    for name, value in weights.items():
        if name.startswith("encoder.") and name != table and not name.endswith(BOOKKEEPING):
            dtype = kept if kind.table is None and value.ndim > 1 else np.float32
            tensors[name] = value.float().numpy().astype(dtype, copy=False)
        elif name.startswith("heads."):
            tensors[name] = value.float().numpy()
    if table is not None:
        rows, bigram_rows = weights[table].float().numpy(), None
        if isinstance(features, WordFeatures):  # all subwords are kept
            seen = weights[table.removesuffix(".weight") + BOOKKEEPING]
            features, rows, bigram_rows = _trained_rows(features, rows, seen.numpy())
        tensors[table] = rows.astype(kept, copy=False)
        if bigram_rows is not None:
            tensors[BIGRAM_ROWS] = bigram_rows
    tensors["scale"] = np.asarray(trainer.model.scale().detach().cpu().numpy())
    write_model(
        folder,
        ModelContents(
            name=config.name,
            features=features,
            encoder=to_tree(config.encoder),
            heads={name: head.describe() for name, head in config.heads.items()},
            training=training,
            tensors=tensors,
        ),
        overwrite=True,
    )


def _trained_rows(
    features: WordFeatures, table: NDArray[np.float32], seen: NDArray[np.bool_]
) -> tuple[WordFeatures, NDArray[np.float32], NDArray[np.int32] | None]:
    """Returns the trained features and rows, and the row of each bigram bucket, if any.

    Words that were never trained are removed from the vocabulary. With bigrams, whose buckets are a
    function of word ids, words keep their ids, and untrained words get zero rows. All buckets of
    unknown words stay: even a random row distinguishes one word from another.
    """
    known, words = features.vocabulary.words, features.words
    if features.buckets:
        trained = np.flatnonzero(seen[words:])
        bigram_rows = np.full(features.buckets, -1, np.int32)
        bigram_rows[trained] = np.arange(len(trained), dtype=np.int32) + words
        rows = np.concatenate([table[:words], table[words + trained]])
        rows[np.flatnonzero(~seen[: len(known)])] = 0.0
        return features, rows, bigram_rows
    kept = np.flatnonzero(seen[: len(known)])
    rows = np.concatenate([table[kept], table[len(known) :]])
    vocabulary = Vocabulary(tuple(known[index] for index in kept))
    return replace(features, vocabulary=vocabulary), rows, None


def open_initial(config: RunConfig) -> ModelContents | None:
    """Reads the model that a config starts from, if it names one.

    Raises:
        ModelError: the folder is not a model, or is damaged.
        ConfigError: its encoder, response head or text settings differ from the config's.
    """
    folder = config.training.init_from
    if not folder:
        return None
    model = read_model(find_model(folder))
    text, asked = model.features.config(), to_tree(config.text)
    settings = {
        "encoder": (dict(model.encoder), to_tree(config.encoder)),
        "head": (dict(model.heads.get(RESPONSES, {})), config.heads[RESPONSES].describe()),
        **{f"text.{name}": (text.get(name), asked.get(name)) for name in VOCABULARY_KEYS},
    }
    for name, (stored, wanted) in settings.items():
        if stored != wanted:
            raise ConfigError(
                f"training.init_from {folder} has {name} {stored}; the config has {wanted}: they "
                "must be equal."
            )
    return model


def start_from(model: TrainableModel, initial: ModelContents) -> None:
    """Copies the weights of an exported model; other parameters stay as drawn."""
    state = model.state_dict()
    table = initial.kind.table
    for name, array in dequantized(initial.tensors).items():
        if name == f"encoder.{table}":
            rows, seen = _whole_table(initial, array)
            state[name].copy_(rows)
            state[name.removesuffix(".weight") + BOOKKEEPING].copy_(seen)
        elif name in state:  # a head of another objective may be missing on either side
            state[name].copy_(_tensor(array))
    scale = torch.tensor(float(np.log(initial.tensors["scale"])))
    state[f"log_scales.{RESPONSES}"].copy_(scale)


def _whole_table(initial: ModelContents, array: np.ndarray) -> tuple[Tensor, Tensor]:
    """Returns the table with zeros for the rows dropped at export, and which rows were kept."""
    rows = _tensor(array)
    buckets = initial.tensors.get(BIGRAM_ROWS)
    if buckets is None:
        return rows, torch.ones(len(rows), dtype=torch.bool)
    words = initial.features.words if isinstance(initial.features, WordFeatures) else 0
    index = torch.from_numpy(np.concatenate([np.arange(words), buckets]).astype(np.int64))
    seen = index >= 0
    return rows[index.clamp(min=0)] * seen.unsqueeze(1), seen


def _tensor(array: np.ndarray) -> Tensor:
    return torch.tensor(np.asarray(array)).float()  # a copy, as the array may be read-only
