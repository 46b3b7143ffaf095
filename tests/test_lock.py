"""requirements.lock: the versions of constraints.txt, with hashes, for every machine."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APART = {"torch": "each machine takes the build that fits it", "setuptools": "no constraint"}
REMEDY = "run `make lock`"


def versions(text):
    found = re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", text)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_it_has_the_versions_of_the_constraints():
    lock = versions((ROOT / "requirements.lock").read_text("utf-8"))
    constraints = versions((ROOT / "constraints.txt").read_text("utf-8"))
    differ = {
        name: (lock.get(name), constraints.get(name))
        for name in {*lock, *constraints} - APART.keys()
        if lock.get(name) != constraints.get(name)
    }
    assert not differ, REMEDY


def test_every_version_has_a_hash_and_no_address_is_in_it():
    text = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in text
    assert "--index" not in text
    entries = re.split(r"(?m)^(?=[\w.-]+==)", text)[1:]
    assert entries
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry
