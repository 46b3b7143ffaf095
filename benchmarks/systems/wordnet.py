"""Open English WordNet: the concepts of words, what is above them, and how much each one says."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from rejoinder.datasets.catalogue import read_bytes

WORDNET, FREQUENCIES = "open_english_wordnet.jsonl.zst", "wordfreq_large_en_zipf.tsv.zst"
KINDS = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
FUNCTION_WORDS = frozenset(
    """a about after all also am an and any are as at be been being but by can could did do does
    doing for from had has have having he her hers him his how i if in into is it its just me my
    no nor not of off on or our out over own s she so some such t than that the their them then
    there these they this those to too under up us was we were what when where which while who
    whom why will with would you your""".split()  # noqa: SIM905
)
_ENDINGS = {
    "n": (("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
          ("men", "man"), ("ies", "y"), ("s", "")),
    "v": (("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", "e"), ("ed", ""),
          ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
}  # fmt: skip
_IRREGULAR = dict(
    pair.split(":")
    for pair in """men:man women:woman children:child people:person feet:foot teeth:tooth mice:mouse
    geese:goose lives:life knives:knife wives:wife leaves:leaf wolves:wolf ate:eat eaten:eat sat:sit
    ran:run went:go gone:go saw:see seen:see took:take taken:take gave:give given:give made:make
    said:say told:tell found:find got:get held:hold kept:keep left:leave led:lead lost:lose met:meet
    paid:pay put:put read:read rode:ride ridden:ride rose:rise sang:sing sold:sell sent:send
    shot:shoot slept:sleep spoke:speak spoken:speak spent:spend stood:stand swam:swim swept:sweep
    taught:teach thought:think threw:throw thrown:throw understood:understand woke:wake won:win
    wore:wear worn:wear wrote:write written:write began:begin begun:begin bought:buy brought:bring
    built:build came:come caught:catch chose:choose cut:cut drank:drink drove:drive driven:drive
    fell:fall fallen:fall felt:feel fought:fight flew:fly grew:grow hit:hit knew:know known:know
    lay:lie hung:hang hurt:hurt died:die dying:die lying:lie tying:tie better:good best:good
    worse:bad worst:bad stole:steal stolen:steal struck:strike broke:break broken:break""".split()  # noqa: SIM905
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def content_words(text: str) -> list[str]:
    """Returns the lower-cased words of a text, without those that only join others."""
    return [word for word in _WORD.findall(text.lower()) if word not in FUNCTION_WORDS]


class WordNet:
    """Concepts are numbers; a word that is not in WordNet is a concept with nothing above it."""

    def __init__(self, lexical: Path) -> None:
        """Reads the hierarchy and the frequencies of words in `lexical`."""
        rows = [json.loads(line) for line in read_bytes(lexical / WORDNET).splitlines()]
        numbers = {row["id"]: number for number, row in enumerate(rows)}
        self._parents = [
            [numbers[each] for each in (*row.get("hypernym", ()), *_head(row)) if each in numbers]
            for row in rows
        ]
        self._above = _ancestors(self._parents)
        self._kinds = [KINDS[row["id"][-1]] for row in rows]
        self._senses = defaultdict[str, list[int]](list)
        for number, row in enumerate(rows):
            for member in row["members"]:
                self._senses[member.lower()].append(number)
        lines = read_bytes(lexical / FREQUENCIES).decode().splitlines()
        zipf = (line.split("\t") for line in lines)
        self._frequencies = {word: 10 ** float(value) for word, value in zipf}
        self._least = min(self._frequencies.values())
        self._total = sum(self._frequencies.values())
        self._information = self._counted()
        self.concepts = lru_cache(None)(self._weighed)

    def _counted(self) -> list[float]:
        """Returns -log of the share of words that name each concept or one below it."""
        counts = [0.0] * len(self._above)
        for word, frequency in self._frequencies.items():
            if word not in FUNCTION_WORDS and (found := self.senses(word)):
                for sense in found:
                    for concept in self._above[sense]:
                        counts[concept] += frequency / len(found)
        return [-math.log(max(count, self._least) / self._total) for count in counts]

    def senses(self, word: str) -> tuple[int, ...]:
        """Returns the senses of a word and of the forms that it may be an inflection of."""
        forms = [word, _IRREGULAR[word]] if word in _IRREGULAR else [word]
        for kind, endings in _ENDINGS.items():
            for ending, instead in endings:
                if word.endswith(ending) and len(word) > len(ending) + 1:
                    forms.append(word[: -len(ending)] + instead)
                    if kind == "v" and len(forms[-1]) > 3 and forms[-1][-1] == forms[-1][-2]:
                        forms.append(forms[-1][:-1])
        found = (sense for form in forms for sense in self._senses.get(form, ()))
        return tuple(dict.fromkeys(found))

    def idf(self, word: str) -> float:
        """Returns -log of the share of a word among all words."""
        return -math.log(self._frequencies.get(word, self._least) / self._total)

    def kind(self, word: str) -> str:
        """Returns the part of speech of most senses of a word, `other` for unknown ones."""
        counts = Counter(self._kinds[sense] for sense in self.senses(word))
        if word in FUNCTION_WORDS or not counts:
            return "other"
        return min(counts, key=lambda kind: (-counts[kind], kind))

    def _weighed(self, word: str) -> dict[int | str, float]:
        """Returns what each concept at or above a word adds to what those above it say.

        Each sense counts for its share of the senses: their frequencies are not in the data.
        """
        senses = self.senses(word)
        if not senses:
            return {word: self.idf(word)}
        shares = Counter(concept for sense in senses for concept in self._above[sense])
        return {each: count / len(senses) * self._added(each) for each, count in shares.items()}

    def _added(self, concept: int) -> float:
        parents = self._parents[concept]
        known = max((self._information[each] for each in parents), default=0.0)
        return max(self._information[concept] - known, 0.0)

    def shared_information(self, first: str, second: str) -> float:
        """Returns the information in both texts as a share of that in either, from 0 to 1."""
        one, other = self._whole(first), self._whole(second)
        shared = sum(min(value, other[each]) for each, value in one.items() if each in other)
        whole = sum(one.values()) + sum(other.values()) - shared
        return shared / whole if whole else 0.0

    def _whole(self, text: str) -> dict[int | str, float]:
        found: dict[int | str, float] = {}
        for word in content_words(text):
            for concept, value in self.concepts(word).items():
                found[concept] = max(found.get(concept, 0.0), value)
        return found


def _head(row: dict[str, list[str]]) -> list[str]:
    """Returns the adjective that one with a narrower meaning is similar to."""
    return row.get("similar", [])[:1] if row["id"][-1] == "s" else []


def _ancestors(parents: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    found: dict[int, frozenset[int]] = {}

    def above(concept: int) -> frozenset[int]:
        if concept not in found:
            found[concept] = frozenset([concept])  # ends a circle
            found[concept] = found[concept].union(*(above(each) for each in parents[concept]))
        return found[concept]

    return [above(concept) for concept in range(len(parents))]
