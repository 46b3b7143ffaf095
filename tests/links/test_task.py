"""The task `links`: the score is that of the official scripts, for encoders of any kind."""

import shutil
import tarfile
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder import SentenceEncoder, evaluate
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.metrics import METRICS
from rejoinder.links.linker import Linker
from rejoinder.links.task import link_scores, read_logs

LOG = """\
[10:00] <ann> Who has the wifi password?
[10:01] <bob> When do we eat?
=== carl [~c@host] has joined #flat
[10:02] <eve> ann: it is on the fridge
[10:03] <dan> bob: at eight, I think
[10:04] <ann> eve: thanks a lot
"""
ANNOTATION = "0 0 -\n1 1 -\n2 2 -\n0 3 -\n1 4 -\n3 5 -\n1 5 -\n"

RAW = """[11:59] <ann> hello all
=== bob [~bob@host]  has joined #ubuntu
[12:01] <bob> ann: hi
* not a line with a clock
[12:00]  * carl waves
[01:02] <ann> who is there?
"""


class Letters:
    """An encoder of somebody else: counts of letters."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        counts = [[text.count(letter) for letter in "abcdefghij"] for text in sentences]
        return np.array(counts, np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split in ("dev", "test"):
        folder = tmp_path / "irc-disentanglement/data" / split
        folder.mkdir(parents=True)
        (folder / "2024-01-01.raw.txt").write_text(LOG)
        (folder / "2024-01-01.annotation.txt").write_text(ANNOTATION)
    return tmp_path


def test_f_is_that_of_the_scripts(data: Path):
    encoder = SentenceEncoder("rejoinder-small")
    results = evaluate(encoder, data=data, tasks=["links"]).results
    for result in results:
        [log] = read_logs(data / "irc-disentanglement/data" / result.split)
        linker = Linker(encoder=encoder, names=not result.task.endswith("nameless"))
        said = log.predicted(linker.link(log.texts, log.authors, log.times).parents.tolist())
        assert result.n == 6
        assert result.scores["f_of_links"] == pytest.approx(
            100 * link_scores([(log.answers, said)]).f
        )
    assert {(result.task, result.split) for result in results} == {
        (task, split)
        for task in ("links/ubuntu-irc", "links/ubuntu-irc-nameless")
        for split in ("dev", "test")
    }


def test_other_encoders_and_archives_are_judged(data: Path):
    folder = data / "irc-disentanglement/data"
    (data / "links").mkdir()
    for split in ("dev", "test"):
        with tarfile.open(data / f"links/ubuntu_irc_{split}.tar.zst", "w:gz") as tar:
            tar.add(folder / split, split)
    shutil.rmtree(folder)
    first, *_ = evaluate(Letters(), data=data, tasks=["links/ubuntu-irc"]).results
    assert 0 < first.scores["f_of_links"] <= 100
    assert METRICS["f_of_links"].percent


def test_missing_logs_are_named(tmp_path: Path):
    with pytest.raises(DataMissingError, match="irc-disentanglement"):
        evaluate(Letters(), data=tmp_path, tasks=["links"])


def test_logs_are_read_with_their_lines(tmp_path):
    (tmp_path / "a.raw.txt").write_text(RAW)
    (tmp_path / "a.annotation.txt").write_text("1 1 -\n0 2 -\n2 5 -\n4 5 -\n4 4 -\n")
    (log,) = read_logs(tmp_path)
    assert log.lines == [0, 2, 4, 5]
    assert log.authors == ["ann", "bob", "carl", "ann"]
    assert log.texts == ["hello all", "ann: hi", "waves", "who is there?"]
    assert log.times == [0, 120, 120, 120 + 62 * 60]  # a clock of twelve hours
    assert log.labels == {1: [0], 2: [2], 3: [1, 2]}
    assert log.predicted([-1, 0, -1, 1]) == {1: [1], 2: [0], 4: [4], 5: [2]}


def test_a_folder_without_logs_is_refused(tmp_path):
    with pytest.raises(DataMissingError, match="no annotated logs"):
        list(read_logs(tmp_path))


def test_scores_of_an_example_by_hand():
    gold = {1: [1], 2: [1], 3: [3], 4: [3]}
    scores = link_scores([(gold, {1: [1], 2: [1], 3: [2], 4: [3]})])
    assert (scores.precision, scores.recall, scores.f) == (0.75, 0.75, 0.75)
    # one conversation of four instead of two of two: they differ by one bit of the two of log2(4)
    assert (scores.vi, scores.one_to_one, scores.exact_f) == (0.5, 0.5, 0.0)


def test_messages_before_the_annotated_ones_connect_them():
    gold = {5: [2], 6: [2], 7: [7]}
    scores = link_scores([(gold, {5: [5], 6: [5], 7: [7]})])
    assert scores.f == pytest.approx(1 / 3)
    assert (scores.vi, scores.one_to_one, scores.exact_f) == (1.0, 1.0, 1.0)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_what_is_right_scores_one_and_order_of_logs_does_not_matter(numbers):
    gold = {line: [number % (line + 1)] for line, number in enumerate(numbers)}
    right = link_scores([(gold, gold)])
    assert (right.precision, right.recall, right.f, right.one_to_one) == (1, 1, 1, 1)
    assert right.vi == pytest.approx(1)
    found = {line: [line] for line in gold}
    first, second = (
        astuple(link_scores(logs))
        for logs in ([(gold, gold), (gold, found)], [(gold, found), (gold, gold)])
    )
    assert first == pytest.approx(second)
