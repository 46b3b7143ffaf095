"""The pages about exports: their commands and their Python run, and no format is missing."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder import exports
from rejoinder.cli.main import app
from rejoinder.corpus.writer import open_pairs
from rejoinder.exports import FORMATS

DOCS = Path(__file__).parents[2] / "docs"
FILE = re.compile(r"`([\w-]+\.\w+)`[^\n]*:\n```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # who follows the page has its format in the package already
    others = {name: record for name, record in FORMATS._records.items() if name != "parley"}
    monkeypatch.setattr(exports.FORMATS, "_records", others)
    return tmp_path


def write_files(page: str, folder: Path) -> None:
    for name, content in FILE.findall(page):
        (folder / name).write_text(content, "utf-8")


def test_the_commands_of_the_page_run(folder):
    page = (DOCS / "exports.md").read_text("utf-8")
    write_files(page, folder)
    [commands] = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "rejoinder"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        if arguments[0] == "extract":
            pairs = open_pairs(Path(arguments[arguments.index("--out") + 1]))
            assert pairs.manifest.counts.pairs == 1


def test_the_table_has_a_row_for_every_format():
    page = (DOCS / "exports.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(FORMATS)


def test_the_page_about_new_formats(folder, capsys):
    page = (DOCS / "extend" / "export.md").read_text("utf-8")
    write_files(page, folder)
    module, script, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert module == (folder / "my_parley.py").read_text("utf-8")
    exec(compile(script, "export.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.splitlines() == [
        "parley: 3 messages, 1 malformed",
        "1 by the program, 1 pair",
    ]
