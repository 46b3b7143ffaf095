"""Reads pairs of SemEval: sentences with a score (STS, SemRel), and related questions (CQA).

The STS Benchmark is Cer et al. 2017; the years 2012 to 2016 are tasks, by subset, and 2017 has
seven tracks in four languages. CQA is task 3, subtask B, of 2016 and 2017. SemRel is task 1 of
2024 (Ousidhoum et al. 2024). AskUbuntu (Lei et al. 2016) is questions with 20 candidates each.
"""

import io
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets import catalogue
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import blake2b_number, sha256_of
from rejoinder.io.formats.text_lines import Row, csv_rows, decoded_lines, table_rows

Graded = tuple[str, str, float]
"""Two sentences and a score."""
ROWS = {"train": 5_749, "dev": 1_500, "test": 1_379}
"""Number of pairs of the benchmark as published, by split."""
YEARS = range(12, 17)
"""SMT of 2013 is missing because only the LDC distributes its sentences."""

_FOLDERS = (
    "raw/STSBenchmark",
    "stsbenchmark",
    "",
    "senteval/downstream/STS/STSBenchmark",
    "downstream/STS/STSBenchmark",
    "STS/STSBenchmark",
)
_COLUMNS = (7, 9)
"""Allowed numbers of columns: genre, file, year, id, score, and two sentences; some rows also name
the sources of both sentences."""
_JUDGED_IN_PART = ("track6",)
"""Files in which only the first pairs have gold."""


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences with a gold score."""

    split: str
    form: str
    """`official` as published, or `senteval`: tokenised and lower-cased."""
    first: list[str]
    second: list[str]
    gold: NDArray[np.float64]
    """(N,) float64, from 0 (unrelated) to 5 (same meaning)."""
    genres: list[str]
    """The genre of each pair: main-captions, main-forums or main-news in the benchmark, otherwise
    the subset or track."""
    sha256: str
    ids: list[str]
    """A stable name for each pair: the line, after the subset if there are several."""
    sources: list[str]
    """The source of the texts of each pair, such as MSRpar or images, the same in all years."""

    def __len__(self) -> int:
        return len(self.gold)

    def at(self, rows: Sequence[int]) -> Self:
        """Returns the pairs with the given row numbers."""
        names = ("first", "second", "genres", "ids", "sources")
        columns: Any = {name: [getattr(self, name)[row] for row in rows] for name in names}
        return replace(self, gold=self.gold[list(rows)], **columns)


def read_stsb(data: Path, split: str, form: str | None = None) -> GradedPairs:
    """Reads a split of the STS Benchmark: train, dev or test.

    `data` is a folder of data sets, or the folder of the benchmark itself. `form` is `official` or
    `senteval`. None means any, official first.

    Raises:
        InputError: the file is missing, or a row is invalid.
    """
    if split not in ROWS:
        raise InputError(f"the STS Benchmark has no split {split!r}; it has {', '.join(ROWS)}.")
    paths = [data / folder / f"sts-{split}.csv" for folder in _FOLDERS]
    for path in filter(catalogue.existing, paths):
        pairs = _read(path, split)
        # SentEval's folder may hold either form, because `rejoinder data add` never tokenises
        if form in (None, pairs.form):
            return pairs
    hint = "It is Stsbenchmark.tar.gz of the STS wiki (scores CC BY-SA 4.0)."
    raise catalogue.missing(f"the STS Benchmark ({form or 'any form'})", paths, hint)


def _read(path: Path, split: str) -> GradedPairs:
    content = catalogue.read_bytes(path)
    rows = parse_stsb(content, path)
    if len(rows) != ROWS[split]:
        wanted = f"the {split} split has {ROWS[split]}"
        raise InputError(f"{path} has {len(rows)} pairs; {wanted}. Get it again.")
    genres = ["main-forums" if row[0] == "main-forum" else row[0] for row, _ in rows]
    ids = [f"{split}:{row.line}" for row, _ in rows]
    pairs = [(row[5], row[6], gold) for row, gold in rows]
    sources = [row[1] for row, _ in rows]
    return graded_pairs(split, pairs, genres, ids, sha256_of(content), sources)


def parse_stsb(content: bytes, path: Path) -> list[tuple[Row, float]]:
    """Parses a file of the benchmark: rows with the sentences in fields 5 and 6, and scores."""
    rows = [(row, row.score(4, 0, 5)) for row in table_rows(content, path, _COLUMNS)]
    ids = [" ".join(row.fields[:4]) for row, _ in rows]
    catalogue.refuse_repeats(ids, [row.line for row, _ in rows], path)
    return rows


def read_sts_year(data: Path, year: int, form: str | None = None) -> GradedPairs:
    """Reads a year of STS, 12 to 16. Its subsets are the genres.

    `form` is `official` or `senteval` (tokenised, lower-cased). None means any, official first.
    Pairs without a judgement (a blank line of gold) are left out.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    inner, also = f"STS/STS{year}-en-test", catalogue.catalogue().sets[f"sts{year}"].also
    inners = [*also, f"raw/{inner}", f"senteval/downstream/{inner}", f"data/downstream/{inner}",
              f"downstream/{inner}", inner]  # fmt: skip
    folders = [data / inner for inner in inners]
    for folder in filter(Path.is_dir, folders):
        pairs = _read_subsets(f"sts{year}", folder, [""])
        if form in (None, pairs.form):
            return pairs
    raise catalogue.missing(f"STS{year} ({form or 'any form'})", folders)


