"""Two builds of the same source, in other places and at other times, are the same bytes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")


def built(folder, seconds):
    """The wheel of a copy of the source whose files have that time."""
    source = folder / "source"
    source.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    for path in source.rglob("*"):
        os.utime(path, (seconds, seconds))
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    subprocess.run(
        [python, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", folder, source],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        check=True,
    )
    [wheel] = folder.glob("*.whl")
    return wheel


def test_a_wheel_is_reproducible(tmp_path):
    first = built(tmp_path / "first", 1_600_000_000)
    second = built(tmp_path / "another/place", 1_650_000_000)
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
