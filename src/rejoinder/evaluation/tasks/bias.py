"""`bias/*`: whether two groups of words differ in what they are similar to.

The effect sizes of Caliskan et al. 2017, on words put into sentences (May et al. 2019).
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import two_group_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.metrics.effect import effect_sizes
from rejoinder.evaluation.results import Group, Result
from rejoinder.evaluation.significance import permutation_test
from rejoinder.evaluation.tasks.base import Context, Data, Family
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats


@dataclass(frozen=True)
class WordLists:
    """The shipped tests, templates and word lists, and the SHA-256 of their file."""

    tables: Mapping[str, Any]
    sha256: str


def read_word_lists() -> WordLists:
    """Returns the shipped word lists."""
    content = files("rejoinder").joinpath("data/bias.toml").read_bytes()
    return WordLists(tomllib.loads(content.decode()), sha256_of(content))


def sentences_of(words: str, tables: Mapping[str, Any]) -> list[list[str]]:
    """Returns the sentences of each word of a list: the word in each template of the list."""
    chosen = tables["lists"][words]
    templates = tables["templates"][chosen["template"]]
    return [[template.format(word) for template in templates] for word in chosen["words"]]


def _read(_context: Context, ids: Sequence[str]) -> Data:
    return dict.fromkeys(((task, "test") for task in ids), read_word_lists())


def _run(embedder: Embedder, context: Context, data: Data) -> list[Result]:
    lists = next(iter(data.values()))
    # of all tests, so that no score depends on which other tasks were asked for
    everything = [
        text for name in lists.tables["lists"] for text in _flat(sentences_of(name, lists.tables))
    ]
    embedder.prepare("bias", list(dict.fromkeys(everything)))
    return [_scored(embedder, lists, task, context.seed) for task, _ in data]


def _scored(embedder: Embedder, lists: WordLists, task: str, seed: int) -> Result:
    tables = lists.tables
    test = tables["tests"][task.split("/")[1]]
    attributes = [_flat(sentences_of(name, tables)) for name in test["attributes"]]
    words, groups, notes = [], [], []
    for name in test["targets"]:
        words.append(tables["lists"][name]["words"])
        associations, said = _associations(embedder, sentences_of(name, tables), attributes, task)
        groups.append(associations)
        notes += said
    first, second = groups
    items = Items(
        [
            f"{name}:{word}"
            for name, own in zip(test["targets"], words, strict=True)
            for word in own
        ],
        np.concatenate(groups),
        np.repeat([1.0, 0.0], [len(first), len(second)]),
        _flat(words),
    )
    return Result(
        task=task,
        split="test",
        n=len(items.ids),
        main="absolute_effect_size",
        scores={
            **metric_of("absolute_effect_size").recompute(items),
            "p": permutation_test(first, second, seed).p,
        },
        intervals={"effect_size": two_group_interval(effect_sizes, first, second, seed)},
        groups={
            name: Group(len(values), {"association": float(values.mean())})
            for name, values in zip(test["targets"], groups, strict=True)
        },
        seed=seed,
        data={"name": "bias", "sha256": lists.sha256},
        notes=(_direction(test), *dict.fromkeys(notes)),
        items=items,
    )


def _associations(
    embedder: Embedder,
    targets: Sequence[Sequence[str]],
    attributes: Sequence[Sequence[str]],
    task: str,
) -> tuple[Floats, list[str]]:
    """Returns (N,) associations of N words, and notes on the similarities.

    An association is the mean similarity of the word's sentences to those of the first attribute,
    minus that to those of the second.
    """
    means, notes = [], []
    for sentences in attributes:
        flat = _flat(targets)
        first = [text for text in flat for _ in sentences]
        similarity, said = embedder.similarity(first, [*sentences] * len(flat), task)
        means.append(similarity.reshape(len(targets), -1).mean(axis=1))
        notes += said
    return means[0] - means[1], notes


def _direction(test: Mapping[str, Sequence[str]]) -> str:
    (one, other), (near, far) = test["targets"], test["attributes"]
    return f"effect_size above 0 means: {one} nearer to {near}, {other} to {far}"


def _flat(rows: Sequence[Sequence[str]]) -> list[str]:
    return [text for row in rows for text in row]


FAMILIES = (
    Family(
        {
            f"bias/{name}": ("bias",)
            for name in ("gender-career", "gender-occupations", "names", "religion", "age")
        },
        _read,
        _run,
    ),
)
