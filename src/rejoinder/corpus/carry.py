"""The folder in which extractions with `--carry` keep comments, an increment per extraction.

    STATE/00001/comments.arrow    the comments, by parts (`engines.local.store`)
    STATE/00001/increment.json    options, input files, counts, the hash of the comments
    STATE/00002/…

An increment never changes and is identified by its input files: extracting the same files repeats
it, and sees only the earlier increments. An increment is renamed into place before the pairs are.
If the process is killed in between, the same command writes the pairs again.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, to_builtins
from msgspec.structs import asdict

from rejoinder.corpus.manifest import Counts
from rejoinder.corpus.options import ExtractOptions, ExtractProgress
from rejoinder.errors import InputError
from rejoinder.io.files import hashed
from rejoinder.io.files.addresses import AnyPath
from rejoinder.io.files.atomic import new_folder, write_text
from rejoinder.io.files.claims import claim, sweep
from rejoinder.version import VERSION

FORMAT = 1
FILE = "increment.json"
COMMENTS = "comments.arrow"
_Time = Annotated[int, Meta(ge=-62_135_596_800, le=253_402_300_799)]
"""Seconds since 1970, for the years 1 to 9999."""


class FileFacts(hashed.Record, frozen=True):
    """Size and hash of a file."""

    bytes: hashed.Count
    sha256: hashed.Digest


def _facts_of(path: Path) -> FileFacts:
    return FileFacts(path.stat().st_size, hashed.sha256_of_file(path))


class InputFile(FileFacts, frozen=True):
    """A file of comments that was read."""

    file: str
    """Its name."""


class Settings(hashed.Record, frozen=True):
    """The options that affect comments and pairs, named as on the command line."""

    rules: str
    columns: Mapping[str, str]
    separator: str | None
    subreddits: tuple[str, ...]
    since: _Time | None
    until: _Time | None
    split: tuple[hashed.Seconds, ...]


class _Content(hashed.Record, frozen=True):
    """The content of `increment.json`."""

    rejoinder_version: str
    settings: Settings
    inputs: tuple[InputFile, ...]
    comments: hashed.Count
    """Number of comments, one per id."""
    kept: hashed.Count
    files: Mapping[str, FileFacts]


@dataclass(frozen=True)
class Increment:
    """The comments of one extraction."""

    folder: Path
    content: _Content

    def check(self, *, content: bool = True) -> None:
        """Compares the file of comments with its size and, if `content`, with its SHA-256.

        Raises:
            InputError: it is missing or was changed.
        """
        facts = to_builtins(self.content.files.get(COMMENTS))
        remedy = _remedy(self.folder)
        hashed.check_file(self.folder / COMMENTS, facts, InputError, remedy, content=content)


@dataclass(frozen=True)
class Carry:
    """The increments that an extraction reads, and the increment that it adds."""

    number: int
    """Number of the increment of this extraction, from 1."""
    earlier: Sequence[Increment]
    inputs: tuple[InputFile, ...]
    settings: Settings
    target: Path | None
    """File for its comments; None if its increment already exists."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the comments of earlier increments."""
        return tuple(one.folder / COMMENTS for one in self.earlier)

    @property
    def comments(self) -> int:
        """Number of comments of earlier increments."""
        return sum(one.content.comments for one in self.earlier)

    @property
    def bytes(self) -> int:
        """Size of the files with the comments of earlier increments."""
        return sum(path.stat().st_size for path in self.files)

    def nothing_new(self) -> InputError:
        """Returns the error for dumps whose comments are all in earlier increments."""
        folders = ", ".join(
            f"{one.folder} ({', '.join(file.file for file in one.content.inputs)})"
            for one in self.earlier
        )
        return InputError(
            f"all comments of these dumps are already carried, in {folders}. To write the pairs "
            "of an earlier extraction again, pass exactly the same files."
        )

    def finish(self, counts: Counts) -> None:
        """Writes `increment.json`, the last file of an increment."""
        if self.target is None:
            return
        folder, facts = self.target.parent, _facts_of(self.target)
        comments = counts.comments - counts.duplicates - counts.conflicts
        content = _Content(
            VERSION, self.settings, self.inputs, comments, counts.kept, {COMMENTS: facts}
        )
        write_text(folder / FILE, hashed.sealed_text(content, FORMAT))


