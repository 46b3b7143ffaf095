"""What `rejoinder extract` prints: progress on a terminal, TSV and JSON to a pipe."""

import json
import os
import re
import sys

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.cli.progress import Bar


def test_a_pipe_gets_a_line_a_count(tmp_path, small_dump):
    out = str(tmp_path / "pairs")
    told = CliRunner().invoke(app, ["extract", str(small_dump), "--out", out])
    assert told.exit_code == 0
    rows = [line.split("\t") for line in told.stdout.splitlines()]
    assert rows[0] == ["what", "count", "note"]
    counts = json.loads((tmp_path / "pairs" / "manifest.json").read_text("utf-8"))["counts"]
    found = {row[0]: int(row[1]) for row in rows[1:]}
    assert found["pairs"] == counts["pairs"]
    assert found["too_long"] == counts["dropped"]["too_long"]
    assert all(len(row) == 3 for row in rows)
    again = ["extract", str(small_dump), "--out", out, "--overwrite"]
    assert CliRunner().invoke(app, [*again, "--tsv"]).stdout == told.stdout
    told = CliRunner().invoke(app, [*again, "--json"])
    assert told.stdout == (tmp_path / "pairs" / "manifest.json").read_text("utf-8")
    told = CliRunner().invoke(app, [*again, "--json", "--tsv"])
    assert (told.exit_code, "exclude each other" in told.stderr) == (2, True)


def test_columns_that_were_found_and_rules_that_drop_most_are_noted(tmp_path):
    table = tmp_path / "faq.csv"
    table.write_text("question,answer\n1?,2\n3?,4\nHow are you today?,I am quite well\n")
    told = CliRunner().invoke(app, ["extract", str(table), "--out", str(tmp_path / "pairs")])
    assert told.exit_code == 0
    assert re.search("'question'.*'answer'.*--columns", told.stderr)
    assert re.search("not_alphabetic 4.*--rules none", told.stderr)


def test_carried_comments_are_told(tmp_path, small_dump):
    dump, state = tmp_path / "later.jsonl", tmp_path / "carried"
    lines = [json.loads(line) for line in small_dump.read_text("utf-8").splitlines()[:50]]
    answer = {**lines[0], "id": "new", "parent_id": f"t1_{lines[0]['id']}", "body": "So it is"}
    dump.write_text(json.dumps(answer), "utf-8")
    words = ["extract", str(small_dump), "--carry", str(state), "--out", str(tmp_path / "first")]
    told = CliRunner().invoke(app, words)
    assert (told.exit_code, "carried messages\t0\t" in told.stdout) == (0, True)
    words = ["extract", str(dump), "--carry", str(state), "--out", str(tmp_path / "second")]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.stderr
    assert "\ncarried messages\t1\tof " in told.stdout
    told = CliRunner().invoke(app, [*words, "--overwrite", "--limit", "3"])
    assert "`limit` can't be used with `carry`" in str(told.exception)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_a_terminal_shows_what_is_known_at_every_stage(tmp_path, small_dump):
    import pty

    command = "from rejoinder.cli.main import run; run()"
    words = ["extract", str(small_dump), "--out", str(tmp_path / "pairs")]
    child, terminal = pty.fork()
    if not child:
        os.environ.update(TERM="xterm", COLUMNS="100")
        os.execv(sys.executable, [sys.executable, "-c", command, *words])  # noqa: S606
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    assert os.waitpid(child, 0)[1] == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"reading .*[kM]B/[\d.]+ [kM]B", text)
    for stage in ("joining", "sorting", "writing"):
        assert stage in text
    assert "?" not in text
    assert not re.search(r"\b0/s", text)


def test_a_rate_is_shown_where_one_is_known(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    bar, facts = Bar("pairs"), []
    for seconds, stage, done, total, unit in (
        (0.0, "reading", 1_000, 9_000, "bytes"),
        (2.0, "reading", 5_000, 9_000, "bytes"),
        (3.0, "sorting", 0, None, None),
        (4.0, "writing", 100, None, None),
        (6.0, "writing", 700, None, None),
    ):
        clock[0] = seconds
        bar.show(stage, done, total, unit)
        shown = bar.progress.tasks[-1]
        facts.append((shown.description, shown.fields["amount"], shown.fields["facts"]))
    assert facts == [
        ("reading", "1.0 kB/9.0 kB", ""),
        ("reading", "5.0 kB/9.0 kB", "2.0 kB/s"),
        ("sorting", "", ""),
        ("writing", "100 pairs", ""),
        ("writing", "700 pairs", "300/s"),
    ]
