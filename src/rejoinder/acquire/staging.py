"""Several files of a folder replaced together: all of them, or none.

Each file is written beside its path, as `.NAME.part`; a journal in the folder says which. Once all
are there the journal is marked, and the files are renamed. What a killed process left is undone
where the journal is not marked, and finished where it is.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rejoinder.errors import BusyError, InputError, StorageError
from rejoinder.files.atomic import write_text
from rejoinder.files.claims import absolute, beside, claim, part_of
from rejoinder.files.storage import refused

_NAME = "adding"
"""Of the lock and the scratch folder inside a folder of data sets: `.adding.lock`, …"""
_JOURNAL = ".adding.json"


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Hold a folder of data sets against other commands that write it; nests within a process.

    Raises:
        InputError: it is a file.
        BusyError: another command holds it; the message says which.
        StorageError: it can't be written.
    """
    # unlike Path's, these are false where a name is too long or a folder can't be looked into
    if os.path.exists(root) and not os.path.isdir(root):  # noqa: PTH110, PTH112
        raise InputError(f"{root} is a file; a folder of data sets is needed. Name another one.")
    with ExitStack() as stack:
        with _about(root):
            stack.enter_context(claim(root / _NAME))
            _recover(root)
        yield


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """A folder inside `root`, which is held, for what is unpacked; removed when the block ends."""
    with held(root), part_of(root / _NAME) as folder:
        try:
            folder.mkdir()
        except OSError as error:
            raise refused(root, error) from None
        yield folder


@contextmanager
def _about(root: Path) -> Iterator[None]:
    """Let the errors of the claim name the folder, not the file inside that is locked."""
    inner = str(absolute(root / _NAME))
    try:
        yield
    except (BusyError, StorageError) as error:
        raise type(error)(str(error).replace(inner, str(root))) from None
    except OSError as error:
        raise refused(root, error) from None


@dataclass(frozen=True)
class _Change:
    """What becomes of files: their paths, and the folders that are made for them."""

    paths: Sequence[Path]
    made: Sequence[Path]
    """The outermost first."""

    def write_journal(self, root: Path, *, complete: bool) -> None:
        tree = {
            "complete": complete,
            "files": [path.relative_to(root).as_posix() for path in self.paths],
            "folders": [path.relative_to(root).as_posix() for path in self.made],
        }
        write_text(root / _JOURNAL, json.dumps(tree, indent=1))

    def undo(self) -> None:
        for path in self.paths:
            if beside(path, "old").exists():
                beside(path, "old").replace(path)
            beside(path, "part").unlink(missing_ok=True)
        for folder in reversed(self.made):
            with suppress(OSError):
                folder.rmdir()

    def finish(self) -> None:
        for path in self.paths:
            if beside(path, "part").exists():
                beside(path, "part").replace(path)
            beside(path, "old").unlink(missing_ok=True)


def write_together(root: Path, contents: Mapping[Path, bytes]) -> None:
    """Write files below `root`, which the caller holds; a failure leaves all as they were.

    Raises:
        InputError: a folder is where a file goes, or a file where a folder goes.
        StorageError: one can't be written: a full disk, missing rights.
    """
    if not contents:
        return
    _refuse_obstacles(root, contents)
    made = {
        folder: None
        for path in contents
        for folder in reversed(path.relative_to(root).parents)
        if not (root / folder).exists()
    }
    change = _Change(list(contents), [root / folder for folder in made])
    change.write_journal(root, complete=False)
    writing, renamed = root, []
    try:
        for path, content in contents.items():
            writing = path
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside(path, "part").open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        change.write_journal(root, complete=True)
        for path in contents:
            writing = path
            if path.exists():
                path.replace(beside(path, "old"))
            beside(path, "part").replace(path)
            renamed.append(path)
    except BaseException as error:
        for path in renamed:
            if not beside(path, "old").exists():
                path.unlink(missing_ok=True)
        change.undo()
        (root / _JOURNAL).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise refused(writing, error) from None
        raise
    change.finish()
    (root / _JOURNAL).unlink(missing_ok=True)


def _recover(root: Path) -> None:
    """Undo or finish what a killed process began in `root`, which the caller holds."""
    journal = root / _JOURNAL
    with claim(journal):  # removes what is left of writing it
        pass
    try:
        tree = json.loads(journal.read_bytes())
        complete, names, folders = bool(tree["complete"]), tree["files"], tree["folders"]
        paths = [[root / _checked(name) for name in names], [root / _checked(n) for n in folders]]
        change = _Change(*paths)
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{journal} is damaged: it lists the files that a command was about to write when it "
            "was killed. Remove it, and add those data sets again."
        ) from None
    try:
        if complete:
            change.finish()
        else:
            change.undo()
        journal.unlink()
    except OSError as error:
        raise refused(root, error) from None


def _checked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(name)
    return path


def _refuse_obstacles(root: Path, paths: Mapping[Path, bytes]) -> None:
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder; a file is written there. Move it away.")
        for folder in path.relative_to(root).parents:
            if (root / folder).is_file():
                raise InputError(f"{root / folder} is a file; a folder is needed there.")
