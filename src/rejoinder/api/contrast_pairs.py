"""Pairs of nearly the same words that say something else, which graded pairs are short of."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import numpy as np

from rejoinder.datasets.files import read_bytes
from rejoinder.datasets.sts import GradedPairs
from rejoinder.evaluation.tasks.contrasts import read_contrasts
from rejoinder.io.files.hashed import sha256_of
from rejoinder.scoring.lexicon import lexicon
from rejoinder.scoring.words import NUMBERS

FILE = "paraphrases/tatoeba_pivot.jsonl"
"""Groups of `sentences`, the first of which is changed."""
SCORE = 0.5
"""What a sentence and the changed one score."""
MOST = 300
"""Pairs of each kind."""
_WORDS = range(4, 15)
_NEGATED = (
    (r"\b(do|does|did|is|are|was|were|has|have|had|would|could|should)n't\b", r"\1"),
    (r"\bcan't\b", "can"),
    (r" not\b", ""),
    (r"\bnever ", ""),
)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|will|has|have|had|should|would|could|must|am)\b(?!n't)"
)
_PERSON = re.compile(r"(I|You|We|They) [a-z]+\b")
_COUNTS = NUMBERS[2:]
"""Without `one`, which is a pronoun more often."""
_NUMBER = re.compile(rf"\b(\d+|{'|'.join(_COUNTS)})\b")
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{2,}")
_SIDE = (
    r"(?:(?:[Tt]he|[Aa]|[Mm]y|[Hh]is|[Hh]er) [a-z]+|"
    r"(?!There|It|That|This|What|Who|How|Why|He|She|We|You|They|If|No|Not)[A-Z][a-z]+)"
)
_VERB = r"(?!is|are|was|were|and|or|of|in|at|on|to|from|for|than)[a-z]+"
_ORDER = re.compile(
    rf"({_SIDE}) ({_VERB}(?: (?:at|on|to|for|with|after|by))?) ({_SIDE})([.!]| .*)$"
)

Change = Callable[[str, Random], str | None]
"""Returns a changed sentence, None where it does not apply."""


def contrast_pairs(data: Path, seed: int = 0) -> GradedPairs:
    """Returns pairs of a sentence and one with a changed negation, number, name, word or order.

    The same data and seed give the same pairs. Sentences of the task `contrasts` are left out.

    Raises:
        DataMissingError: `data` has no file of groups of sentences.
    """
    content = read_bytes(data / FILE)
    held_out = {text for name in ("anchor", "same", "different")
                for text in read_contrasts().frame[name]}  # fmt: skip
    firsts = (json.loads(line)["sentences"][0] for line in content.splitlines())
    texts = [text for text in firsts if len(text.split()) in _WORDS and text not in held_out]
    draw = Random(seed)  # noqa: S311 (no secret)
    draw.shuffle(texts)
    names = sorted({name for text in texts for name in _NAME.findall(text)})
    changes = _changes(names)
    found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in changes}
    for text in texts:
        for kind, change in changes.items():
            other = change(text, draw) if len(found[kind]) < MOST else None
            if other not in (None, text):
                found[kind].append((text, other or ""))
    kinds = [kind for kind, pairs in found.items() for _ in pairs]
    pairs = [pair for each in found.values() for pair in each]
    return GradedPairs(
        "train", "official", [first for first, _ in pairs], [second for _, second in pairs],
        np.full(len(pairs), SCORE), kinds, sha256_of(content), list(map(str, range(len(pairs)))),
        kinds,
    )  # fmt: skip


def _changes(names: list[str]) -> Mapping[str, Change]:
    def name(text: str, draw: Random) -> str | None:
        return _replaced(_NAME, text, lambda old: draw.choice([n for n in names if n != old]))

    return {"negation": negated, "numbers": renumbered, "names": name,
            "opposites": opposite, "order": exchanged}  # fmt: skip


def negated(text: str, draw: Random) -> str | None:
    """Returns a sentence with a negation more or less.

    >>> negated("He is not here.", Random(0)), negated("I like it.", Random(0))
    ('He is here.', "I don't like it.")
    """
    for pattern, other in _NEGATED:
        if re.search(pattern, text):
            return re.sub(pattern, other, text, count=1)
    if _AUXILIARY.search(text):
        return _replaced(_AUXILIARY, text, lambda old: old + draw.choice((" not", " never")))
    if match := _PERSON.match(text):
        return f"{match[1]} don't{text[len(match[1]) :]}"
    return None


def renumbered(text: str, draw: Random) -> str | None:
    """Returns a sentence with another number."""

    def other(old: str) -> str:
        if old.isdigit():
            return str(int(old) + draw.choice((2, 3, 5, 10, 40)))
        return draw.choice([word for word in _COUNTS if word != old])

    return _replaced(_NUMBER, text, other)


def opposite(text: str, draw: Random) -> str | None:
    """Returns a sentence with the opposite of one of its words."""
    parts = re.findall(r"\w+|\W+", text)
    places = [place for place, word in enumerate(parts) if lexicon().opposites(word)]
    if not places:
        return None
    place = draw.choice(places)
    parts[place] = draw.choice(lexicon().opposites(parts[place]))
    return "".join(parts)


def exchanged(text: str, _draw: Random) -> str | None:
    """Returns a sentence whose subject and object have changed places.

    >>> exchanged("The dog bit my friend.", Random(0))
    'My friend bit the dog.'
    """
    match = _ORDER.match(text)
    if match is None:
        return None
    first, verb, second, rest = match.groups()
    lower = first if " " not in first else first[0].lower() + first[1:]
    return f"{second[0].upper()}{second[1:]} {verb} {lower}{rest}"


def _replaced(pattern: re.Pattern[str], text: str, other: Callable[[str], str]) -> str | None:
    match = pattern.search(text)
    return match and text[: match.start()] + other(match[0]) + text[match.end() :]
