"""What is published in another form than SentEval's layout, turned into that once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rejoinder.datasets.catalogue import DataFile, DataSet
from rejoinder.datasets.forms import Examined
from rejoinder.datasets.pickles import as_files, read_coco_pickle

_COCO = ("train.pkl", "valid.pkl", "test.pkl")
COCO_NAMES = frozenset(_COCO)


def converted(
    dataset: DataSet, files: Sequence[Path], found: Mapping[DataFile, Examined]
) -> dict[DataFile, Examined]:
    """Files of the layout that are made of what was found: of SNLI's JSON lines, COCO's pickles.

    Raises:
        InputError: a pickle is refused.
    """
    if dataset.id == "snli":
        return _snli(dataset, found)
    if dataset.id == "coco":
        return _coco(dataset, [path for path in files if path.name in COCO_NAMES], found)
    return {}


def _snli(dataset: DataSet, found: Mapping[DataFile, Examined]) -> dict[DataFile, Examined]:
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
                made[file] = Examined(content, len(columns[kind]), "", (note,))
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


def _coco(
    dataset: DataSet, pickles: Sequence[Path], found: Mapping[DataFile, Examined]
) -> dict[DataFile, Examined]:
    made = {}
    for path in pickles:
        features, captions = read_coco_pickle(path)
        contents = as_files(features, captions)
        for file, content in zip(_pair(dataset, path.stem), contents, strict=True):
            if file not in found:
                note = f"it was made of {path.name}, which is not needed any more"
                made[file] = Examined(content, len(captions), "", (note,))
    return made


def _pair(dataset: DataSet, split: str) -> list[DataFile]:
    by_name = {file.name: file for file in dataset.files}
    return [by_name[f"{split}.safetensors"], by_name[f"{split}.json"]]
