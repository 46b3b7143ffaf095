"""SemEval STS 2012 to 2016 (English) and 2017 (seven tracks): graded pairs by subset."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rejoinder.datasets.files import (
    find_folder,
    is_file,
    number_of,
    read_bytes,
)
from rejoinder.datasets.sts import GradedPairs, is_tokenised
from rejoinder.errors import DataMissingError, InputError
from rejoinder.files.hashed import sha256_of
from rejoinder.formats.tables import text_lines

SUBSETS = {
    12: ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    13: ("FNWN", "headlines", "OnWN"),
    14: ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    15: ("answers-forums", "answers-students", "belief", "headlines", "images"),
    16: ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
"""The subsets by year. SMT of 2013 is missing because only the LDC distributes its sentences."""
TRACKS = {
    "1": "track1.ar-ar",
    "2": "track2.ar-en",
    "3": "track3.es-es",
    "4a": "track4a.es-en",
    "4b": "track4b.es-en",
    "5": "track5.en-en",
    "6": "track6.tr-en",
}
_JUDGED_IN_PART = ("track6",)
"""Of these only the first pairs have gold."""
_RAW = {12: "test-gold", 13: "test-gs", 14: "sts-en-test-gs-2014", 15: "test_evaluation_task2a",
        16: "sts2016-english-with-gs-v1.0"}  # fmt: skip


def read_sts_year(data: Path, year: int, form: str | None = None) -> GradedPairs:
    """Reads a year of STS. Its subsets are the genres.

    Pairs that were not judged (a blank line of gold) are left out.

    Args:
        data: a folder of data sets.
        year: 12 to 16.
        form: `official` or `senteval` (tokenised, lower-cased). None means any, official first.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    inner = f"STS/STS{year}-en-test"
    inners = [f"raw/STS/{_RAW[year]}", f"raw/{inner}", f"senteval/downstream/{inner}",
              f"data/downstream/{inner}", f"downstream/{inner}", inner]  # fmt: skip
    folders = [data / inner for inner in inners]
    for folder in folders:
        if folder.is_dir():
            pairs = _read_year(folder, year)
            # SentEval's folder may hold either form, because `rejoinder data add` never tokenises
            if form in (None, pairs.form):
                return pairs
    tried = ", ".join(map(str, folders))
    raise DataMissingError(
        f"STS{year} ({form or 'any form'}) is not there; looked for {tried}. See `rejoinder data "
        "list`."
    )


def _read_year(folder: Path, year: int) -> GradedPairs:
    files = {subset: _subset_files(folder, year, subset) for subset in SUBSETS[year]}
    return _graded(files, f"STS{year}", blanks=True)


def read_sts_2017(data: Path) -> GradedPairs:
    """Reads all tracks of STS 2017, with 250 pairs each. The track is the genre.

    In track 6 only the first 250 pairs were judged. The others are left out.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    files = {f"track{track}": _track_files(data, name) for track, name in TRACKS.items()}
    return replace(_graded(files, "STS 2017", blanks=False), form="official")


def _graded(files: Mapping[str, tuple[Path, Path]], title: str, *, blanks: bool) -> GradedPairs:
    """Reads the files of pairs and of gold of each subset.

    Args:
        files: paths of the pairs and of the gold, by subset.
        title: name of the set, for error messages.
        blanks: whether a blank line of gold means that a pair was not judged.
    """
    first, second, gold, genres, ids, contents = [], [], [], [], [], []
    for subset, (inputs, scores) in files.items():
        contents += [read_bytes(inputs), read_bytes(scores)]
        pairs = text_lines(contents[-2], inputs)
        judged = text_lines(contents[-1], scores)
        if subset in _JUDGED_IN_PART:
            pairs = pairs[: len(judged)]
        if len(pairs) != len(judged):
            raise InputError(
                f"{inputs} has {len(pairs)} pairs and {scores.name} {len(judged)} lines; a line "
                f"for each pair is needed{', blank where it was not judged' if blanks else ''}."
            )
        for number, (pair, score) in enumerate(zip(pairs, judged, strict=True), 1):
            if blanks and not score.strip():
                continue
            left, right = _two(pair, inputs, number)
            first.append(left)
            second.append(right)
            gold.append(number_of(score, 0, 5, scores, number))
            genres.append(subset)
            ids.append(f"{subset}:{number}")
    if not gold:
        raise InputError(f"{inputs.parent} has no pair of {title} with a score.")
    form = "senteval" if is_tokenised(first) else "official"
    return GradedPairs(
        "test", form, first, second, np.array(gold), genres, sha256_of(*contents), ids
    )


def _subset_files(folder: Path, year: int, subset: str) -> tuple[Path, Path]:
    """Returns the paths of pairs and gold: with SentEval's names, or the authors' of 2016."""
    paths = []
    for part in ("input", "gs"):
        names = (f"STS.{part}.{subset}.txt", f"STS20{year}.{part}.{subset}.txt")
        paths.append(next((folder / n for n in names if is_file(folder / n)), folder / names[0]))
    return paths[0], paths[1]


def _track_files(data: Path, track: str) -> tuple[Path, Path]:
    folders = ("sts2017", "STS/STS17-test", "")
    inputs, scores = (f"STS.{part}.{track}.txt" for part in ("input", "gs"))
    return (
        find_folder(data, folders, inputs, "STS 2017") / inputs,
        find_folder(data, folders, scores, "STS 2017") / scores,
    )


def _two(line: str, path: Path, number: int) -> tuple[str, str]:
    """Returns the two sentences of a line. Files of some years have more columns."""
    fields = line.split("\t")
    if len(fields) < 2:
        raise InputError(f"{path} line {number}: no tab; two sentences between tabs are needed.")
    return fields[0].strip(), fields[1].strip()
