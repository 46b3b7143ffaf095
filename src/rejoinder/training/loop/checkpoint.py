"""The files of a run: its start, its checkpoints and its log.

The start is the config, the vocabulary and the rows left out, with a manifest to check them. A run
that continues from a checkpoint gives the same result as without the stop.
"""

import datetime
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Annotated, Any, Protocol

from msgspec import Meta, to_builtins
from safetensors import numpy as array_files
from safetensors import torch as tensor_files
from torch import Tensor

from rejoinder.errors import TrainingError
from rejoinder.io.files import hashed
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.hashed import Count, Digest, FileName, Record, Seconds
from rejoinder.io.files.storage import storage_errors
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.text.features import load_features
from rejoinder.training.config.loading import VOCABULARY_KEYS, to_toml, to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import Data, Prepared
from rejoinder.training.data.stream import Position
from rejoinder.training.workers import describe_machine
from rejoinder.version import VERSION

FORMAT = 4
"""Format version of a checkpoint's `state.json`."""
KEPT = 2
"""Number of most recent checkpoints that a run keeps."""
_STATE = "state.json"
_STEP = re.compile(r"step-(0|[1-9]\d{0,17})")
_OUTDATED = "Begin the run again, or finish it with the version that began it."
_REMEDY = "Remove that folder to resume from the previous checkpoint, or begin the run again."


class TrainingState(Record, frozen=True):
    """The numbers of a checkpoint."""

    step: Count
    """Number of optimiser steps done."""
    positions: Mapping[str, Position]
    """Position of each stream that was read, by the name of the stream."""
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
    """The state, weights and optimiser state of a run at one step."""

    state: TrainingState
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    stretch: Tensor | None = None
    """Facts about the steps since means were last logged (see `Meter`); None if there are none."""


def config_hash(config: RunConfig) -> str:
    """Returns the SHA-256 of all settings that affect the result of a run (not its name)."""
    tree = to_tree(config)
    for name in ("name", "export"):
        tree.pop(name)
    for name in ("id_cache_gb", "log_every", "checkpoint_every"):
        tree["training"].pop(name)
    return hashed.sha256_of(json.dumps(tree, sort_keys=True).encode())


