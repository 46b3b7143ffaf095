"""Initial rows: of words and subwords alike, near their synonyms."""

import numpy as np
import torch
from safetensors.numpy import load_file

from rejoinder.text.ragged import Ragged
from rejoinder.training.data.examples import GroupText
from rejoinder.training.initial_rows import interleave, turn_rows
from runs import MULTITASK, TRANSFORMER


def test_rows_turn_and_keep_their_lengths():
    weight = torch.tensor([[3.0, 4.0], [0.0, 2.0], [1.0, 1.0]], requires_grad=True)
    turn_rows(weight, torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    assert weight.tolist() == [[5.0, 0.0], [0.0, 2.0], [1.0, 1.0]]


def test_subwords_of_several_tasks_begin_with_the_same_rows_each_time(train, tmp_path):
    encoder = {name: TRANSFORMER[name] for name in ("text", "encoder")}
    tree = {**MULTITASK, **encoder, "optimizer": {"dense": "adam"}}
    tree["phases"] = [{"steps": 2, "batch_size": 8, "learning_rate": 0.001}]
    one, again = (tmp_path / name / "word_rows.safetensors" for name in ("one", "again"))
    for place in (one, again):
        train(tree, place.parent)
    rows = load_file(one)["rows"]
    assert rows.shape == (400, TRANSFORMER["encoder"]["hidden"])
    np.testing.assert_array_equal(rows, load_file(again)["rows"])


def test_translations_are_read_as_one_text_word_by_word():
    starts, members = np.array([0, 2, 5]), np.array([0, 1, 0, 1, 2])
    groups = GroupText(["a b c d", "e f", "g"], "", 0, 0, starts, members)
    ids = Ragged(np.arange(7, dtype=np.int32), np.array([0, 4, 6, 7]))
    mixed = interleave(groups, ids)
    assert mixed[0].tolist() == [0, 4, 1, 2, 5, 3]
    assert mixed[1].tolist() == mixed[0].tolist()
    assert mixed[2].tolist() == [4, 6, 5]
    assert len(mixed) == 3
