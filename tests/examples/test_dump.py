"""The project's own dump: what its script writes, with something in it for every rule."""

import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.corpus.extract import extract
from rejoinder.corpus.options import PROFILES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_script_writes_the_same_bytes_again(tmp_path):
    written = tmp_path / "small.jsonl"
    subprocess.run([sys.executable, EXAMPLES / "make_dump.py", written], check=True)
    assert written.read_bytes() == (EXAMPLES / "small.jsonl").read_bytes()


@pytest.mark.parametrize("rules", sorted(PROFILES))
def test_every_rule_drops_some_of_it(rules, tmp_path):
    counts = extract([EXAMPLES / "small.jsonl"], tmp_path / "pairs", rules=rules).counts
    assert set(counts.dropped) == {rule.name for rule in PROFILES[rules]}
    assert all(counts.dropped.values()), counts.dropped
    assert counts.malformed == 1
    assert counts.duplicates == 1
    assert counts.conflicts == 1
