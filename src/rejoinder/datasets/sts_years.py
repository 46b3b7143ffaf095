"""SemEval STS 2012-2016 (English) and 2017 (seven tracks): graded pairs by subset."""

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
"""By year; those of 2013 without SMT, whose sentences only the LDC gives out."""
TRACKS = {
    "1": "track1.ar-ar",
    "2": "track2.ar-en",
    "3": "track3.es-es",
    "4a": "track4a.es-en",
    "4b": "track4b.es-en",
    "5": "track5.en-en",
    "6": "track6.tr-en",
}
_RAW = {12: "test-gold", 13: "test-gs", 14: "sts-en-test-gs-2014", 15: "test_evaluation_task2a",
        16: "sts2016-english-with-gs-v1.0"}  # fmt: skip


def read_sts_year(data: Path, year: int, form: str | None = None) -> GradedPairs:
    """A year of STS, 12 to 16; its subsets are the genres.

    Pairs that were not judged (a blank line of gold) are left out.

    Args:
        data: a folder of data sets.
        year: 12 to 16.
        form: `official` or `senteval` (tokenised, lower-cased); none: official if it is there.

    Raises:
        InputError: a file is not there, or a line is not of its form.
    """
    inner = f"STS/STS{year}-en-test"
    places = [f"raw/STS/{_RAW[year]}", f"raw/{inner}", f"senteval/downstream/{inner}",
              f"data/downstream/{inner}", f"downstream/{inner}", inner]  # fmt: skip
    for folder in (data / place for place in places):
        if folder.is_dir():
            pairs = _read_year(folder, year)
            # SentEval's folder holds either form: `rejoinder data add` tokenises nothing
            if form in (None, pairs.form):
                return pairs
    looked = ", ".join(str(data / place) for place in places)
    raise DataMissingError(
        f"STS{year} ({form or 'any form'}) is not there; looked for {looked}. See `rejoinder data "
        "list`."
    )


def _read_year(folder: Path, year: int) -> GradedPairs:
    first, second, gold, genres, ids, contents = [], [], [], [], [], []
    for subset in SUBSETS[year]:
        inputs, scores = (_subset_file(folder, year, kind, subset) for kind in ("input", "gs"))
        contents += [read_bytes(inputs), read_bytes(scores)]
        pairs = text_lines(contents[-2], inputs)
        judged = text_lines(contents[-1], scores)
        if len(pairs) != len(judged):
            raise InputError(
                f"{inputs} has {len(pairs)} pairs and {scores.name} {len(judged)} lines; a line a "
                "pair is needed, blank where it was not judged."
            )
        for number, (pair, score) in enumerate(zip(pairs, judged, strict=True), 1):
            if not score.strip():
                continue
            left, right = _two(pair, inputs, number)
            first.append(left)
            second.append(right)
            gold.append(number_of(score, 0, 5, scores, number))
            genres.append(subset)
            ids.append(f"{subset}:{number}")
    if not gold:
        raise InputError(f"{folder} has no pair of STS{year} with a score; its files are empty.")
    found = "senteval" if is_tokenised(first) else "official"
    return GradedPairs(
        "test", found, first, second, np.array(gold), genres, sha256_of(*contents), ids
    )


def read_sts_2017(data: Path) -> GradedPairs:
    """STS 2017: all tracks, 250 pairs each; the track is the genre.

    Of track 6 the first 250 pairs were judged: the others have no gold and are left out.

    Raises:
        InputError: a file is not there, or a line is not of its form.
    """
    first, second, gold, genres, ids, contents = [], [], [], [], [], []
    for track, name in TRACKS.items():
        inputs = _of_2017(data, f"STS.input.{name}.txt")
        scores = _of_2017(data, f"STS.gs.{name}.txt")
        contents += [read_bytes(inputs), read_bytes(scores)]
        pairs = text_lines(contents[-2], inputs)
        judged = text_lines(contents[-1], scores)
        if len(judged) > len(pairs) or (track != "6" and len(judged) != len(pairs)):
            raise InputError(f"{inputs} has {len(pairs)} pairs, {scores.name} {len(judged)} lines.")
        for number, (pair, score) in enumerate(zip(pairs, judged, strict=False), 1):
            left, right = _two(pair, inputs, number)
            first.append(left)
            second.append(right)
            gold.append(number_of(score, 0, 5, scores, number))
            genres.append(f"track{track}")
            ids.append(f"track{track}:{number}")
    if not gold:
        raise InputError(f"{inputs.parent} has no pair of STS 2017 with a score.")
    return GradedPairs(
        "test", "official", first, second, np.array(gold), genres, sha256_of(*contents), ids
    )


def _subset_file(folder: Path, year: int, kind: str, subset: str) -> Path:
    """By SentEval's name, or by the authors' one of 2016."""
    names = (f"STS.{kind}.{subset}.txt", f"STS20{year}.{kind}.{subset}.txt")
    return next((folder / name for name in names if is_file(folder / name)), folder / names[0])


def _of_2017(data: Path, name: str) -> Path:
    return find_folder(data, ("sts2017", "STS/STS17-test", ""), name, "STS 2017") / name


def _two(line: str, path: Path, number: int) -> tuple[str, str]:
    """The pair of a line; files of some years carry further columns behind it."""
    fields = line.split("\t")
    if len(fields) < 2:
        raise InputError(f"{path} line {number}: no tab; two sentences between tabs are needed.")
    return fields[0].strip(), fields[1].strip()
