"""Options that several commands share: one name, one meaning and one help text each.

What they are given: models, and texts as arguments, in files, in pipes and on standard input.

A command that `prints` has `--quiet`, which silences `cli.output` and `cli.progress`, by which all
but errors is written to standard error, and `--json` and `--tsv`, which `cli.output` obeys.
"""

import os
import re
import select
import shlex
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, getdoc, signature, unwrap
from itertools import chain
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from rejoinder.cli import output
from rejoinder.cli.progress import Bar
from rejoinder.corpus.texts import Entry, entries_of, looks_exported
from rejoinder.errors import InputError, RejoinderError
from rejoinder.exports import format_of_export
from rejoinder.io.files.storage import scratch_folder, storage_errors
from rejoinder.io.formats.text_lines import file_lines, text_lines
from rejoinder.io.formats.texts import table_columns, texts_of

if TYPE_CHECKING:
    from rejoinder.inference.encoder import SentenceEncoder

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Name from `rejoinder models`, folder such as RUN/model, or https address.",
        show_default="rejoinder-base",
    ),
]
"""A model that `model_folder` finds; None is the default model."""
ModelSha256Option = Annotated[
    str | None,
    typer.Option(metavar="HEX", help="SHA-256 of the archive, for a MODEL at an https address."),
]
"""`--model-sha256`: a parameter `model_sha256` of a command that has a `ModelOption`."""

DataOption = Annotated[Path | None, "Folder of data sets."]
PairsOption = Annotated[Path | None, "Folder written by `rejoinder extract`."]
OutOption = Annotated[Path, "Folder to write."]
OverwriteOption = Annotated[bool, "Replace an existing OUT."]
SeedOption = Annotated[int, "Seed of all random draws."]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads. Default: all cores.")]
LinksOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Linker from `rejoinder fit-links`. Default: the package's linker."
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the engine runs. Spark: spark://HOST:7077, yarn, k8s://…, local[4], or Spark "
        "Connect at sc://HOST. Ray: HOST:6379, ray://HOST:10001. Default: this machine.",
    ),
]
"""`--master` of the commands with `--engine`."""

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="text=…[,id=…]",
        help="Columns of a table (.csv, .tsv, .parquet), or fields of JSON lines, with the texts "
        "and their ids; also author, time, source, thread, title, answers, link, reply, and your "
        "own fields. Default: text and id; or question and answer.",
    ),
]
"""`--columns` of the commands that read files of texts."""

ScorerFromOption = Annotated[
    Path | None, "As --scorer, with a scorer from `rejoinder fit-scorer`, fitted with MODEL."
]
"""`--scorer-from` of the commands with `--scorer`."""

WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE[,KEY=VALUE…]",
        help="Only messages of this source (channel), author or thread, with this value of one "
        "of your fields, or from `since` on and before `until`, both dates in UTC. A repeated key "
        "allows another value.",
    ),
]
"""`--where`, which `where_conditions` reads."""

OnTooLong = Literal["error", "truncate", "split"]
OnTooLongOption = Annotated[
    OnTooLong,
    typer.Option(
        metavar="WAY",
        help="What to do with sentences of more tokens than the model reads: error, truncate or "
        "split (into pieces, whose embeddings are averaged).",
    ),
]
"""`--on-too-long`."""


def epilog(*examples: str) -> str:
    """Returns the end of a command's help."""
    return "\n\n".join(("Examples:", *examples))


def examples(command: Callable[..., None]) -> str:
    """Returns the end of a command's help, of what its docstring says."""
    return epilog(*_sections(unwrap(command)).get("Examples", "").split("\n"))


def _sections(command: Callable[..., None]) -> dict[str, str]:
    """Returns what the docstring of a command says, and each of its sections by its name."""
    said, *parts = re.split(r"\n\n(Args|Examples):\n", getdoc(command) or "")
    return {"": said, **dict(zip(parts[::2], map(dedent, parts[1::2]), strict=True))}


