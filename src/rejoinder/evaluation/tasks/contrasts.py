"""The tasks `contrasts/*`: is a paraphrase nearer than a sentence that shares the words?

The items of `KINDS` are written by hand. Rules make those of `MADE` from templates and words in
`data/contrasts.toml`.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Formatter

import numpy as np
import polars as pl

from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval, resampled_interval
from rejoinder.evaluation.metrics import Items, joined, subsets_of
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of

KINDS = ("word-order", "negation", "numbers", "swaps", "names")
"""What distinguishes the sentence that differs. `swaps` are antonyms and other single words."""
MADE = ("roles", "negation", "quantity", "tense", "attribution", "places", "dates", "swaps")
"""Kinds of the tasks `contrasts/made-*`. In `roles`, who did it and to whom change places."""
PER_TEMPLATE = 10
"""Made items, mostly right or wrong together: intervals and tests resample templates."""
_SEED = 0
_COLUMNS = ("anchor", "same", "different")


@dataclass(frozen=True)
class Contrasts:
    """Items (kind, anchor, same, different), and the SHA-256 of their JSON lines.

    `same` says what the anchor says in other words. `different` has most of its words, in
    `word-order` all of them, and says something else.
    """

    frame: pl.DataFrame
    sha256: str


def read_contrasts() -> Contrasts:
    """Returns the items that are written by hand."""
    content = files("rejoinder").joinpath("data/contrasts.jsonl").read_bytes()
    return Contrasts(pl.read_ndjson(content), sha256_of(content))


@lru_cache(1)
def made_contrasts() -> Contrasts:
    """Returns the items that rules make, always the same: 250 for each kind of `MADE`.

    Those of a template follow each other. No sentence occurs twice, or in `read_contrasts`.
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
    # of all kinds, so that no score depends on which other tasks were asked for
    embedder.prepare("contrasts", [text for name in _COLUMNS for text in items.frame[name]])
    task, seed = part[0], context.seed
    kind = task.split("/")[1]
    rows = items.frame.filter(pl.col("kind") == kind)
    anchors, same, different = (rows[name].to_list() for name in _COLUMNS)
    similarity, notes = embedder.similarity([*anchors, *anchors], [*same, *different], task)
    to_same, to_different = np.split(similarity, 2)
    right = (to_same > to_different).astype(np.float64)
    ids = [f"{kind}:{row}" for row in range(1, len(rows) + 1)]
    accuracy = mean_interval(right, seed, unit=100)
    if kind.startswith("made-"):
        ids = [f"{kind} {row // PER_TEMPLATE + 1}:{row + 1}" for row in range(len(rows))]
        means = np.array([right[own].mean() for own in subsets_of(ids).values()])
        accuracy = resampled_interval(means, seed, unit=100)
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
            "similarity_same": resampled_interval(to_same, seed),
            "similarity_different": resampled_interval(to_different, seed),
        },
        data={"name": "contrasts"},
        notes=notes,
    )


_TASKS = [f"contrasts/{kind}" for kind in (*KINDS, *(f"made-{kind}" for kind in MADE))]
FAMILIES = (Family(dict.fromkeys(_TASKS, ("contrasts",)), _read, _run),)