def save(run: Path, config: RunConfig, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint atomically, removes old ones over the limit, and returns its folder."""
    state = checkpoint.state
    folder = run / "checkpoints" / f"step-{state.step}"
    tensors = {"weights": checkpoint.weights, "optimizer": checkpoint.optimizer}
    if checkpoint.stretch is not None:
        tensors["stretch"] = {"facts": checkpoint.stretch}
    with new_folder(folder, overwrite=True) as part:
        for name, group in tensors.items():
            tensor_files.save_file(group, part / f"{name}.safetensors")
        tree = {
            "format_version": FORMAT,
            "config_sha256": config_hash(config),
            **to_builtins(state),
            "files": hashed.file_facts(part, [f"{name}.safetensors" for name in tensors]),
        }
        (part / _STATE).write_text(json.dumps(hashed.sealed(tree), indent=1) + "\n", "utf-8")
    for old in _by_step(run / "checkpoints")[:-KEPT]:
        shutil.rmtree(old)
    return folder


def latest(run: Path) -> Path | None:
    """Returns the folder of the checkpoint with the most steps; None if there is none."""
    folders = _by_step(run / "checkpoints")
    return folders[-1] if folders else None


def load(folder: Path, config: RunConfig) -> Checkpoint:
    """Reads a checkpoint and checks every byte of it.

    Raises:
        TrainingError: the checkpoint is damaged, has another format version, has a step that
            differs from its name, or belongs to a run with another config.
    """
    stored = _read(folder)
    if stored.config_sha256 != config_hash(config):
        raise TrainingError(
            f"checkpoint {folder} belongs to another config; resume with the config of the run."
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
        hashed.check_file(folder / name, facts, TrainingError, _REMEDY)
        try:
            tensors[name.removesuffix(".safetensors")] = tensor_files.load_file(folder / name)
        except UNREADABLE as error:
            raise TrainingError(f"checkpoint {folder} is damaged: {name}: {error}.") from None
    state = TrainingState(*(getattr(stored, name) for name in TrainingState.__struct_fields__))
    stretch = tensors.get("stretch", {}).get("facts")
    return Checkpoint(state, tensors["weights"], tensors["optimizer"], stretch)


def read_seconds(folder: Path) -> float:
    """Returns the seconds that a run had spent in steps at a checkpoint, without reading weights.

    Raises:
        TrainingError: the checkpoint is damaged.
    """
    return _read(folder).seconds


def _read(folder: Path) -> _Stored:
    return hashed.read_sealed(
        folder / _STATE,
        _Stored,
        FORMAT,
        TrainingError,
        _REMEDY,
        unreadable=f"checkpoint {folder} is damaged: {_STATE}",
        outdated=_OUTDATED,
    )


def _by_step(folder: Path) -> list[Path]:
    """Returns the folders `step-N` below `folder` in the order of N; other files are ignored."""
    steps = {
        int(match[1]): path
        for path in folder.glob("step-*")
        if (match := _STEP.fullmatch(path.name)) and path.is_dir()
    }
    return [steps[step] for step in sorted(steps)]


_RUN_FORMAT = 4
"""Format version of a run's `manifest.json`."""
_MANIFEST = "manifest.json"
_EXCLUDED = "excluded.safetensors"
_ROWS = "word_rows.safetensors"
_NO_RESUME = "The run can't be resumed; begin it again."


class Manifest(Record, frozen=True, kw_only=True):
    """The content of `manifest.json`, without its format and seal."""

    rejoinder_version: str
    begun: str
    machine: Mapping[str, Any]
    """See `workers.describe_machine`."""
    pairs_folder: str | None
    pairs_sha256: Digest | None
    pairs: Count
    labelled: dict[str, dict[str, Any]]
    """See `Prepared`, also for `pairs` and `leaks`."""
    leaks: Count
    leaks_by_set: dict[str, Count]
    sources_left_out: Mapping[str, Count]
    leak_sets: Sequence[str]
    text: Mapping[str, Any]
    """Result of `TextFeatures.config`."""
    config_sha256: Digest
    initial: Mapping[str, Any]
    files: Mapping[str, Any]


def write_start(run: Path, config: RunConfig, data: Data, prepared: Prepared) -> None:
    """Writes the files that a resumed run needs to the new folder `run`, before the first step."""
    (run / "vocabulary").mkdir(parents=True, exist_ok=True)
    files = [f"vocabulary/{name}" for name in prepared.features.save(run / "vocabulary")]
    excluded = {str(number): rows for number, rows in prepared.excluded.items()}
    array_files.save_file(excluded, run / _EXCLUDED)
    files.append(_EXCLUDED)
    if prepared.rows is not None:
        array_files.save_file({"rows": prepared.rows}, run / _ROWS)
        files.append(_ROWS)
    write_text(run / "config.toml", to_toml(config))
    manifest = Manifest(
        rejoinder_version=VERSION,
        begun=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        pairs_folder=None if data.pairs is None else str(data.pairs.folder),
        pairs_sha256=data.pairs_sha256,
        **_counted_in(prepared),
        sources_left_out=data.selection(config).left_out,
        text=prepared.features.config(),
        config_sha256=config_hash(config),
        files=hashed.file_facts(run, files),
    )
    write_text(run / _MANIFEST, hashed.sealed_text(manifest, _RUN_FORMAT))


def read_start(run: Path, data: Data, config: RunConfig) -> Prepared:
    """Reads and checks what `write_start` wrote.

    Raises:
        TrainingError: the config or the data differ from those at the start, or a file is damaged.
    """
    manifest = read_manifest(run)
    if manifest.config_sha256 != config_hash(config):
        raise TrainingError(
            f"the config differs from {run}/config.toml in more than name, export and logging."
        )
    if manifest.pairs_sha256 != data.pairs_sha256:
        given = "no folder of pairs" if data.pairs is None else data.pairs.folder
        raise TrainingError(
            f"{given} is not the data that {run} began with; name that folder with `pairs`."
        )
    text, asked = manifest.text, to_tree(config.text)
    for name in VOCABULARY_KEYS:
        if text.get(name) != asked.get(name):
            raise TrainingError(
                f"{run / _MANIFEST} is damaged: text.{name} is {short(text.get(name))}, and "
                f"the config has {asked.get(name)}. {_NO_RESUME}"
            )
    for name, facts in manifest.files.items():
        hashed.check_file(run / name, facts, TrainingError, _NO_RESUME)
    try:
        excluded = array_files.load_file(run / _EXCLUDED)
        learned = array_files.load_file(run / _ROWS)["rows"] if _ROWS in manifest.files else None
    except UNREADABLE as error:
        raise TrainingError(f"the files of {run} can't be read: {error}. {_NO_RESUME}") from None
    features = load_features(run / "vocabulary", manifest.text)
    rows = {int(number): value for number, value in excluded.items()}
    return Prepared(features, rows, rows=learned, **_counted_in(manifest))


def _counted_in(facts: Prepared | Manifest) -> dict[str, Any]:
    """Returns the facts of preparation that a manifest also holds."""
    names = ("pairs", "labelled", "leaks", "leaks_by_set", "leak_sets", "initial")
    return {name: getattr(facts, name) for name in names}


def read_manifest(run: Path) -> Manifest:
    """Reads the manifest of a run and checks its seal and its values.

    Raises:
        TrainingError: the folder is not a run, or the manifest is damaged or of another version.
    """
    return hashed.read_sealed(
        run / _MANIFEST,
        Manifest,
        _RUN_FORMAT,
        TrainingError,
        _NO_RESUME,
        unreadable=f"{run} is not a run that can be resumed",
        outdated=_OUTDATED,
    )


class Reporter(Protocol):
    """The extension point for progress: an object whose methods are called during training."""

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Called every `log_every` steps with the means of loss, accuracy, speed and scales."""
        ...

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Called after each evaluation."""
        ...

    def saved(self, step: int, path: Path) -> None:
        """Called after each checkpoint with its folder."""
        ...


class SilentReporter:
    """A reporter that does nothing."""

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Does nothing."""

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Does nothing."""

    def saved(self, step: int, path: Path) -> None:
        """Does nothing."""


class RunLog:
    """A reporter that writes `metrics.jsonl`, and calls another reporter."""

    def __init__(self, run: Path, state: TrainingState, listener: Reporter) -> None:
        """Opens the log of a run that continues from `state`, and drops later lines.

        Raises:
            TrainingError: `metrics.jsonl` is not a file.
        """
        self.listener = listener
        self.path = run / "metrics.jsonl"
        _cut(self.path, state)

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Logs the means over some steps."""
        self._write("train", step, metrics)
        self.listener.step(step, metrics)

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Logs the scores of an evaluation."""
        self._write("dev", step, scores)
        self.listener.evaluation(step, scores)

    def saved(self, step: int, path: Path) -> None:
        """Tells the listener about a checkpoint."""
        self.listener.saved(step, path)

    def workers_changed(self, step: int, before: int, now: int) -> None:
        """Logs that a run continues after `step` with another number of workers."""
        self._write("workers", step, {"before": before, "now": now})

    def _write(self, group: str, step: int, values: Mapping[str, float]) -> None:
        line = json.dumps({"step": step, "group": group, **values})
        with storage_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _cut(path: Path, state: TrainingState) -> None:
    """Keeps the lines up to `state`: a run stopped between checkpoints writes the rest again.

    An incomplete line, as after a kill, is also dropped: nothing is computed from this file.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise TrainingError(f"{path} is not a file; remove it to resume the run.")
    lines = path.read_text("utf-8", "replace").splitlines()
    write_text(path, "".join(f"{line}\n" for line in lines if _is_kept(line, state)))


def _is_kept(line: str, state: TrainingState) -> bool:
    """Whether a line of `metrics.jsonl` was logged before a state was saved."""
    try:
        values = json.loads(line)
        step, group = float(values["step"]), values.get("group")
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError, AttributeError):
        return False
    return step < state.step or (
        step == state.step and (group != "dev" or state.evaluated == state.step)
    )
