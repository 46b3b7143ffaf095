"""`python -m rejoinder`: the same as the command `rejoinder`."""

from rejoinder.cli.main import run

run()
