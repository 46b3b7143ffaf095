"""`rejoinder config`: shows, checks and lists the configs of `rejoinder train`."""

import json
from typing import Annotated

import typer

_EPILOG = """Examples:

rejoinder config list

rejoinder config show dan-modern

rejoinder config show dan-modern encoder.width=300 > my.toml

rejoinder config check my.toml
"""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = typer.Typer(
        help="Configs of `rejoinder train`: show, check, list.",
        no_args_is_help=True,
        epilog=_EPILOG,
    )
    commands.command("show", epilog=_EPILOG)(show)
    commands.command("check", epilog=_EPILOG)(check)
    commands.command("list", epilog=_EPILOG)(list_configs)
    app.add_typer(commands, name="config")


def show(
    config: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="Name of a shipped config, or a TOML file.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to replace.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a whole config as TOML: every key that has an effect, with defaults filled in."""
    from rejoinder.training.config import effective_tree, load_config, to_toml

    loaded = load_config(config, overrides or ())
    if as_json:
        typer.echo(json.dumps(effective_tree(loaded), ensure_ascii=False))
    else:
        typer.echo(to_toml(loaded), nl=False)


def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="TOML files or names of shipped configs.")
    ],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check configs and report all faults; the exit status is 2 if there are any."""
    from rejoinder.errors import RejoinderError
    from rejoinder.training.config import load_config

    faults: dict[str, list[str]] = {}
    for file in files:
        try:
            load_config(file)
        except RejoinderError as error:
            head, *lines = str(error).split("\n  ")
            faults[file] = lines or [head]
            typer.echo(f"rejoinder: {error}", err=True)
        else:
            faults[file] = []
            if not (quiet or as_json):
                typer.echo(f"{file}: no faults")
    if as_json:
        typer.echo(json.dumps(faults, ensure_ascii=False))
    if any(faults.values()):
        raise typer.Exit(2)


def list_configs(as_json: AsJson = False) -> None:
    """List the shipped configs: name, kind of encoder, purpose."""
    from rejoinder.cli.output import form_of, print_rows
    from rejoinder.training.config import load_config
    from rejoinder.training.shipped import purpose, shipped_names

    rows = [(name, load_config(name).encoder.kind, purpose(name)) for name in shipped_names()]
    form = form_of(as_json=as_json, as_tsv=False)
    print_rows(("name", "encoder", "purpose"), rows, form, "Shipped configs")
