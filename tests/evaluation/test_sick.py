"""SICK's relatedness as similarities of test rows and of all rows."""

import numpy as np
import pytest
from scipy.stats import pearsonr

from rejoinder import evaluate

FILES = {
    "train": ("SICK_train", 30),
    "dev": ("SICK_trial", 12),
    "test": ("SICK_test_annotated", 20),
}


class Lengths:
    """Vectors of the lengths of the first and the last word."""

    def encode(self, texts):
        return np.array([[len(t.split()[0]), len(t.split()[-1])] for t in texts], np.float32)


@pytest.fixture
def rows(tmp_path):
    """Pairs with their grade by split, also written as the official files."""
    draw = np.random.default_rng(0)
    found, number = {}, 0
    folder = tmp_path / "data/downstream/SICK"
    folder.mkdir(parents=True)
    for split, (name, count) in FILES.items():
        lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
        found[split] = []
        for _ in range(count):
            number += 1
            sides = [f"{'a' * draw.integers(1, 9)} {'b' * draw.integers(1, 9)}" for _ in range(2)]
            grade = round(float(draw.uniform(1, 5)), 1)
            found[split].append((*sides, grade))
            lines.append(f"{number}\t{sides[0]}\t{sides[1]}\t{grade}\tNEUTRAL")
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return found


def test_test_rows_and_all_rows_are_scored(rows, tmp_path):
    results = evaluate(Lengths(), "sick-r/cosine", data=tmp_path / "data")
    assert [(result.split, result.n) for result in results] == [("test", 20), ("all", 62)]
    for result, pairs in zip(
        results, (rows["test"], [*rows["train"], *rows["dev"], *rows["test"]]), strict=True
    ):
        first, second = (Lengths().encode([pair[side] for pair in pairs]) for side in (0, 1))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosine = (first * second).sum(axis=1) / lengths
        gold = [pair[2] for pair in pairs]
        assert result.scores["pearson"] == pytest.approx(pearsonr(cosine, gold)[0])


def test_the_group_has_both_forms_of_the_task(rows, tmp_path):
    tasks = {result.task for result in evaluate(Lengths(), "sick-r", data=tmp_path / "data")}
    assert tasks == {"sick-r/cosine", "sick-r/senteval-regression"}
