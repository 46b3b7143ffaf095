"""Finds questions that were asked again and again, each with the replies that it got.

A message asks by its subject, or else by its sentences that are questions. It counts if it names
something: "any ideas?" does not. Two questions are the same by their meaning and shared words: .7
of the cosine, plus .3 of the weight of the words in both. A word weighs more the rarer it is in the
language and among these questions. Tuned with `benchmarks/asked.py`.

Also defines the records for repeated questions.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from rejoinder.conversations.collection import Collection
from rejoinder.conversations.duplicates import group_pairs
from rejoinder.conversations.replies import by_others, replies_of
from rejoinder.index.matching import Ranks, rarity
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.near_pairs import NearPairs, near_pairs
from rejoinder.io.files.system import default_workers
from rejoinder.measures import Floats, Indices
from rejoinder.protocols import Embeddings
from rejoinder.text.features import WordFeatures
from rejoinder.text.languages import Stem, language_to_stem, stemmer, with_digits_in_words
from rejoinder.text.normalize import words_of


@dataclass(frozen=True)
class Reply:
    """Replies that say nearly the same."""

    id: str
    """Text of the first of them."""
    text: str
    author: str | None
    time: float | None
    """Seconds since 1970 in UTC."""
    count: int
    """How often it was said."""


@dataclass(frozen=True)
class Asked:
    """Messages that ask the same."""

    id: str
    """Id of the message that stands for them."""
    text: str
    """The question."""
    count: int
    authors: int
    """Number of different authors; 0 if none is known."""
    first: float | None
    """Seconds since 1970 in UTC of the first and the last message; None if they have no time."""
    last: float | None
    ways: list[str]
    """Other wordings of the question; the most frequent first."""
    ids: list[str]
    """Ids of the messages, at most 50."""
    replies: list[Reply]
    """The replies, the most frequent first; at most 8."""
    replied: int
    """Number of all replies."""


MOST = 500
"""Largest number of questions that are returned."""
_MOST_WAYS, _MOST_REPLIES, _MOST_IDS = 6, 8, 50
_COSINE, _SAME = 0.7, 0.7
"""Weight of the cosine in the score of two questions, and the least score of equal questions."""
_NAMED, _NAMED_BY_TITLE = 0.8, 0.5
"""Least weight of the words of a question, and of a subject with at least two words."""
_EMPTY = 0.5
"""Cosine from which a question counts as one of `_FRAMES`."""
_FRAMES = (
    "how do I do this?", "how do I use it?", "where can I find it?", "what does it mean?",
    "why is it like that?", "what happened?", "what am I doing wrong?", "is anyone here?",
    "can anyone help me with it please?", "does anyone know something about it?",
    "it is not working, how do I fix it?", "I have a problem, what is the solution?",
    "any ideas or suggestions?", "can I ask a question here?",
)  # fmt: skip
"""Questions that name nothing."""
_LEAST_WORDS, _MOST_WORDS = 3, 30
_PASTED, _PASTED_UNMARKED = 10, 4
"""Number of words from which a repeated text counts as pasted, not asked again: with a question
mark, and without one."""
_FEWEST = 1_000
"""Number of questions; among fewer, sharing a word is chance."""
_TELLING = 4
"""Least number of words in a question that stands for others."""
_BEGINS = re.compile(
    r"\s*(?:anyone|anybody|are|can|could|did|do|does|has|have|how|is|should|was|were|what|"
    r"when|where|which|who|why|will|would)\b(?>.*?\s(?=\S))\S++.*?\s\S",
    re.IGNORECASE,
)
"""Matches an English text that begins like a question and has at least three words."""
_OFTEN, _MOSTLY = 5, 0.8
"""How many questions must begin with a word, and in what share of sentences, for it to ask."""
_SENTENCE = re.compile(r"[^.!?\n]++(?:[.!?]++(?=\S)[^.!?\n]*+)*+[.!?]*+")
"""Matches a sentence. Words such as `.py` do not end it."""
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_ADDRESSED = re.compile(r"@?([^\s:,>]{1,40})[:,>]")


def question_of(text: str, asking: Container[str] | None = None) -> str:
    """Returns the sentences of a message that ask something, by question mark or first word.

    Args:
        text: What a message says.
        asking: First words of questions, see `asking_words`; None: the English ones.

    >>> question_of("It broke. How do I open a.py? Thanks!"), question_of("Really? I know.")
    ('How do I open a.py?', '')
    """
    return " ".join(one for one in _sentences(text) if _asks(one, asking))


def _asks(sentence: str, asking: Container[str] | None) -> bool:
    if asking is None and _BEGINS.match(sentence):
        return True
    marked = sentence[-1] == "?"
    if asking is not None and sentence[-1] not in ".!":
        marked = marked or _first_word(sentence) in asking
    return marked and len(sentence.split()) >= _LEAST_WORDS


def _first_word(sentence: str) -> str:
    return sentence.lower().lstrip("¿¡").split(None, 1)[0]


def _sentences(text: str) -> Iterator[str]:
    return (one for found in _SENTENCE.finditer(text) if (one := found[0].strip()))


def asking_words(texts: Sequence[str]) -> frozenset[str] | None:
    """Returns first words of questions: most sentences that begin with them have a question mark.

    None stands for the English ones, also used if the texts show no language.
    """
    if language_to_stem(texts) in {"english", ""}:
        return None
    began, asked = Counter[str](), Counter[str]()
    for sentence in chain.from_iterable(map(_sentences, texts)):
        if sentence[-1] in ".!?":
            first = _first_word(sentence)
            began[first] += 1
            asked[first] += sentence[-1] == "?"
    return frozenset(
        one for one, count in asked.items() if count >= _OFTEN and count > _MOSTLY * began[one]
    )


@dataclass(frozen=True)
class _Question:
    row: int
    """Id of its message."""
    text: str
    near: float = 1
    """Similarity to the first question of its group, from 0 to 1."""


def asked_again(collection: Collection) -> list[Asked]:
    """Returns questions that several people asked, the ones asked most alike and most often first.

    Only messages that answer none count as questions; the first of a thread with a reply needs no
    question mark. Repeats by one person and pasted texts don't count, nor do replies by the people
    who asked.

    Args:
        collection: Messages, with their stated or likely answers (`with_answers`).
    """
    given = list(_questions(collection))
    encoder = collection.encoder
    stem = stemmer(language_to_stem(collection.texts))
    weighed = _weighed([one.text for one in given], encoder, stem)
    sums = [sum(weights.values()) for weights in weighed]
    least = (2, _NAMED_BY_TITLE) if any(collection.column("title")) else (1, _NAMED)
    named = [
        at
        for at, (weight, words) in enumerate(zip(sums, map(len, weighed), strict=True))
        if words >= least[0] and weight >= least[1]
    ]
    embeddings = encoder.encode([given[at].text for at in named])
    frames = encoder.encode(list(_FRAMES))
    says = (embeddings @ frames.T).max(axis=1, initial=-1) < _EMPTY
    named = [at for at, kept in zip(named, says.tolist(), strict=True) if kept]
    several = len({*collection.column("author")} - {None}) > 2  # in tickets all may have one name
    found = list[tuple[float, Asked, list[int]]]()
    for group in _groups(embeddings[says], [weighed[at] for at in named]):
        same = [replace(given[named[at]], near=near) for at, near in group]
        worth, one, rows = _asked(collection, same)
        if one.count > 1 and (one.authors > 1 or not several):
            found.append((worth, one, rows))
    found.sort(key=lambda one: (-one[0], one[1].first or 0))
    return [_with_replies(collection, one, rows) for _, one, rows in found[:MOST]]


def _questions(collection: Collection) -> Iterator[_Question]:
    """Yields the questions in messages; of a thread with a subject, only the first message."""
    authors = {str(name).lower() for name in collection.column("author") if name}
    subjects, ends, asking = set[str](), set[str](), asking_words(collection.gists)
    of_mails = any(collection.column("title"))
    for row, (about, core) in enumerate(zip(collection.about, collection.gists, strict=True)):
        if about.get("answers"):
            continue
        asks = question_of(core, asking)
        if of_mails:
            title = about.get("title") or core  # a mail without a text has its subject there
            whole, *parts = _ends(title)
            is_new = whole not in ends and subjects.isdisjoint([whole, *parts])
            if is_new and (asks or collection.replies[row]):
                yield _Question(row, title)
            subjects.add(whole)
            ends.update(parts)
        elif asks or (about.get("thread") and collection.replies[row]):
            to = _ADDRESSED.match(core)
            if to is None or to[1].lower() not in authors:
                is_short = len(core.split()) <= _MOST_WORDS
                yield _Question(row, core if is_short or not asks else asks)


def _ends(title: str) -> list[str]:
    """Returns the words of a subject; if it is long, also without its first or last words.

    >>> _ends("TR: Nodes and cores"), _ends("Oracle")
    (['tr nodes and cores', 'tr nodes and', 'nodes and cores'], ['oracle'])
    """
    words = re.findall(r"\w+", title.lower())[:_MOST_WORDS]
    shorter = range(len(words) - 1, _LEAST_WORDS - 1, -1)
    ends = (part for n in shorter for part in (words[:n], words[-n:]))
    return [" ".join(part) for part in (words, *ends)]


def _weighed(texts: Sequence[str], encoder: SentenceEncoder, stem: Stem) -> list[dict[str, float]]:
    """Returns the stems of each question with their weights, from 0 to 1."""
    features = encoder.features
    ranks: Ranks = features.vocabulary.index if isinstance(features, WordFeatures) else {}
    found = []
    for text in texts:
        words = words_of(with_digits_in_words(_ADDRESS.sub("", text)))
        rare = dict[str, float]()
        for word, one in zip(words, stem(words), strict=True):
            weight = min(rarity(ranks.get(word)), rarity(ranks.get(one)))
            if weight and any(map(str.isalnum, one)):
                rare[one] = max(rare.get(one, 0), weight)
        found.append(rare)
    having = Counter(word for rare in found for word in rare)
    most = math.log(max(len(texts), _FEWEST) + 1)
    idf = {word: 1 - math.log(count + 1) / most for word, count in having.items()}
    return [{one: weight * max(idf[one], 0) for one, weight in rare.items()} for rare in found]


def _groups(
    embeddings: Embeddings, weighed: Sequence[Mapping[str, float]]
) -> list[list[tuple[int, float]]]:
    """Returns groups of equal questions, with each one's similarity to the first, 0 to 1.

    Args:
        embeddings: (Q, D) float32, unit rows.
        weighed: The stems of each question with their weights.
    """
    least = (_SAME - (1 - _COSINE)) / _COSINE  # with the same words
    pairs = near_pairs(embeddings, least, default_workers())
    sums = np.array([sum(weights.values()) for weights in weighed])
    shared = np.zeros(len(pairs))
    for at, (one, other) in enumerate(
        zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    ):
        few, many = sorted((weighed[one], weighed[other]), key=len)
        shared[at] = sum(weight for word, weight in few.items() if word in many)
    both: Floats = sums[pairs.first] + sums[pairs.second]
    scores = _COSINE * pairs.scores + (1 - _COSINE) * 2 * shared / both
    pairs = NearPairs(pairs.rows, pairs.first, pairs.second, scores.astype(np.float32))
    kept = group_pairs(pairs, _SAME)
    near = np.where(kept.heads == np.arange(len(sums)), 1, (kept.scores - _SAME) / (1 - _SAME))
    order = np.lexsort((-near, kept.heads))
    ends = np.flatnonzero(np.diff(kept.heads[order], append=-1)) + 1
    ordered = list(zip(order.tolist(), near[order].tolist(), strict=True))
    return [ordered[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


def _asked(
    collection: Collection, questions: Sequence[_Question]
) -> tuple[float, Asked, list[int]]:
    """Returns how many people asked a question, weighted by similarity to the first; and the rows.

    The replies are added later.
    """
    said = dict[str, list[_Question]]()
    for question in sorted(questions, key=lambda one: one.row):
        said.setdefault(_plain(question.text), []).append(question)
    ways = sorted(said.values(), key=len, reverse=True)
    told = [
        one for same in said.values() for one in same[: 1 if _is_pasted(same[0].text) else None]
    ]
    nearness = dict[object, float]()
    for one in told:
        who = collection.about[one.row].get("author", one.row)
        nearness[who] = max(nearness.get(who, 0), one.near)
    told.sort(key=lambda one: one.row)
    about = [collection.about[one.row] for one in told]
    times = [one["time"] for one in about if one.get("time") is not None]
    head = max(questions, key=lambda one: (_is_telling(one.text), one.near))
    made = Asked(
        collection.ids[head.row],
        head.text,
        len(told),
        len({one["author"] for one in about if one.get("author")}),
        min(times, default=None),
        max(times, default=None),
        [way.text for way, *_ in ways if _plain(head.text) != _plain(way.text)][:_MOST_WAYS],
        [collection.ids[one.row] for one in told[:_MOST_IDS]],
        [],
        0,
    )
    return sum(nearness.values()), made, [one.row for one in told]


def _is_telling(text: str) -> bool:
    return _BEGINS.match(text) is not None and len(text.split()) >= _TELLING


def _is_pasted(text: str) -> bool:
    return len(text.split()) >= (_PASTED if "?" in text else _PASTED_UNMARKED)


def _with_replies(collection: Collection, question: Asked, rows: Sequence[int]) -> Asked:
    replies = np.array([one for row in rows for one in collection.replies[row]], np.int64)
    replies = replies[by_others(collection, replies, collection.answered[replies])]
    return replace(question, replies=_folded(collection, replies), replied=len(replies))


def _folded(collection: Collection, replies: Indices) -> list[Reply]:
    """Returns the most frequent replies; of nearly equal ones, the first."""
    known = replies_of(collection, replies)
    found = list[tuple[int, int]]()
    left = np.ones(len(replies), np.bool_)
    for at, row in enumerate(replies.tolist()):
        if left[at]:
            same = left & known.at(np.array([at])).same(known)[0]
            same[at] = True
            found.append((int(same.sum()), row))
            left &= ~same
    found.sort(key=lambda one: -one[0])
    return [
        Reply(
            collection.ids[row], collection.cores[row], collection.about[row].get("author"),
            collection.about[row].get("time"), count,
        )
        for count, row in found[:_MOST_REPLIES]
    ]  # fmt: skip


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
