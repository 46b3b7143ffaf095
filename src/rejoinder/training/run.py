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

from rejoinder.atomic import new_folder, write_text
from rejoinder.corpus.shards import Pairs, open_pairs
from rejoinder.errors import TrainingError
from rejoinder.text.features import load_features
from rejoinder.training import checkpoint
from rejoinder.training.config import load_config, to_toml, to_tree
from rejoinder.training.events import RunLog
from rejoinder.training.export import export
from rejoinder.training.loop import Evaluate, Limits, Reporter, Trainer
from rejoinder.training.machine import describe_machine, pick_device
from rejoinder.training.model import ResponseModel
from rejoinder.training.preparation import Prepared, Progress, prepare
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


def begin(
    config: RunConfig, pairs_folder: Path, run: Path, *, overwrite: bool, progress: Progress
) -> None:
    """Make the folder of a run: its config, its vocabulary, what it leaves out; no step yet.

    Raises:
        RejoinderError: the pairs or the place of the run are not usable.
    """
    pairs = open_pairs(pairs_folder)
    with new_folder(run, overwrite=overwrite) as folder:
        prepared = prepare(pairs, config, progress)
        _write_start(folder, config, pairs, prepared)


def go_on(
    run: Path,
    pairs_folder: Path,
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
    pairs = open_pairs(pairs_folder)
    prepared = _read_start(run, pairs)
    device = pick_device(options.device)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(config.training.seed)
    model = ResponseModel(prepared.features.rows, config, generator).to(device)
    stream = PairStream(
        pairs,
        prepared.features,
        window_pairs=config.training.window_pairs,
        seed=config.training.seed,
        excluded=prepared.excluded,
        word_dropout=config.objective.word_dropout,
    )
    trainer = Trainer(config, run, model, prepared.features, stream, reporter, evaluate)
    if (saved := checkpoint.latest(run)) is not None:
        trainer.resume(saved)
    with RunLog(run, trainer.progress.step, reporter) as log:
        trainer.reporter = log
        done = trainer.train(options.limits)
    place = None
    if done or trainer.out_of_time:
        place = run / "model"
        export(place, trainer, _training_facts(config, pairs, prepared, trainer))
    return RunResult(
        done=done,
        steps=trainer.progress.step,
        seconds=trainer.progress.seconds,
        pairs=prepared.pairs - prepared.leaks,
        leaks=prepared.leaks,
        scores=trainer.scores,
        model=place,
    )


def _write_start(run: Path, config: RunConfig, pairs: Pairs, prepared: Prepared) -> None:
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
        "pairs_folder": str(pairs.folder),
        "pairs_sha256": pairs.sha256,
        "pairs": prepared.pairs,
        "leaks": prepared.leaks,
        "leak_sets": list(config.training.leak_sets) if config.training.exclude_leaks else [],
        "text": prepared.features.config(),
    }
    write_text(run / "manifest.json", json.dumps(manifest, indent=1) + "\n")


def _read_start(run: Path, pairs: Pairs) -> Prepared:
    """What `_write_start` wrote."""
    try:
        manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text("utf-8"))
        excluded = load_file(run / "excluded.safetensors")
    except (OSError, ValueError, SafetensorError) as error:
        raise TrainingError(f"{run} is not a run that can go on: {error}.") from None
    if manifest["pairs_sha256"] != pairs.sha256:
        raise TrainingError(
            f"{pairs.folder} is not the data that {run} began with; name that folder with --pairs."
        )
    features = load_features(run / "vocabulary", manifest["text"])
    rows = {int(number): value for number, value in excluded.items()}
    return Prepared(features, rows, manifest["pairs"], manifest["leaks"])


def _training_facts(
    config: RunConfig, pairs: Pairs, prepared: Prepared, trainer: Trainer
) -> dict[str, object]:
    """What a model remembers of how it came to be; no times, so that its bytes repeat."""
    return {
        "pairs": prepared.pairs - prepared.leaks,
        "leaks_dropped": prepared.leaks,
        "leak_sets": list(config.training.leak_sets) if config.training.exclude_leaks else [],
        "steps": trainer.progress.step,
        "seed": config.training.seed,
        "data": pairs.sources,
        "pairs_sha256": pairs.sha256,
        "config": to_tree(config),
    }
