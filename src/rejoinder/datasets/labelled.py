"""Sentences with a class: MR, CR, SUBJ, MPQA, SST, TREC and the probing tasks of SentEval.

COCO: captions and image features, in the layout of `rejoinder data add coco`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.datasets.catalogue import find_folder, read_bytes, read_splits, senteval_folders
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.io.formats.tables import Row, decoded_lines, table_rows
from rejoinder.io.formats.text_lines import Record, decoded


@dataclass(frozen=True)
class Labelled:
    """The sentences of one split with their classes."""

    sentences: list[str]
    labels: NDArray[np.int64]
    """(N,) int64, the index of each class."""

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
        return [line.strip() for line in decoded_lines(content, path, _encoding(content))]

    files = dict(zip(("1", "0"), _BINARY[name], strict=True))
    by_class, sha256 = read_splits(data, f"downstream/{name}", files, name, parse)
    rows = ((text, label) for label, texts in by_class.items() for text in texts)
    return LabelledSet(name, {"all": _labelled(rows, ("0", "1"))}, sha256)


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
    inner = f"downstream/SST/{'binary' if classes == 2 else 'fine'}"
    files = {split: f"sentiment-{split}" for split in ("train", "dev", "test")}
    name = f"SST{classes}"
    parse = partial(parse_sst, classes=classes)
    return LabelledSet(name, *read_splits(data, inner, files, name, parse))


def parse_sst(content: bytes, path: Path, classes: int) -> Labelled:
    """Parses lines of a sentence, a tab and a class (of 2), or of a class (of 5) and a sentence."""
    names = tuple(map(str, range(classes)))
    rows = []
    for row in table_rows(content, path, (2,) if classes == 2 else (), _encoding(content)):
        if classes == 5:
            label, _, text = "\t".join(row.fields).strip().partition(" ")
            row = Row([text, label], row.line, path)
        rows.append((row[0].strip(), row.one_of(1, names)))
    return _labelled(rows, names)


def read_trec(data: Path) -> LabelledSet:
    """Reads TREC: questions with the coarse class of their answers, in Latin-1.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    files = {"train": "train_5500.label", "test": "TREC_10.label"}
    return LabelledSet("TREC", *read_splits(data, "downstream/TREC", files, "TREC", parse_trec))


def parse_trec(content: bytes, path: Path) -> Labelled:
    """Parses `CLASS:fine` and a question on each line."""
    rows = []
    for row in table_rows(content, path, encoding="latin-1"):
        coarse, _, rest = "\t".join(row.fields).strip().partition(":")
        question = rest.partition(" ")[2].strip()
        rows.append((question, Row([coarse], row.line, path).one_of(0, _TREC)))
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
    rows = parse_probing(content, path)
    classes = tuple(sorted({label for split, label, _ in rows if split == "train"}))
    splits = {}
    for split in _PROBING_SPLITS.values():
        chosen = [(text, label) for of, label, text in rows if of == split]
        unknown = sorted({label for _, label in chosen} - set(classes))
        if unknown or not chosen:
            problem = f"labels that train lacks: {unknown[:3]}" if unknown else "no lines"
            raise InputError(f"{path}: split {split} has {problem}.")
        splits[split] = _labelled(chosen, classes)
    return LabelledSet(name, splits, sha256_of(content))


def parse_probing(content: bytes, path: Path) -> list[tuple[str, str, str]]:
    """Parses the split, the label and the sentence of each line."""
    rows = []
    for row in table_rows(content, path):
        split = _PROBING_SPLITS[row.one_of(0, _PROBING_SPLITS)]
        if len(row.fields) < 3:
            row.refuse("expected a split, a label and a sentence, separated by tabs.")
        rows.append((split, row[1], row[-1]))
    return rows


def _labelled(rows: Iterable[tuple[str, str]], classes: tuple[str, ...]) -> Labelled:
    """Collects sentences and the names of their classes."""
    index_of = {name: index for index, name in enumerate(classes)}
    pairs = [(text, index_of[name]) for text, name in rows]
    return Labelled([text for text, _ in pairs], np.array([i for _, i in pairs]))


CAPTIONS = 5
"""Number of captions per image. SentEval uses the first five."""


@dataclass(frozen=True)
class Captioned:
    """The images of one split with their captions."""

    features: NDArray[np.float32]
    """(M, F) float32, a row per image."""
    captions: list[str]
    """5 M captions; those of an image are adjacent."""
    sha256: str

    def __len__(self) -> int:
        return len(self.features)


def read_coco(data: Path, split: str) -> Captioned:
    """Reads a split: train, valid or test.

    Raises:
        InputError: a file is missing or damaged, or an image has fewer than five captions.
    """
    names = [f"{split}.safetensors", f"{split}.json"]
    folder = find_folder(data, senteval_folders("downstream/COCO"), names[0], "COCO")
    contents = [read_bytes(folder / name) for name in names]
    features = _features(contents[0], folder / names[0])
    groups = parse_captions(contents[1], folder / names[1])
    if len(groups) != len(features):
        raise InputError(
            f"{folder}/{split}: {len(features)} images, but captions of {len(groups)} images."
        )
    for image, group in enumerate(groups):
        if len(group) < CAPTIONS:
            raise InputError(
                f"{folder}/{names[1]}: image {image} has {len(group)} captions; expected 5."
            )
    captions = [text for group in groups for text in group[:CAPTIONS]]
    return Captioned(features, captions, sha256_of(*contents))


def _features(content: bytes, path: Path) -> NDArray[np.float32]:
    """Reads the matrix `features` of a safetensors file, which must hold finite numbers."""
    try:
        features = np.asarray(load(content)["features"], np.float32)
    except UNREADABLE as error:
        raise InputError(
            f"{path} is damaged: {error}; add it again with `rejoinder data add coco`."
        ) from None
    if features.ndim != 2 or not features.size or not np.isfinite(features).all():
        raise InputError(
            f"{path} has features of shape {features.shape}; expected one row of finite numbers "
            "per image."
        )
    return features


class _Captions(Record, frozen=True):
    captions: list[list[str]]
    format_version: int = 1


def parse_captions(content: bytes, path: Path) -> list[list[str]]:
    """Parses the captions of each image from JSON."""
    try:
        return decoded(_Captions, json.loads(content)).captions
    except (ValueError, RecursionError):
        raise InputError(
            f"{path}: expected JSON with the key captions, a list of strings per image."
        ) from None
