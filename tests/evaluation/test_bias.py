"""The bias probe: word lists, effect sizes and their p-values against slow definitions."""

from itertools import combinations

import numpy as np
import pytest

from rejoinder.evaluation.intervals import permutation_test, two_group_interval
from rejoinder.evaluation.metrics import effect_sizes
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.results import read_results, write_results
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import resolve
from rejoinder.evaluation.tasks.contrasts import read_word_lists
from rejoinder_papers.baselines.words import BagOfWords


class Leaning:
    """Puts words of the first lists of a test on one side, and of the second on the other.

    With `turned`, targets are on the other side than their attributes.
    """

    def __init__(self, test: str, *, turned: bool = False) -> None:
        found = read_word_lists()
        self.side: dict[str, float] = {}
        for part, lists in found.tables["tests"][test].items():
            sides = (-1.0, 1.0) if turned and part == "targets" else (1.0, -1.0)
            for name, side in zip(lists, sides, strict=True):
                self.side |= dict.fromkeys(found.sentences(name), side)

    def encode(self, sentences):
        generator = np.random.default_rng(len(sentences))
        out = generator.normal(size=(len(sentences), 16)) * 0.2
        out[:, 0] = 1
        out[:, 1] += [self.side.get(text, 0.0) for text in sentences]
        return out.astype(np.float32)


def test_the_word_lists_are_whole():
    tables = read_word_lists().tables
    used = [name for test in tables["tests"].values() for pair in test.values() for name in pair]
    assert set(used) == set(tables["lists"])
    assert [f"bias/{name}" for name in tables["tests"]] == resolve(["bias"])
    for test in tables["tests"].values():
        assert test.keys() == {"targets", "attributes"}
        for pair in test.values():
            one, other = (tables["lists"][name] for name in pair)
            assert one["template"] == other["template"]
            assert len(one["words"]) == len(other["words"]) >= 10
            words = [word.lower() for word in (*one["words"], *other["words"])]
            assert len(set(words)) == len(words)
    for name in tables["lists"]:
        sentences = read_word_lists().sentences(name)
        assert len(sentences) == 2 * len(tables["lists"][name]["words"])
        assert all(text[0].isupper() and text.endswith(".") for text in sentences)


def test_effect_sizes_are_those_of_the_formula():
    generator = np.random.default_rng(0)
    x, y = generator.normal(1, 2, (4, 9)), generator.normal(0, 1, (4, 7))
    expected = [(a.mean() - b.mean()) / np.std([*a, *b], ddof=1) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(effect_sizes(x, y), expected)
    np.testing.assert_allclose(effect_sizes(y, x), -np.array(expected))
    rounding = 0.3 + generator.normal(0, 1e-8, 9)
    assert effect_sizes(rounding, np.full(7, 0.3)) == 0


def test_p_is_near_that_of_all_regroupings():
    generator = np.random.default_rng(3)
    x, y = generator.normal(0.8, 1, 7), generator.normal(0, 1, 6)
    together = np.concatenate([x, y])
    differences = []
    for chosen in combinations(range(13), 7):
        inside = np.isin(np.arange(13), chosen)
        differences.append(abs(together[inside].mean() - together[~inside].mean()))
    exact = np.mean(np.array(differences) >= abs(x.mean() - y.mean()) - 1e-12)
    test = permutation_test(x, y, seed=0)
    assert test.p == pytest.approx(exact, abs=0.015)
    assert test == permutation_test(x, y, seed=0)
    assert permutation_test(np.ones(5), np.ones(4), seed=0).p == 1


def test_an_interval_of_two_groups_is_near_that_of_theory():
    generator = np.random.default_rng(1)
    x, y = generator.normal(1, 1, 400), generator.normal(0, 2, 300)

    def difference(a, b):
        return a.mean(axis=1) - b.mean(axis=1)

    error = 1.96 * np.sqrt(x.var() / 400 + y.var() / 300)
    middle = x.mean() - y.mean()
    interval = two_group_interval(difference, x, y, seed=0)
    assert interval == pytest.approx((middle - error, middle + error), abs=0.03)


@pytest.mark.parametrize("task", resolve(["bias"]))
def test_an_encoder_that_leans_is_found_and_its_direction_told(task):
    [leaning] = score_tasks(Leaning(task.split("/")[1]), [task])
    [turned] = score_tasks(Leaning(task.split("/")[1], turned=True), [task])
    assert leaning.scores["effect_size"] > 1.5
    assert turned.scores["effect_size"] < -1.5
    assert turned.scores["absolute_effect_size"] == -turned.scores["effect_size"]
    assert leaning.scores["p"] < 0.001
    assert leaning.main == "absolute_effect_size"
    low, high = leaning.intervals["effect_size"]
    assert low < leaning.scores["effect_size"] < high
    assert len(leaning.groups) == 2
    assert "effect_size above 0 means" in leaning.notes[0]


def test_equal_associations_are_no_effect_and_results_survive(tmp_path):
    bow = score_tasks(BagOfWords(), ["bias"])
    for result in bow:
        assert (result.scores["effect_size"], result.scores["p"]) == (0, 1)
    written = write_results(tmp_path / "bow.json", bow)
    assert read_results(tmp_path / "bow.json") == written
    leaning = score_tasks(Leaning("age"), ["bias/age"])
    [row] = compare(bow, leaning).tasks
    assert (row.better, row.in_percent) == ("first", False)
