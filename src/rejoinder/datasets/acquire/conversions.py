"""Converts files that are not published in SentEval's layout."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rejoinder.datasets.acquire.forms import judged_rows
from rejoinder.datasets.acquire.pickles import as_files, read_coco_pickle
from rejoinder.datasets.files import content_of
from rejoinder.datasets.sentence_pairs import SICK_COLUMNS
from rejoinder.io.formats.tables import below_header

CONVERTED_NAMES = frozenset({"SICK.txt", "train.pkl", "valid.pkl", "test.pkl"})
_SICK_SETS = {
    "TRAIN": "SICK_train.txt", "TRIAL": "SICK_trial.txt", "TEST": "SICK_test_annotated.txt",
}  # fmt: skip


def converted(
    set_id: str, paths: Sequence[Path], present: Mapping[Path, bytes]
) -> Iterator[tuple[Path, str, bytes]]:
    """Yields files of the layout: the path of its source, its name and its content.

    `paths` are all files that the user gave, and `present` the content of those that are in the
    layout already.
    """
    for path in paths:
        if set_id == "sick" and path.name == "SICK.txt":
            yield from ((path, *file) for file in sick_splits(content_of(path), path).items())
        elif set_id == "coco" and path.name in CONVERTED_NAMES:
            names = (f"{path.stem}.safetensors", f"{path.stem}.json")
            contents = as_files(*read_coco_pickle(path))
            yield from ((path, *file) for file in zip(names, contents, strict=True))
    for path, content in present.items() if set_id == "snli" else ():
        if path.name.startswith("snli_1.0_"):
            split = path.stem.rpartition("_")[2]
            columns = zip(*judged_rows(content, path), strict=True)
            for name, column in zip(("s1", "s2", "labels"), columns, strict=False):
                yield path, f"{name}.{split}", "".join(f"{text}\n" for text in column).encode()


def sick_splits(content: bytes, path: Path) -> dict[str, bytes]:
    """Splits SICK.txt, which holds all splits, into SemEval's three files."""
    wanted = (*SICK_COLUMNS[:4], "entailment_label", "SemEval_set")
    lines = {name: ["\t".join(SICK_COLUMNS)] for name in _SICK_SETS.values()}
    for row in below_header(content, path, wanted):
        lines[_SICK_SETS[row.one_of(5, _SICK_SETS)]].append("\t".join(row.fields[:5]))
    return {name: "".join(f"{line}\n" for line in rows).encode() for name, rows in lines.items()}
