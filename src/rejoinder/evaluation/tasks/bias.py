"""The tasks `bias/*`: whether two groups of words differ in what they are similar to.

The effect sizes are those of Caliskan et al. 2017, on words put into sentences (May et al. 2019).
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import permutation_test, two_group_interval
from rejoinder.evaluation.metrics import Items, effect_sizes, metric_of
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats


@dataclass(frozen=True)
class WordLists:
    """The shipped tests, templates and word lists, and the SHA-256 of their file."""

    tables: Mapping[str, Any]
    sha256: str

    def words(self, name: str) -> list[str]:
        """Returns the words of a list."""
        words: list[str] = self.tables["lists"][name]["words"]
        return words

    def sentences(self, name: str) -> list[str]:
        """Returns the sentences of a list, word after word: the word in each of its templates."""
        templates = self.tables["templates"][self.tables["lists"][name]["template"]]
        return [template.format(word) for word in self.words(name) for template in templates]


def read_word_lists() -> WordLists:
    """Returns the shipped word lists."""
    content = files("rejoinder").joinpath("data/bias.toml").read_bytes()
    return WordLists(tomllib.loads(content.decode()), sha256_of(content))


def _read(_context: Context, ids: Sequence[str]) -> Data:
    return dict.fromkeys(((task, "test") for task in ids), read_word_lists())


def _run(embedder: Embedder, context: Context, part: Part, lists: WordLists) -> Scored:
    # of all tests, so that no score depends on which other tasks were asked for
    everything = [text for name in lists.tables["lists"] for text in lists.sentences(name)]
    embedder.prepare("bias", list(dict.fromkeys(everything)))
    task, seed = part[0], context.seed
    test, main = lists.tables["tests"][task.split("/")[1]], "absolute_effect_size"
    targets, attributes = test["targets"], test["attributes"]
    (first, notes), (second, more) = (
        _associations(embedder, lists, target, attributes, task) for target in targets
    )
    words = [(target, word) for target in targets for word in lists.words(target)]
    items = Items(
        [f"{target}:{word}" for target, word in words],
        np.concatenate([first, second]),
        np.repeat([1.0, 0.0], [len(first), len(second)]),
        [word for _, word in words],
    )
    nearer = f"{targets[0]} nearer to {attributes[0]}, {targets[1]} to {attributes[1]}"
    direction = f"effect_size above 0 means: {nearer}"
    return Scored(
        main=main,
        scores={**metric_of(main).recompute(items), "p": permutation_test(first, second, seed).p},
        intervals={"effect_size": two_group_interval(effect_sizes, first, second, seed)},
        groups={
            name: Group(len(values), {"association": float(values.mean())})
            for name, values in zip(targets, (first, second), strict=True)
        },
        data={"name": "bias"},
        notes=list(dict.fromkeys([direction, *notes, *more])),
        items=items,
    )


def _associations(
    embedder: Embedder, lists: WordLists, target: str, attributes: Sequence[str], task: str
) -> tuple[Floats, list[str]]:
    """Returns the (N,) associations of the words of a target, and notes on the similarities.

    An association is the mean similarity of the word's sentences to those of the first attribute,
    minus that to those of the second.
    """
    means, notes = [], []
    for attribute in attributes:
        own, others = lists.sentences(target), lists.sentences(attribute)
        first = [text for text in own for _ in others]
        similarity, said = embedder.similarity(first, others * len(own), task)
        means.append(similarity.reshape(len(lists.words(target)), -1).mean(axis=1))
        notes += said
    return means[0] - means[1], notes


_NAMES = ("gender-career", "gender-occupations", "names", "religion", "age")
FAMILIES = (Family({f"bias/{name}": ("bias",) for name in _NAMES}, _read, _run),)
