"""What setuptools is told about the kernels in C."""

import os
import re
import sys
import tomllib
from pathlib import Path
from subprocess import run

ROOT = Path(__file__).parents[1]
HEADERS = "src/kernels"


def test_headers_are_named_so_that_the_source_distribution_has_them():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    modules = settings["tool"]["setuptools"]["ext-modules"]
    assert {module["sources"][0] for module in modules} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.c")
    }
    for module in modules:
        [source] = module["sources"]
        headers = re.findall(r'#include "(.+)"', (ROOT / source).read_text("utf-8"))
        assert module.get("depends", []) == [f"{HEADERS}/{name}" for name in headers]


def test_the_environment_leaves_them_out():
    ask = "from rejoinder.kernels import kernel; print(kernel('text._words'))"
    environment = {**os.environ, "REJOINDER_NATIVE": "0"}
    done = run([sys.executable, "-c", ask], env=environment, capture_output=True, check=True)
    assert done.stdout.split() == [b"None"]


def test_commands_note_that_they_were_not_built():
    code = "import sys; sys.modules['rejoinder.text._words'] = None; "
    code += "from rejoinder.cli.main import run; run()"
    for words, told in ((["--version"], True), (["models"], True), (["models", "-q"], False)):
        done = run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert ("C compiler" in done.stderr) == told
