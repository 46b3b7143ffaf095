"""The journeys of docs/design.md are those of the commands, run under a tracer."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rejoinder.corpus.extract import extract
from rejoinder.index.indexing import Index

TESTS = Path(__file__).resolve().parent
DESIGN = TESTS.parent / "docs/design.md"
FAST = ("encode", "search")
SHARE = 0.03
LIMITS = {
    "encode": 28, "extract": 39, "train": 44, "evaluate": 41, "index": 44, "search": 39,
    "finetune": 73,
}  # fmt: skip
"""Most files that a command enters; 45 is the goal of each."""

Made = Callable[[str], Path]


def journeys() -> dict[str, list[str]]:
    """The files of each list, by its command."""
    text = DESIGN.read_text("utf-8")
    found = re.findall(
        r"^### [^`]* → [^`]*`rejoinder (\w+)[^\n]*\n(.*?)(?=^##|\Z)", text, re.M | re.S
    )
    lines = {name: re.findall(r"^\d+\. (.*(?:\n   .*)*)", body, re.M) for name, body in found}
    return {name: re.findall(r"`([\w/]+\.\w+)`", " ".join(each)) for name, each in lines.items()}


def passed_by_all() -> set[str]:
    [listed] = re.findall(r"Every command also passes (.*?)\.\n\n", DESIGN.read_text("utf-8"), re.S)
    return set(re.findall(r"`([\w/]+\.\w+)`", listed))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, small_dump: Path) -> Made:
    """Makes what a command reads, once."""
    folder = tmp_path_factory.mktemp("journeys")

    def make(name: str) -> Path:
        path = folder / name
        if path.exists():
            return path
        if name == "pairs":
            extract(small_dump, path, split=(60.0, 20.0, 20.0))
        elif name == "slack.zip":
            program = TESTS.parent / "examples/slack_export.py"
            subprocess.run([sys.executable, program, path], check=True, stdout=subprocess.DEVNULL)
        elif name == "index":
            Index.create(path, make("slack.zip"), "rejoinder-small")
        else:  # pairs from which a model can learn new words
            rows = [
                {
                    "message": f"My glorp{chr(97 + n % 25)} is broken, {n}",
                    "reply": f"Turn it {n % 7}",
                }
                for n in range(600)
            ]
            file = folder / "rows.jsonl"
            file.write_text("\n".join(map(json.dumps, rows)))
            columns = {"message": "message", "reply": "reply"}
            extract(file, path, columns=columns, rules="none", split=(40.0, 30.0, 30.0))
        return path

    return make


def command(name: str, made: Made, dump: Path, data: Path, out: Path) -> list[str]:
    shipped = "rejoinder-small"
    words: dict[str, Callable[[], list[object]]] = {
        "encode": lambda: ["How old are you?"],
        "extract": lambda: [dump, "--out", out],
        "train": lambda: [
            *("--config", "demo", "--pairs", made("pairs"), "--out", out, "--no-exclude-leaks"),
            *("phases.0.steps=3", "phases.0.warmup_steps=0", "phases.0.batch_size=32"),
        ],
        "evaluate": lambda: [shipped, "--tasks", "stsb", "--data", data],
        "index": lambda: [made("slack.zip"), "--out", out],
        "search": lambda: ["trouble sleeping", "--index", made("index"), "--mode", "hybrid"],
        "finetune": lambda: [
            *("--pairs", made("new words"), "--out", out, "--model", shipped, "--force"),
        ],
    }
    return [name, *map(str, words[name]())]


def entered(words: list[str], out: Path) -> dict[str, int]:
    """The number of functions that a command enters in each file."""
    program = [sys.executable, TESTS / "journeys.py", out, *words]
    run = subprocess.run(program, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    counts: dict[str, int] = json.loads(out.read_text("utf-8"))
    return counts


def test_the_design_has_a_journey_for_each_command():
    assert journeys().keys() == LIMITS.keys()


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in LIMITS],
)
def test_a_journey_is_what_runs(name, made, small_dump, shared_data, tmp_path):
    listed, common = journeys()[name], passed_by_all()
    words = command(name, made, small_dump, shared_data, tmp_path / "out")
    counts = entered(words, tmp_path / "entered.json")
    assert not [file for file in listed if file not in counts]
    large = {file for file, count in counts.items() if count > SHARE * sum(counts.values())}
    assert large <= {*listed, *common}
    assert len(counts) <= LIMITS[name], sorted(counts)
