"""CQA: related questions of SemEval 2016 and 2017, task 3, subtask B."""

import io
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.catalogue import find_folder, is_file, read_bytes, refuse_repeats
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import table_rows

_RELEVANT = {"PerfectMatch": True, "Relevant": True, "Irrelevant": False}
_FILES = {
    ("2016", "train-part1"): ("SemEval2016-Task3-CQA-QL-train-part1.xml",) * 2,
    ("2016", "train-part2"): ("SemEval2016-Task3-CQA-QL-train-part2.xml",) * 2,
    ("2016", "dev"): ("SemEval2016-Task3-CQA-QL-dev.xml", "SemEval2016-Task3-CQA-QL-dev.xml"),
    ("2016", "test"): (
        "SemEval2016-Task3-CQA-QL-test-input.xml",
        "SemEval2016-Task3-CQA-QL-test.xml",
    ),
    ("2017", "test"): (
        "SemEval2017-task3-English-test-input.xml",
        "SemEval2017-Task3-CQA-QL-test.xml",
    ),
}
"""The file of questions and the stem of the gold `….subtaskB.relevancy`, by year and split."""
_FOLDERS = ("cqa", "cqa/subtaskB_only", "CQA", "")


@dataclass(frozen=True)
class Question:
    """A question: a subject, and a body that may be empty."""

    id: str
    subject: str
    body: str
    comments: list[str] = field(default_factory=list)
    """What was answered in its thread, where the file tells."""

    def text(self, part: str = "both") -> str:
        """Returns the `subject`, the `body`, or `both` with a space between them."""
        texts = {"subject": self.subject, "body": self.body}
        return " ".join(text for name, text in texts.items() if text and part in (name, "both"))


@dataclass(frozen=True)
class RelatedQuestions:
    """An original question, and the questions that a search engine returned for it."""

    original: Question
    related: list[Question]
    """N questions."""
    ranks: NDArray[np.int64]
    """(N,) int64, the ranks of the search engine, from 1."""
    relevant: NDArray[np.bool_]
    """(N,) bool, true for the labels PerfectMatch and Relevant."""


@dataclass(frozen=True)
class QuestionSet:
    """All original questions of a split, with their related questions."""

    year: str
    split: str
    queries: list[RelatedQuestions]
    sha256: str

    def __len__(self) -> int:
        return len(self.queries)


def read_cqa(data: Path, year: str, split: str) -> QuestionSet:
    """Reads the questions of a year and split, with gold from the XML or a file.

    There are 2016 train-part1, train-part2, dev and test, and 2017 test.

    Raises:
        InputError: a file is missing, the XML is damaged, or a question has no judgement.
    """
    questions, stem = _FILES[year, split]
    path = find_folder(data, _FOLDERS, questions, f"CQA {year} {split}") / questions
    content = read_bytes(path)
    places = (data / folder / f"{stem}.subtaskB.relevancy" for folder in _FOLDERS)
    gold_path = next(filter(is_file, places), None)
    gold_content = read_bytes(gold_path) if gold_path else b""
    gold = parse_relevancy(gold_content, gold_path) if gold_path else {}
    queries = parse_cqa(content, path, gold)
    return QuestionSet(year, split, queries, sha256_of(content, gold_content))


def parse_cqa(
    content: bytes, path: Path, gold: Mapping[str, bool] | None
) -> list[RelatedQuestions]:
    """Parses the queries of a file. `gold` judges questions by id where the XML does not.

    Without `gold`, questions that the XML does not judge count as irrelevant.
    """
    queries: dict[str, tuple[Question, list[tuple[Question, int, bool]]]] = {}
    ids: set[str] = set()
    try:
        for _, element in ET.iterparse(io.BytesIO(content)):  # noqa: S314 -- expat refuses bombs
            if element.tag != "OrgQuestion":
                continue
            original = _question(element, "ORGQ_ID", "OrgQSubject", "OrgQBody")
            _, found = queries.setdefault(original.id, (original, []))
            for related in element.iter():
                if related.tag == "RelComment" and found:
                    found[-1][0].comments.append(_text(related, "RelCText"))
                if related.tag != "RelQuestion":
                    continue
                question = _question(related, "RELQ_ID", "RelQSubject", "RelQBody")
                where = f"{path}: question {question.id}"
                if question.id in ids:
                    raise InputError(f"{where} occurs twice; remove one.")
                ids.add(question.id)
                rank = related.get("RELQ_RANKING_ORDER", "0")
                if not (rank.isdecimal() and len(rank) < 7):
                    raise InputError(
                        f"{where} has RELQ_RANKING_ORDER {rank[:20]!r}; expected a number."
                    )
                label = related.get("RELQ_RELEVANCE2ORGQ", "?")
                found.append((question, int(rank), _judged(question.id, label, gold, where)))
            element.clear()
    except InputError:
        raise
    except (ET.ParseError, ValueError, LookupError) as error:  # encodings that expat lacks
        raise InputError(f"{path} is damaged or not XML: {error}.") from None
    if not ids:
        raise InputError(f"{path} has no OrgQuestion with a RelQuestion.")
    if unknown := sorted((gold or {}).keys() - ids):
        raise InputError(
            f"{path} lacks {len(unknown)} questions of its .subtaskB.relevancy file, the first "
            f"{unknown[0]!r}; use two files of the same release."
        )
    return [
        RelatedQuestions(
            original,
            [question for question, _, _ in found],
            np.array([rank for _, rank, _ in found]),
            np.array([relevant for _, _, relevant in found]),
        )
        for original, found in queries.values()
        if found
    ]


def _judged(name: str, label: str, gold: Mapping[str, bool] | None, where: str) -> bool:
    """Returns whether a question is relevant. The gold file and the XML must not differ."""
    own = _RELEVANT.get(label)
    if gold is None:
        return bool(own)
    relevant = gold.get(name, own)
    if relevant is None:
        raise InputError(
            f"{where} has the label {label!r} and no line in a .subtaskB.relevancy file; put that "
            "file next to the XML."
        )
    if own is not None and own != relevant:
        raise InputError(
            f"{where} has the label {label!r}, but the .subtaskB.relevancy file says "
            f"{str(relevant).lower()}; use two files of the same release."
        )
    return relevant


def _question(element: ET.Element, id_name: str, subject: str, body: str) -> Question:
    return Question(element.get(id_name, ""), _text(element, subject), _text(element, body))


def _text(element: ET.Element, name: str) -> str:
    return " ".join((element.findtext(name) or "").split())


def parse_relevancy(content: bytes, path: Path) -> dict[str, bool]:
    """Parses query, question, rank, score and judgement; returns the judgements by question."""
    rows = list(table_rows(content, path, (5,)))
    refuse_repeats([row[1] for row in rows], [row.line for row in rows], path)
    return {row[1]: row.one_of(4, ("true", "false")) == "true" for row in rows}
