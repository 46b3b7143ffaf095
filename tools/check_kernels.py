"""Runs the tests of the kernels in C once more, with kernels that watch their memory.

Builds them under GCC's sanitizers of addresses and undefined behaviour (`-fsanitize`) into a copy
of the package, which the normal build does not see. The first fault ends it: `make check-kernels`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
TESTS = (
    "tests/test_kernels.py",
    "tests/corpus/test_kernel.py",
    "tests/encoders/dan",
    "tests/encoders/nn/test_layers.py",
    "tests/index/test_matcher.py",
    "tests/text/test_words.py",
    "tests/text/test_readings.py",
    "tests/training/losses/test_softmax.py",
)
LOADED = """
import sys
from pathlib import Path
from rejoinder.registry import kernel
for name in sys.argv[2:]:
    file = Path(kernel(name).__file__)
    assert file.is_relative_to(sys.argv[1]), f"{file} is not the watched kernel"
    assert b"__asan_report" in file.read_bytes(), f"{file} was not built under the sanitizers"
"""


def built(folder: Path) -> None:
    """Builds all kernels into a copy of the package in a folder."""
    without = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src/rejoinder", folder / "rejoinder", ignore=without, symlinks=True)
    options = [f"--build-lib={folder}", f"--build-temp={folder / 'objects'}", "--force"]
    program = "import setuptools; setuptools.setup()"
    subprocess.run(
        [sys.executable, "-c", program, "build_ext", *options],
        cwd=ROOT,
        env={**os.environ, "CFLAGS": FLAGS, "LDFLAGS": FLAGS},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def library(name: str) -> str:
    """Returns the path of a library of GCC."""
    words = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    libraries = [library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    if not all(map(os.path.isabs, libraries)):
        print("GCC has no sanitizers here, so that the kernels were not checked.")
        return
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = [
        module["name"].removeprefix("rejoinder.")
        for module in settings["tool"]["setuptools"]["ext-modules"]
    ]
    with tempfile.TemporaryDirectory(prefix="rejoinder-kernels-") as made:
        built(Path(made))
        environment = {
            **os.environ,
            "ASAN_OPTIONS": "detect_leaks=0",  # Python itself frees little when it ends
            "LD_PRELOAD": " ".join(libraries),
            "PYTHONMALLOC": "malloc",  # arrays of Python share pools that sanitizers can't see into
            "PYTHONPATH": made,
        }
        for words in (
            [sys.executable, "-c", LOADED, made, *names],
            [sys.executable, "-m", "pytest", "-q", "--capture=sys", *TESTS],
        ):
            done = subprocess.run(words, cwd=ROOT, env=environment, check=False)
            if done.returncode:
                sys.exit(done.returncode)


if __name__ == "__main__":
    main()