def read_sts_2017(data: Path) -> GradedPairs:
    """Reads all tracks of STS 2017, with 250 pairs each. The track is the genre.

    In track 6 only the first 250 pairs were judged. The others are left out.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    pairs = _read_subsets("sts17", data, ["sts2017", "STS/STS17-test", ""])
    return replace(pairs, form="official")


def subset_files(set_id: str) -> dict[str, tuple[catalogue.DataFile, catalogue.DataFile]]:
    """Returns the files of pairs and gold of each subset, `surprise.OnWN`, or track, `track5`."""
    files, found = catalogue.catalogue().sets[set_id].files, {}
    for pairs, gold in zip(files[::2], files[1::2], strict=True):
        name = pairs.name.removeprefix("STS.input.").removesuffix(".txt")
        found[name.partition(".")[0] if set_id == "sts17" else name] = pairs, gold
    return found


def _read_subsets(set_id: str, data: Path, folders: Sequence[str]) -> GradedPairs:
    """Reads the pairs and the gold of each subset."""
    pairs, genres, ids, contents = [], [], [], []
    title = catalogue.catalogue().sets[set_id].name
    for subset, both in subset_files(set_id).items():
        inputs, scores = (catalogue.find_file(data, folders, one.all_names, title) for one in both)
        contents += [catalogue.read_bytes(inputs), catalogue.read_bytes(scores)]
        rows, judged = parse_inputs(contents[-2], inputs), parse_scores(contents[-1], scores)
        if subset in _JUDGED_IN_PART:
            rows = rows[: len(judged)]
        if len(rows) != len(judged):
            counts = f"{len(rows)} pairs and {scores.name} {len(judged)} lines"
            raise InputError(f"{inputs} has {counts}; expected a line, perhaps blank, per pair.")
        for number, (row, gold) in enumerate(zip(rows, judged, strict=True), 1):
            if gold is not None:
                pairs.append((row[0].strip(), row[1].strip(), gold))
                genres.append(subset)
                ids.append(f"{subset}:{number}")
    if not pairs:
        raise InputError(f"{inputs.parent} has no pair of {title} with a score.")
    sources = [genre.removeprefix("surprise.") for genre in genres]
    return graded_pairs("test", pairs, genres, ids, sha256_of(*contents), sources)


def parse_inputs(content: bytes, path: Path) -> list[Row]:
    """Parses the pairs of a subset: two sentences, and in some years more columns."""
    rows = list(table_rows(content, path))
    for row in rows:
        if not all(field.strip() for field in (*row.fields, "")[:2]):
            row.refuse("expected two sentences separated by a tab.")
    return rows


def parse_scores(content: bytes, path: Path) -> list[float | None]:
    """Parses the scores of a subset, one per line. A blank line means not judged: None."""
    return [
        Row([line], number, path).score(0, 0, 5) if line.strip() else None
        for number, line in enumerate(decoded_lines(content, path), 1)
    ]


def graded_pairs(
    split: str,
    pairs: Sequence[Graded],
    genres: list[str],
    ids: list[str],
    sha256: str,
    sources: list[str],
) -> GradedPairs:
    """Returns pairs of two sentences and a score."""
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    # SentEval's download script leaves all text in lower case
    form = "senteval" if all(text == text.lower() for text in first) else "official"
    gold = np.array([pair[2] for pair in pairs])
    return GradedPairs(split, form, first, second, gold, genres, sha256, ids, sources)


def pair_keys(first: Sequence[str], second: Sequence[str]) -> NDArray[np.uint64]:
    """Returns (N,) uint64 keys of pairs, equal for all spellings and both orders of a pair.

    Only letters and digits count, after NFKC and case folding. A set and its tokenised form, where
    quotes and spaces differ, therefore have the same keys. A key is an 8-byte BLAKE2b hash.

    >>> first, second = pair_keys(["It's red.", "No!"], ["no", "it 's RED"]).tolist()
    >>> first == second
    True
    """
    keys = np.empty(len(first), np.uint64)
    for row, pair in enumerate(zip(first, second, strict=True)):
        joined = "\n".join(sorted(map(_letters, pair))).encode("utf-8", "replace")
        keys[row] = blake2b_number(joined)
    return keys


def _letters(sentence: str) -> str:
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return "".join(filter(str.isalnum, folded))


def without_repeats(pairs: GradedPairs, known: set[frozenset[str]]) -> GradedPairs:
    """Returns the pairs of a split without duplicates, in either order of the two texts.

    Pairs in `known` are left out too. Kept pairs are added to it, so that train, dev and test can
    be handled in turn.
    """
    kept = []
    for index, pair in enumerate(zip(pairs.first, pairs.second, strict=True)):
        texts = frozenset(pair)
        if texts not in known:
            known.add(texts)
            kept.append(index)
    return pairs.at(kept)


def without_repeated(splits: Mapping[str, GradedPairs]) -> dict[str, GradedPairs]:
    """Returns splits without any copy of a pair that occurs more than once, in either order.

    This is STSBenchmark.v2 of MTEB. `without_repeats` keeps the first copy instead.
    """
    keys = {
        split: [frozenset(pair) for pair in zip(pairs.first, pairs.second, strict=True)]
        for split, pairs in splits.items()
    }
    times = Counter(key for each in keys.values() for key in each)
    return {
        split: pairs.at([row for row, key in enumerate(keys[split]) if times[key] == 1])
        for split, pairs in splits.items()
    }


SEMREL = {"en": "eng", "es": "esp", "ar": "arb"}
"""Languages of SemRel 2024 to score, and their codes in file names."""


def read_semrel(data: Path, language: str, split: str) -> GradedPairs:
    """Reads a split of SemRel 2024, dev or test: relatedness from 0 to 1.

    `language` is one of `SEMREL`. The official CSV file is read, or else JSON lines.

    Raises:
        DataMissingError: the split is missing.
        InputError: a line is invalid.
    """
    code = SEMREL[language]
    official = data / "semrel" / f"{code}_{split}_with_labels.csv"
    lines = data / "graded" / f"semrel2024_{'en' if language == 'en' else 'es_ar'}.jsonl"
    path = next(filter(catalogue.existing, (official, lines)), lines)
    content = catalogue.read_bytes(path) if catalogue.existing(path) else b""
    if path == official:
        pairs = parse_semrel(content, path)
    else:
        pairs = list(_semrel_lines(content, path, (language, code), split))
    if not pairs:
        title = f"The {split} split of SemRel in {language!r}"
        hint = catalogue.hint_for(f"semrel-{language}")
        raise catalogue.missing(title, [official, lines], hint)
    return _as_published(f"semrel-{language}", split, pairs, content)


def _as_published(name: str, split: str, pairs: Sequence[Graded], content: bytes) -> GradedPairs:
    names = [name] * len(pairs)
    ids = [f"{split}:{row}" for row in range(len(pairs))]
    found = graded_pairs(split, pairs, names, ids, sha256_of(content), names)
    return replace(found, form="official")


SCORED = {"biosses": (0.0, 4.0), "sts22": (1.0, 4.0)}
"""Sets in MTEB's form, with their scores of the least and the most similar pairs. The original file
of SemEval 2022 uses the opposite direction."""


def read_scored(data: Path, name: str) -> GradedPairs:
    """Reads a set of `SCORED`, test only: sentence1, sentence2 and score in each line.

    Raises:
        DataMissingError: the file is missing.
        InputError: a line is invalid.
    """
    files, hint = ["test.jsonl", "test.jsonl.gz"], catalogue.hint_for(name)
    path = catalogue.find_file(data, [name], files, f"The set {name}", hint)
    content = catalogue.read_bytes(path)
    return _as_published(name, "test", parse_scored(content, path, *SCORED[name]), content)


def parse_scored(content: bytes, path: Path, low: float = 0, high: float = 5) -> list[Graded]:
    """Parses two sentences and their score in each line of JSON."""
    rows = _json_columns(content, path, ("sentence1", "sentence2", "score"))
    return [
        (first, second, Row([score], line, path).score(0, low, high))
        for line, (first, second, score) in enumerate(rows, 1)
    ]


def _json_columns(content: bytes, path: Path, names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    from rejoinder.io.formats.json_lines import FieldType, json_rows  # needs Polars

    types: dict[str, FieldType] = dict.fromkeys(names, "label")
    return json_rows(content, path, types).rows()


def parse_semrel(content: bytes, path: Path) -> list[Graded]:
    """Parses the pairs of a CSV file of SemRel, with their scores."""
    pairs = []
    for row in csv_rows(content, path):
        if len(row.fields) != 3 or "\n" not in row[1]:
            row.refuse("expected an id, two sentences on two lines in quotes, and a score.")
        first, second = map(str.strip, row[1].split("\n")[:2])
        pairs.append((first, second, row.score(2, 0, 1)))
    return pairs


def _semrel_lines(
    content: bytes, path: Path, languages: Sequence[str], split: str
) -> Iterator[Graded]:
    names = ("sentence1", "sentence2", "score", "lang", "split")
    for line, (*texts, score, language, of) in enumerate(_json_columns(content, path, names), 1):
        if language in languages and of == split:
            yield texts[0], texts[1], Row([score], line, path).score(0, 0, 1)


_RELEVANT = {"PerfectMatch": True, "Relevant": True, "Irrelevant": False}
_CQA_INPUTS = {
    ("2016", "test"): "SemEval2016-Task3-CQA-QL-test-input.xml",
    ("2017", "test"): "SemEval2017-task3-English-test-input.xml",
}
"""Files of questions with other names than their gold, by year and split."""
_CQA_FOLDERS = ("cqa", "cqa/subtaskB_only", "CQA", "")


@dataclass(frozen=True)
class Question:
    """A question: a subject, and a body that may be empty."""

    id: str
    subject: str
    body: str
    comments: list[str] = field(default_factory=list)
    """The answers in its thread, if the file has them."""

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
    stem = f"SemEval{year}-Task3-CQA-QL-{split}.xml"
    questions = _CQA_INPUTS.get((year, split), stem)
    path = catalogue.find_file(data, _CQA_FOLDERS, [questions], f"CQA {year} {split}")
    content = catalogue.read_bytes(path)
    places = (data / folder / f"{stem}.subtaskB.relevancy" for folder in _CQA_FOLDERS)
    gold_path = next(filter(catalogue.is_file, places), None)
    gold_content = catalogue.read_bytes(gold_path) if gold_path else b""
    gold = parse_relevancy(gold_content, gold_path) if gold_path else {}
    queries = parse_cqa(content, path, gold)
    return QuestionSet(year, split, queries, sha256_of(content, gold_content))


def parse_cqa(
    content: bytes, path: Path, gold: Mapping[str, bool] | None
) -> list[RelatedQuestions]:
    """Parses the queries of a file. `gold` has judgements by id that the XML lacks.

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
                    raise InputError(f"{where}: RELQ_RANKING_ORDER {rank[:20]!r} is not a number.")
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
        lacking = f"{len(unknown)} questions of its .subtaskB.relevancy file, as {unknown[0]!r}"
        raise InputError(f"{path} lacks {lacking}; use two files of the same release.")
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
    """Whether a question is relevant. The gold file and the XML must agree."""
    own = _RELEVANT.get(label)
    if gold is None:
        return bool(own)
    relevant = gold.get(name, own)
    if relevant is None:
        raise InputError(f"{where} is {label!r} and not in a .subtaskB.relevancy file by the XML.")
    if own is not None and own != relevant:
        said = f"the .subtaskB.relevancy file says {str(relevant).lower()}"
        raise InputError(f"{where} is {label!r}, but {said}; use files of the same release.")
    return relevant


