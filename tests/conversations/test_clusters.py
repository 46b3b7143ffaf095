"""Topics among rows whose groups are known."""

import numpy as np
import pytest

from rejoinder.conversations.clusters import find_topics, typical_rows, wider_topics
from rejoinder.conversations.topic_words import map_of

GROUPS, EACH, DIM = 12, 40, 160


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def made():
    """Rows around twelve centres, of which each three are near each other, and their groups."""
    draws = np.random.default_rng(1)
    families = draws.normal(size=(GROUPS // 3, DIM))
    centres = np.repeat(families, 3, axis=0) + 0.6 * draws.normal(size=(GROUPS, DIM))
    groups = draws.permutation(np.repeat(np.arange(GROUPS), EACH))
    return unit(centres[groups] + 0.5 * draws.normal(size=(len(groups), DIM))), groups


@pytest.fixture(scope="module")
def found(made):
    return find_topics(made[0], GROUPS, seed=3)


def test_groups_are_found_within_wider_ones(made, found):
    topics, labels = found
    inside = labels >= 0
    assert inside.mean() > 0.95
    pairs = {*zip(labels[inside].tolist(), made[1][inside].tolist(), strict=True)}
    assert len(topics) == len(pairs) == GROUPS  # each topic is one group
    wider = wider_topics(topics)
    parents = {group: int(wider[label]) for label, group in pairs}
    # the square root of 12 is 3: of four families, two are joined
    assert all(len({parents[low + each] for each in range(3)}) == 1 for low in (0, 3, 6, 9))
    assert {*parents.values()} == {0, 1, 2}


def test_the_same_rows_give_the_same_topics_with_any_number_of_cores(made, found):
    again, labels = find_topics(made[0], GROUPS, seed=3, workers=2)
    assert labels.tolist() == found[1].tolist()
    for name, array in vars(again).items():
        assert array.tobytes() == vars(found[0])[name].tobytes(), name


def test_new_rows_go_to_the_nearest_topic_or_to_none(made, found):
    topics, labels = found
    draws = np.random.default_rng(2)
    near = unit(made[0] + 0.01 * draws.normal(size=made[0].shape))
    assert (topics.nearest(near) == labels).mean() > 0.9
    assert topics.nearest(unit(draws.normal(size=(50, DIM)))).tolist() == [-1] * 50
    assert topics.nearest(np.zeros((1, DIM), np.float32)).tolist() == [-1]


def test_rows_of_no_group_have_no_topic(made):
    far = unit(np.random.default_rng(4).normal(size=(3, DIM)))
    _, labels = find_topics(np.concatenate([made[0], far]), GROUPS, seed=3)
    assert labels[-3:].tolist() == [-1] * 3


@pytest.mark.parametrize("number", [0, 1, 2])
def test_few_rows_have_no_topics(number):
    topics, labels = find_topics(unit(np.eye(3, 8))[:number])
    assert (len(topics), labels.tolist()) == (0, [-1] * number)
    places = map_of(topics, np.empty(0, np.int64)).place(unit(np.eye(3, 8)), np.full(3, -1), topics)
    assert places.shape == (3, 2)
    assert np.isfinite(places).all()


def test_equal_rows_are_one_topic():
    topics, labels = find_topics(np.tile(unit(np.eye(1, 8)), (30, 1)))
    assert labels.max() == len(topics) - 1 <= 1


def test_kept_topics_get_new_numbers(found):
    kept = np.arange(GROUPS) != 4
    topics, labels = found[0].only(kept, found[1])
    assert len(topics) == GROUPS - 1
    assert ((labels < 0) == np.isin(found[1], [-1, 4])).all()
    after = found[1] > 4
    assert (labels[after] == found[1][after] - 1).all()


def test_typical_rows_are_unlike_each_other_and_neither_short_nor_long():
    rows = unit(np.array([[1, 0.1], [1, 0.11], [1, 0], [1, -0.8], [1, 0.9]]))
    lengths = np.array([10, 10, 1, 10, 10])
    assert typical_rows(rows, np.array([1, 0], np.float32), lengths) == [0, 3, 4]
    assert typical_rows(rows[2:3], np.array([1, 0], np.float32), lengths[2:3]) == [0]


def test_discs_do_not_overlap_and_hold_their_rows(made, found):
    topics, labels = found
    sizes = np.bincount(labels[labels >= 0])
    discs = map_of(topics, sizes)
    apart = np.linalg.norm(discs.positions[:, None] - discs.positions, axis=-1)
    touching = discs.radii[:, None] + discs.radii
    assert (apart >= touching - 1e-3)[~np.eye(GROUPS, dtype=bool)].all()
    assert np.abs(discs.positions).max() + discs.radii.max() <= 1.5
    places = discs.place(made[0], labels, topics)
    inside = labels >= 0
    off = np.linalg.norm(places - discs.positions[labels], axis=1)
    assert (off <= discs.radii[labels] + 1e-5)[inside].all()
    assert np.abs(places).max() <= 1
    families = wider_topics(topics)
    assert apart[families[:, None] == families].mean() < apart[families[:, None] != families].mean()


def test_cells_give_the_topics_that_a_scan_gives(made, found, monkeypatch):
    monkeypatch.setattr("rejoinder.inference.neighbours._COMPARED", 100)
    monkeypatch.setattr("rejoinder.inference.neighbours._CELL", 16)
    _, labels = find_topics(made[0], GROUPS, seed=3)
    assert (labels == found[1]).mean() > 0.95
