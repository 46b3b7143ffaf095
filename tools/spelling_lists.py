"""Writes which words are misspellings, and which only look like one, from lists of English.

    python tools/spelling_lists.py DATA dictionary.txt src/rejoinder/data/spelling.safetensors

`dictionary.txt` is the list of codespell (`codespell_lib/data/dictionary.txt` of its wheel);
frequencies are those of wordfreq, and words with a meaning those of Open English WordNet.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Container, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.datasets.catalogue import read_bytes
from rejoinder.text.readings import RANK, Spelling, word_keys

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_INSIDE = re.compile(r"(?<=[a-z,] )[A-Za-z]{4,}")
_TIERS = (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 9.0)
"""Frequencies, as log10 of occurrences in a billion words: a word may be one of a higher tier."""
_EASY = -0.5
"""Least logarithm of an error that is easily made."""
_RARER = 1.0
_LONG = 5
_TEXTS = (
    "conversations/reddit_2015.jsonl",
    "paraphrases/news_wmt21_23_translations.jsonl",
    "paraphrases/news_wmt19_translations.jsonl",
)
_CAPITALS, _SEEN = 0.3, 5
"""Share of occurrences inside a sentence with a capital from which a word is a name."""
_KNOWN = {
    "dont": "don't", "cant": "can't", "im": "i'm", "ive": "i've", "calender": "calendar",
    "carribean": "caribbean", "dilemna": "dilemma", "ecstacy": "ecstasy", "humourous": "humorous",
    "therefor": "therefore",
}  # fmt: skip
"""Not in codespell's list, mostly since they are words, if rare ones."""


def main() -> None:
    folder, dictionary, out = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    rows = (line.split("\t") for line in _lines(folder / "lexical/wordfreq_large_en_zipf.tsv"))
    frequency = {word: float(value) for word, value in rows if _WORD.fullmatch(word)}
    meanings: dict[str, set[str]] = {}
    for line in _lines(folder / "lexical/open_english_wordnet.jsonl"):
        members = {member.lower() for member in json.loads(line)["members"]}
        for member in members:
            meanings[member] = meanings.get(member, set()) | members
    names = _capitals([line for name in _TEXTS for line in _lines(folder / name)])

    def stands_for(wrong: str, right: str) -> bool:
        rarer = frequency.get(right, 0.0) - frequency.get(wrong, 0.0) >= _RARER
        name = names.get(wrong, 0.0) - names.get(right, 0.0) > _CAPITALS
        return rarer and not name and (wrong not in meanings or right in meanings[wrong])

    listed = dict(_listed(dictionary, frequency))
    listed |= {word: f"{word}g" for word in frequency if word.endswith("in")}  # mornin, playin
    listed |= {  # publically, racoon; not doubled
        word: other
        for word, other in _near(frequency)
        if other in meanings.get(word, ())
        if not word.startswith(other) and not other.startswith(word)
    }
    listed = {wrong: right for wrong, right in listed.items() if stands_for(wrong, right)} | _KNOWN
    own = [word for word in _own(frequency, meanings.keys()) if word not in listed]
    text = "".join(f"{wrong}\t{right}\n" for wrong, right in sorted(listed.items()))
    tensors: dict[str, NDArray[np.generic]] = {
        "misspelt": np.frombuffer(text.encode(), np.uint8),
        "own": np.unique(word_keys(own)),
    }
    out.write_bytes(save(tensors))
    print(f"{len(listed):,} misspellings, {len(own):,} words, {out.stat().st_size:,} bytes")


def _lines(path: Path) -> list[str]:
    return read_bytes(path).decode().splitlines()


def _capitals(texts: list[str]) -> dict[str, float]:
    """Returns how often words are written with a capital inside sentences, as a share."""
    count, capital = Counter[str](), Counter[str]()
    for text in texts:
        for word in _INSIDE.findall(text):
            count[word.lower()] += 1
            capital[word.lower()] += word[0].isupper()
    return {word: capital[word] / seen for word, seen in count.items() if seen >= _SEEN}


def _listed(dictionary: Path, frequency: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Yields misspellings that are frequent or more than one error from their word."""
    for line in dictionary.read_text("utf-8").splitlines():
        wrong, _, rights = line.partition("->")
        right, several, _ = rights.strip().partition(",")
        if not (_WORD.fullmatch(wrong) and _WORD.fullmatch(right)):
            continue  # two words, or a phrase
        if several and len(wrong) < _LONG:
            continue
        if wrong in frequency or Spelling((right,))([wrong])[0] < 0:
            yield wrong, right


def _near(frequency: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Yields words, and the more frequent ones that are one error away, empty for none."""
    words = sorted(frequency, key=lambda word: -frequency[word])
    for low, high in pairwise((0.0, *_TIERS)):
        known = [word for word in words if frequency[word] >= high]
        asked = [word for word in words if low <= frequency[word] < high]
        if known:
            numbers = Spelling(known)(asked).tolist()
            yield from zip(asked, (known[at] if at >= 0 else "" for at in numbers), strict=True)


def _own(frequency: dict[str, float], meanings: Container[str]) -> Iterator[str]:
    """Yields words that are not misspellings: frequent ones, and those that look like others."""
    for word, other in _near(frequency):
        if not other:
            if frequency[word] >= _TIERS[0]:
                yield word
        elif word in meanings or frequency[other] - frequency[word] < _least_rarer(word, other):
            yield word


def _least_rarer(word: str, right: str) -> float:
    """Returns how much rarer than a word its misspelling is.

    Chosen by reading 24 words of each kind of error in steps of .8; half of those below, and of all
    that have another letter than the right one, are names and words of other languages.
    """
    first, long = word[0] != right[0], len(word) >= _LONG
    if len(word) < len(right):
        return 3.6 if first else 2.8 if long else 3.8
    likely = Spelling((right,)).likely([word])[1][0] + np.log(RANK)
    if first or likely < _EASY:
        return np.inf
    if len(word) > len(right) or sorted(word) == sorted(right):
        return 2.8 if len(word) > _LONG else 3.7
    return 3.7 if long else np.inf


if __name__ == "__main__":
    main()
