"""Converts files that are published in another form than SentEval's layout."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rejoinder.datasets.acquire.forms import Examined
from rejoinder.datasets.acquire.pickles import as_files, read_coco_pickle
from rejoinder.datasets.catalogue import DataFile, DataSet
from rejoinder.datasets.files import content_of, refuse_repeats
from rejoinder.errors import InputError
from rejoinder.io.formats.tables import filled_lines, tab_separated

_SICK_COLUMNS = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
_SICK_SETS = {
    "TRAIN": "SICK_train.txt", "TRIAL": "SICK_trial.txt", "TEST": "SICK_test_annotated.txt",
}  # fmt: skip
COCO_NAMES = frozenset({"train.pkl", "valid.pkl", "test.pkl"})

Converted = dict[DataFile, tuple[Path, Examined]]
"""Files of the layout, each with the path of the file that it was made of."""


def converted(
    dataset: DataSet, paths: Sequence[Path], present: Mapping[DataFile, Examined]
) -> Converted:
    """Makes the files of the layout that are missing from JSON lines, SICK.txt and pickles.

    `paths` are all files that the user gave, and `present` the files of the layout among them.
    """
    converters = {"snli": _snli, "sick": _sick, "coco": _coco}
    if dataset.id not in converters:
        return {}
    made = converters[dataset.id](dataset, paths, present)
    return {file: source for file, source in made.items() if file not in present}


def _snli(
    dataset: DataSet, _paths: Sequence[Path], present: Mapping[DataFile, Examined]
) -> Converted:
    made = {}
    for source, examined in present.items():
        if source.kind != "nli":
            continue
        split = source.name.removesuffix(".jsonl").rpartition("_")[2]
        columns = judged_columns(examined.content)
        for file in dataset.files:
            name, _, file_split = file.name.partition(".")
            if file_split == split and name in columns:
                content = "".join(f"{text}\n" for text in columns[name]).encode("utf-8")
                note = f"it was made of {source.name}, without rows that have no gold label"
                made[file] = Path(source.name), Examined(content, len(columns[name]), "", (note,))
    return made


def judged_columns(content: bytes) -> dict[str, list[str]]:
    """Returns premises, hypotheses and gold labels, in lines, of the rows with a gold label."""
    columns: dict[str, list[str]] = {"s1": [], "s2": [], "labels": []}
    for line in content.decode("utf-8").rstrip("\n").split("\n"):
        row = json.loads(line)
        if row["gold_label"] != "-":
            columns["labels"].append(row["gold_label"])
            columns["s1"].append(" ".join(row["sentence1"].split()))
            columns["s2"].append(" ".join(row["sentence2"].split()))
    return columns


def _sick(
    dataset: DataSet, paths: Sequence[Path], _present: Mapping[DataFile, Examined]
) -> Converted:
    made = {}
    for path in paths:
        if path.name != "SICK.txt":
            continue
        splits = sick_splits(content_of(path), path)
        for file in dataset.files:
            if file.name in splits:
                rows = splits[file.name]
                content = "".join("\t".join(row) + "\n" for row in (_SICK_COLUMNS, *rows))
                note = f"it was made of {path.name}, which holds all splits"
                made[file] = path, Examined(content.encode(), len(rows), "", (note,))
    return made


def sick_splits(content: bytes, path: Path) -> dict[str, list[list[str]]]:
    """Splits the edition of SICK that is a single file into the rows of SemEval's three files."""
    lines = filled_lines(content, path)
    header = next(lines, (1, ""))[1].split("\t")
    wanted = (*_SICK_COLUMNS[:4], "entailment_label", "SemEval_set")
    if missing := [name for name in wanted if name not in header]:
        raise InputError(f"{path} line 1: the columns {', '.join(missing)} are missing.")
    splits: dict[str, list[list[str]]] = {name: [] for name in _SICK_SETS.values()}
    ids, numbers = [], []
    for number, line in lines:
        cells = tab_separated(line, (len(header),), path, number)
        row = dict(zip(header, cells, strict=True))
        if row["SemEval_set"] not in _SICK_SETS:
            known = ", ".join(_SICK_SETS)
            raise InputError(
                f"{path} line {number}: the split {row['SemEval_set'][:20]!r}; one of {known} is "
                "needed."
            )
        ids.append(row["pair_ID"])
        numbers.append(number)
        first, second, score = (row[name] for name in _SICK_COLUMNS[1:4])
        values = [row["pair_ID"], first, second, score, row["entailment_label"]]
        splits[_SICK_SETS[row["SemEval_set"]]].append(values)
    refuse_repeats(ids, numbers, path)
    return splits


def _coco(
    dataset: DataSet, paths: Sequence[Path], _present: Mapping[DataFile, Examined]
) -> Converted:
    made = {}
    by_name = {file.name: file for file in dataset.files}
    for path in paths:
        if path.name not in COCO_NAMES:
            continue
        pair = [by_name[f"{path.stem}.safetensors"], by_name[f"{path.stem}.json"]]
        features, captions = read_coco_pickle(path)
        contents = as_files(features, captions)
        for file, content in zip(pair, contents, strict=True):
            note = f"it was made of {path.name}, which is not needed any more"
            made[file] = path, Examined(content, len(captions), "", (note,))
    return made
