"""The layout that docs/design.md describes: few packages, and no circle of imports."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src/rejoinder"
MOST_PACKAGES, MOST_LINES = 18, 165


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


def test_the_design_is_short():
    assert len((ROOT / "docs/design.md").read_text("utf-8").splitlines()) <= MOST_LINES
