"""A run from pairs to a model folder: prepare or resume, train, export."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from rejoinder.corpus.shards import open_pairs
from rejoinder.errors import TrainingError
from rejoinder.files.atomic import new_folder, write_text
from rejoinder.text.features import load_features
from rejoinder.training import checkpoint
from rejoinder.training.batches import Stream
from rejoinder.training.config import load_config, to_toml, to_tree
from rejoinder.training.events import RunLog
from rejoinder.training.export import export
from rejoinder.training.initial import open_initial, start_from
from rejoinder.training.labelled import Labelled, LabelledStream
from rejoinder.training.loop import Evaluate, Limits, Reporter, Trainer
from rejoinder.training.machine import describe_machine, pick_device
from rejoinder.training.mixture import Mixture, TaskStreams
from rejoinder.training.model import TrainableModel
from rejoinder.training.preparation import Data, Prepared, Progress, prepare, read_tasks
from rejoinder.training.settings import RunConfig
from rejoinder.training.stream import PairStream
from rejoinder.version import VERSION


@dataclass(frozen=True)
class RunOptions:
    """What a person says of a run beside its config."""

    limits: Limits = field(default_factory=Limits)
    device: str = "auto"
    """`auto`, `cpu` or `cuda`."""
    threads: int | None = None
    """CPU threads of torch; none: all cores. Results repeat bit for bit at the same number."""


@dataclass(frozen=True)
class RunResult:
    """What came of a run."""

    done: bool
    """Whether the config's steps are done; if not, it can be resumed."""
    steps: int
    seconds: float
    pairs: int
    """Training pairs, leaks left out."""
    leaks: int
    """Training pairs left out as evaluation sentences."""
    scores: Mapping[str, float]
    """Of the last evaluation; empty before the first."""
    model: Path | None
    """The model folder; none where the run was stopped to go on later."""


def open_data(pairs: Path | None, folder: Path | None) -> Data:
    """What a run reads: a folder of pairs, and the one that labelled files are below.

    Raises:
        InputError: the pairs are not usable.
    """
    return Data(None if pairs is None else open_pairs(pairs), folder)


def begin(config: RunConfig, data: Data, run: Path, *, overwrite: bool, progress: Progress) -> None:
    """Make the folder of a run: its config, its vocabulary, what it leaves out; no step yet.

    Raises:
        RejoinderError: the data or the place of the run are not usable.
    """
    initial = open_initial(config)
    with new_folder(run, overwrite=overwrite) as folder:
        prepared = prepare(data, config, progress, None if initial is None else initial.features)
        _write_start(folder, config, data, prepared)


def go_on(
    run: Path,
    data: Data,
    options: RunOptions,
    *,
    overrides: Sequence[str] = (),
    evaluate: Evaluate,
    reporter: Reporter,
) -> RunResult:
    """Train in the folder of a run, from its last checkpoint if it has any, and export the model.

    Raises:
        TrainingError: the pairs are others than those it began with, or training fails.
    """
    config = load_config(run / "config.toml", overrides)
    prepared = _read_start(run, data)
    device = pick_device(options.device)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(config.training.seed)
    model = TrainableModel(prepared.features.rows, config, generator)
    saved = checkpoint.latest(run)
    if saved is None and (initial := open_initial(config)) is not None:
        start_from(model, initial)
    mixture = _mixture(config, data, prepared)
    trainer = Trainer(config, run, model.to(device), prepared.features, mixture, reporter, evaluate)
    if saved is not None:
        trainer.resume(saved)
    with RunLog(run, trainer.progress.step, reporter) as log:
        trainer.reporter = log
        done = trainer.train(options.limits)
    place = None
    if done or trainer.out_of_time:
        place = run / "model"
        export(place, trainer, _training_facts(config, data, prepared, trainer))
    return RunResult(
        done=done,
        steps=trainer.progress.step,
        seconds=trainer.progress.seconds,
        pairs=prepared.pairs - prepared.leaks,
        leaks=prepared.leaks,
        scores=trainer.scores,
        model=place,
    )


def _mixture(config: RunConfig, data: Data, prepared: Prepared) -> Mixture:
    """The streams of all tasks.

    Raises:
        TrainingError: a labelled file is another than the one that the run began with.
    """
    seed = config.training.seed
    tasks = []
    for task, files in read_tasks(config, data):
        dropout = task.word_dropout
        if dropout is None:
            dropout = config.objective.word_dropout
        if task.objective == "responses":
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
    if prepared.labelled[file.name]["sha256"] != file.sha256:
        raise TrainingError(
            f"{file.name} is not the file that the run began with; name the folder that holds that "
            "one with --data."
        )
    return LabelledStream(file, prepared.features, seed=seed, word_dropout=dropout)


def _write_start(run: Path, config: RunConfig, data: Data, prepared: Prepared) -> None:
    """Everything that a resumed run reads, before the first step."""
    (run / "vocabulary").mkdir(parents=True, exist_ok=True)
    prepared.features.save(run / "vocabulary")
    excluded = {str(number): rows for number, rows in prepared.excluded.items()}
    save_file(excluded, run / "excluded.safetensors")
    write_text(run / "config.toml", to_toml(config))
    manifest = {
        "format_version": 1,
        "rejoinder_version": VERSION,
        "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "pairs_folder": None if data.pairs is None else str(data.pairs.folder),
        "pairs_sha256": None if data.pairs is None else data.pairs.sha256,
        "pairs": prepared.pairs,
        "labelled": prepared.labelled,
        "leaks": prepared.leaks,
        "leak_sets": list(config.training.leak_sets) if config.training.exclude_leaks else [],
        "text": prepared.features.config(),
    }
    write_text(run / "manifest.json", json.dumps(manifest, indent=1) + "\n")


def _read_start(run: Path, data: Data) -> Prepared:
    """What `_write_start` wrote."""
    try:
        manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text("utf-8"))
        excluded = load_file(run / "excluded.safetensors")
    except (OSError, ValueError, SafetensorError) as error:
        raise TrainingError(f"{run} is not a run that can go on: {error}.") from None
    if manifest["pairs_sha256"] != (None if data.pairs is None else data.pairs.sha256):
        given = "no folder of pairs" if data.pairs is None else data.pairs.folder
        raise TrainingError(
            f"{given} is not the data that {run} began with; name that folder with --pairs."
        )
    features = load_features(run / "vocabulary", manifest["text"])
    rows = {int(number): value for number, value in excluded.items()}
    return Prepared(features, rows, manifest["pairs"], manifest["leaks"], manifest["labelled"])


def _training_facts(
    config: RunConfig, data: Data, prepared: Prepared, trainer: Trainer
) -> dict[str, object]:
    """What a model remembers of how it came to be; no times, so that its bytes repeat."""
    labelled = prepared.labelled.values()
    return {
        "pairs": prepared.pairs - prepared.leaks,
        "labelled": prepared.labelled,
        "leaks_dropped": prepared.leaks + sum(file["leaks"] for file in labelled),
        "leak_sets": list(config.training.leak_sets) if config.training.exclude_leaks else [],
        "steps": trainer.progress.step,
        "seed": config.training.seed,
        "data": {} if data.pairs is None else data.pairs.sources,
        "pairs_sha256": None if data.pairs is None else data.pairs.sha256,
        "config": to_tree(config),
    }
