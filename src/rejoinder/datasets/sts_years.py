"""SemEval STS 2012 to 2016 (English) and 2017 (seven tracks): graded pairs by subset."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rejoinder.datasets.files import find_folder, is_file, missing, number_of, read_bytes
from rejoinder.datasets.sts import GradedPairs, is_tokenised
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import text_lines

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
"""Files in which only the first pairs have gold."""
_RAW = {12: "test-gold", 13: "test-gs", 14: "sts-en-test-gs-2014", 15: "test_evaluation_task2a",
        16: "sts2016-english-with-gs-v1.0"}  # fmt: skip


def read_sts_year(data: Path, year: int, form: str | None = None) -> GradedPairs:
    """Reads a year of STS, 12 to 16. Its subsets are the genres.

    `form` is `official` or `senteval` (tokenised, lower-cased). None means any, official first.
    Pairs that were not judged (a blank line of gold) are left out.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    inner = f"STS/STS{year}-en-test"
    inners = [f"raw/STS/{_RAW[year]}", f"raw/{inner}", f"senteval/downstream/{inner}",
              f"data/downstream/{inner}", f"downstream/{inner}", inner]  # fmt: skip
    folders = [data / inner for inner in inners]
    for folder in folders:
        if folder.is_dir():
            files = {subset: _subset_files(folder, year, subset) for subset in SUBSETS[year]}
            pairs = _graded(files, f"STS{year}", blanks=True)
            # SentEval's folder may hold either form, because `rejoinder data add` never tokenises
            if form in (None, pairs.form):
                return pairs
    raise missing(f"STS{year} ({form or 'any form'})", folders)


def read_sts_2017(data: Path) -> GradedPairs:
    """Reads all tracks of STS 2017, with 250 pairs each. The track is the genre.

    In track 6 only the first 250 pairs were judged. The others are left out.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    files = {f"track{track}": _track_files(data, name) for track, name in TRACKS.items()}
    return replace(_graded(files, "STS 2017", blanks=False), form="official")


def _graded(files: Mapping[str, tuple[Path, Path]], title: str, *, blanks: bool) -> GradedPairs:
    """Reads the pairs and gold of each subset. With `blanks`, a blank line means "not judged"."""
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
            fields = pair.split("\t")  # some years have more than two columns
            if len(fields) < 2:
                raise InputError(
                    f"{inputs} line {number}: no tab; two sentences between tabs are needed."
                )
            first.append(fields[0].strip())
            second.append(fields[1].strip())
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
    names = (f"STS.{part}.{track}.txt" for part in ("input", "gs"))
    inputs, scores = (find_folder(data, folders, name, "STS 2017") / name for name in names)
    return inputs, scores