def _question(element: ET.Element, id_name: str, subject: str, body: str) -> Question:
    return Question(element.get(id_name, ""), _text(element, subject), _text(element, body))


def _text(element: ET.Element, name: str) -> str:
    return " ".join((element.findtext(name) or "").split())


def parse_relevancy(content: bytes, path: Path) -> dict[str, bool]:
    """Parses query, question, rank, score and judgement; returns the judgements by question."""
    rows = list(table_rows(content, path, (5,)))
    catalogue.refuse_repeats([row[1] for row in rows], [row.line for row in rows], path)
    return {row[1]: row.one_of(4, ("true", "false")) == "true" for row in rows}


def read_askubuntu(data: Path, split: str) -> QuestionSet:
    """Reads AskUbuntu's dev or test questions that have a similar question, with 20 candidates.

    Raises:
        DataMissingError: a file is missing.
        InputError: a line is invalid, or a question is not in the file of texts.
    """
    hint = catalogue.hint_for("askubuntu")
    lists, texts = (
        catalogue.find_file(data, ["askubuntu"], names, "AskUbuntu", hint)
        for names in ([f"{split}.txt"], ["text_tokenized.txt.gz", "text_tokenized.txt"])
    )
    contents = catalogue.read_bytes(lists), catalogue.read_bytes(texts)
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
