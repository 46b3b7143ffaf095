"""Questions, tweets and intents, as their authors publish them.

AskUbuntu (Lei et al. 2016) is questions with 20 candidates each. Pairs: Twitter URL (Lan et al.
2017), and duplicate questions of Sprint (Shah et al. 2018) in the file of MTEB. Intents: Banking77
(Casanueva et al. 2020) and CLINC150 (Larson et al. 2019).
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.catalogue import existing, missing, read_bytes
from rejoinder.datasets.labelled import Labelled, LabelledSet
from rejoinder.datasets.semeval import Question, QuestionSet, RelatedQuestions
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import decoded, sha256_of
from rejoinder.io.formats.text_lines import Row, separated_rows, table_rows

PAIRS = {
    "twitter-url": (
        ("twitter-url/Twitter_URL_Corpus_test.txt", "paraphrases/twitter_url_labelled.jsonl"),
        "Put Twitter_URL_Corpus_test.txt of github.com/lanwuwei/Twitter-URL-Corpus there.",
    ),
    "sprint": (
        ("sprint/test.jsonl", "sprint/test.jsonl.gz"),
        "Put test.jsonl.gz of mteb/sprintduplicatequestions-pairclassification there.",
    ),
}
"""The files of pairs with a class, of which the first is read, and where to get them."""
INTENTS = {
    "banking77": (
        {"train": "train.csv", "test": "test.csv"},
        "Put banking_data/*.csv of github.com/PolyAI-LDN/task-specific-datasets there (CC BY 4.0).",
    ),
    "clinc150": (
        dict.fromkeys(("train", "val", "test"), "data_full.json"),
        "Put data/data_full.json of github.com/clinc/oos-eval there (CC BY 3.0).",
    ),
}
"""The file of each split, in a folder of the name of the set, and where to get them."""
_RATED = re.compile(r"\((\d), 6\)")
"""How many of six people found that two tweets say the same."""


_FIELDS = {"sentence1": "sent1", "sentence2": "sent2", "label": "labels"}
"""The fields of a pair, and their names in the older files of MTEB."""


@dataclass(frozen=True)
class ClassedPairs:
    """Pairs of texts, and (N,) bool whether they mean the same."""

    first: list[str]
    second: list[str]
    same: NDArray[np.bool_]
    sha256: str


def _found(data: Path, names: Sequence[str], title: str, hint: str) -> Path:
    """Returns the first of some files that exists."""
    paths = [data / name for name in names]
    if (path := next(filter(existing, paths), None)) is None:
        raise missing(title, paths, hint)
    return path


def read_pairs(data: Path, name: str) -> ClassedPairs:
    """Reads the test pairs of a set of `PAIRS`.

    Pairs of tweets that three of six people found the same are left out.

    Raises:
        DataMissingError: the file is not there.
        InputError: a line is invalid, or all pairs are of one class.
    """
    names, hint = PAIRS[name]
    path = _found(data, names, f"The set {name}", hint)
    content = read_bytes(path)
    rows = list(_rated(content, path) if path.suffix == ".txt" else _json_pairs(content, path))
    same = np.array([label for *_, label in rows], bool)
    if len(set(same.tolist())) != 2:
        raise InputError(f"{path} has no pairs of both classes; get it again. {hint}")
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    return ClassedPairs(first, second, same, sha256_of(content))


def _rated(content: bytes, path: Path) -> Iterator[tuple[str, str, bool]]:
    for row in table_rows(content, path, (3, 4)):
        rating = _RATED.fullmatch(row[2].strip())
        if rating is None:
            row.refuse(f"found {row[2][:20]!r}; expected a rating such as (4, 6).")
        if rating[1] != "3":
            yield row[0], row[1], int(rating[1]) > 3


def _json_pairs(content: bytes, path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yields the pairs of lines; a line holds a pair, or lists of texts and labels."""
    for number, line in enumerate(content.splitlines(), 1):
        try:
            values = decoded(dict[str, Any], json.loads(line))
            columns = [
                values[name] if name in values else values[other] for name, other in _FIELDS.items()
            ]
            columns = columns if isinstance(columns[0], list) else [[value] for value in columns]
            for first, second, label in zip(*columns, strict=True):
                if values.get("split", "test") == "test":
                    yield decoded(str, first), decoded(str, second), decoded(int, label) == 1
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path} line {number}: expected sentence1, sentence2 and label ({error})."
            ) from None


def read_intents(data: Path, name: str) -> LabelledSet:
    """Reads a set of `INTENTS`, without questions that have no intent.

    Raises:
        DataMissingError: a file is not there.
        InputError: a file is damaged, or has an intent that train lacks.
    """
    files, hint = INTENTS[name]
    rows, contents = {}, {}
    for split, file in files.items():
        path = _found(data, [f"{name}/{file}"], f"The set {name}", hint)
        contents[path] = read_bytes(path)
        parse = _csv_intents if path.suffix == ".csv" else _json_intents
        rows[split] = parse(contents[path], path, split)
    index = {intent: row for row, intent in enumerate(sorted({row[1] for row in rows["train"]}))}
    if unknown := {intent for own in rows.values() for _, intent in own} - index.keys():
        raise InputError(f"{data / name}: train has no question of the intent {min(unknown)!r}.")
    splits = {
        split: Labelled([text for text, _ in own], np.array([index[intent] for _, intent in own]))
        for split, own in rows.items()
    }
    return LabelledSet(name, splits, sha256_of(*contents.values()))


def _csv_intents(content: bytes, path: Path, _split: str) -> list[list[str]]:
    rows = [
        Row(fields, number, path)
        for number, fields in islice(separated_rows(iter([content]), ",", str(path)), 1, None)
    ]
    for row in rows:
        if len(row.fields) != 2:
            row.refuse(f"expected two fields, a question and its intent; found {len(row.fields)}.")
    return [row.fields for row in rows]


def _json_intents(content: bytes, path: Path, split: str) -> list[list[str]]:
    try:
        return decoded(dict[str, list[list[str]]], json.loads(content))[split]
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(
            f"{path} is not the file of CLINC150, lists of questions and intents: {error}."
        ) from None


def read_askubuntu(data: Path, split: str) -> QuestionSet:
    """Reads the questions of AskUbuntu's dev or test that have a similar one, with 20 candidates.

    Raises:
        DataMissingError: a file is not there.
        InputError: a line is invalid, or a question is not in the file of texts.
    """
    hint = "Put it there from github.com/taolei87/askubuntu."
    lists = _found(data, [f"askubuntu/{split}.txt"], "AskUbuntu", hint)
    names = ["askubuntu/text_tokenized.txt.gz", "askubuntu/text_tokenized.txt"]
    texts = _found(data, names, "AskUbuntu", hint)
    contents = read_bytes(lists), read_bytes(texts)
    rows = [row for row in table_rows(contents[0], lists, (3, 4)) if row[1].strip()]
    wanted = {name for row in rows for name in (row[0], *row[2].split())}
    known = {
        row[0]: Question(row[0], row[1], "".join(row.fields[2:]))
        for row in table_rows(contents[1], texts, (2, 3))
        if row[0] in wanted
    }
    queries = []
    for row in rows:
        names, similar = row[2].split(), set(row[1].split())
        if absent := [name for name in (row[0], *names) if name not in known]:
            row.refuse(f"{texts.name} lacks the question {absent[0]!r}.")
        queries.append(
            RelatedQuestions(
                known[row[0]],
                [known[name] for name in names],
                np.arange(1, len(names) + 1),
                np.array([name in similar for name in names]),
            )
        )
    return QuestionSet("askubuntu", split, queries, sha256_of(*contents))
