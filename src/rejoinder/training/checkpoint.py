"""Checkpoints: all that a run needs to go on as if it had never stopped."""

import hashlib
import json
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
from rejoinder.training.batches import Position
from rejoinder.training.config import to_tree
from rejoinder.training.settings import RunConfig

FORMAT = 2


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
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def save(run: Path, config: RunConfig, checkpoint: Checkpoint) -> Path:
    """Write `checkpoints/step-N`, whole or not at all; the oldest beyond the limit go."""
    place = run / "checkpoints" / f"step-{checkpoint.progress.step}"
    with new_folder(place, overwrite=True) as folder:
        save_file(checkpoint.weights, folder / "weights.safetensors")
        save_file(checkpoint.optimizer, folder / "optimizer.safetensors")
        if checkpoint.average:
            save_file(checkpoint.average, folder / "average.safetensors")
        state = {
            "format_version": FORMAT,
            "config_sha256": config_hash(config),
            **asdict(checkpoint.progress),
        }
        (folder / "state.json").write_text(json.dumps(state, indent=1) + "\n", "utf-8")
    for old in _by_step(run)[: -config.training.keep_checkpoints]:
        shutil.rmtree(old)
    return place


def latest(run: Path) -> Path | None:
    """The checkpoint of the most steps, if there is any."""
    found = _by_step(run)
    return found[-1] if found else None


def load(place: Path, config: RunConfig) -> Checkpoint:
    """Read a checkpoint back.

    Raises:
        TrainingError: it is damaged, of another format, or of a run with another config.
    """
    try:
        state: dict[str, Any] = json.loads((place / "state.json").read_text("utf-8"))
        weights = load_file(place / "weights.safetensors")
        optimizer = load_file(place / "optimizer.safetensors")
        averaged = place / "average.safetensors"
        average = load_file(averaged) if averaged.exists() else {}
    except (OSError, ValueError, SafetensorError) as error:
        raise TrainingError(f"checkpoint {place} is damaged: {error}.") from None
    if state.pop("format_version", None) != FORMAT:
        raise TrainingError(f"checkpoint {place} is of another format version than {FORMAT}.")
    if state.pop("config_sha256", None) != config_hash(config):
        raise TrainingError(
            f"checkpoint {place} belongs to another config; resume with the config.toml beside it, "
            "or start anew in another folder."
        )
    positions = {name: Position(**place) for name, place in state.pop("positions").items()}
    return Checkpoint(Progress(positions=positions, **state), weights, optimizer, average)


def _by_step(run: Path) -> list[Path]:
    found = (run / "checkpoints").glob("step-*")
    return sorted(found, key=lambda place: int(place.name.removeprefix("step-")))
