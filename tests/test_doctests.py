"""The examples in docstrings run. Modules without one are not imported here."""

import doctest
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((SOURCE / "rejoinder").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


def test_there_are_examples():
    assert len(MODULES) > 20


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0, "an example that doctest does not see, as one outside a docstring"
    assert result.failed == 0