@contextmanager
def carrying(
    state: Path | None, options: ExtractOptions, files: Sequence[AnyPath], progress: ExtractProgress
) -> Iterator[Carry | None]:
    """Yields the carried comments for `files`, and adds their increment when the block ends.

    If the block fails, `state` stays as it was. Without a `state`, nothing is carried.

    Raises:
        InputError: the increments were made with other options, or are damaged.
        BusyError: another process is using `state`.
        StorageError: `state` can't be written.
    """
    if state is None:
        yield None
        return
    settings = Settings(
        rules=options.rules,
        columns=dict(options.columns.names),
        separator=options.separator,
        subreddits=options.subreddits,
        since=options.since,
        until=options.until,
        split=tuple(map(float, options.split)),
    )
    with claim(state):
        sweep(state)
        increments = _increments(state)
        for one in increments:
            _refuse_other(one, settings, state)
        progress("checking", 0, None)
        inputs = tuple(
            InputFile(path.stat().st_size, hashed.sha256_of_file(path), path.name)
            for path in files
            if isinstance(path, Path)  # the local engine refuses addresses
        )
        # after a kill between the two renames, or with --overwrite
        same = (number for number, one in enumerate(increments, 1) if one.content.inputs == inputs)
        number = next(same, len(increments) + 1)
        earlier = increments[: number - 1]
        for one in earlier:
            one.check()
        if number <= len(increments):
            yield Carry(number, earlier, inputs, settings, None)
            return
        with new_folder(state / _name(number)) as folder:
            yield Carry(number, earlier, inputs, settings, folder / COMMENTS)


def check_carry(state: Path, out: Path, options: ExtractOptions, engine: str) -> None:
    """Refuses options that can't be combined with carried comments.

    Raises:
        InputError: an option can't be used; the message says which and what is allowed.
    """
    refused = {
        f"`engine={engine!r}`": engine != "local",
        "`limit`": options.limit is not None,
        "`max_reply_count`": options.max_reply_count is not None,
        "`columns='message=…'`": options.columns.are_pairs,
    }
    if name := next((name for name, given in refused.items() if given), None):
        raise InputError(
            f"{name} can't be used with `carry`, which needs comments that answer others, all "
            "their pairs, and `engine='local'`. Leave one of them out."
        )
    inner, outer = state.resolve(), out.resolve()
    if inner == outer or outer in inner.parents or inner in outer.parents:
        raise InputError(
            f"`carry` {state} and `out` {out} must be two folders, neither inside the other."
        )


def _name(number: int) -> str:
    return f"{number:05d}"


def _increments(state: Path) -> list[Increment]:
    if not state.exists():
        return []
    if not state.is_dir():
        raise InputError(f"`carry` {state} is a file; name a folder.")
    names = sorted(path.name for path in state.iterdir() if not path.name.startswith("."))
    if others := [name for name in names if not (name.isdigit() and len(name) == len(_name(0)))]:
        raise InputError(
            f"{state} contains {others[0]}, which was not written by `carry`; name a new folder, "
            "or a folder that `carry` wrote."
        )
    increments = []
    for number, name in enumerate(names, 1):
        folder = state / _name(number)
        if folder.name != name:
            raise InputError(f"{folder} is missing. {_remedy(folder)}")
        content = hashed.read_sealed(
            folder / FILE,
            _Content,
            FORMAT,
            InputError,
            _remedy(folder),
            outdated="Extract all dumps again, with `carry` in a new folder.",
        )
        increments.append(Increment(folder, content))
        increments[-1].check(content=False)
    return increments


def _remedy(folder: Path) -> str:
    return (
        f"Remove the folders of {folder.parent} from {folder.name} on, and extract their dumps "
        "again, in the same order."
    )


def _refuse_other(one: Increment, settings: Settings, state: Path) -> None:
    before, now = asdict(one.content.settings), asdict(settings)
    differences = "; ".join(
        f"`{name}` {_shown(name, before[name])}, not {_shown(name, now[name])}"
        for name in now
        if before[name] != now[name]
    )
    if differences:
        raise InputError(
            f"{state} was made with other options: {differences}. Use the same options, or name "
            "another folder for `carry` and begin with the first dumps."
        )


def _shown(name: str, value: Any) -> str:
    if value in (None, ()):
        return "none"
    if name in ("since", "until"):
        return str(datetime.datetime.fromtimestamp(value, datetime.UTC).date())
    if isinstance(value, Mapping):
        return ",".join(f"{field}={column}" for field, column in value.items())
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
