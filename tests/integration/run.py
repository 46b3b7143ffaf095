"""Runs the integration tests, each folder in separate virtual environments.

    python tests/integration/run.py          # every folder next to this file
    python tests/integration/run.py wheel    # some of them

A folder holds `requirements.txt` and tests. In the requirements, `rejoinder` (with or without
extras) is the wheel that this script builds from the checkout, and a first line such as
`# pythons: 3.11 3.12` names the versions of Python to test with; without it, the running one. A
version that is not installed is skipped. Other packages have the versions of constraints.txt.
Packages in `without-dependencies.txt`, if there is one, are installed as they are: what they need
is in the requirements, as far as the tests use it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
"""What a wheel is made from. It is built elsewhere: `build/` may hold modules of older versions."""


def main(names: Sequence[str]) -> int:
    """Returns the exit status: 0 if all tests passed in all environments."""
    folders = [FOLDER / name for name in names] or sorted(
        path.parent for path in FOLDER.glob("*/requirements.txt")
    )
    failed = []
    with tempfile.TemporaryDirectory(prefix="integration-", dir=ROOT) as work:
        wheel = build_wheel(Path(work))
        for folder in folders:
            for version in versions(folder / "requirements.txt"):
                label = f"{folder.name} on Python {version}"
                interpreter = find_interpreter(version)
                if interpreter is None:
                    say(f"{label}: skipped, python{version} is not installed")
                elif run_folder(folder, interpreter, wheel, Path(work) / "environment"):
                    say(f"{label}: passed")
                else:
                    say(f"{label}: FAILED")
                    failed.append(label)
    return 1 if failed else 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def pip(*words: object) -> None:
    command = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", *words]
    subprocess.run([str(word) for word in command], check=True)


def build_wheel(work: Path) -> Path:
    source = work / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, source / name)
    pip("wheel", source, "--no-deps", "--wheel-dir", work)
    [wheel] = work.glob("rejoinder-*.whl")
    return wheel


def versions(requirements: Path) -> list[str]:
    first = requirements.read_text("utf-8").partition("\n")[0]
    named = re.fullmatch(r"# pythons: ([\d. ]+)", first)
    return named[1].split() if named else [f"{sys.version_info[0]}.{sys.version_info[1]}"]


def find_interpreter(version: str) -> str | None:
    """Looks among pyenv's interpreters, then on the PATH."""
    for candidate in candidates(version):
        code = "import sys; print(*sys.version_info[:2], sep='.')"
        found = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if found.stdout.strip() == version:
            return candidate
    return None


def candidates(version: str) -> Iterator[str]:
    yield sys.executable
    for path in sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python")):
        yield str(path)
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path


def run_folder(folder: Path, interpreter: str, wheel: Path, environment: Path) -> bool:
    """Runs the tests of a folder in a fresh environment and returns whether they passed."""
    subprocess.run([interpreter, "-m", "venv", "--clear", "--without-pip", environment], check=True)
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    requirements = wheel.with_name("requirements.txt")
    lines = (folder / "requirements.txt").read_text("utf-8")
    # pip does not take a constraint on a package for one with extras
    named = re.sub(r"(?m)^rejoinder(\[.*\])?$", rf"rejoinder\1 @ {wheel.as_uri()}", lines)
    requirements.write_text(named, "utf-8")
    pip(
        "--python", python, "install", "--no-compile", "-c", ROOT / "constraints.txt",
        "-r", requirements, "pytest",
    )  # fmt: skip
    alone = folder / "without-dependencies.txt"
    if alone.exists():
        pip("--python", python, "install", "--no-compile", "--no-deps", "-r", alone)
    command = [python, "-m", "pytest", "-q", "-c", FOLDER / "pytest.ini", folder]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
