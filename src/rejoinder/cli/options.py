"""Options that several commands share: one name, one meaning and one help text each.

A command that `prints` has `--quiet`, which silences `cli.output` and `cli.progress`, by which all
but errors is written to standard error, and `--json` and `--tsv`, which `cli.output` obeys.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, getdoc, signature, unwrap
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from rejoinder.cli.output import note_missing_kernels, set_output
from rejoinder.errors import InputError

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Name that `rejoinder models` lists, folder such as RUN/model, or https address.",
        show_default="rejoinder-base",
    ),
]
"""A model that `cli.models.model_folder` finds; None is the default model.."""
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
        metavar="FILE", help="Linker of `rejoinder fit-links`. Default: that of the package."
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
    Path | None, "As --scorer, by a scorer of `rejoinder fit-scorer`, fitted with MODEL."
]
"""`--scorer-from` of the commands with `--scorer`."""

WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE[,KEY=VALUE…]",
        help="Only messages of this source (channel), author or thread, with this value of one "
        "of your fields, or from since on and before until, both dates in UTC. A key given again "
        "allows one more value.",
    ),
]
"""`--where`, which `cli.lines.where_conditions` reads."""

OnTooLong = Literal["error", "truncate", "split"]
OnTooLongOption = Annotated[
    OnTooLong,
    typer.Option(
        metavar="WAY",
        help="Sentences of more tokens than the model reads: error, truncate or split (into "
        "pieces, whose mean is taken).",
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
        bool, typer.Option("--quiet", "-q", help="Print no progress and no notes, only errors.")
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
            set_output(**{name: given.pop(name, False) for name in names})
            note_missing_kernels()
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
