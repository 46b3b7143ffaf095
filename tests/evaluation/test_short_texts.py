"""Scores of short texts against other ways to the same, and what stays of changed texts."""

import json

import numpy as np
import pytest

from rejoinder.datasets.labelled import read_pairs
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.resampled import average_precision, kept, v_measure
from rejoinder.evaluation.results import read_results, write_results
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context
from rejoinder.evaluation.tasks.similarity import changed
from rejoinder_papers.baselines.words import BagOfWords

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_average_precision_and_v_measure_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(0)
    gold = (draw.random(300) < 0.2).astype(float)
    scores = np.round(draw.normal(size=300) + gold, 1)  # with ties
    expected = 100 * metrics.average_precision_score(gold, scores)
    assert average_precision(scores[None], gold) == pytest.approx(expected)
    classes = draw.integers(0, 7, 300).astype(float)
    clusters = draw.integers(0, 9, (3, 300)).astype(float)
    values = [metrics.v_measure_score(classes, run) for run in clusters]
    assert v_measure(clusters, classes) == pytest.approx(100 * np.mean(values))
    assert v_measure(classes[None], classes) == pytest.approx(100)


def test_what_stays_is_the_ratio_of_correlations():
    gold = np.arange(50.0)
    noisy = gold + 20 * np.random.default_rng(0).normal(size=50)
    expected = 100 * np.corrcoef(noisy, gold)[0, 1]
    assert kept(np.stack([gold, noisy]), gold) == pytest.approx(expected)
    assert kept(np.stack([-gold, noisy]), gold) == 0


@pytest.mark.parametrize("name", ["average_precision", "v_measure", "kept"])
def test_a_better_encoder_is_found_better_and_the_same_one_not(name):
    draw = np.random.default_rng(1)
    gold = draw.integers(0, 2, 200).astype(float)
    runs = ["clean", "changed"] if name == "kept" else ["test"]
    ids = [f"{run}:{row}" for run in runs for row in range(200)]
    good = np.tile(gold, len(runs))
    poor = good.copy()
    poor[-60:] = draw.permutation(poor[-60:])
    first, second = (Items(ids, values, np.tile(gold, len(runs))) for values in (good, poor))
    test, (low, high) = metric_of(name).test(first, second, 0, 100)
    assert test.p < 0.05
    assert 0 < low < test.statistic < high
    assert metric_of(name).test(first, first, 0, 100)[0].p == 1
    assert metric_of(name).errors(first).shape == (200 * len(runs),)


@pytest.fixture
def data(tmp_path):
    """Two intents that words tell apart, and pairs and questions of them."""
    texts = {"card": ["my card is lost", "where is my card", "a new card please", "card stolen"],
             "money": ["send money home", "money is gone", "top up money", "no money"]}  # fmt: skip
    rows = [[text, intent] for intent, own in texts.items() for text in own]
    for folder in ("clinc150", "sprint", "askubuntu"):
        (tmp_path / folder).mkdir()
    tree = dict.fromkeys(("train", "val", "test"), rows)
    (tmp_path / "clinc150/data_full.json").write_text(json.dumps(tree))
    pairs = [
        json.dumps({"sentence1": one, "sentence2": two, "label": int(first == second)})
        for one, first in rows for two, second in rows if one < two
    ]  # fmt: skip
    (tmp_path / "sprint/test.jsonl").write_text("\n".join(pairs))
    lines = (f"{row}\t{text}\t" for row, (text, _) in enumerate(rows))
    (tmp_path / "askubuntu/text_tokenized.txt").write_text("\n".join(lines))
    (tmp_path / "askubuntu/test.txt").write_text("0\t1 2\t5 1 6 2\t4 3 2 1\n4\t6\t6 0\t2 1\n")
    return tmp_path


TASKS = ["pairs/sprint", "cluster/clinc150", "classify/clinc150", "rerank/askubuntu"]


def test_every_task_is_scored_saved_and_compared(data, tmp_path):
    pytest.importorskip("sklearn")
    context = Context(data, splits=["test"])
    results = score_tasks(BagOfWords(), TASKS, context)
    found = {result.task: result.scores[result.main] for result in results}
    assert found["classify/clinc150"] == 100
    assert 60 < found["pairs/sprint"] <= 100
    assert 0 < found["cluster/clinc150"] <= 100
    asked = results[-1]
    assert asked.groups["search engine's order"].scores["map"] == pytest.approx(100 * (0.5 + 1) / 2)
    assert asked.scores["P@1"] == asked.scores["mrr"] == 100
    assert asked.scores["map"] == pytest.approx(100 * ((1 + 2 / 3) / 2 + 1) / 2)
    assert asked.scores["P@5"] == pytest.approx(100 * (2 / 5 + 1 / 5) / 2)
    for number in ("a", "b"):
        write_results(tmp_path / f"{number}.json", results)
    one, two = (read_results(tmp_path / f"{number}.json") for number in "ab")
    assert [row.p for row in compare(one, two).tasks] == [1] * len(TASKS)
    assert len(read_pairs(data, "sprint").splits["test"]) == 28


def test_changes_are_repeatable_and_keep_the_words():
    texts = ["A man plays the guitar.", "Yes.", "Two dogs are running quickly."]
    for kind in ("typos", "case", "length", "noise"):
        made = changed(kind, texts, 3)
        assert made == changed(kind, texts, 3) != texts
        if kind == "case":
            assert [text.lower() for text in made] == [text.lower() for text in texts]
        if kind in ("length", "noise"):
            assert all(text in longer for text, longer in zip(texts, made, strict=True))
    wrong, yes, _ = changed("typos", texts, 3)
    assert (wrong.startswith("A man plays the "), yes) == (True, "Yes.")


@pytest.mark.shared_data
def test_case_changes_nothing_for_a_bag_of_lower_case_words(shared_data):
    [result] = score_tasks(BagOfWords(), ["robust/case"], Context(shared_data))
    assert result.scores["kept"] == 100
    assert result.scores["clean"] == result.scores["changed"]
