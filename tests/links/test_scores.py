"""Official scores of links and conversations."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import DataMissingError
from rejoinder.links.scores import link_scores, read_logs

RAW = """[11:59] <ann> hello all
=== bob [~bob@host]  has joined #ubuntu
[12:01] <bob> ann: hi
* not a line with a clock
[12:00]  * carl waves
[01:02] <ann> who is there?
"""


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