_given = dict[str, Any]()
"""Parameters of the command that have other values than by default."""


def given_besides(*names: str) -> list[str]:
    """Returns what the command was given besides parameters of these names: `--seed`, `a model`."""
    others = (name for name in _given if name not in names)
    return ["a model" if one == "encoder" else f"--{one.replace('_', '-')}" for one in others]


_PRINTING = {
    "json": Annotated[bool, "Print JSON."],
    "tsv": Annotated[bool, "Print tab-separated lines."],
    "quiet": Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only errors, no progress or notes.")
    ],
}


def prints(
    *forms: str,
    needs: Mapping[str, Sequence[str]] = MappingProxyType({}),
    excludes: Sequence[tuple[str, str]] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function, with `--quiet` and the options of its `forms`, json and tsv.

    They hold until the next command of the process. A parameter is an option of its name unless it
    is annotated as an argument; a bool is a flag. Its help is in the docstring, or in
    `Annotated[type, "help"]`.

    Args:
        forms: `json`, `tsv` or both.
        needs: What options need, such as `--out FILE`, `--mode hybrid` or `--scorer or
            --scorer-from FOLDER`, and the names of these options.
        excludes: Pairs of options that can't be given together, such as `("--exact", "--where")`.
    """
    names = (*forms, "quiet")
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=_PRINTING[name])
        for name in names
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        plain, said = signature(command), _sections(command)
        helps = dict(re.findall(r"^(\w+): (.+(?:\n .+)*)", said.get("Args", ""), re.MULTILINE))
        parameters = [*plain.parameters.values(), *more]
        usual = {one.name: one.default for one in parameters}

        @wraps(command)
        def run(*args: Any, **given: Any) -> None:
            _given.clear()
            _given.update(
                (name, value) for name, value in given.items() if value not in (usual[name], [])
            )
            output.set_output(**{name: given.pop(name, False) for name in names})
            output.note_missing_kernels()
            _refuse(_given, needs, excludes)
            command(*args, **given)

        run.__doc__ = said[""]
        run.__signature__ = plain.replace(  # type: ignore[attr-defined]
            parameters=[_option(one, helps.get(one.name, "")) for one in parameters]
        )
        return run

    return decorate


def _refuse(
    given: Mapping[str, Any],
    needs: Mapping[str, Sequence[str]],
    excludes: Sequence[tuple[str, str]],
) -> None:
    """Refuses options that would have no effect, or that contradict.

    Raises:
        InputError: there are some.
    """

    def has(options: str) -> bool:
        for one in options.split(" or "):
            option, _, value = one.partition(" ")
            name = option.removeprefix("--").replace("-", "_")
            if name in given and value in (value.upper(), given[name]):
                return True
        return False

    for needed, options in needs.items():
        lacking = [one for one in options if has(one)]
        if lacking and not has(needed):
            raise InputError(f"these options need {needed}: {', '.join(lacking)}.")
    for first, second in excludes:
        if has(first) and has(second):
            raise InputError(f"{first} and {second} contradict; leave one out.")


def _option(parameter: Parameter, text: str) -> Parameter:
    """Returns a parameter as Typer takes it, with its help."""
    kind, about = parameter.annotation, text
    if get_origin(kind) is Annotated:
        kind, about = get_args(kind)
    if isinstance(about, str):
        # Typer would give a flag without a name `--no-NAME`, too
        names = [f"--{parameter.name.replace('_', '-')}"] if kind is bool else []
        about = typer.Option(*names, help=about)
    if text:
        about.help = " ".join(text.split())
    return parameter.replace(annotation=Annotated[kind, about])


def model_folder(model: str | None, sha256: str | None) -> Path:
    """Returns the folder of the model that `--model` and `--model-sha256` mean.

    Without `--model` that is the default model. A download is shown as it goes.

    Raises:
        RejoinderError: there is no such model, or it can't be downloaded.
    """
    from rejoinder.models.find import find_model, is_address, shipped_model

    if model is None:
        if sha256 is not None:
            raise InputError("--model-sha256 is for a MODEL at an https address; name one.")
        return shipped_model()
    if not is_address(model):
        return find_model(model, sha256)
    with Bar("bytes") as bar:
        return find_model(model, sha256, bar.show)


def given_model(model: str | None, sha256: str | None) -> Path | None:
    """Returns what `model_folder` does, or None without `--model`, as an index has its own.

    Raises:
        RejoinderError: as for `model_folder`.
    """
    return model_folder(model, sha256) if model or sha256 else None


def open_encoder(
    model: str | None, sha256: str | None, on_too_long: OnTooLong
) -> "SentenceEncoder":
    """Loads the model that `--model` and `--model-sha256` mean, as `model_folder` does."""
    from rejoinder.inference.encoder import SentenceEncoder

    return SentenceEncoder.load(model_folder(model, sha256), on_too_long=on_too_long)


def note_too_long(encoder: "SentenceEncoder", count: int, total: int, texts: str) -> None:
    """Notes how many `texts` (a plural noun) are too long for the model, and what was done."""
    if not count:
        return
    most = encoder.describe()["max_tokens"]
    done = "the rest was not read"
    if encoder.on_too_long == "split":
        done = f"each is the mean of pieces of {most:,} tokens"
    output.note(f"more than {most:,} tokens in {count:,} of {total:,} {texts}: {done}")


_READ_BYTES = 1 << 20
_STDIN = "standard input"


def read_lines(path: str) -> list[str]:
    """Returns the lines of a file, which may be compressed, of a pipe, or of standard input (`-`).

    Raises:
        InputError: the file can't be read, is empty, or is not UTF-8 text.
    """
    return list(
        text_lines(_pieces(path), _name(path)) if is_stream(path) else file_lines(Path(path))
    )


def stream_entries(path: str, columns: str | None = None) -> Iterator[Entry]:
    """Yields the texts of a path (`corpus.texts`), of a pipe, or of standard input (`-`).

    After the last one, it notes which messages of an export were left out.

    Raises:
        InputError: the path can't be read, or has no texts.
    """
    if is_stream(path):
        yield from _streamed(path, columns)
        return
    left_out: list[str] = []
    yield from entries_of(Path(path), columns, on_left_out=left_out.append)
    output.note_left_out(Counter(left_out))


def _streamed(path: str, columns: str | None) -> Iterator[Entry]:
    """Yields texts as they come or, once everything has, the messages of an export."""
    pieces, name = _pieces(path), _name(path)
    head = next(pieces, b"")
    if columns is None and looks_exported(head):
        with _scratch() as folder:
            file = folder / Path(name).name
            file.write_bytes(head)
            if b"\0" in head or format_of_export(file):  # archives have their table at the end
                with storage_errors(folder), file.open("ab") as out:
                    out.writelines(pieces)
                yield from stream_entries(str(file))
                return
    if columns is None:
        _note_table(head, name)
    yield from (Entry(*text) for text in texts_of(chain([head], pieces), name, columns))


def _note_table(head: bytes, name: str) -> None:
    """Notes that a stream, which begins with `head`, is lines, if it seems to be a table."""
    names = table_columns(head)
    if names and "text" not in names and head.count(b"\n") > 2:
        output.note(
            f"{name} is read as lines of text. If it is a table, name its column of texts, such "
            f"as --columns text={shlex.quote(names[-1])}"
        )


@contextmanager
def as_files(paths: Sequence[str], *, are_texts: bool = False) -> Iterator[list[str]]:
    """Yields paths, with temporary files for standard input (`-`) and for pipes.

    Exports are read more than once, and archives not from the beginning to the end. With
    `are_texts`, a table on standard input that will be read as lines is noted.

    Raises:
        InputError: standard input is closed, or named twice.
        StorageError: there is no room for temporary files.
    """
    if paths.count("-") > 1:
        raise InputError("- is standard input, which can be read once; name it once.")
    piped = [*filter(is_stream, paths)]
    if not piped:
        yield [*paths]
        return
    with _scratch() as folder:
        files = {}
        for one in piped:
            files[one] = folder / Path(_name(one)).name
            pieces = _pieces(one)
            head = next(pieces, b"")
            with storage_errors(folder), files[one].open("wb") as out:
                out.writelines(chain([head], pieces))
            if are_texts and not (looks_exported(head) and format_of_export(files[one])):
                _note_table(head, _name(one))
        yield [str(files.get(one, one)) for one in paths]


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yields a temporary folder, which errors don't mention."""
    with scratch_folder() as folder:
        try:
            yield folder
        except RejoinderError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def is_stream(path: str) -> bool:
    """Tells whether a path is read once from beginning to end: a pipe, or standard input (`-`)."""
    with suppress(OSError, ValueError):  # not there, or not a path
        return path == "-" or stat.S_ISFIFO(Path(path).stat().st_mode)
    return False


def _pieces(path: str) -> Iterator[bytes]:
    """Yields the bytes of a stream as they come."""
    if path != "-":
        with Path(path).open("rb", buffering=0) as file:
            yield from iter(lambda: file.read(_READ_BYTES), b"")
        return
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file.")
    stream: Any = sys.stdin.buffer
    while True:
        # The system may give a signal to another thread, while the main one starts it. Python
        # handles it in the main thread, which would never know while it waits for input.
        with suppress(OSError):  # not a file of the system
            while not select.select([stream], [], [], 1)[0]:
                output.exit_if_signalled()
        if not (read := stream.read1(_READ_BYTES)):
            return
        yield read


def read_pairs(path: str) -> list[tuple[str, str]]:
    """Reads lines of two sentences separated by a tab, as `read_lines` does.

    Raises:
        InputError: as for `read_lines`, or a line does not have two columns.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        parts = line.split("\t")
        if len(parts) != 2:
            place = f"{_name(path)} line {number}"
            raise InputError(f"{place}: {len(parts)} columns; write two, separated by a tab.")
        rows.append((parts[0], parts[1]))
    return rows


def _name(path: str) -> str:
    """Returns the name that messages use."""
    return _STDIN if path == "-" else path


def as_text(argument: str) -> str:
    r"""Returns an argument with U+FFFD for bytes that are not UTF-8, which Python makes surrogates.

    >>> as_text('h\udcffi')
    'h�i'
    """
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def given_texts(arguments: Sequence[str] | None, file: str | None) -> list[str]:
    """Returns the texts of arguments, and the lines of a file (see `read_lines`)."""
    return [*map(as_text, arguments or ()), *(read_lines(file) if file else ())]


def where_conditions(words: Sequence[str] | None) -> dict[str, list[str]]:
    """Returns the values of each key of `--where`.

    A comma is part of a value unless a key and = follow it.

    >>> where_conditions(["author=Smith, Ann,source=help", "source=general"])
    {'author': ['Smith, Ann'], 'source': ['help', 'general']}

    Raises:
        InputError: a condition has no =.
    """
    values: dict[str, list[str]] = {}
    for word in words or ():
        for condition in re.split(r",(?=\s*[a-z]+=)", as_text(word)):
            key, equals, value = condition.strip().partition("=")
            if not equals:
                raise InputError(f"--where {condition!r}: write KEY=VALUE, as in source=help.")
            values.setdefault(key, []).append(value)
    return values


def split_lists(words: Sequence[str]) -> list[str]:
    """Splits words that join values by commas. The path of an existing file may hold commas.

    >>> split_lists(["stsb, snli", "mr"])
    ['stsb', 'snli', 'mr']
    """
    values: list[str] = []
    for word in words:
        # unlike Path's method, this is false where a name is too long
        parts = [word] if os.path.exists(word) else word.split(",")  # noqa: PTH110
        values += filter(None, map(str.strip, parts))
    return values
