"""Checkpoints: all that a run needs to go on as if it had never stopped."""

import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from rejoinder.errors import TrainingError
from rejoinder.files.atomic import new_folder
from rejoinder.files.hashed import check_file, check_seal, file_facts, sealed, sha256_of
from rejoinder.training.batches import Position
from rejoinder.training.config import to_tree
from rejoinder.training.settings import RunConfig

FORMAT = 3
_STATE = "state.json"
_STEP = re.compile(r"step-(0|[1-9]\d{0,17})")
_REMEDY = "Remove that folder to resume from the checkpoint before it, or begin the run again."


@dataclass(frozen=True)
class Progress:
    """The numbers of a checkpoint."""

    step: int
    """Optimiser steps done."""
    positions: Mapping[str, Position]
    """Where each stream stands that has been read from."""
    seconds: float
    """Time spent in steps, over all sessions of the run."""
    best_step: int
    """Step of the best evaluation so far, -1 for none."""
    best_score: float
    averaged: int
    """Evaluations that the averaged weights hold."""


@dataclass(frozen=True)
class Checkpoint:
    """What `save` writes and `load` returns."""

    progress: Progress
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    average: dict[str, Tensor]
    """Running mean of the weights; empty where the run exports none."""


def config_hash(config: RunConfig) -> str:
    """SHA-256 of all that decides what a run computes; its name does not."""
    tree = to_tree(config)
    for name in ("name", "export"):
        tree.pop(name)
    for name in ("log_every", "keep_checkpoints", "checkpoint_every"):
        tree["training"].pop(name)
    return sha256_of(json.dumps(tree, sort_keys=True).encode())


def save(run: Path, config: RunConfig, checkpoint: Checkpoint) -> Path:
    """Write `checkpoints/step-N`, whole or not at all; the oldest beyond the limit go."""
    folder = run / "checkpoints" / f"step-{checkpoint.progress.step}"
    tensors = {"weights": checkpoint.weights, "optimizer": checkpoint.optimizer}
    if checkpoint.average:
        tensors["average"] = checkpoint.average
    state = {"config_sha256": config_hash(config), **asdict(checkpoint.progress)}
    _write(folder, tensors, state)
    for old in _by_step(run / "checkpoints")[: -config.training.keep_checkpoints]:
        shutil.rmtree(old)
    for old in _by_step(run / "best"):  # no checkpoint refers to the others any more
        if old.name != f"step-{checkpoint.progress.best_step}":
            shutil.rmtree(old)
    return folder


def latest(run: Path) -> Path | None:
    """The checkpoint of the most steps, if there is any."""
    folders = _by_step(run / "checkpoints")
    return folders[-1] if folders else None


def load(folder: Path, config: RunConfig) -> Checkpoint:
    """Read a checkpoint back; every byte of it is checked.

    Raises:
        TrainingError: it is damaged, of another format, of another step than its name says, or of
            a run with another config.
    """
    tensors, state = _read(folder)
    if state.pop("config_sha256", None) != config_hash(config):
        raise TrainingError(
            f"checkpoint {folder} belongs to another config; resume with the config.toml of the "
            "run, or begin another run."
        )
    try:
        positions = {name: Position(**value) for name, value in state.pop("positions").items()}
        progress = Progress(positions=positions, **state)
        weights, optimizer = tensors["weights"], tensors["optimizer"]
        _check_numbers(progress)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TrainingError(f"checkpoint {folder} is damaged: {error!r}. {_REMEDY}") from None
    if folder.name != f"step-{progress.step}":
        raise TrainingError(
            f"checkpoint {folder} is of step {progress.step}; it was renamed or copied. {_REMEDY}"
        )
    if progress.step > config.steps:
        raise TrainingError(
            f"checkpoint {folder} is of step {progress.step}, and the run has {config.steps}. "
            f"{_REMEDY}"
        )
    return Checkpoint(progress, weights, optimizer, tensors.get("average", {}))


def _check_numbers(progress: Progress) -> None:
    """Refuse values of other types than those that are written.

    Raises:
        ValueError: the first of them.
    """
    counts = {"step": progress.step, "averaged": progress.averaged}
    for stream, position in progress.positions.items():
        counts |= {f"positions.{stream}.{name}": n for name, n in asdict(position).items()}
    for name, value in counts.items():
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} is {value!r}")
    if type(progress.best_step) is not int or progress.best_step < -1:
        raise ValueError(f"best_step is {progress.best_step!r}")
    seconds, score = progress.seconds, progress.best_score
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise ValueError(f"seconds is {seconds!r}")
    if type(score) not in (int, float) or math.isnan(score):
        raise ValueError(f"best_score is {score!r}")


def save_best(run: Path, step: int, weights: dict[str, Tensor]) -> None:
    """Write `best/step-N`: the weights of the best evaluation so far.

    Those of an earlier one stay until a checkpoint is saved that does not refer to them.
    """
    _write(run / "best" / f"step-{step}", {"weights": weights}, {"step": step})


def load_best(run: Path, step: int) -> dict[str, Tensor]:
    """The weights that `save_best` wrote for `step`.

    Raises:
        TrainingError: they are missing, damaged, or those of another step.
    """
    folder = run / "best" / f"step-{step}"
    tensors, state = _read(folder)
    if state.get("step", step) != step or "weights" not in tensors:  # older ones name no step
        raise TrainingError(f"{folder} holds no weights of step {step}. {_REMEDY}")
    return tensors["weights"]


def _write(folder: Path, tensors: Mapping[str, dict[str, Tensor]], state: dict[str, Any]) -> None:
    with new_folder(folder, overwrite=True) as part:
        files = []
        for name, values in tensors.items():
            files.append(f"{name}.safetensors")
            save_file(values, part / files[-1])
        tree = sealed({"format_version": FORMAT, **state, "files": file_facts(part, files)})
        (part / _STATE).write_text(json.dumps(tree, indent=1) + "\n", "utf-8")


def _read(folder: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Tensors by the names of their files, and the other values of `state.json`."""
    where = f"checkpoint {folder}"
    try:
        tree = json.loads((folder / _STATE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"{where} is damaged: {_STATE}: {error}. {_REMEDY}") from None
    version = tree.get("format_version") if isinstance(tree, dict) else None
    if version != FORMAT:
        raise TrainingError(
            f"{where} is of format version {version!r}; this version reads {FORMAT}. Begin the run "
            "again, or finish it with the version that wrote it."
        )
    state = check_seal(tree, folder / _STATE, TrainingError, _REMEDY)
    del state["format_version"]
    files = state.pop("files", None)
    if not isinstance(files, dict):
        raise TrainingError(f"{where} is damaged: {_STATE} lists no files. {_REMEDY}")
    tensors = {}
    for name, facts in files.items():
        check_file(folder / name, facts, TrainingError, _REMEDY)
        try:
            tensors[name.removesuffix(".safetensors")] = load_file(folder / name)
        except (OSError, SafetensorError) as error:
            raise TrainingError(f"{where} is damaged: {name}: {error}. {_REMEDY}") from None
    return tensors, state


def _by_step(folder: Path) -> list[Path]:
    """The folders `step-N` of `folder`, by N; whatever else is there is left alone."""
    steps = {
        int(match[1]): path
        for path in folder.glob("step-*")
        if (match := _STEP.fullmatch(path.name)) and path.is_dir()
    }
    return [steps[step] for step in sorted(steps)]
