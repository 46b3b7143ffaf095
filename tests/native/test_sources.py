"""What setuptools is told about the kernels in C."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NATIVE = Path("src/rejoinder/native")


def test_headers_are_named_so_that_the_source_distribution_has_them():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    modules = settings["tool"]["setuptools"]["ext-modules"]
    assert {module["sources"][0] for module in modules} == {
        str(NATIVE / path.name) for path in (ROOT / NATIVE).glob("*.c")
    }
    for module in modules:
        [source] = module["sources"]
        headers = re.findall(r'#include "(.+)"', (ROOT / source).read_text("utf-8"))
        assert module.get("depends", []) == [str(NATIVE / name) for name in headers]
