"""What is published in another form than SentEval's layout, turned into that once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rejoinder.acquire.forms import Examined
from rejoinder.acquire.pickles import as_files, read_coco_pickle
from rejoinder.datasets.catalogue import DataFile, DataSet
from rejoinder.datasets.files import content_of, refuse_repeats
from rejoinder.errors import InputError
from rejoinder.formats.tables import tab_separated, text_lines

_SICK = "SICK.txt"
_SICK_COLUMNS = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
_SICK_SETS = {"TRAIN": "SICK_train.txt", "TRIAL": "SICK_trial.txt"}
_SICK_SETS["TEST"] = "SICK_test_annotated.txt"
_COCO = ("train.pkl", "valid.pkl", "test.pkl")
COCO_NAMES = frozenset(_COCO)


def converted(
    dataset: DataSet, files: Sequence[Path], found: Mapping[DataFile, Examined]
) -> dict[DataFile, tuple[Path, Examined]]:
    """Files of the layout that are made of what was found, and of which file each is made.

    They are made of JSON lines, SICK.txt and pickles.

    Raises:
        InputError: a pickle is refused, or SICK.txt is not of its form.
    """
    if dataset.id == "snli":
        return _snli(dataset, found)
    if dataset.id == "sick":
        return _sick(dataset, [path for path in files if path.name == _SICK], found)
    if dataset.id == "coco":
        return _coco(dataset, [path for path in files if path.name in COCO_NAMES], found)
    return {}


def _snli(
    dataset: DataSet, found: Mapping[DataFile, Examined]
) -> dict[DataFile, tuple[Path, Examined]]:
    made = {}
    for source, examined in found.items():
        if source.kind != "nli":
            continue
        split = source.name.removesuffix(".jsonl").rpartition("_")[2]
        columns = judged_columns(examined.content)
        for file in dataset.files:
            kind, _, of = file.name.partition(".")
            if of == split and kind in columns and file not in found:
                content = "".join(f"{text}\n" for text in columns[kind]).encode("utf-8")
                note = f"it was made of {source.name}, without rows that have no gold label"
                made[file] = Path(source.name), Examined(content, len(columns[kind]), "", (note,))
    return made


def judged_columns(content: bytes) -> dict[str, list[str]]:
    """Premises, hypotheses and gold labels of the rows that have one; a line each."""
    columns: dict[str, list[str]] = {"s1": [], "s2": [], "labels": []}
    for line in content.decode("utf-8").rstrip("\n").split("\n"):
        row = json.loads(line)
        if row["gold_label"] != "-":
            columns["labels"].append(row["gold_label"])
            columns["s1"].append(" ".join(row["sentence1"].split()))
            columns["s2"].append(" ".join(row["sentence2"].split()))
    return columns


def _sick(
    dataset: DataSet, files: Sequence[Path], found: Mapping[DataFile, Examined]
) -> dict[DataFile, tuple[Path, Examined]]:
    made = {}
    for path in files:
        splits = sick_splits(content_of(path), path)
        for file in dataset.files:
            if file.name in splits and file not in found:
                rows = splits[file.name]
                content = "".join("\t".join(row) + "\n" for row in (_SICK_COLUMNS, *rows))
                note = f"it was made of {path.name}, which holds all splits"
                made[file] = path, Examined(content.encode(), len(rows), "", (note,))
    return made


def sick_splits(content: bytes, path: Path) -> dict[str, list[list[str]]]:
    """Rows of SemEval's three files, by file, from the edition of SICK that is one file.

    Raises:
        InputError: a column is missing, a row names no split, or an id is repeated.
    """
    lines = text_lines(content, path)
    header = lines[0].split("\t") if lines else []
    wanted = (*_SICK_COLUMNS[:4], "entailment_label", "SemEval_set")
    if missing := [name for name in wanted if name not in header]:
        raise InputError(f"{path} line 1: the columns {', '.join(missing)} are missing.")
    splits: dict[str, list[list[str]]] = {name: [] for name in _SICK_SETS.values()}
    ids, numbers = [], []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = tab_separated(line, (len(header),), path, number)
        row = dict(zip(header, cells, strict=True))
        if row["SemEval_set"] not in _SICK_SETS:
            known = ", ".join(_SICK_SETS)
            raise InputError(
                f"{path} line {number}: the split {row['SemEval_set'][:20]!r}; one of {known}."
            )
        ids.append(row["pair_ID"])
        numbers.append(number)
        first, second, score = (row[name] for name in _SICK_COLUMNS[1:4])
        judged = [row["pair_ID"], first, second, score, row["entailment_label"]]
        splits[_SICK_SETS[row["SemEval_set"]]].append(judged)
    refuse_repeats(ids, numbers, path)
    return splits


def _coco(
    dataset: DataSet, pickles: Sequence[Path], found: Mapping[DataFile, Examined]
) -> dict[DataFile, tuple[Path, Examined]]:
    made = {}
    for path in pickles:
        features, captions = read_coco_pickle(path)
        contents = as_files(features, captions)
        for file, content in zip(_pair(dataset, path.stem), contents, strict=True):
            if file not in found:
                note = f"it was made of {path.name}, which is not needed any more"
                made[file] = path, Examined(content, len(captions), "", (note,))
    return made


def _pair(dataset: DataSet, split: str) -> list[DataFile]:
    by_name = {file.name: file for file in dataset.files}
    return [by_name[f"{split}.safetensors"], by_name[f"{split}.json"]]
