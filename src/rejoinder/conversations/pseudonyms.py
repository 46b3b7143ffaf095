"""Replaces the names of people in messages: one person, one pseudonym, also inside texts.

Mail addresses, phone numbers and keys are masked, ids become numbers, links are left out. People
who know the authors may still recognise them: names that are not an author's stay, and so does
what the messages say.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from rejoinder.corpus.export_options import mask_pii
from rejoinder.corpus.texts import Entry

SOMEBODY = "Somebody"
"""Stands for a first name that several people have."""
_LEAST = 3
"""Least letters of a part that stands for the name, and of a name unlike common words."""


class Pseudonyms:
    r"""Replaces the names of authors in texts.

    >>> hide = Pseudonyms(["Ann Smith", "will", "Bo Smith", "m"], common={"will"})
    >>> hide("@ann will you tell will?\nwill: I'm at Mr Smith's, ask Bo Smith, or @m")
    "Person 1 will you tell will?\nPerson 2: I'm at Mr Somebody's, ask Person 3, or Person 4"
    """

    def __init__(self, names: Iterable[str], *, common: Collection[str] = ()) -> None:
        """Gives each name a number.

        `common` words stay in texts even if they are names, unless they address somebody: after @,
        or first in a line before a colon or comma; or have the name's capital letter.
        """
        self.of = {name: f"Person {number}" for number, name in enumerate(dict.fromkeys(names), 1)}
        self._common = common
        people: dict[str, set[str]] = defaultdict(set)
        written: dict[str, str] = {}
        for name, pseudonym in self.of.items():
            digits = "".join(filter(str.isdigit, name))
            parts = [part for part in name.split() if len(part) >= _LEAST]
            # a name that is a number is mentioned by its digits
            for part in {name, *([digits] if name.upper() == name.lower() and digits else parts)}:
                people[part.casefold()].add(pseudonym)
                written[part.casefold()] = part
            people[name.casefold()] = {pseudonym}
        self._written = written
        self._people = {
            part: next(iter(some)) if len(some) == 1 else SOMEBODY for part, some in people.items()
        }
        # a trie of two letters: a thousand alternatives would be tried at each word
        groups: dict[str, list[str]] = defaultdict(list)
        for part in sorted(self._people, key=len, reverse=True):
            groups[part[:2]].append(re.escape(part[2:]))
        some = "|".join(f"{re.escape(two)}(?:{'|'.join(rest)})" for two, rest in groups.items())
        self._pattern = re.compile(rf"(?<![\w'’])(@?)({some or '(?!)'})(?!\w)", re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """Returns a text without names, addresses, numbers and keys."""
        return self._pattern.sub(self._replaced, mask_pii(text))

    def _replaced(self, found: re.Match[str]) -> str:
        at, name = found.groups()
        folded, text = name.casefold(), found.string
        if (folded in self._common or len(folded) < _LEAST) and not at:
            is_first = not text[: found.start()].rpartition("\n")[2].strip()
            is_addressed = is_first and text[found.end() :][:1] in (":", ",")
            is_written = name != folded and name == self._written.get(folded)
            if not is_addressed and not is_written:
                return found[0]
        return self._people.get(folded, SOMEBODY)

    def entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Returns messages without anything that identifies their authors."""
        ids = {one.id: str(number) for number, one in enumerate(entries, 1)}
        threads: dict[str, str] = {}
        hidden = []
        for one in entries:
            about = {key: one.about[key] for key in ("time", "confidence") if key in one.about}
            if author := one.about.get("author"):
                about["author"] = self.of[author]
            for key in ("source", "title"):
                if name := one.about.get(key):
                    about[key] = self(name)
            if thread := one.about.get("thread"):
                about["thread"] = threads.setdefault(thread, str(len(threads) + 1))
            if (answers := ids.get(one.about.get("answers"))) is not None:
                about["answers"] = answers
            said = None if one.said is None else self(one.said)
            hidden.append(Entry(ids[one.id], self(one.text), about, said))
        return hidden
