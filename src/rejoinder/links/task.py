"""The task `links/ubuntu-irc`: who answers whom in #ubuntu, with and without names in the texts.

Kummerfeld et al. 2019 (P19-1374) annotated the logs. The network of the package reads the encoder's
embeddings, and times, turns and words. The main score is F of links, computed as in their scripts,
which also compare conversations (connected messages).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from threading import Lock

import numpy as np

from rejoinder.datasets.catalogue import missing
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import resampled_interval
from rejoinder.evaluation.metrics import LINKS, Items
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.exports.files import Files, opened
from rejoinder.io.files.hashed import sha256_of_file, sha256_of_folder
from rejoinder.links.linker import Linker
from rejoinder.links.threads import Channel
from rejoinder.measures import unit_rows
from rejoinder.protocols import Embeddings

_WITH, _WITHOUT = "links/ubuntu-irc", "links/ubuntu-irc-nameless"
_SAID = re.compile(r"\[(\d\d):(\d\d)\]  ?(?:<([^>]*)>|\* (\S+)) ?(.*)")
_HALF_DAY = 720
_BACK = 700
"""Above this many minutes of half a day, a line is a little earlier than the line above it."""
Answers = Mapping[int, Sequence[int]]
"""The lines that some messages answer, by line; their own if they begin a conversation."""


@dataclass(frozen=True)
class AnnotatedLog(Channel):
    """The messages of a log without system messages, and what some of them answer."""

    name: str
    lines: list[int]
    """(N,) the line of each message, from 0."""
    answers: Answers
    """By line, including system messages."""

    def predicted(self, parents: Iterable[int]) -> dict[int, list[int]]:
        """Returns answers by line from (N,) messages, -1 for none; others begin conversations."""
        found = {line: [line] for line in self.answers}
        for line, parent in zip(self.lines, parents, strict=True):
            if line in found and parent >= 0:
                found[line] = [self.lines[parent]]
        return found


@dataclass(frozen=True)
class AnnotatedLogs:
    """The logs of one part of the data."""

    logs: Sequence[AnnotatedLog]
    sha256: str


def read_logs(path: Path) -> Iterator[AnnotatedLog]:
    """Yields the logs of one part of the data, files `NAME.raw.txt` and `NAME.annotation.txt`.

    `path` is a folder or an archive.

    Raises:
        DataMissingError: there are none.
    """
    with opened(path) as files:
        names = [name for name in files.names if name.endswith(_ANNOTATION)]
        if not names:
            raise DataMissingError(f"{path} has no annotated logs of irc-disentanglement.")
        for name in names:
            raw = name.removesuffix(_ANNOTATION) + ".raw.txt"
            said, annotated = (_text_of(files, one) for one in (raw, name))
            yield _log(name.rpartition("/")[2].split(".")[0], said, annotated)


_ANNOTATION = ".annotation.txt"


def _text_of(files: Files, name: str) -> str:
    with files.open(name) as file:
        return file.read().decode("utf-8", "replace")


def _log(name: str, raw: str, annotation: str) -> AnnotatedLog:
    answers: dict[int, list[int]] = {}
    for line in annotation.splitlines():
        first, second = map(int, line.split()[:2])
        answers.setdefault(max(first, second), []).append(min(first, second))
    lines, authors, times, texts = list[int](), list[str](), list[float](), list[str]()
    now, before = 0, None
    for number, text in enumerate(raw.split("\n")):
        if said := _SAID.match(text):
            minute = int(said[1]) * 60 + int(said[2])
            since = 0 if before is None else (minute - before) % _HALF_DAY
            now += 0 if since > _BACK else since
            before = minute
            lines.append(number)
            authors.append(said[3] or said[4])
            times.append(60.0 * now)
            texts.append(said[5])
    place = {line: row for row, line in enumerate(lines)}
    labels = {
        place[line]: [place[one] for one in answered if one in place]
        for line, answered in answers.items()
        if line in place
    }
    return AnnotatedLog(authors, times, texts, labels, name, lines, answers)


@dataclass(frozen=True)
class LinkScores:
    """Scores of predicted links, from 0 to 1."""

    precision: float
    recall: float
    f: float
    vi: float
    """1 - variation of information of conversations, divided by the logarithm of messages."""
    one_to_one: float
    """Share of messages in the best assignment of conversations to conversations."""
    exact_f: float
    """F of exactly matching conversations of two or more messages."""


def link_scores(logs: Iterable[tuple[Answers, Answers]]) -> LinkScores:
    """Returns the scores of logs; each log is a pair of annotated and predicted answers.

    >>> gold = {1: [1], 2: [1], 3: [3], 4: [2, 3]}
    >>> scores = link_scores([(gold, {1: [1], 2: [1], 3: [3], 4: [3]})])
    >>> scores.precision, scores.recall, round(scores.f, 3)
    (1.0, 0.8, 0.889)
    """
    links = np.zeros(3)
    whole = np.zeros(3)
    pairs = list[tuple[int, int, int]]()
    for number, (gold, found) in enumerate(logs):
        said, meant = (
            {(line, one) for line, answered in each.items() for one in answered}
            for each in (found, gold)
        )
        links += len(said & meant), len(said), len(meant)
        ours, theirs = _conversations(found), _conversations(gold)
        pairs += [(number, ours[line], theirs[line]) for line in gold]
        first, second = (_members(each) for each in (ours, theirs))
        whole += len(first & second), len(first), len(second)
    precision, recall, f = _scores(*links.tolist())
    return LinkScores(precision, recall, f, *_agreement(pairs), _scores(*whole.tolist())[2])


def _scores(both: float, found: float, wanted: float) -> tuple[float, float, float]:
    return both / max(found, 1), both / max(wanted, 1), 2 * both / max(found + wanted, 1)


def _conversations(answers: Answers) -> dict[int, int]:
    """Returns the first line of each line's conversation, which is all lines that links connect."""
    root: dict[int, int] = {}

    def find(line: int) -> int:
        while (above := root.setdefault(line, line)) != line:
            root[line] = root[above]
            line = root[line]
        return line

    for line, answered in answers.items():
        for one in answered:
            first, second = sorted((find(line), find(one)))
            root[second] = first
    return {line: find(line) for line in answers}


