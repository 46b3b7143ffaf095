"""Reads texts with a class or a score, images with captions, and translations.

Sentences with a class: SentEval's MR, CR, SUBJ, MPQA, SST, TREC and the probing tasks; the intents
of Banking77 (Casanueva et al. 2020) and CLINC150 (Larson et al. 2019). Pairs of sentences: MRPC,
SICK and SNLI; Twitter URL (Lan et al. 2017), and duplicate questions of Sprint (Shah et al. 2018)
in the file of MTEB. Images of COCO with captions, as `rejoinder data add coco` lays them out. The
devtest of FLORES-200 (NLLB Team 2022).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.datasets import catalogue
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import Record, decoded, sha256_of
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.io.formats.text_lines import Row, below_header, csv_rows, decoded_lines, table_rows


@dataclass(frozen=True)
class Labelled:
    """The N sentences of one split, or pairs of sentences, with their classes."""

    first: list[str]
    """The sentences; the first sentences of pairs."""
    labels: NDArray[np.int64]
    """(N,) int64, the index of each class."""
    second: list[str] = field(default_factory=list)
    """The second sentences of pairs."""
    ids: Sequence[str] = ()
    """A name for each pair, by which predictions are compared."""
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """(N,) float64, for a set with scores."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def columns(self) -> tuple[list[str], ...]:
        """The sentences, or the first and the second sentences."""
        return (self.first, self.second) if self.second else (self.first,)


@dataclass(frozen=True)
class LabelledSet:
    """A data set by split. A set without published splits has the single split `all`."""

    name: str
    splits: Mapping[str, Labelled]
    sha256: str


_SPLITS = ("train", "dev", "test")
_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
PROBING = ("Length", "WordContent", "Depth", "TopConstituents", "BigramShift", "Tense",
           "SubjNumber", "ObjNumber", "OddManOut", "CoordinationInversion")  # fmt: skip
"""SentEval's probing tasks."""
_PROBING_SPLITS = {"tr": "train", "va": "dev", "te": "test"}


def read_binary(data: Path, name: str) -> LabelledSet:
    """Reads MR, CR, SUBJ or MPQA: one file of sentences for class 1, one for class 0.

    Blank lines are sentences too, because the published numbers count them.

    Raises:
        InputError: a file is missing or can't be read.
    """

    def parse(content: bytes, path: Path) -> list[str]:
        return [line.strip() for line in decoded_lines(content, path, _encoding(content))]

    _, by_class, sha256 = catalogue.read_splits(data, name.lower(), ("1", "0"), parse)
    rows = ((text, label) for label, texts in by_class.items() for text in texts)
    return LabelledSet(name, {"all": _labelled(rows, ("0", "1"))}, sha256)


def _encoding(content: bytes) -> str:
    """Returns UTF-8 if the content is valid, else Latin-1, as some files were published."""
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
    parse = partial(parse_sst, classes=classes)
    return LabelledSet(*catalogue.read_splits(data, f"sst{classes}", _SPLITS, parse))


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
    return LabelledSet(*catalogue.read_splits(data, "trec", ("train", "test"), parse_trec))


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
    [file] = catalogue.catalogue().sets[name.lower()].files
    path = catalogue.folder_of(data, name.lower()) / file.name
    content = catalogue.read_bytes(path)
    rows: dict[str, list[Sequence[str]]] = {split: [] for split in _PROBING_SPLITS.values()}
    for split, label, text in parse_probing(content, path):
        rows[split].append((text, label))
    return LabelledSet(name, _as_in_train(rows, path), sha256_of(content))


def _as_in_train(rows: Mapping[str, Sequence[Sequence[str]]], path: Path) -> dict[str, Labelled]:
    """Returns splits of sentences with the classes of train, whose names are sorted."""
    classes = tuple(sorted({label for _, label in rows["train"]}))
    for split, own in rows.items():
        unknown = sorted({label for _, label in own} - set(classes))
        if unknown or not own:
            problem = f"labels that train lacks: {unknown[:3]}" if unknown else "no lines"
            raise InputError(f"{path}: split {split} has {problem}.")
    return {split: _labelled(own, classes) for split, own in rows.items()}


