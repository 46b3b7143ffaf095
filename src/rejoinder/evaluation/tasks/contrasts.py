"""Tasks whose sentences ship with the package.

`contrasts/*`: is a paraphrase nearer than a sentence that shares the words? The items of `KINDS`
are written by hand. The items of `MADE` come from templates and words in `data/contrasts.toml`.
`bias/*`: do two groups of words differ in their similarities? The effect sizes follow
Caliskan et al. 2017, on words put into sentences (May et al. 2019).
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Formatter
from typing import Any

import numpy as np
import polars as pl

from rejoinder.evaluation import intervals
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.metrics import Items, effect_sizes, joined, metric_of, subsets_of
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats

KINDS = ("word-order", "negation", "numbers", "swaps", "names")
"""What the differing sentence changes. `swaps` are antonyms and other single words."""
MADE = ("roles", "negation", "quantity", "tense", "attribution", "places", "dates", "swaps")
"""Kinds of the tasks `contrasts/made-*`. In `roles`, agent and receiver are swapped."""
PER_TEMPLATE = 10
"""Items per template, mostly right or wrong together: tests resample templates, not items."""
_SEED = 0
_COLUMNS = ("anchor", "same", "different")


@dataclass(frozen=True)
class Contrasts:
    """Items (kind, anchor, same, different), and the SHA-256 of their JSON lines.

    `same` says what the anchor says in other words. `different` shares most of its words (in
    `word-order` all), and says something else.
    """

    frame: pl.DataFrame
    sha256: str


def read_contrasts() -> Contrasts:
    """Returns the hand-written items."""
    content = files("rejoinder").joinpath("data/contrasts.jsonl").read_bytes()
    return Contrasts(pl.read_ndjson(content), sha256_of(content))


@lru_cache(1)
def made_contrasts() -> Contrasts:
    """Returns the items made from templates, always the same: 250 for each kind of `MADE`.

    Items of a template follow each other. No sentence occurs twice, or in `read_contrasts`.
    """
    rules = tomllib.loads(files("rejoinder").joinpath("data/contrasts.toml").read_text("utf-8"))
    generator = np.random.default_rng(_SEED)
    seen = {text for _, *texts in read_contrasts().frame.iter_rows() for text in texts}
    rows = []
    for kind in MADE:
        for template in rules["templates"][kind]:
            for _ in range(PER_TEMPLATE):
                texts = _filled(template, rules["words"], generator)
                while not seen.isdisjoint(texts):
                    texts = _filled(template, rules["words"], generator)
                seen.update(texts)
                rows.append((f"made-{kind}", *texts))
    frame = pl.DataFrame(rows, ["kind", *_COLUMNS], orient="row")
    return Contrasts(frame, sha256_of(frame.write_ndjson().encode()))


def _filled(
    template: Sequence[str], words: Mapping[str, Sequence[str]], generator: np.random.Generator
) -> list[str]:
    """Returns the three sentences of a template with words drawn from its lists."""
    fields = {field for _, field, _, _ in Formatter().parse(" ".join(template)) if field}
    slots: dict[str, str | Sequence[str]] = {}
    for name in sorted({field.partition("[")[0].rstrip("12") for field in fields}):
        first, second = generator.choice(len(words[name]), 2, replace=False)
        slots[name] = slots[f"{name}1"] = words[name][first]
        slots[f"{name}2"] = words[name][second]
    texts = [text.format(**slots) for text in template]
    return [text[0].upper() + text[1:] for text in texts]


def _read(_context: Context, ids: Sequence[str]) -> Data:
    return {
        (task, "test"): made_contrasts() if "/made-" in task else read_contrasts() for task in ids
    }


def _run(embedder: Embedder, context: Context, part: Part, items: Contrasts) -> Scored:
    # of all kinds, so that scores do not depend on the other requested tasks
    embedder.prepare("contrasts", [text for name in _COLUMNS for text in items.frame[name]])
    task, seed = part[0], context.seed
    kind = task.split("/")[1]
    rows = items.frame.filter(pl.col("kind") == kind)
    anchors, same, different = (rows[name].to_list() for name in _COLUMNS)
    similarity, notes = embedder.similarity([*anchors, *anchors], [*same, *different], task)
    to_same, to_different = np.split(similarity, 2)
    right = (to_same > to_different).astype(np.float64)
    ids = [f"{kind}:{row}" for row in range(1, len(rows) + 1)]
    accuracy = intervals.mean_interval(right, seed, unit=100)
    if kind.startswith("made-"):
        ids = [f"{kind} {row // PER_TEMPLATE + 1}:{row + 1}" for row in range(len(rows))]
        means = np.array([right[own].mean() for own in subsets_of(ids).values()])
        accuracy = intervals.resampled_interval(means, seed, unit=100)
    return Scored(
        "accuracy",
        {
            "accuracy": 100 * float(right.mean()),
            "similarity_same": float(to_same.mean()),
            "similarity_different": float(to_different.mean()),
        },
        Items(ids, right, np.ones(len(right)), joined(anchors, same, different)),
        {
            "accuracy": accuracy,
            "similarity_same": intervals.resampled_interval(to_same, seed),
            "similarity_different": intervals.resampled_interval(to_different, seed),
        },
        data={"name": "contrasts"},
        notes=notes,
    )


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


def _read_bias(_context: Context, ids: Sequence[str]) -> Data:
    return dict.fromkeys(((task, "test") for task in ids), read_word_lists())


def _run_bias(embedder: Embedder, context: Context, part: Part, lists: WordLists) -> Scored:
    # of all tests, so that scores do not depend on the other requested tasks
    everything = [text for name in lists.tables["lists"] for text in lists.sentences(name)]
    embedder.prepare("bias", list(dict.fromkeys(everything)))
    task, seed = part[0], context.seed
    test, main = lists.tables["tests"][task.split("/")[1]], "absolute_effect_size"
    targets, attributes = test["targets"], test["attributes"]
    found = [_associations(embedder, lists, target, attributes, task) for target in targets]
    (first, notes), (second, more) = found
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
        scores={
            **metric_of(main).recompute(items),
            "p": intervals.permutation_test(first, second, seed).p,
        },
        intervals={"effect_size": intervals.two_group_interval(effect_sizes, first, second, seed)},
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
    """Returns the (N,) associations of a target's words, and notes on the similarities.

    An association is the mean similarity of the word's sentences to those of the first attribute,
    minus the same for the second.
    """
    means, notes = [], []
    for attribute in attributes:
        own, others = lists.sentences(target), lists.sentences(attribute)
        first = [text for text in own for _ in others]
        similarity, said = embedder.similarity(first, others * len(own), task)
        means.append(similarity.reshape(len(lists.words(target)), -1).mean(axis=1))
        notes += said
    return means[0] - means[1], notes


_CONTRASTS = [f"contrasts/{kind}" for kind in (*KINDS, *(f"made-{kind}" for kind in MADE))]
_BIAS = [
    f"bias/{name}" for name in ("gender-career", "gender-occupations", "names", "religion", "age")
]
FAMILIES = (
    Family(dict.fromkeys(_CONTRASTS, ("contrasts",)), _read, _run),
    Family(dict.fromkeys(_BIAS, ("bias",)), _read_bias, _run_bias),
)
