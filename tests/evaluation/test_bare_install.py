"""Without the extras: what needs one says which to install, all else works."""

import json
import re
import subprocess
import sys

import pytest

OPTIONAL = ("gensim", "ibis", "duckdb", "jinja2", "matplotlib", "sentence_transformers", "sklearn",
            "smart_open", "tokenizers", "torch", "zstandard")  # fmt: skip
COMMANDS = {
    "compat": ["baseline:bow", "--mode", "compat"],
    "fast": ["baseline:bow"],
    "network": ["baseline:bow", "--nhid", "5"],
    "tfidf": ["baseline:tfidf"],
    "average": ["baseline:average:vectors.txt"],
    "sentence-transformers": ["st:anything"],
}
CODE = """
import contextlib, io, json, sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {optional!r}
        return None if hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
from pathlib import Path
from rejoinder.cli.output import status_of
from rejoinder.cli.main import app
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.results import write_results
result = Result("t", "s", 1, "accuracy", {{"accuracy": 1.0}}, {{}}, {{}}, 0, {{}})
write_results(Path("r.json"), [result])
found = {{}}
for name, words in {commands!r}.items():
    sys.argv = ["rejoinder", *words]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = status_of(app)
    found[name] = [status, said.getvalue()]
Path("found.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """TREC and a file of word vectors, made up."""
    root = tmp_path_factory.mktemp("bare")
    trec = root / "downstream/TREC"
    trec.mkdir(parents=True)
    rows = [f"{label}:x the {label} of {row} ?" for label in ("ABBR", "HUM") for row in range(20)]
    for name in ("train_5500.label", "TREC_10.label"):
        (trec / name).write_text("\n".join(rows) + "\n")
    (root / "vectors.txt").write_text("the 1 0\nof 0 1\n")
    return root


@pytest.fixture(scope="module")
def outcomes(folder):
    """Exit status and standard error of each command, all of them in one bare interpreter."""
    evaluation = ["--tasks", "trec", "--data", ".", "--kfold", "2"]
    commands = {name: ["evaluate", *words, *evaluation] for name, words in COMMANDS.items()}
    commands["report"] = ["report", "r.json", "--out", "report"]
    code = CODE.format(optional=OPTIONAL, commands=commands)
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("compat", "scikit-learn is not installed: .*eval"),
        ("fast", "scikit-learn is not installed: .*eval"),
        ("network", "(torch|scikit-learn) is not installed: "),
        ("tfidf", "scikit-learn is not installed: .*eval"),
        ("average", "gensim is not installed: .*eval"),
        ("sentence-transformers", "sentence-transformers"),
        ("report", r"jinja2 is not installed: pip install 'rejoinder\[report\]'"),
    ],
)
def test_the_extra_is_named(outcomes, name, message):
    status, said = outcomes[name]
    assert status == 2, said
    assert re.search(message, said.strip().split("\n")[-1]), said
    assert "Traceback" not in said


def test_a_report_that_lacks_a_library_writes_nothing(outcomes, folder):
    assert outcomes["report"][0] == 2
    assert not (folder / "report").exists()