def parse_probing(content: bytes, path: Path) -> list[tuple[str, str, str]]:
    """Parses the split, the label and the sentence of each line."""
    rows = []
    for row in table_rows(content, path):
        split = _PROBING_SPLITS[row.one_of(0, _PROBING_SPLITS)]
        if len(row.fields) < 3:
            row.refuse("expected a split, a label and a sentence, separated by tabs.")
        rows.append((split, row[1], row[-1]))
    return rows


def _labelled(rows: Iterable[Sequence[str]], classes: tuple[str, ...]) -> Labelled:
    """Collects sentences and the names of their classes."""
    index_of = {name: index for index, name in enumerate(classes)}
    pairs = [(text, index_of[name]) for text, name in rows]
    return Labelled([text for text, _ in pairs], np.array([i for _, i in pairs]))


PAIRS = {
    "twitter-url": (
        "twitter-url/Twitter_URL_Corpus_test.txt", "paraphrases/twitter_url_labelled.jsonl"
    ),
    "sprint": tuple(f"sprint/test.{end}" for end in ("json", "json.gz", "jsonl", "jsonl.gz")),
}  # fmt: skip
"""The files of pairs with a class; the first that exists is read."""
INTENTS = {
    "banking77": {"train": "train.csv", "test": "test.csv"},
    "clinc150": dict.fromkeys(("train", "val", "test"), "data_full.json"),
}
"""The file of each split, in a folder named like the set."""
_RATED = re.compile(r"\((\d), 6\)")
"""How many of six people found that two tweets have the same meaning."""


_FIELDS = {"sentence1": "sent1", "sentence2": "sent2", "label": "labels"}
"""The fields of a pair, and their names in the older files of MTEB."""


def read_pairs(data: Path, name: str) -> LabelledSet:
    """Reads the test pairs of a set of `PAIRS`: class 1 if they mean the same, else 0.

    Pairs of tweets that exactly three of six people found the same are left out.

    Raises:
        DataMissingError: the file is missing.
        InputError: a line is invalid, or all pairs have the same class.
    """
    path = catalogue.find_file(data, [""], PAIRS[name], f"The set {name}", catalogue.hint_for(name))
    content = catalogue.read_bytes(path)
    rows = parse_pairs(content, path)
    labels = np.array([same for *_, same in rows], np.int64)
    if len(np.unique(labels)) != 2:
        raise InputError(f"{path} has no pairs of both classes; get it again.")
    pairs = Labelled([row[0] for row in rows], labels, [row[1] for row in rows])
    return LabelledSet(name, {"test": pairs}, sha256_of(content))


def parse_pairs(content: bytes, path: Path) -> list[tuple[str, str, bool]]:
    """Parses two texts and whether they mean the same, in the form of either set of `PAIRS`."""
    is_json = ".json" in path.name or content.lstrip().startswith(b'{"')
    return list((_json_pairs if is_json else _rated)(content, path))


def _rated(content: bytes, path: Path) -> Iterator[tuple[str, str, bool]]:
    for row in table_rows(content, path, (3, 4)):
        rating = _RATED.fullmatch(row[2].strip())
        if rating is None:
            row.refuse(f"found {row[2][:20]!r}; expected a rating such as (4, 6).")
        if rating[1] != "3":
            yield row[0], row[1], int(rating[1]) > 3


