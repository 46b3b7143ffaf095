"""The version of the package and its commit, in a module that every other can import."""

from pathlib import Path

VERSION = "0.1.0"


def commit() -> str | None:
    """Returns the commit of the git checkout that this code is in, with `-dirty` after changes.

    It is None where the package was installed from a build, or where git can't tell.
    """
    import shutil
    import subprocess

    checkout, git = Path(__file__).resolve().parents[2], shutil.which("git")
    if git is None or not (checkout / ".git").exists():
        return None
    told = subprocess.run(  # noqa: S603
        [git, "-C", checkout, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or None
