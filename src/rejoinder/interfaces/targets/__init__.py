"""Export targets: the forms of other libraries that a model is written in, looked up by name.

A new target is one file with its record and one line in `TARGETS` (docs/extend/target.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rejoinder.errors import InputError
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, read_model
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.registry import Registry

FOLDER = "FOLDER"
"""Stands for the path of the folder in the Python that a target returns."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A form of another library that a model is written in."""

    name: str
    """The value of `--to`."""
    dtypes: tuple[str, ...] = ("float32",)
    """Types of weights that it writes, the default first."""
    write: Callable[[ModelContents, Path, str], str]
    """Writes a model into an empty folder, with weights of a type of `dtypes`, and returns Python
    that loads it with the library, in which `FOLDER` stands for the path. The folder gets its name
    only if this succeeds.

    Raises `InputError` where the library can't express the model; the message says why."""


TARGETS: Registry[Target] = Registry(
    "export target",
    {
        "model2vec": "rejoinder.interfaces.targets.files:MODEL2VEC",
        "onnx": "rejoinder.interfaces.targets.onnx:ONNX",
        "sentence-transformers": "rejoinder.interfaces.targets.files:SENTENCE_TRANSFORMERS",
    },
)
"""Every export target: its name, and where its record is."""


@dataclass(frozen=True)
class Written:
    """A folder that an export target wrote."""

    folder: Path
    """The folder."""
    target: str
    """Name of the target."""
    bytes: int
    """Size of all its files."""
    dim: int
    """Embedding dimension."""
    python: str
    """Python that loads it with the library that it is for."""


def export_to(
    model: str | Path,
    out: str | Path,
    target: str,
    *,
    dtype: str | None = None,
    any_dim: bool = False,
    name: str | None = None,
    overwrite: bool = False,
    **smaller_by: Any,
) -> Written:
    """Writes a model as a folder that another library loads. The same options give the same bytes.

    Args:
        model: name, folder or address of the model. It is not changed.
        out: the folder to write.
        target: name of the library's form, a key of `TARGETS`.
        dtype: type of the weights, one of those of the target. None means its first.
        any_dim: cut to `dim` even if the model was not trained with nested dimensions.
        name: name of the new model. None keeps the name.
        overwrite: replace what `out` holds.
        **smaller_by: what else to make smaller, as in `rejoinder.export`: `dim`, `max_words`,
            `unknown_buckets`, `letter_buckets`, `spelling`, `saturation`.

    Returns:
        The folder, its size, and Python that loads it.

    Raises:
        InputError: the target is unknown or can't express the model, an option does not fit the
            model, or `out` is occupied.
        ModelError: the model is damaged.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    options = ExportOptions(**smaller_by)
    if any_dim and options.dim is None:
        raise InputError("any_dim allows any dim; give a dim, too.")
    record, path = TARGETS[target], Path(out)
    if dtype is not None and dtype not in record.dtypes:
        raise InputError(
            f"dtype {dtype!r}: {target} is written as {' or '.join(record.dtypes)}. Leave it out, "
            "or name one of these."
        )
    folder = find_model(model)
    with claim_output(path, overwrite=overwrite, inputs=[folder]):
        contents = read_model(folder)
        if options != ExportOptions():
            contents = smaller(contents, options, any_dim=any_dim)
        contents = replace(contents, name=name or contents.name)
        with new_folder(path, overwrite=overwrite) as new:
            python = record.write(contents, new, dtype or record.dtypes[0])
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Written(path, target, size, contents.dim, python.replace(FOLDER, str(path)))
