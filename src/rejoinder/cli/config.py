"""`rejoinder config`: shows, checks and lists the configs of `rejoinder train`."""

from typing import Annotated

import typer

from rejoinder.cli.options import epilog, prints
from rejoinder.cli.output import asked_for, print_json, print_rows, printed_json, status_line

_EPILOG = epilog(
    "rejoinder config list",
    "rejoinder config show dan-modern",
    "rejoinder config show dan-modern encoder.width=300 > my.toml",
    "rejoinder config check my.toml",
)


commands = typer.Typer(
    help="Configs of `rejoinder train`: show, check, list.", no_args_is_help=True, epilog=_EPILOG
)


@commands.command("show", epilog=_EPILOG)
@prints("json")
def show(
    config: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="Name of a shipped config, or a TOML file.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to replace.")
    ] = None,
) -> None:
    """Show a whole config as TOML: every key that has an effect, with defaults filled in."""
    from rejoinder.training.config.loading import effective_tree, load_config, to_toml

    loaded = load_config(config, overrides or ())
    if not printed_json(effective_tree(loaded)):
        typer.echo(to_toml(loaded), nl=False)


@commands.command("check", epilog=_EPILOG)
@prints("json")
def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="TOML files or names of shipped configs.")
    ],
) -> None:
    """Check configs and report all faults; the exit status is 2 if there are any."""
    from rejoinder.errors import ConfigError, RejoinderError
    from rejoinder.training.config.loading import load_config

    messages: dict[str, str] = {}
    for file in files:
        try:
            load_config(file)
        except RejoinderError as error:
            messages[file] = str(error)
        else:
            status_line(f"{file}: no faults")
    if asked_for("json"):
        print_json({file: _faults(messages.get(file)) for file in files})
    if messages:
        raise ConfigError("\n".join(messages.values()))


def _faults(message: str | None) -> list[str]:
    """Returns the faults that an error reports, without the line that counts them."""
    head, *lines = (message or "").split("\n  ")
    return lines or [head] if head else []


@commands.command("list", epilog=_EPILOG)
@prints("json", "tsv")
def list_configs() -> None:
    """List the shipped configs: name, kind of encoder, purpose."""
    from rejoinder.training.config.loading import encoder_kind, purpose, shipped_names

    rows = [(name, encoder_kind(name), purpose(name)) for name in shipped_names()]
    print_rows(("name", "encoder", "purpose"), rows)
