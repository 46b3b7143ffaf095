"""The page about extraction: its commands and its Python run on the files that it shows."""

import gzip
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dumps import LONG, comment, lines
from rejoinder.cli.main import app
from rejoinder.corpus.shards import open_pairs

PAGE = Path(__file__).parents[2] / "docs" / "extract.md"
FILE = re.compile(r"`([\w-]+\.(?:jsonl|csv|tsv))`[^\n]*:\n```\w+\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```(bash|python)\n(.*?)```", re.DOTALL)


def month(letter: str, created: int) -> bytes:
    fields = {"subreddit": "AskReddit", "created_utc": created}
    return lines(
        comment(letter + "1", LONG, **fields),
        comment(letter + "2", LONG, f"t1_{letter}1", **fields),
    )


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8")
    Path("RC_2021-02.jsonl").write_bytes(month("a", 1_613_000_000))
    Path("RC_2021-03.jsonl.gz").write_bytes(gzip.compress(month("b", 1_616_000_000)))
    for name, content in FILE.findall(text):
        Path(name).write_text(content, "utf-8")
    return text


def test_the_commands_and_the_code_of_the_page_run(page, capsys):
    outputs = {}
    for kind, block in BLOCK.findall(page):
        if kind == "python":
            exec(compile(block, str(PAGE), "exec"), {})  # noqa: S102
            continue
        for line in block.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "rejoinder"
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert result.exit_code == 0, result.output
            folder = Path(arguments[arguments.index("--out") + 1])
            outputs[folder.name] = open_pairs(folder).manifest.counts.pairs
    assert outputs == {
        "pairs": 2,
        "pairs-2021": 2,
        "chat-pairs": 1,
        "ticket-pairs": 2,
        "faq-pairs": 2,
    }
    assert "2 pairs" in capsys.readouterr().out


def test_the_page_names_every_rule_and_option():
    from rejoinder.corpus.rules import PROFILES

    text = PAGE.read_text("utf-8")
    for rules in PROFILES.values():
        for rule in rules:
            assert f"`{rule.name}`" in text
