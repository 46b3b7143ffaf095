"""The scores of subtask B on lists worked by hand, and the search engine's own order."""

import numpy as np
import pytest

from rejoinder.datasets.semeval import read_cqa
from rejoinder.errors import InputError
from rejoinder.evaluation.tasks.ranking import (
    average_precision,
    average_recall,
    engine_order,
    official_scores,
    ranked,
    reciprocal_rank,
)


def flags(text):
    return np.array([letter == "+" for letter in text])


def test_lists_by_hand():
    assert average_precision(flags("+-+-------")) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(flags("----------")) == 0
    assert average_precision(flags("----------+")) == 0  # the eleventh does not count
    assert reciprocal_rank(flags("--+")) == pytest.approx(1 / 3)
    # one relevant at place 2: found 0, 1, 1, … of a possible 1, 1, 1, …
    assert average_recall([flags("-+--------")]) == pytest.approx(0.9)
    # pooled: at k = 1 one of two, from k = 2 on two of two
    assert average_recall([flags("+---------"), flags("-+--------")]) == pytest.approx(0.95)


def test_queries_without_a_relevant_question_count_as_zero():
    scores = official_scores([flags("+-"), flags("--")])
    assert scores == {"map": 50, "avg_rec": 100, "mrr": 50}
    with pytest.raises(InputError, match="relevant"):
        official_scores([flags("--")])


def test_ties_keep_the_order_of_the_file():
    relevant = flags("-+-+")
    assert ranked(np.zeros(4), relevant).tolist() == relevant.tolist()
    assert ranked(np.array([0.0, 1, 0, 1]), relevant).tolist() == [True, True, False, False]


@pytest.mark.shared_data
def test_the_search_engines_order_scores_as_published(shared_data):
    """Nakov et al. 2016, table of subtask B: 74.75, 88.30, 83.79; dev 71.35, 86.11, 76.67."""
    expected = {"test": (74.75, 88.30, 83.79), "dev": (71.35, 86.11, 76.67)}
    for split, figures in expected.items():
        scores = official_scores(engine_order(read_cqa(shared_data, "2016", split)))
        assert tuple(round(value, 2) for value in scores.values()) == figures
