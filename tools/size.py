"""Prints how large the package is: `python tools/size.py`.

Lines are counted without docstrings (strings below attributes too), comments and blank lines.
"""

import ast
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMALL = 60
"""Lines below which a module is small."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of(path: Path) -> tuple[int, int]:
    """Returns the number of lines of code of a module, and how many of them are imports."""
    tree, code, without = ast.parse(path.read_text("utf-8")), set[int](), set[int]()
    imports = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(getattr(one.value, "value", None), str):
                without.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in LAYOUT and token.type != tokenize.ENCODING:
                code.update(range(token.start[0], token.end[0] + 1))
    return len(code - without), len(imports)


def lines_of_c(path: Path) -> int:
    """Returns the number of lines of C that are neither blank nor comments."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text("utf-8"), flags=re.DOTALL)
    return sum(bool(line.strip()) for line in text.splitlines())


def words_of(folder: Path) -> int:
    """Returns the number of words of all Markdown below a folder."""
    return sum(len(path.read_text("utf-8").split()) for path in folder.rglob("*.md"))


def main() -> None:
    source = ROOT / "src/rejoinder"
    modules = {path: lines_of(path) for path in sorted(source.rglob("*.py"))}
    code, imports = (sum(counts) for counts in zip(*modules.values(), strict=True))
    kernels = [*source.rglob("*.c"), *(ROOT / "src").rglob("*.h")]
    packages: dict[str, list[int]] = {}
    for path, (lines, _) in modules.items():
        below = path.relative_to(source).parts
        packages.setdefault(below[0] if len(below) > 1 else ".", []).append(lines)
    print(f"{'package':16}{'files':>6}{'lines':>8}")
    for name, counts in packages.items():
        print(f"{name:16}{len(counts):6}{sum(counts):8,}")
    small = sum(lines < SMALL for lines, _ in modules.values())
    print(f"\nPython: {code:,} lines in {len(modules)} files, {small} of them below {SMALL} lines")
    print(f"imports: {imports:,} lines, {imports / code:.1%}")
    print(f"C: {sum(map(lines_of_c, kernels)):,} lines in {len(kernels)} files")
    print(f"docs: {words_of(ROOT / 'docs'):,} words")
    for name in ("README.md", "CHANGELOG.md"):
        print(f"{name}: {len((ROOT / name).read_text('utf-8').splitlines()):,} lines")


if __name__ == "__main__":
    main()
