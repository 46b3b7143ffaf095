"""Checkpoints: the saved training state from which a run continues as if it had never stopped."""

import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, to_builtins
from safetensors.torch import load_file, save_file
from torch import Tensor

from rejoinder.errors import TrainingError
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.hashed import check_file, file_facts, read_sealed, sealed, sha256_of
from rejoinder.io.formats.decoding import Count, Record, Seconds, decoded
from rejoinder.io.formats.tensor_files import UNREADABLE
from rejoinder.training.config.loading import removed_keys, to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.batches import Position

FORMAT = 3
"""Format version of a checkpoint's `state.json`."""
_STATE = "state.json"
_Step = Annotated[int, Meta(ge=-1)]
_STEP = re.compile(r"step-(0|[1-9]\d{0,17})")
_REMEDY = "Remove that folder to resume from the checkpoint before it, or begin the run again."


class TrainingState(Record, frozen=True):
    """The numbers of a checkpoint."""

    step: Count
    """Number of optimiser steps done."""
    positions: Mapping[str, Position]
    """Position of each stream that has been read from, by the name of the stream."""
    seconds: Seconds
    """Time spent in steps, summed over all sessions of the run."""
    best_step: _Step
    """Step of the best evaluation so far, -1 if there was none."""
    best_score: float
    averaged: Count
    """Number of evaluations whose weights are in the average."""
    workers: Count = 1
    """Number of workers that took the last step."""
    evaluated: _Step = -1
    """Step of the last evaluation, -1 if there was none."""


_ADDED: Mapping[str, Any] = {
    "compile": False,
    "gather_across_workers": False,
    "mini_batch_size": 0,
    "tasks_by": "step",
    "exclude_sources": [],
    "fields": [],
    "nested_dims": [],
    "retrofit": False,
    "row_init": "random",
    "sif": 0.0,
    "sources": [],
    "where": {},
    "whitening": 0.0,
}
"""Keys that earlier versions did not have, and the values that mean what those versions did: runs
that they began can be resumed."""


@dataclass(frozen=True)
class Checkpoint:
    """The state, weights and optimiser memory of a run at one step."""

    state: TrainingState
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    average: dict[str, Tensor]
    """Running mean of the weights; empty if the run does not export one."""
    stretch: Tensor | None = None
    """Facts on the steps since means were logged, see `Meter`; None if there are none."""


def config_hash(config: RunConfig) -> str:
    """Returns the SHA-256 of every setting that affects what a run computes (not its name)."""
    tree = to_tree(config)
    for table, key, value in removed_keys(tree):
        table[key] = value
    for name in ("name", "export"):
        tree.pop(name)
    for name in ("id_cache_gb", "log_every", "keep_checkpoints", "checkpoint_every"):
        tree["training"].pop(name)
    return sha256_of(json.dumps(_without_added(tree), sort_keys=True).encode())


