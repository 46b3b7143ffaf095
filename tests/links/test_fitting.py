"""A linker learns from channels whose links are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from rejoinder import SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.links.fitting import Recipe, fit
from rejoinder.links.linker import Linker

pytest.importorskip("torch")


def channel(count, seed):
    """Everybody goes on from his own last message, and begins with the first."""
    who = np.random.default_rng(seed).integers(0, 9, count).tolist()
    last = [
        max((row for row in range(at) if who[row] == who[at]), default=at) for at in range(count)
    ]
    return SimpleNamespace(
        authors=[str(one) for one in who],
        times=[60.0 * at for at in range(count)],
        texts=["a word of many"] * count,
        labels={at: [one] for at, one in enumerate(last)},
    )


@pytest.fixture(scope="module")
def small():
    return SentenceEncoder.load("rejoinder-small")


def test_a_fitted_linker_knows_the_habit_of_its_channels(small, tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    recipe = Recipe(widths=(16, 16), second=8, epochs=(10, 10), rate=0.01, dropout=0.0)
    for path in paths:
        settings = fit([channel(160, 1), channel(160, 4)], small, path, learned_from="made up",
                       held_out=[channel(40, 2)], recipe=recipe)  # fmt: skip
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert settings["messages"] == 320
    linker = Linker(paths[0])
    assert linker.settings == settings
    assert linker.encoder.describe()["name"] == "rejoinder-small"
    asked = channel(60, 3)
    links = linker.link(asked.texts, asked.authors, asked.times)
    answered = np.where(links.parents < 0, np.arange(60), links.parents)
    assert (answered == [asked.labels[at][0] for at in range(60)]).mean() > 0.9


def test_nothing_to_learn_is_refused(small, tmp_path):
    nothing = channel(3, 0)
    nothing.labels = {}
    with pytest.raises(InputError, match="no channel has a message whose link is known"):
        fit([nothing], small, tmp_path / "a", learned_from="", held_out=[])
