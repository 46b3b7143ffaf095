"""Runs the command line for `python -m rejoinder`."""

from rejoinder.cli.main import run

run()
