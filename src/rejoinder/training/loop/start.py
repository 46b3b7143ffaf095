"""The start of a run on disk: config, vocabulary, excluded rows, and a manifest to check them."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import repr as short
from typing import Any

from safetensors.numpy import load_file, save_file

from rejoinder.errors import TrainingError
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import check_file, file_facts, read_sealed, sealed_text
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.io.formats.text_lines import Count, Digest, Record
from rejoinder.text.features import load_features
from rejoinder.training.config.loading import VOCABULARY_KEYS, to_toml, to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import Data, Prepared
from rejoinder.training.loop.checkpoint import config_hash
from rejoinder.training.loop.machine import describe_machine
from rejoinder.version import VERSION

FORMAT = 3
"""Format version of a run's `manifest.json`."""
_MANIFEST = "manifest.json"
_EXCLUDED = "excluded.safetensors"
_ROWS = "word_rows.safetensors"
_REMEDY = "The run can't be resumed; begin it again."


class Manifest(Record, frozen=True, kw_only=True):
    """The content of `manifest.json`, without its format and seal."""

    rejoinder_version: str
    begun: str
    machine: Mapping[str, Any]
    """See `machine.describe_machine`."""
    pairs_folder: str | None
    pairs_sha256: Digest | None
    pairs: Count
    labelled: dict[str, dict[str, Any]]
    """See `Prepared`, as for `pairs` and `leaks`."""
    leaks: Count
    leaks_by_set: dict[str, Count]
    sources_left_out: Mapping[str, Count]
    leak_sets: Sequence[str]
    text: Mapping[str, Any]
    """Result of `TextFeatures.config`."""
    config_sha256: Digest
    initial_sha256: str
    """That of the weights that training starts from, empty if there are none."""
    initial: Mapping[str, Any]
    files: Mapping[str, Any]


def write_start(
    run: Path, config: RunConfig, data: Data, prepared: Prepared, initial_sha256: str
) -> None:
    """Writes everything that a resumed run reads into the new folder `run`, before the first step.

    `initial_sha256` is that of the weights that training starts from, empty if there are none.
    """
    (run / "vocabulary").mkdir(parents=True, exist_ok=True)
    files = [f"vocabulary/{name}" for name in prepared.features.save(run / "vocabulary")]
    excluded = {str(number): rows for number, rows in prepared.excluded.items()}
    save_file(excluded, run / _EXCLUDED)
    files.append(_EXCLUDED)
    if prepared.rows is not None:
        save_file({"rows": prepared.rows}, run / _ROWS)
        files.append(_ROWS)
    write_text(run / "config.toml", to_toml(config))
    manifest = Manifest(
        rejoinder_version=VERSION,
        begun=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        pairs_folder=None if data.pairs is None else str(data.pairs.folder),
        pairs_sha256=data.pairs_sha256,
        pairs=prepared.pairs,
        labelled=prepared.labelled,
        leaks=prepared.leaks,
        leaks_by_set=prepared.leaks_by_set,
        sources_left_out=data.selection(config).left_out,
        leak_sets=config.training.excluded_sets,
        text=prepared.features.config(),
        config_sha256=config_hash(config),
        initial_sha256=initial_sha256,
        initial=prepared.initial,
        files=file_facts(run, files),
    )
    write_text(run / _MANIFEST, sealed_text(manifest, FORMAT))


def read_start(run: Path, data: Data, config: RunConfig) -> tuple[Prepared, str]:
    """Reads and checks what `write_start` wrote: what was learned, and `initial_sha256`.

    Raises:
        TrainingError: the config or the data differ from those at the start, or a file is damaged.
    """
    manifest = read_manifest(run)
    if manifest.config_sha256 != config_hash(config):
        raise TrainingError(
            f"the config differs from the one that {run} began with; resume with {run}/config.toml "
            "as it was (name, export and logging may change), or begin another run."
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
                f"the config has {asked.get(name)}. {_REMEDY}"
            )
    for name, facts in manifest.files.items():
        check_file(run / name, facts, TrainingError, _REMEDY)
    try:
        excluded = load_file(run / _EXCLUDED)
        learned = load_file(run / _ROWS)["rows"] if _ROWS in manifest.files else None
    except UNREADABLE as error:
        raise TrainingError(f"the files of {run} can't be read: {error}. {_REMEDY}") from None
    features = load_features(run / "vocabulary", manifest.text)
    rows = {int(number): value for number, value in excluded.items()}
    prepared = Prepared(
        features,
        rows,
        manifest.pairs,
        manifest.leaks,
        manifest.labelled,
        learned,
        manifest.leaks_by_set,
        manifest.initial,
    )
    return prepared, manifest.initial_sha256


def read_manifest(run: Path) -> Manifest:
    """Reads the manifest of a run and checks its seal and its values.

    Raises:
        TrainingError: the folder is not a run, or the manifest is damaged or of another version.
    """
    path = run / _MANIFEST
    return read_sealed(
        path,
        Manifest,
        FORMAT,
        TrainingError,
        _REMEDY,
        unreadable=f"{run} is not a run that can be resumed",
        outdated="Begin the run again, or finish it with the version that began it.",
    )
