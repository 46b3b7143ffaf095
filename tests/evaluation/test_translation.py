"""Translation retrieval: ranks against a slow definition, and scores of made-up encoders."""

import json

import numpy as np
import pytest

from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context, resolve
from rejoinder.evaluation.tasks.ranking import LANGUAGES, translation_ranks

ROWS = 30


@pytest.fixture
def folder(tmp_path):
    """A folder with sentences in all languages: `en 0`, `es 0` and so on."""
    rows = [{name: f"{name} {row}" for name in ("en", *LANGUAGES)} for row in range(ROWS)]
    write(tmp_path, rows)
    return tmp_path


def write(folder, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "heldout_flores200_devtest.jsonl").write_text(lines, "utf-8")


class Numbered:
    """Knows the number of each sentence, except of those in `deaf_to`."""

    def __init__(self, deaf_to=""):
        self.deaf_to = deaf_to

    def encode(self, sentences):
        out = np.zeros((len(sentences), ROWS), np.float32)
        for place, text in enumerate(sentences):
            language, _, row = text.partition(" ")
            if row.isdigit() and language != self.deaf_to:
                out[place, int(row)] = 2
        return out


def test_ranks_are_those_of_the_definition():
    draw = np.random.default_rng(0)
    left, right = draw.standard_normal((2, 40, 5)).astype(np.float32)
    right[7] = right[3]  # a tie counts against the encoder
    for row, rank in enumerate(translation_ranks(left, right).tolist()):
        cosines = [
            float(left[row] @ other) / np.linalg.norm(left[row]) / np.linalg.norm(other)
            for other in right
        ]
        assert rank == sum(one >= cosines[row] - 1e-6 for one in cosines)


def test_an_encoder_that_knows_all_languages_is_right(folder):
    results = score_tasks(Numbered(), ["translation"], Context(data=folder))
    assert not results.missing
    assert [result.task for result in results] == resolve(["translation"])
    for result in results:
        other = result.task.split("/")[1]
        assert result.scores[f"P@1 of {ROWS}"] == 1
        assert result.n == 2 * ROWS
        assert set(result.groups) == {f"en-{other}", f"{other}-en"}


def test_an_encoder_that_is_deaf_to_a_language_finds_nothing_in_it(folder):
    results = score_tasks(Numbered("tr"), ["translation/tr", "translation/es"], Context(folder))
    assert [result.scores[result.main] for result in results] == [0, 1]
    assert {group.scores[f"P@10 of {ROWS}"] for group in results[0].groups.values()} == {0}


def test_data_that_is_missing_or_blank_is_told(tmp_path):
    context = Context(data=tmp_path)
    results = score_tasks(Numbered(), ["translation/es"], context, skip_missing=True)
    assert "heldout_flores200_devtest" in results.missing[0].reason
    with pytest.raises(DataMissingError):
        score_tasks(Numbered(), ["translation/es"], context)
    write(tmp_path, [dict.fromkeys(("en", *LANGUAGES), text) for text in ("a", " ")])
    with pytest.raises(InputError, match="row 2"):
        score_tasks(Numbered(), ["translation/es"], context)
