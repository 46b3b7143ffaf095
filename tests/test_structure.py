"""The layout that docs/design.md describes: packages, journeys, and no circle of imports."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src/rejoinder"
MOST_PACKAGES, MOST_FILES, MOST_LINES = 17, 12, 150
BETWEEN = 2
"""Modules that may stand between two files of a journey: a registry, and the record of a kind."""


def module_name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> Mapping[str, Path]:
    return {module_name(file): file for file in PACKAGE.rglob("*.py")}


def named(node: ast.AST) -> Iterator[str]:
    """The modules and names that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield whole if whole in modules() else node.module


def without_types(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from without_types(node)


@cache
def imports(name: str) -> frozenset[str]:
    """Modules of the package that a module imports, also inside its functions."""
    tree = ast.parse(modules()[name].read_text("utf-8"))
    found = {each for node in without_types(tree) for each in named(node)}
    return frozenset(found & modules().keys() - {name})


@cache
def mentions(name: str) -> frozenset[str]:
    """Modules and kernels that a module imports or names in a string, as registries do."""
    tree = ast.parse(modules()[name].read_text("utf-8"))
    strings = {
        node.value.split(":")[0]  # such as "rejoinder.encoders.dan.kind:DAN"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    below = {f"{name}{each}" for each in strings if each.startswith(".")}  # f"{__name__}.sts:STS"
    return imports(name) | strings | below | {f"rejoinder.{each}" for each in strings}


def circles(edges: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for name in edges:
        if name not in index:
            visit(name)
    return found


def test_there_are_few_packages():
    packages = [folder for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()]
    assert len(packages) <= MOST_PACKAGES


def test_no_modules_import_each_other_in_a_circle():
    assert circles({name: imports(name) for name in modules()}) == []


def journeys() -> dict[str, list[str]]:
    """Titles of the journeys in docs/design.md, with the files that each lists."""
    text = (ROOT / "docs/design.md").read_text("utf-8")
    found = re.findall(r"^### ([^\n]+ → [^\n]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    return {title: re.findall(r"^\d+\. `([\w/]+\.\w+)`", body, re.M) for title, body in found}


def test_the_design_is_short_and_has_four_journeys():
    assert len((ROOT / "docs/design.md").read_text("utf-8").splitlines()) <= MOST_LINES
    assert len(journeys()) == 4


@pytest.mark.parametrize("title", journeys())
def test_a_journey_passes_few_files_and_follows_imports(title):
    files = journeys()[title]
    assert 3 < len(files) <= MOST_FILES
    passed = {module_name(PACKAGE / files[0])}
    for file in files[1:]:
        assert (PACKAGE / file).is_file(), file
        name = module_name(PACKAGE / file)
        ways = passed
        for _ in range(1 + BETWEEN):
            ways = ways.union(*(mentions(each) for each in ways & modules().keys()))
        assert name in ways, file
        passed = passed | {name}
