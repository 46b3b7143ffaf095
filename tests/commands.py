"""Commands in the process of a test."""

from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.cli.output import as_options
from rejoinder.errors import InputError, RejoinderError


def call(*words: Any, expect: int = 0) -> Result:
    """What a command prints; its exit status is checked."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


def refused(*words: Any, error: type[RejoinderError] = InputError) -> str:
    """The message of the error that a command ends with, as it prints it."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, error), result.output
    assert "\n" not in str(result.exception)
    return as_options(str(result.exception))