def _members(conversations: dict[int, int]) -> set[frozenset[int]]:
    members: dict[int, set[int]] = {}
    for line, name in conversations.items():
        members.setdefault(name, set()).add(line)
    return {frozenset(one) for one in members.values() if len(one) > 1}


def _agreement(pairs: Sequence[tuple[int, int, int]]) -> tuple[float, float]:
    from scipy.optimize import linear_sum_assignment

    given, total = np.array(pairs, np.int64).reshape(-1, 3), len(pairs)
    rows, columns = (
        np.unique(given[:, [0, side]], axis=0, return_inverse=True)[1].ravel() for side in (1, 2)
    )
    table = np.zeros((rows.max(initial=-1) + 1, columns.max(initial=-1) + 1))
    np.add.at(table, (rows, columns), 1)

    def entropy(counts: np.typing.NDArray[np.float64]) -> float:
        shares = counts[counts > 0] / total
        return float(-(shares * np.log2(shares)).sum())

    distance = 2 * entropy(table) - entropy(table.sum(axis=0)) - entropy(table.sum(axis=1))
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    return 1 - distance / max(log2(max(total, 2)), 1), float(matched / max(total, 1))


class _Both:
    """Both sides of the evaluated encoder."""

    def __init__(self, embedder: Embedder, task: str) -> None:
        self._embedder, self._task, self._lock = embedder, task, Lock()
        self._texts: dict[int, Sequence[str]] = {}

    def encode(self, texts: Sequence[str]) -> Embeddings:
        with self._lock:
            rows = unit_rows(self._embedder.embed(texts, self._task))
            self._texts[id(rows)] = texts
        return rows

    def as_responses(self, rows: Embeddings) -> Embeddings:
        with self._lock:
            texts = self._texts.pop(id(rows))
            found, places = self._embedder.embed_responses(texts, self._task)
        return unit_rows(found)[places]


def _run(embedder: Embedder, context: Context, part: Part, data: AnnotatedLogs) -> Scored:
    task = part[0]
    embedder.prepare(task, [text for log in data.logs for text in log.texts])
    linker = Linker(encoder=_Both(embedder, task), names=task == _WITH)
    ids, right, wanted, found = list[str](), list[float](), list[float](), []
    for log in data.logs:
        links = linker.link(log.texts, log.authors, log.times)
        said = log.predicted(links.parents.tolist())
        found.append((log.answers, said))
        for line, answered in log.answers.items():
            ids.append(f"{log.name}:{line}")
            right.append(float(said[line][0] in answered))
            wanted.append(float(len({*answered})))
    items = Items(ids, np.array(right), np.array(wanted))
    scale = 2 * len(ids) / (len(ids) + sum(wanted))
    told = link_scores(found)
    return Scored(
        main=LINKS.name,
        scores=LINKS.recompute(items),
        items=items,
        intervals={LINKS.name: resampled_interval(items.predictions, context.seed, 100 * scale)},
        data={"name": "irc-disentanglement", "logs": len(data.logs)},
        notes=[
            f"conversations: VI {100 * told.vi:.1f}, one-to-one {100 * told.one_to_one:.1f}, "
            f"exact F {100 * told.exact_f:.1f}",
            "the network of the package, fitted on train, reads the embeddings",
        ],
    )


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder = context.folder(ids[0])
    read: dict[Part, AnnotatedLogs] = {}
    for split in context.splits:
        places = [
            folder / "links" / f"ubuntu_irc_{split}.tar.zst",
            folder / "irc-disentanglement/data" / split,
        ]
        path = next((place for place in places if place.exists()), None)
        if path is None:
            raise missing(
                f"Annotated links of {split}", places,
                "Put github.com/jkkummerfeld/irc-disentanglement (CC BY 4.0) there.",
            )  # fmt: skip
        sha256 = sha256_of_file(path) if path.is_file() else sha256_of_folder(path)
        logs = AnnotatedLogs([*read_logs(path)], sha256)
        read |= {(task, split): logs for task in ids}
    return read


FAMILIES = (Family({_WITH: ("links",), _WITHOUT: ("links",)}, _read, _run),)
