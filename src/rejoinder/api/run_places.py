"""Where a run is trained: at its output, or next to it while it replaces another run.

A run that replaces another is trained in `.NAME.unfinished` and takes its place once it has a
model. Until then the old run stays as it was, and `--resume` continues the new one.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.io.files.claims import claim, swap_in
from rejoinder.io.files.outputs import resolved
from rejoinder.io.files.storage import creation_errors
from rejoinder.io.files.unfinished import discard_unfinished, unfinished_folder

CONFIG = "config.toml"


def place_of_run(out: Path) -> Path:
    """Returns where the run of an output is now."""
    unfinished = unfinished_folder(out)
    return unfinished if (unfinished / CONFIG).is_file() else out


def place_to_begin(out: Path, *, overwrite: bool) -> Path:
    """Returns where to begin a run.

    Raises:
        InputError: an interrupted run was about to replace `out`, and `overwrite` is false.
    """
    left = place_of_run(out)
    if left != out and not overwrite:
        raise InputError(
            f"an interrupted run that was to replace {out} is at {left}; continue it with "
            "`resume=True`, or begin again with `overwrite=True`."
        )
    is_full = out.is_dir() and any(out.iterdir())
    return unfinished_folder(out) if overwrite and is_full else out


@contextmanager
def claimed_place(
    work: Path, out: Path, inputs: Iterable[object], *, resume: bool
) -> Iterator[None]:
    """Claims the output of a run that is trained in `work`.

    Raises:
        InputError: an input would be replaced.
        BusyError, StorageError: see `claim`.
    """
    with claim(out, inputs=() if work == out else inputs):
        if work == out and not resume:
            discard_unfinished(out)
        yield


def put_in_place(work: Path, out: Path) -> None:
    """Replaces the run at a claimed output by the one in `work`."""
    with creation_errors(out):
        swap_in(work, resolved(out))


def nothing_to_resume(out: Path) -> InputError:
    """Returns the error that an output holds no run to resume."""
    seeds = sorted(path.name.removeprefix("seed-") for path in out.glob("seed-*"))
    if seeds:
        return InputError(
            f"{out} holds runs of several seeds; resume them with the same seeds: "
            f"`seed={','.join(seeds)}`."
        )
    return InputError(f"{out} holds no run to resume; without `resume=True` a new one begins.")
