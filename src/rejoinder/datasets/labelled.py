"""Sentences with a class: MR, CR, SUBJ, MPQA, SST, TREC and the probing tasks of SentEval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.files import find_folder, read_bytes, read_splits
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import filled_lines, tab_separated, text_lines


@dataclass(frozen=True)
class Labelled:
    """The sentences of one split with their classes."""

    sentences: list[str]
    labels: NDArray[np.int64]
    """(N,) int64, indices in `classes`."""
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sentences)


@dataclass(frozen=True)
class LabelledSet:
    """A data set by split. A set without published splits has the single split `all`."""

    name: str
    splits: Mapping[str, Labelled]
    sha256: str


_BINARY: Mapping[str, tuple[str, str]] = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}
_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
PROBING: Mapping[str, str] = {
    "Length": "sentence_length",
    "WordContent": "word_content",
    "Depth": "tree_depth",
    "TopConstituents": "top_constituents",
    "BigramShift": "bigram_shift",
    "Tense": "past_present",
    "SubjNumber": "subj_number",
    "ObjNumber": "obj_number",
    "OddManOut": "odd_man_out",
    "CoordinationInversion": "coordination_inversion",
}
"""Stems of the files of SentEval's probing tasks, by name."""
_PROBING_SPLITS = {"tr": "train", "va": "dev", "te": "test"}


def read_binary(data: Path, name: str) -> LabelledSet:
    """Reads MR, CR, SUBJ or MPQA: one file of sentences for class 1, one for class 0.

    Blank lines are sentences too, because the published numbers count them.

    Raises:
        InputError: a file is missing or can't be read.
    """

    def parse(content: bytes, path: Path) -> list[str]:
        return [line.strip() for line in text_lines(content, path, _encoding(content))]

    files = dict(zip(("1", "0"), _BINARY[name], strict=True))
    by_class, sha256 = read_splits(data, f"downstream/{name}", files, name, parse)
    labels = np.repeat(np.array([1, 0]), [len(group) for group in by_class.values()])
    whole = Labelled(by_class["1"] + by_class["0"], labels, ("0", "1"))
    return LabelledSet(name, {"all": whole}, sha256)


def _encoding(content: bytes) -> str:
    """Returns UTF-8, or else Latin-1, in which some files were published."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def read_sst(data: Path, classes: int) -> LabelledSet:
    """Reads the Stanford Sentiment Treebank with 2 or 5 classes.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    names = tuple(map(str, range(classes)))

    def parse(content: bytes, path: Path) -> Labelled:
        rows = []
        for number, line in filled_lines(content, path, _encoding(content)):
            if classes == 2:
                text, label = tab_separated(line, (2,), path, number)
            else:
                label, _, text = line.strip().partition(" ")
            label = label.strip()
            if label not in names:
                raise InputError(
                    f"{path} line {number}: class {label[:20]!r}; one of 0 to {classes - 1} is "
                    "needed."
                )
            rows.append((text.strip(), int(label)))
        return _labelled(rows, names)

    inner = f"downstream/SST/{'binary' if classes == 2 else 'fine'}"
    files = {split: f"sentiment-{split}" for split in ("train", "dev", "test")}
    name = f"SST{classes}"
    return LabelledSet(name, *read_splits(data, inner, files, name, parse))


def read_trec(data: Path) -> LabelledSet:
    """Reads TREC: questions with the coarse class of their answers, in Latin-1.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    files = {"train": "train_5500.label", "test": "TREC_10.label"}
    return LabelledSet("TREC", *read_splits(data, "downstream/TREC", files, "TREC", _parse_trec))


def _parse_trec(content: bytes, path: Path) -> Labelled:
    rows = []
    for number, line in filled_lines(content, path, "latin-1"):
        coarse, colon, rest = line.strip().partition(":")
        if not colon or coarse not in _TREC:
            raise InputError(
                f"{path} line {number}: class {coarse[:20]!r}; a line begins with CLASS:fine, "
                f"CLASS one of {', '.join(_TREC)}."
            )
        rows.append((rest.partition(" ")[2].strip(), _TREC.index(coarse)))
    return _labelled(rows, _TREC)


def read_probing(data: Path, name: str) -> LabelledSet:
    """Reads a probing task (Conneau et al. 2018): split, label, …, sentence between tabs.

    Raises:
        InputError: the file is missing, or a line is invalid.
    """
    file = f"{PROBING[name]}.txt"
    folders = ("senteval/probing", "data/probing", "probing", "")
    path = find_folder(data, folders, file, name) / file
    content = read_bytes(path)
    texts: dict[str, list[str]] = {split: [] for split in _PROBING_SPLITS.values()}
    labels: dict[str, list[str]] = {split: [] for split in _PROBING_SPLITS.values()}
    for number, line in filled_lines(content, path):
        fields = line.split("\t")
        if len(fields) < 3 or fields[0] not in _PROBING_SPLITS:
            raise InputError(
                f"{path} line {number}: starts with {fields[0][:20]!r} and has {len(fields)} "
                "columns; tr, va or te, a label and the sentence are needed, between tabs."
            )
        split = _PROBING_SPLITS[fields[0]]
        labels[split].append(fields[1])
        texts[split].append(fields[-1])
    classes = tuple(sorted(set(labels["train"])))
    index_of = {label: index for index, label in enumerate(classes)}
    splits = {}
    for split, names in labels.items():
        unknown = set(names) - set(index_of)
        if unknown or not names:
            problem = f"labels that train lacks: {sorted(unknown)[:3]}" if unknown else "no lines"
            raise InputError(f"{path}: split {split} has {problem}.")
        indices = np.array([index_of[label] for label in names])
        splits[split] = Labelled(texts[split], indices, classes)
    return LabelledSet(name, splits, sha256_of(content))


def _labelled(rows: Sequence[tuple[str, int]], classes: tuple[str, ...]) -> Labelled:
    return Labelled([text for text, _ in rows], np.array([label for _, label in rows]), classes)
