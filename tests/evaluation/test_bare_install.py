"""Without the extras: what needs one says which to install, all else works."""

import re
import subprocess
import sys

import pytest

OPTIONAL = ("gensim", "ibis", "duckdb", "matplotlib", "sentence_transformers", "sklearn",
            "smart_open", "tokenizers", "torch", "zstandard")  # fmt: skip
CODE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {optional!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from rejoinder.cli.main import run
sys.argv = ["rejoinder", *{words!r}]
run()
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


def bare(folder, *words):
    code = CODE.format(optional=OPTIONAL, words=list(words))
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["baseline:bow", "--mode", "compat"], "scikit-learn is not installed; .*eval"),
        (["baseline:bow"], "scikit-learn is not installed; .*eval"),
        (["baseline:bow", "--nhid", "5"], "(torch|scikit-learn) is not installed; "),
        (["baseline:tfidf"], "scikit-learn is not installed; .*eval"),
        (["baseline:average:vectors.txt"], "gensim is not installed; .*eval"),
        (["baseline:doc2vec:vectors.txt"], "gensim is not installed; .*eval"),
        (["st:anything"], "sentence-transformers"),
    ],
)
def test_the_extra_is_named(folder, words, said):
    told = bare(folder, "evaluate", *words, "--tasks", "trec", "--data", ".", "--kfold", "2")
    assert told.returncode == 2, told.stderr
    last = told.stderr.strip().split("\n")[-1]
    assert re.search(said, last), told.stderr
    assert "Traceback" not in told.stderr


def test_a_report_names_matplotlib(folder):
    code = (
        "from pathlib import Path\n"
        "from rejoinder.evaluation.results import Result\n"
        "from rejoinder.evaluation.results_file import write_results\n"
        "one = Result('t', 's', 1, 'accuracy', {'accuracy': 1.0}, {}, {}, 0, {})\n"
        "write_results(Path('r.json'), [one])\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    told = bare(folder, "report", "r.json", "--out", "report")
    assert told.returncode == 2
    assert "matplotlib is not installed; it comes with: pip install 'rejoinder[report]'" in (
        told.stderr
    )
    assert not (folder / "report").exists()