def _without_added(tree: Any) -> Any:
    """Returns the tree of a config without the keys in `_ADDED` that have no effect in it."""
    if isinstance(tree, list):
        return [_without_added(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        name: _without_added(value)
        for name, value in tree.items()
        if name not in _ADDED or value != _ADDED[name]
    }


def save(run: Path, config: RunConfig, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint atomically, removes the oldest over the limit, and returns its folder."""
    state = checkpoint.state
    folder = run / "checkpoints" / f"step-{state.step}"
    tensors = {"weights": checkpoint.weights, "optimizer": checkpoint.optimizer}
    if checkpoint.average:
        tensors["average"] = checkpoint.average
    if checkpoint.stretch is not None:
        tensors["stretch"] = {"facts": checkpoint.stretch}
    _write(folder, tensors, {"config_sha256": config_hash(config), **to_builtins(state)})
    for old in _by_step(run / "checkpoints")[: -config.training.keep_checkpoints]:
        shutil.rmtree(old)
    for old in _by_step(run / "best"):  # no checkpoint refers to the others any more
        if old.name != f"step-{state.best_step}":
            shutil.rmtree(old)
    return folder


def latest(run: Path) -> Path | None:
    """Returns the folder of the checkpoint with the most steps, None if there is none."""
    folders = _by_step(run / "checkpoints")
    return folders[-1] if folders else None


def load(folder: Path, config: RunConfig) -> Checkpoint:
    """Reads a checkpoint and checks every byte of it.

    Raises:
        TrainingError: the checkpoint is damaged, has another format version or another step than
            its name says, or belongs to a run with another config.
    """
    tensors, values = _read(folder)
    if values.pop("config_sha256", None) != config_hash(config):
        raise TrainingError(
            f"checkpoint {folder} belongs to another config; resume with the config.toml of the "
            "run, or begin another run."
        )
    try:
        state = decoded(TrainingState, values)
        if math.isnan(state.best_score):
            raise ValueError("best_score is NaN")
        weights, optimizer = tensors["weights"], tensors["optimizer"]
    except (KeyError, ValueError) as error:
        raise TrainingError(f"checkpoint {folder} is damaged: {error}. {_REMEDY}") from None
    if folder.name != f"step-{state.step}":
        raise TrainingError(
            f"checkpoint {folder} is of step {state.step}; it was renamed or copied. {_REMEDY}"
        )
    if state.step > config.steps:
        raise TrainingError(
            f"checkpoint {folder} is of step {state.step}, and the run has {config.steps}. "
            f"{_REMEDY}"
        )
    stretch = tensors.get("stretch", {}).get("facts")
    return Checkpoint(state, weights, optimizer, tensors.get("average", {}), stretch)


def read_seconds(folder: Path) -> float:
    """Returns the time that a run had spent in steps at a checkpoint; reads no weights.

    Raises:
        TrainingError: the checkpoint is damaged.
    """
    seconds: Any = _read_values(folder).get("seconds")
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise TrainingError(f"checkpoint {folder} is damaged: seconds is {seconds!r}. {_REMEDY}")
    return float(seconds)


def save_best(run: Path, step: int, weights: dict[str, Tensor]) -> None:
    """Writes the weights of the best evaluation so far to `best/step-N`.

    The weights of an earlier one stay until a checkpoint is saved that does not refer to them.
    """
    _write(run / "best" / f"step-{step}", {"weights": weights}, {"step": step})


def load_best(run: Path, step: int) -> dict[str, Tensor]:
    """Reads the weights that `save_best` wrote for `step`.

    Raises:
        TrainingError: they are missing, damaged, or belong to another step.
    """
    folder = run / "best" / f"step-{step}"
    tensors, values = _read(folder)
    if values.get("step", step) != step or "weights" not in tensors:  # older files name no step
        raise TrainingError(f"{folder} holds no weights of step {step}. {_REMEDY}")
    return tensors["weights"]


def _write(folder: Path, tensors: Mapping[str, dict[str, Tensor]], values: dict[str, Any]) -> None:
    with new_folder(folder, overwrite=True) as part:
        files = []
        for name, group in tensors.items():
            files.append(f"{name}.safetensors")
            save_file(group, part / files[-1])
        tree = sealed({"format_version": FORMAT, **values, "files": file_facts(part, files)})
        (part / _STATE).write_text(json.dumps(tree, indent=1) + "\n", "utf-8")


def _read(folder: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Reads the tensors, grouped by the names of their files, and the values of `state.json`."""
    damaged = f"checkpoint {folder} is damaged"
    values = _read_values(folder)
    files = values.pop("files", None)
    if not isinstance(files, dict):
        raise TrainingError(f"{damaged}: {_STATE} lists no files. {_REMEDY}")
    tensors = {}
    for name, facts in files.items():
        check_file(folder / name, facts, TrainingError, _REMEDY)
        try:
            tensors[name.removesuffix(".safetensors")] = load_file(folder / name)
        except UNREADABLE as error:
            raise TrainingError(f"{damaged}: {name}: {error}. {_REMEDY}") from None
    return tensors, values


def _read_values(folder: Path) -> dict[str, Any]:
    return read_sealed(
        folder / _STATE,
        FORMAT,
        TrainingError,
        unreadable=f"checkpoint {folder} is damaged: {_STATE}",
        outdated="Begin the run again, or finish it with the version that wrote the checkpoint.",
        remedy=_REMEDY,
    )


def _by_step(folder: Path) -> list[Path]:
    """Returns the folders `step-N` below `folder` in the order of N; other files are ignored."""
    steps = {
        int(match[1]): path
        for path in folder.glob("step-*")
        if (match := _STEP.fullmatch(path.name)) and path.is_dir()
    }
    return [steps[step] for step in sorted(steps)]
