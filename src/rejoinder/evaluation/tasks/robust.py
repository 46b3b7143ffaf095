"""`robust/…`: what stays of the score of STS-B dev by cosine when the second sentences change.

The changes are a typing error, another case, sentences of other pairs before and after, and a
greeting and a signature. The seed of the evaluation draws them.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rejoinder.datasets.semeval import GradedPairs, read_stsb
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.metrics import Items, correlations, joined
from rejoinder.evaluation.resampled import KEPT, kept, score_interval
from rejoinder.evaluation.results import Scored, recomputed
from rejoinder.evaluation.tasks import Context, Data, Family, Part

KINDS = ("swapped", "dropped", "doubled", "key")
"""Typing errors."""
WORD = re.compile(r"(?<![\w'])[a-z]{5,}(?![\w'])")
"""A word that can get an error."""
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_GREETINGS = ("Hi,", "Hello all,", "Good morning!", "Dear team,", "Hey everyone,", "Hi there,")
_SIGNATURES = (
    "Thanks, Anna",
    "Best regards, Tom",
    "Cheers",
    "Kind regards, Dr. Maria Keller",
    "Sent from my phone",
    "Thank you in advance!",
)


def keys_next_to(letter: str) -> list[str]:
    """Returns the letters of the keys around that of a letter, on an American keyboard."""
    at = {key: (row, column) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)}
    row, column = at[letter]
    steps = ((0, -1), (0, 1), (1, -1), (1, 0), (-1, 0), (-1, 1))
    near = {(row + down, column + right) for down, right in steps}
    return sorted(key for key, place in at.items() if place in near)


def misspell(word: str, kind: str, draw: random.Random) -> str:
    """Returns a word of letters a to z with an error of a kind, different from the word."""
    wrong = word
    while wrong == word:
        at = draw.randrange(len(word) - (kind == "swapped"))
        before, letter, after = word[:at], word[at], word[at + 1 :]
        near = {
            "swapped": after[:1] + letter + after[1:],
            "dropped": after,
            "doubled": 2 * letter + after,
            "key": draw.choice(keys_next_to(letter)) + after,
        }
        wrong = before + near[kind]
    return wrong


def _typo(text: str, draw: random.Random) -> str:
    """Puts an error into the longest word, if there is one of five lower-case letters or more."""
    if not (words := list(WORD.finditer(text))):
        return text
    longest = max(words, key=lambda word: len(word[0]))
    wrong = misspell(longest[0], draw.choice(KINDS), draw)
    return text[: longest.start()] + wrong + text[longest.end() :]


def changed(kind: str, texts: Sequence[str], seed: int) -> list[str]:
    """Returns texts changed by `typos`, `case`, `length` or `noise`."""
    draw = random.Random(seed)  # noqa: S311 -- repeatable, and no secret
    cases = (str.lower, str.upper, str.title)
    change: dict[str, Callable[[str], str]] = {
        "typos": lambda text: _typo(text, draw),
        "case": lambda text: draw.choice(cases)(text),
        "length": lambda text: f"{draw.choice(texts)} {text} {draw.choice(texts)}",
        "noise": lambda text: f"{draw.choice(_GREETINGS)} {text} {draw.choice(_SIGNATURES)}",
    }
    return [change[kind](text) for text in texts]


def _read(context: Context, ids: Sequence[str]) -> Data:
    pairs = read_stsb(context.folder(ids[0]), "dev", context.form)
    return {(task, "dev"): pairs for task in ids}


def _run(embedder: Embedder, context: Context, part: Part, pairs: GradedPairs) -> Scored:
    task, count = part[0], len(pairs)
    other = changed(task.split("/")[1], pairs.second, context.seed)
    embedder.prepare(task, [*pairs.first, *pairs.second, *other])
    both = [*pairs.second, *other]
    similarity, notes = embedder.similarity(2 * pairs.first, both, task)
    items = Items(
        [f"{side}:{row}" for side in ("clean", "changed") for row in range(count)],
        similarity,
        np.tile(pairs.gold, 2),
        joined(2 * pairs.first, both),
    )
    interval = score_interval(kept, items, context.seed)
    facts = {"name": "stsb", "form": pairs.form}
    scored = recomputed(KEPT, items, interval, data=facts, notes=notes)
    clean, after = (correlations(own, pairs.gold)["pearson"] for own in np.split(similarity, 2))
    return replace(scored, scores={**scored.scores, "clean": clean, "changed": after})


_TASKS = {f"robust/{kind}": ("robust",) for kind in ("typos", "case", "length", "noise")}
FAMILIES = (Family(_TASKS, _read, _run, options=("form",)),)
