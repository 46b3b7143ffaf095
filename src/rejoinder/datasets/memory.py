"""Reads long conversations and questions about them: LoCoMo and REALTALK, as published.

LoCoMo is by Maharana et al. 2024, REALTALK by Lee et al. 2025.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.datasets.catalogue import is_file, missing, read_bytes
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import decoded, sha256_of

SOURCES = {
    "locomo": "Put data/locomo10.json of github.com/snap-research/locomo there (CC BY-NC 4.0)",
    "realtalk": "Put data/*.json of github.com/danny911kr/REALTALK there (no licence stated)",
}
"""The files to put in the folder, for each set."""
_SESSION = re.compile(r"session_\d+")
_ID = re.compile(r"D\s*+(\d++)\s*+:\s*+(\d++)")
"""The id of a turn in the evidence of a question: `D8:6`, also as `D8: 06`."""
_TIMES = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S")


@dataclass(frozen=True)
class Turn:
    """A message of a conversation."""

    id: str
    author: str
    time: float
    """Seconds since 1970. Turns that have only their session's time are a second apart."""
    text: str
    """Includes the caption of its picture."""

    @property
    def dated(self) -> str:
        """The text with its date and author in front, as LMEB gives it to encoders."""
        return f"{datetime.fromtimestamp(self.time, UTC):%d %B %Y} {self.author}: {self.text}"


@dataclass(frozen=True)
class Question:
    """A question, its kind, and the ids of the turns that answer it."""

    text: str
    kind: str
    answers: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """Turns, and questions about them."""

    turns: Sequence[Turn]
    questions: Sequence[Question]


@dataclass(frozen=True)
class Conversations:
    """The conversations of a set."""

    name: str
    all: Sequence[Conversation]
    sha256: str


class _Turn(msgspec.Struct):
    dia_id: str
    speaker: str
    text: str | None = None
    clean_text: str | None = None
    blip_caption: str | None = None
    date_time: str | None = None


class _Question(msgspec.Struct):
    question: str
    category: int | str
    evidence: Any = ()


def read_conversations(data: Path, name: str) -> Conversations:
    """Reads the JSON files of `locomo` or `realtalk` in `data` or its folder `memory`.

    A file has a conversation or a list of them. Questions without an existing turn are left out.

    Raises:
        DataMissingError: there is no file.
        InputError: a file is damaged, or no question is left.
    """
    folders = [data / "memory" / name, data / name]
    found = (sorted(filter(is_file, folder.glob("*.json*"))) for folder in folders)
    paths = next(filter(None, found), None)
    if paths is None:
        tried = [folder / "*.json" for folder in folders]
        raise missing(f"The set {name}", tried, f"{SOURCES[name]}.")
    contents = [read_bytes(path) for path in paths]
    talks = list(chain(*map(parse_conversations, contents, paths)))
    if not any(talk.questions for talk in talks):
        raise InputError(f"{paths[0].parent} has no question whose turn exists. Get it again.")
    return Conversations(name, talks, sha256_of(*contents))


def parse_conversations(content: bytes, path: Path) -> list[Conversation]:
    """Parses a file."""
    try:
        tree = json.loads(content)
        return [_conversation(each) for each in (tree if isinstance(tree, list) else [tree])]
    except (ValueError, RecursionError) as error:
        what = "a conversation with questions (session_1, qa)"
        raise InputError(f"{path} is not {what}: {error}. Get it again.") from None


def _conversation(tree: object) -> Conversation:
    whole = decoded(dict[str, Any], tree)
    talk = decoded(dict[str, Any], whole.get("conversation", whole))
    sessions = sorted(filter(_SESSION.fullmatch, talk), key=lambda name: int(name[8:]))
    turns = [turn for name in sessions for turn in _turns(talk, name)]
    known = {turn.id for turn in turns}
    questions = []
    for asked in decoded(list[_Question], whole.get("qa")):
        # evidence is a list of ids, an id, or several in a string: "D8:6; D9:17"
        ids = _ID.findall(json.dumps(asked.evidence))
        pairs = ((one.lstrip("0"), two.lstrip("0")) for one, two in ids)
        if answers := known.intersection(f"D{one}:{two}" for one, two in pairs):
            questions.append(Question(asked.question, str(asked.category), frozenset(answers)))
    return Conversation(turns, questions)


def _turns(talk: dict[str, Any], session: str) -> list[Turn]:
    turns = []
    for number, said in enumerate(decoded(list[_Turn], talk[session])):
        when = _seconds(said.date_time or str(talk.get(f"{session}_date_time")))
        text = " ".join(filter(None, [said.clean_text or said.text, said.blip_caption]))
        turns.append(Turn(said.dia_id, said.speaker, when + number, text))
    return turns


def _seconds(when: str) -> float:
    for form in _TIMES:
        try:
            return datetime.strptime(when, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise ValueError(f"{when[:40]!r} is not a time")
