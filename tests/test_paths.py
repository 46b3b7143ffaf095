"""Files that pages, docstrings and comments name exist."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BELOW = ("", "src/rejoinder", "src", "tests", "docs", "src/rejoinder/data")
ELSEWHERE = {
    "examples/bow.py": "of the original SentEval",
    "results/make_speed_vs_mteb_plot.py": "of model2vec",
    "tools/classifier.py": "of the original SentEval",
    "tools/ranking.py": "of the original SentEval",
}
GONE = ("CHANGELOG.md",)
"""Says what was, too, as the pages of notebook/ do."""
FILE = re.compile(r"(?<![\w/.:-])((?:\w+/)+\w+\.(?:py|c|h|js))\b")


def pages() -> Iterator[tuple[str, str]]:
    """The names and the texts of pages and programs of the project."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for folder, endings in (
        ("src", "py c h"),
        ("tests", "py"),
        ("benchmarks", "py"),
        ("tools", "py"),
    ):
        for ending in endings.split():
            files += (ROOT / folder).rglob(f"*.{ending}")
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        if not name.startswith(GONE) and file != Path(__file__):
            yield name, file.read_text("utf-8")


def exists(path: str) -> bool:
    return any((ROOT / folder / path).is_file() for folder in BELOW)


def test_files_that_are_named_exist():
    missing = [
        f"{name}: {path}"
        for name, text in pages()
        for path in FILE.findall(text)
        if "NAME" not in path and path not in ELSEWHERE and not exists(path)
    ]
    assert missing == []