def _json_pairs(content: bytes, path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yields the pairs of lines; a line holds a pair, or lists of texts and labels."""
    for number, line in enumerate(content.splitlines(), 1):
        try:
            values = decoded(dict[str, Any], json.loads(line))
            columns = [values[old if old in values else new] for new, old in _FIELDS.items()]
            columns = columns if isinstance(columns[0], list) else [[value] for value in columns]
            for first, second, label in zip(*columns, strict=True):
                if values.get("split", "test") == "test":
                    yield decoded(str, first), decoded(str, second), decoded(int, label) == 1
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            needed = "sentence1, sentence2 and label"
            raise InputError(f"{path} line {number}: expected {needed} ({error}).") from None


def read_intents(data: Path, name: str) -> LabelledSet:
    """Reads a set of `INTENTS`, without questions that have no intent.

    Raises:
        DataMissingError: a file is missing.
        InputError: a file is damaged, or has an intent that is not in train.
    """
    rows, contents, hint = {}, {}, catalogue.hint_for(name)
    for split, file in INTENTS[name].items():
        path = catalogue.find_file(data, [name], [file], f"The set {name}", hint)
        contents[path] = catalogue.read_bytes(path)
        parse = parse_banking77 if name == "banking77" else parse_clinc150
        rows[split] = parse(contents[path], path, split)
    splits = _as_in_train(rows, data / name)
    return LabelledSet(name, splits, sha256_of(*contents.values()))


def parse_banking77(content: bytes, path: Path, _split: str = "") -> list[list[str]]:
    """Parses a question and its intent in each line of a CSV file."""
    rows = csv_rows(content, path)
    for row in rows:
        if len(row.fields) != 2:
            row.refuse(f"expected two fields, a question and its intent; found {len(row.fields)}.")
    return [row.fields for row in rows]


def parse_clinc150(content: bytes, path: Path, split: str) -> list[list[str]]:
    """Parses the questions of a split and their intents."""
    try:
        return decoded(dict[str, list[list[str]]], json.loads(content))[split]
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{path} is not the file of CLINC150: {error}.") from None


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
    folder = catalogue.folder_of(data, "coco", names[0])
    contents = [catalogue.read_bytes(folder / name) for name in names]
    features = _features(contents[0], folder / names[0])
    groups = parse_captions(contents[1], folder / names[1])
    if len(groups) != len(features):
        counts = f"{len(features)} images, but captions of {len(groups)} images"
        raise InputError(f"{folder}/{split}: {counts}.")
    for image, group in enumerate(groups):
        if len(group) < CAPTIONS:
            found = f"image {image} has {len(group)} captions; expected 5"
            raise InputError(f"{folder}/{names[1]}: {found}.")
    captions = [text for group in groups for text in group[:CAPTIONS]]
    return Captioned(features, captions, sha256_of(*contents))


def _features(content: bytes, path: Path) -> NDArray[np.float32]:
    """Reads the matrix `features` of a safetensors file, which must hold finite numbers."""
    try:
        features = np.asarray(load(content)["features"], np.float32)
    except UNREADABLE as error:
        raise InputError(f"{path} is damaged: {error}; add it again.") from None
    if features.ndim != 2 or not features.size or not np.isfinite(features).all():
        shape = f"has features of shape {features.shape}"
        raise InputError(f"{path} {shape}; expected one row of finite numbers per image.")
    return features


class _Captions(Record, frozen=True):
    captions: list[list[str]]
    format_version: int = 1


def parse_captions(content: bytes, path: Path) -> list[list[str]]:
    """Parses the captions of each image from JSON."""
    try:
        return decoded(_Captions, json.loads(content)).captions
    except (ValueError, RecursionError):
        raise InputError(f"{path}: expected JSON: captions, a list of strings per image.") from None


NLI_CLASSES = ("contradiction", "neutral", "entailment")
MRPC_COLUMNS = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
SICK_COLUMNS = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")


def read_mrpc(data: Path) -> LabelledSet:
    """Reads the Microsoft Research Paraphrase Corpus. Quotes are plain characters.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    return LabelledSet(*catalogue.read_splits(data, "mrpc", ("train", "test"), parse_mrpc))


def parse_mrpc(content: bytes, path: Path) -> Labelled:
    """Parses a file of MRPC. The id of a pair is made of the ids of both sentences."""
    rows = list(below_header(content, path, MRPC_COLUMNS))
    ids = [f"{row[1]}-{row[2]}" for row in rows]
    catalogue.refuse_repeats(ids, [row.line for row in rows], path)
    return Labelled(
        [row[3].strip() for row in rows],
        np.array([int(row.one_of(0, ("0", "1"))) for row in rows], np.int64),
        [row[4].strip() for row in rows],
        ids,
    )


def read_sick(data: Path) -> LabelledSet:
    """Reads SICK: pairs with an entailment class and a relatedness from 1 to 5.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    return LabelledSet(*catalogue.read_splits(data, "sick", _SPLITS, parse_sick))


def parse_sick(content: bytes, path: Path) -> Labelled:
    """Parses a file of SICK."""
    rows = list(below_header(content, path, SICK_COLUMNS))
    classes = [name.upper() for name in NLI_CLASSES]
    ids = [row[0] for row in rows]
    catalogue.refuse_repeats(ids, [row.line for row in rows], path)
    return Labelled(
        [row[1].strip() for row in rows],
        np.array([classes.index(row.one_of(4, classes)) for row in rows], np.int64),
        [row[2].strip() for row in rows],
        ids,
        np.array([row.score(3, 1, 5) for row in rows]),
    )


def read_snli(data: Path) -> LabelledSet:
    """Reads SNLI in SentEval's layout: the files `s1`, `s2` and `labels` with a line per pair.

    Raises:
        InputError: a file is missing, the lengths differ, or a label is unknown.
    """
    folder = catalogue.folder_of(data, "snli")
    splits, contents = {}, []
    for split in _SPLITS:
        paths = [folder / f"{stem}.{split}" for stem in ("s1", "s2", "labels")]
        contents += [catalogue.read_bytes(path) for path in paths]
        first, second = (
            [line.strip() for line in decoded_lines(content, path)]
            for content, path in zip(contents[-3:-1], paths, strict=False)
        )
        labels = parse_labels(contents[-1], paths[-1])
        if not labels or not len(first) == len(second) == len(labels):
            raise InputError(
                f"{folder}: s1.{split}, s2.{split} and labels.{split} have {len(first)}, "
                f"{len(second)} and {len(labels)} lines; expected equal numbers, and at least 1."
            )
        ids = [str(row) for row in range(len(first))]
        indices = np.array([NLI_CLASSES.index(label) for label in labels], np.int64)
        splits[split] = Labelled(first, indices, second, ids)
    return LabelledSet("SNLI", splits, sha256_of(*contents))


def parse_labels(content: bytes, path: Path) -> list[str]:
    """Parses a class of inference on each line."""
    return [row.one_of(0, NLI_CLASSES) for row in table_rows(content, path, (1,))]


FILE = "heldout_flores200_devtest.jsonl"
_FOLDERS = ("parallel", "")


@dataclass(frozen=True)
class Translations:
    """Sentences by language; row i of each language is the same sentence."""

    texts: dict[str, list[str]]
    sha256: str


def read_translations(
    data: Path, languages: Sequence[str], most: int | None = None
) -> Translations:
    """Reads the first `most` sentences in some languages, such as `en` and `tr`.

    Raises:
        InputError: the file is missing, a language is missing in a row, or a sentence is blank.
    """
    from rejoinder.io.formats.json_lines import json_rows  # needs Polars

    path = catalogue.find_file(data, _FOLDERS, [FILE], "the devtest of FLORES-200")
    content = catalogue.read_bytes(path)
    rows = json_rows(content, path, dict.fromkeys(languages, "text")).head(most or 2**31)
    texts = {language: rows[language].str.strip_chars().to_list() for language in languages}
    for language, column in texts.items():
        if "" in column:
            row = column.index("") + 1
            raise InputError(f"{path} row {row}: the sentence in {language!r} is blank.")
    return Translations(texts, sha256_of(content))
