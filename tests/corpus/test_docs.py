"""The pages about extraction, rules and engines: their commands and their Python run."""

import gzip
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dumps import LONG, comment, lines
from rejoinder.cli.main import app
from rejoinder.corpus.options import register_profile
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError

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
        "pairs-02": 1,
        "pairs-03": 1,
        "chat-pairs": 1,
        "ticket-pairs": 2,
        "faq-pairs": 2,
    }
    assert "2 pairs" in capsys.readouterr().out


def test_the_page_names_every_rule_and_option():
    from rejoinder.corpus.options import PROFILES

    text = PAGE.read_text("utf-8")
    for rules in PROFILES.values():
        for rule in rules:
            assert f"`{rule.name}`" in text


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_dump: Path) -> Path:
    """A folder with the files of `examples/`, in which profiles and engines can be registered."""
    from rejoinder.corpus import engines, options

    shutil.copy(small_dump, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(options, "PROFILES", dict(options.PROFILES))
    monkeypatch.setattr(engines.ENGINES, "_records", dict(engines.ENGINES._records))
    return tmp_path


def blocks(page: str) -> list[str]:
    text = (PAGE.parent / "extend" / page).read_text("utf-8")
    return [code for kind, code in BLOCK.findall(text) if kind == "python"]


def test_the_page_about_rules(examples, capsys):
    from rejoinder.corpus.options import PROFILES, Rule

    function, line, script, _ = blocks("rule.md")
    names: dict[str, Any] = {"Rule": Rule}
    exec(compile(f"{function}\nrules = [\n{line}\n]", "rule.md", "exec"), names)  # noqa: S102
    exec(compile(script, "rule.md", "exec"), {})  # noqa: S102
    dropped, _ = re.findall(r"^(\d+) comments dropped, (\d+) pairs left$", capsys.readouterr().out)[
        0
    ]
    assert int(dropped) > 0
    assert names["rules"][0].name == PROFILES["unquoted"][-1].name
    with pytest.raises(InputError, match="'unquoted' already"):
        register_profile("unquoted", names["rules"])
    for rules in (names["rules"] * 2, [Rule("kept", "", names["_quote"])]):
        with pytest.raises(InputError, match="its own name"):
            register_profile("other", rules)


def test_the_page_about_engines(examples, capsys):
    _, module, script = blocks("engine.md")
    (examples / "my_engines.py").write_text(module, "utf-8")
    exec(compile(script, "engine.md", "exec"), {})  # noqa: S102
    out, err = capsys.readouterr()
    assert re.fullmatch(r"[1-9]\d* pairs\n", out)
    assert re.search(r"^parts: \d+\.\d\d s$", err, re.MULTILINE)
