"""The board: what its page is given, and what it refuses."""

import json
import re
from dataclasses import replace
from math import comb

import pytest

from noisy import PAIRS, Noisy
from rejoinder.api.evaluation import evaluate
from rejoinder.errors import InputError
from rejoinder.evaluation.board import About, board, write_board
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.results import read_results


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    table = folder / "pairs.jsonl"
    rows = [{"sentence1": a, "sentence2": b, "score": score} for a, b, score in PAIRS]
    table.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    paths = []
    for name, noise in (("good", 0.02), ("alike", 0.021), ("bad", 1.0)):
        paths.append(folder / f"{name}.json")
        evaluate(Noisy(name, noise), "graded", data=table, out=paths[-1])
    return paths


def test_each_two_encoders_are_compared_as_compare_does(files):
    content = board([read_results(path) for path in files], {})
    assert [row["name"] for row in content["encoders"]] == ["good", "alike", "bad"]
    assert len(content["pairs"]) == comb(3, 2)
    for column, left, right, difference, error, p in content["pairs"]:
        [task] = compare(files[left], files[right]).tasks
        assert column == 0
        assert difference == pytest.approx(100 * task.difference, rel=1e-5)
        assert error == pytest.approx(100 * (task.interval[1] - task.interval[0]) / 3.92, rel=1e-3)
        assert p == pytest.approx(task.p, rel=1e-5)
    tied, apart = content["pairs"][0][-1], content["pairs"][1][-1]
    assert tied > 0.05 > apart


def test_a_row_says_what_is_known_of_the_encoder(files):
    about = {"good": About(title="The good one", licence="mit", supervised=("graded",))}
    content = board([read_results(path) for path in files], about)
    good, alike, _ = content["encoders"]
    assert (good["name"], good["licence"]) == ("The good one", "mit")
    assert good["cost"]["dimensions"] == 2
    cost = read_results(files[0])[0].cost
    assert good["cost"]["ratio"] == pytest.approx(cost["reference"] / cost["rejoinder-small"])
    assert good["scores"][0]["supervised"]
    assert not alike["scores"][0]["supervised"]
    assert alike["licence"] == ""


def test_published_rows_join_tasks_that_are_there(files):
    runs = [[replace(read_results(path)[0], task="stsb/cosine", split="test")] for path in files]
    content = board(runs, {})
    published = {row["name"]: row for row in content["encoders"] if "published" in row}
    assert published["ECNU"]["scores"] == {0: {"value": pytest.approx(81.0)}}
    assert "Cer et al. 2017" in published["ECNU"]["published"][0]
    assert {left for _, left, *_ in content["pairs"]} == {0, 1}  # published rows are not tested


def test_the_page_holds_its_data_and_asks_nobody(files, tmp_path):
    about = tmp_path / "about.toml"
    about.write_text('[good]\ntitle = "</script><b>"\n', "utf-8")
    page = write_board(files, tmp_path / "board", about).read_text("utf-8")
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert json.loads(data)["encoders"][0]["name"] == "</script><b>"
    assert not re.findall(r'(?:src|href)="', page)


def test_changed_results_and_unknown_facts_are_refused(files, tmp_path):
    with pytest.raises(InputError, match="two encoders"):
        write_board(files[:1], tmp_path / "board")
    about = tmp_path / "about.toml"
    about.write_text("[good]\nlicense = 'mit'\n", "utf-8")
    with pytest.raises(InputError, match="license"):
        write_board(files, tmp_path / "board", about)
    changed = files[0].with_name("changed.json")
    text = files[0].read_text("utf-8")
    changed.write_text(re.sub(r'"pearson": 0\.\d+', '"pearson": 0.99999', text, count=1), "utf-8")
    with pytest.raises(InputError, match="changed"):
        write_board([changed, files[1]], tmp_path / "board")
    assert not (tmp_path / "board").exists()
