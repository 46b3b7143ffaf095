"""The version of the package and its commit; every other module can import this one."""

from pathlib import Path

VERSION = "0.1.0"


def commit() -> str | None:
    """Returns the commit of this git checkout, with `-dirty` if files have changed.

    Returns None if the package was installed from a build, or if git can't say.
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
