"""A command line in the process of its test."""

import io
import sys

import pytest

from rejoinder.cli import main


@pytest.fixture
def call(monkeypatch, capsys):
    """Runs a command line in this process: (exit status, standard output, standard error)."""

    def run(*words, stdin=b"", terminal=False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        monkeypatch.setattr(sys, "argv", ["rejoinder", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as stop:
            main.run()
        return stop.value.code or 0, *capsys.readouterr()

    return run
