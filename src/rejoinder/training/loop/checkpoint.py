"""Checkpoints: the saved training state from which a run continues as if it had never stopped."""

import json
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
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.io.formats.text_lines import Count, Digest, FileName, Record, Seconds
from rejoinder.training.config.loading import to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.batches import Position

FORMAT = 4
"""Format version of a checkpoint's `state.json`."""
_STATE = "state.json"
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
    workers: Count = 1
    """Number of workers that took the last step."""
    evaluated: Annotated[int, Meta(ge=-1)] = -1
    """Step of the last evaluation, -1 if there was none."""


class _Stored(TrainingState, frozen=True, kw_only=True):
    """The content of `state.json`, without its format and seal."""

    config_sha256: Digest
    files: Mapping[FileName, Any]


@dataclass(frozen=True)
class Checkpoint:
    """The state, weights and optimiser memory of a run at one step."""

    state: TrainingState
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    stretch: Tensor | None = None
    """Facts on the steps since means were logged, see `Meter`; None if there are none."""


def config_hash(config: RunConfig) -> str:
    """Returns the SHA-256 of every setting that affects what a run computes (not its name)."""
    tree = to_tree(config)
    for name in ("name", "export"):
        tree.pop(name)
    for name in ("id_cache_gb", "log_every", "keep_checkpoints", "checkpoint_every"):
        tree["training"].pop(name)
    return sha256_of(json.dumps(tree, sort_keys=True).encode())


def save(run: Path, config: RunConfig, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint atomically, removes the oldest over the limit, and returns its folder."""
    state = checkpoint.state
    folder = run / "checkpoints" / f"step-{state.step}"
    tensors = {"weights": checkpoint.weights, "optimizer": checkpoint.optimizer}
    if checkpoint.stretch is not None:
        tensors["stretch"] = {"facts": checkpoint.stretch}
    with new_folder(folder, overwrite=True) as part:
        for name, group in tensors.items():
            save_file(group, part / f"{name}.safetensors")
        tree = {
            "format_version": FORMAT,
            "config_sha256": config_hash(config),
            **to_builtins(state),
            "files": file_facts(part, [f"{name}.safetensors" for name in tensors]),
        }
        (part / _STATE).write_text(json.dumps(sealed(tree), indent=1) + "\n", "utf-8")
    for old in _by_step(run / "checkpoints")[: -config.training.keep_checkpoints]:
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
    stored = _read(folder)
    if stored.config_sha256 != config_hash(config):
        raise TrainingError(
            f"checkpoint {folder} belongs to another config; resume with the config.toml of the "
            "run, or begin another run."
        )
    if folder.name != f"step-{stored.step}":
        raise TrainingError(
            f"checkpoint {folder} is of step {stored.step}; it was renamed or copied. {_REMEDY}"
        )
    if stored.step > config.steps:
        raise TrainingError(
            f"checkpoint {folder} is of step {stored.step}, and the run has {config.steps}. "
            f"{_REMEDY}"
        )
    tensors = {}
    for name, facts in stored.files.items():
        check_file(folder / name, facts, TrainingError, _REMEDY)
        try:
            tensors[name.removesuffix(".safetensors")] = load_file(folder / name)
        except UNREADABLE as error:
            raise _damaged(folder, f"{name}: {error}") from None
    if not tensors.keys() >= {"weights", "optimizer"}:
        raise _damaged(folder, f"it holds {', '.join(tensors)}")
    state = TrainingState(*(getattr(stored, name) for name in TrainingState.__struct_fields__))
    stretch = tensors.get("stretch", {}).get("facts")
    return Checkpoint(state, tensors["weights"], tensors["optimizer"], stretch)


def read_seconds(folder: Path) -> float:
    """Returns the time that a run had spent in steps at a checkpoint; reads no weights.

    Raises:
        TrainingError: the checkpoint is damaged.
    """
    return _read(folder).seconds


def _read(folder: Path) -> _Stored:
    return read_sealed(
        folder / _STATE,
        _Stored,
        FORMAT,
        TrainingError,
        _REMEDY,
        unreadable=f"checkpoint {folder} is damaged: {_STATE}",
        outdated="Begin the run again, or finish it with the version that wrote the checkpoint.",
    )


def _damaged(folder: Path, what: str) -> TrainingError:
    return TrainingError(f"checkpoint {folder} is damaged: {what}. {_REMEDY}")


def _by_step(folder: Path) -> list[Path]:
    """Returns the folders `step-N` below `folder` in the order of N; other files are ignored."""
    steps = {
        int(match[1]): path
        for path in folder.glob("step-*")
        if (match := _STEP.fullmatch(path.name)) and path.is_dir()
    }
    return [steps[step] for step in sorted(steps)]
