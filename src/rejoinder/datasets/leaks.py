"""Finds sentences of evaluation sets in training text by their hashes, without the sets.

Normalised sentences are hashed, and pairs of them in either order. The package has the hashes of
known evaluation sets. Training data of any form is read as rows of sentences, in blocks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.datasets.catalogue import is_file
from rejoinder.errors import InputError, nearest
from rejoinder.io.formats.compression import decompressed, line_blocks
from rejoinder.io.formats.json_lines import FieldType, first_object, is_json_lines, json_rows
from rejoinder.io.formats.text_lines import BYTE_ORDER_MARK, decoded_lines, long_line
from rejoinder.text.columns import normalize
from rejoinder.text.vocabulary import GOLDEN_GAMMA, mix64

Hashes = NDArray[np.uint64]
Indices = NDArray[np.int64]

PAIRS = "pairs/"
"""Prefix of a set's name for the tensor of its pairs in the shipped list."""
_FILES = tuple(f"evaluation_hashes{end}.safetensors" for end in ("", "_languages", "_newer"))
_UNWRITTEN = "[\u0640\u064b-\u0652\u0670]"
"""The tatweel and the vowel signs of Arabic."""
_ROWS = 32_768
"""Number of sentences to hash at a time."""
_LONGEST = 1_024
"""Most bytes of a normalised sentence. Longer texts match nothing, as no set has any."""

_POWERS = np.array([pow(GOLDEN_GAMMA, i, 2**64) for i in range(1, _LONGEST + 1)], dtype=np.uint64)


def comparable(sentences: pl.Series) -> pl.Series:
    """Returns sentences in a form that all editions of a set share.

    This is NFKC, lower case, only letters and digits, and single spaces between words, without
    the optional vowel signs of Arabic and its tatweel.

    >>> comparable(pl.Series(["A man's  dog.", "a man 's dog ."])).to_list()
    ['a man s dog', 'a man s dog']
    """
    plain = normalize(sentences).str.replace_all(_UNWRITTEN, "")
    return plain.str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars(" ")


def sentence_hashes(sentences: pl.Series) -> Hashes:
    """Returns (N,) uint64, a hash of the comparable form of each sentence.

    Empty and very long sentences have the hash 0. The hash is a polynomial in the UTF-8 bytes
    modulo 2**64, followed by the finaliser of splitmix64. The shipped list consists of these
    hashes: it must be rebuilt after any change of this function.
    """
    parts = (sentences.slice(start, _ROWS) for start in range(0, len(sentences), _ROWS))
    return np.concatenate([no_hashes(), *(_hashes(comparable(part)) for part in parts)])


def _hashes(texts: pl.Series) -> Hashes:
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    fit = (lengths > 0) & (lengths <= _LONGEST)
    flat = np.frombuffer("".join(texts.filter(pl.Series(fit))).encode(), np.uint8)
    kept = lengths[fit]
    starts = np.cumsum(kept) - kept
    offsets = np.arange(len(flat)) - np.repeat(starts, kept)
    terms = (flat.astype(np.uint64) + np.uint64(1)) * _POWERS[offsets]
    sums = np.add.reduceat(terms, starts) if len(kept) else np.empty(0, np.uint64)
    hashes = np.zeros(len(texts), np.uint64)
    hashes[fit] = mix64(sums)
    return hashes


def pair_hashes(first: pl.Series, second: pl.Series) -> Hashes:
    """Returns (N,) uint64, a hash of each pair of sentences that ignores their order.

    It is 0 if the hash of either sentence is 0.

    >>> dogs, cats = pl.Series(["A dog.", ""]), pl.Series(["a cat", "a cat"])
    >>> bool((pair_hashes(dogs, cats) == pair_hashes(cats, dogs)).all())
    True
    """
    return combined_hashes(sentence_hashes(first), sentence_hashes(second))


def combined_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Returns (N,) uint64, the hashes of pairs, from the hashes of their sentences.

    The hash is the smaller one times an odd number plus the larger one, modulo 2**64, followed by
    the finaliser of splitmix64. The shipped list depends on it, as on `sentence_hashes`.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    mixed = mix64(low * np.uint64(GOLDEN_GAMMA) + high)
    return np.where(low == 0, np.uint64(0), mixed)


def no_hashes() -> Hashes:
    """Returns an empty array of hashes."""
    return np.empty(0, np.uint64)


def distinct(*parts: Hashes) -> Hashes:
    """Returns the distinct hashes in ascending order, without 0, which stands for no sentence."""
    hashes = np.concatenate([no_hashes(), *parts])
    return np.unique(hashes[hashes != 0])


def known_indices(known: Hashes, hashes: Hashes) -> tuple[Indices, Indices]:
    """Returns the indices of known hashes in `hashes`, and their indices in `known`.

    `known` is ascending, distinct and without 0. The indices in `hashes` are ascending.
    """
    if not len(known):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    nearest_known = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    hits = np.flatnonzero(known[nearest_known] == hashes)
    return hits, nearest_known[hits]


@dataclass(frozen=True)
class EvaluationHashes:
    """The hashes of one or several evaluation sets, ascending, distinct and without 0."""

    name: str
    sentences: Hashes
    pairs: Hashes
    """Empty for a set of single sentences."""

    @classmethod
    def load(cls, sets: Sequence[str]) -> "EvaluationHashes":
        """Loads the shipped hashes of some sets together.

        Raises:
            InputError: a set is not in the shipped list.
        """
        known = shipped()
        for name in sets:
            if name not in known:
                raise InputError(f"the evaluation set {name!r}: {nearest(name, known)}.")
        chosen = [known[name] for name in sets]
        sentences = distinct(*(each.sentences for each in chosen))
        return cls(", ".join(sets), sentences, distinct(*(each.pairs for each in chosen)))

    def contains(self, texts: pl.Series) -> NDArray[np.bool_]:
        """Returns (N,) bool, whether each text, once normalised, is a sentence of the sets."""
        return _among(self.sentences, sentence_hashes(texts))

    def contains_pairs(self, first: pl.Series, second: pl.Series) -> NDArray[np.bool_]:
        """Returns (N,) bool, whether two texts, once normalised, are a pair of the sets."""
        return _among(self.pairs, pair_hashes(first, second))


def shipped() -> dict[str, EvaluationHashes]:
    """Returns the sets in the package, by name."""
    tensors: dict[str, Hashes] = {}
    for name in _FILES:
        tensors |= load((files("rejoinder") / "data" / name).read_bytes())
    return {
        name: EvaluationHashes(name, sentences, tensors[PAIRS + name])
        for name, sentences in tensors.items()
        if not name.startswith(PAIRS)
    }


def _among(known: Hashes, hashes: Hashes) -> NDArray[np.bool_]:
    is_known = np.zeros(len(hashes), bool)
    is_known[known_indices(known, hashes)[0]] = True
    return is_known


_BLOCK = 1 << 23
"""Number of decompressed bytes of a file in memory at a time."""
_FORMS = (("sentences",), ("premises", "sentence2"), ("sentence1", "sentence2"),
          ("input", "response"), ("text",))  # fmt: skip
"""Fields of JSON lines that hold sentences. The first form with all fields present is used."""
_PAIR = ("sentence1", "sentence2")
_STSB_COLUMNS = (7, 9)
"""Numbers of columns that files of the STS Benchmark have."""
_STSB_SENTENCES = [5, 6]
"""Indices of the columns with sentences in files of the STS Benchmark."""
_NUMBER = re.compile(r"\d+(\.\d*)?")


@dataclass(frozen=True)
class Rows:
    """Rows of a file. The sentences of a row belong together: any two of them are a pair."""

    sentences: pl.Series
    """(S,) strings: the sentences of all rows, one row after the other."""
    offsets: NDArray[np.int64]
    """(R + 1,) int64: row r is `sentences[offsets[r]:offsets[r + 1]]`."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_rows(path: Path, *, columns: int | None = None) -> Iterator[Rows]:
    """Yields the rows of a file, or of the train split of a folder of pairs, in blocks.

    A file holds JSON lines or text. JSON lines have the fields `sentences`, `sentence1` and
    `sentence2`, `premises` and `sentence2`, `input` and `response`, or `text`. A line of text is a
    row, with tabs between its sentences. If a header has `sentence1` and `sentence2`, only those
    columns are read, and in the STS Benchmark's 7 or 9 columns only the two sentences. Compressed
    files are recognised by their content. In other text, `columns` are read; None reads all.

    Raises:
        InputError: the file can't be read, is damaged, or a line has another form than the first.
    """
    if not is_file(path) and path.is_dir():
        from rejoinder.corpus.writer import open_pairs  # needs PyArrow

        for frame in open_pairs(path).iter_frames("train", ["input", "response"]):
            yield _rows(frame)
        return
    first_line, read = 1, None

    def refuse(before: int) -> None:
        raise long_line(str(path), first_line + before)

    for block in line_blocks(decompressed(path), _BLOCK, refuse):
        if read is None:
            if not block.strip():
                first_line += block.count(b"\n")
                continue
            read = _reader(block, path, columns)
        yield read(block, first_line)
        first_line += block.count(b"\n")
    if read is None:
        raise InputError(f"{path} has no sentences: it is empty.")


def _reader(block: bytes, path: Path, columns: int | None) -> Callable[[bytes, int], Rows]:
    """Returns a reader of blocks in the form of the first block."""
    if is_json_lines(block):
        return _json_reader(first_object(block, path), path)
    if b"\0" in block[:4096]:
        raise InputError(f"{path} is not text: it has a zero byte.")
    lines = block.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    return _text_reader(first.decode("utf-8", "replace").removesuffix("\r"), path, columns)


def _json_reader(fields: Mapping[str, Any], path: Path) -> Callable[[bytes, int], Rows]:
    form = next((form for form in _FORMS if fields.keys() >= set(form)), None)
    if form is None:
        known = "; ".join(" and ".join(map(repr, form)) for form in _FORMS)
        found = ", ".join(map(repr, fields)) or "(none)"
        raise InputError(f"{path} has the fields {found}; expected {known}.")
    types: dict[str, FieldType] = dict.fromkeys(form, "text")
    types |= {name: "texts" for name in form if isinstance(fields[name], list)}
    return lambda block, first_line: _rows(json_rows(block, path, types, first_line=first_line))


def _text_reader(first: str, path: Path, columns: int | None) -> Callable[[bytes, int], Rows]:
    names = first.split("\t")
    header = set(_PAIR) <= set(names)
    chosen = None if columns is None else list(range(columns))
    if header:
        chosen = [names.index(name) for name in _PAIR]
    elif len(names) in _STSB_COLUMNS and _NUMBER.fullmatch(names[4]):
        chosen = _STSB_SENTENCES

    def read(block: bytes, first_line: int) -> Rows:
        lines = decoded_lines(block, path, first_line=first_line)
        lines = [line for line in lines if line.strip() and not (header and line == first)]
        fields = pl.Series(lines, dtype=pl.String).str.split("\t")
        if chosen is not None:
            # a line may have fewer columns than others
            fields = fields.list.gather(chosen, null_on_oob=True).list.drop_nulls()
        return _rows(pl.DataFrame({"line": fields}))

    return read


def _rows(frame: pl.DataFrame) -> Rows:
    """Collects the strings of each row, from columns of strings and of lists of strings."""
    is_list = frame.width == 1 and frame.dtypes[0] != pl.String
    lists = frame.select(pl.all() if is_list else pl.concat_list(pl.all())).to_series()
    lengths = lists.list.len().to_numpy().astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Rows(lists.filter(lists.list.len() > 0).explode(), offsets)


LeakSearchProgress = Callable[[str, int], None]
"""Called with the training source and the number of its rows that were searched."""


@dataclass(frozen=True)
class Leak:
    """The normalised sentences and pairs that a training source shares with an evaluation set."""

    train: str
    """Path of the training source."""
    train_rows: int
    """Number of rows of the source."""
    evaluation: str
    """Name of the evaluation set."""
    sentences: int
    """Number of distinct sentences of the set that occur in the source."""
    of_sentences: int
    """Number of distinct sentences of the set."""
    rows: int
    """Number of rows of the source that hold a sentence of the set."""
    pairs: int
    """Number of distinct pairs of the set whose sentences are both in one row of the source."""
    of_pairs: int
    """Number of distinct pairs of the set; 0 for a set of single sentences."""
    examples: tuple[str, ...]
    """The first distinct shared sentences, as written in the source."""


def evaluation_sets(names: Sequence[str]) -> list[EvaluationHashes]:
    """Returns evaluation sets by name, by prefix or by file; without names, all shipped sets.

    A name is `stsb-dev`, for example; `stsb` for its train, dev and test; or the path of a file.

    Raises:
        InputError: a name is neither a set nor a file.
    """
    known = shipped()
    chosen: dict[str, EvaluationHashes] = {} if names else dict(sorted(known.items()))
    for name in names:
        chosen_names = [one for one in sorted(known) if name in (one, one.rpartition("-")[0])]
        family = {one: known[one] for one in chosen_names}
        if not family and not is_file(Path(name)):
            raise InputError(f"{name!r} is neither a file nor a set; {nearest(name, known)}.")
        chosen |= family or {name: _from_file(Path(name))}
    return list(chosen.values())


def _from_file(path: Path) -> EvaluationHashes:
    """Hashes the sentences of a file, and the pairs within each row."""
    sentences, pairs = no_hashes(), no_hashes()
    for rows in read_rows(path, columns=2):
        hashes = sentence_hashes(rows.sentences)
        row_of = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
        sentences = distinct(sentences, hashes)
        pairs = distinct(pairs, row_pairs(hashes, row_of))
    if not len(sentences):
        raise InputError(f"{path} has no sentence to look for.")
    return EvaluationHashes(str(path), sentences, pairs)


def row_pairs(hashes: Hashes, rows: Indices) -> Hashes:
    """Returns the hashes of all pairs of sentences within a row; 0 if either has the hash 0.

    `hashes` (N,) are hashes of sentences, and `rows` (N,) the row of each, ascending.
    """
    pairs, apart = [no_hashes()], 1
    while apart < len(rows):
        together = np.flatnonzero(rows[apart:] == rows[:-apart])
        if not len(together):
            break
        pairs.append(combined_hashes(hashes[together], hashes[together + apart]))
        apart += 1
    return np.concatenate(pairs)


def find_leaks(
    train: Iterable[Path],
    sets: Sequence[EvaluationHashes],
    *,
    examples: int = 0,
    progress: LeakSearchProgress = lambda _source, _rows: None,
) -> list[Leak]:
    """Searches training sources for the sentences and pairs of evaluation sets.

    Returns one `Leak` per source and set, ordered by source, each with the first `examples`
    sentences. Sources are folders of pairs and files for `read_rows`. Memory is bounded by a block
    of a file and the hashes of the sets. `progress` is called after each block.

    Raises:
        InputError: a source can't be read.
    """
    sentences = distinct(*(each.sentences for each in sets))
    pairs = distinct(*(each.pairs for each in sets))
    # for each set (sentences,) bool: which of all sentences belong to it
    members = [np.isin(sentences, each.sentences) for each in sets]
    leaks: list[Leak] = []
    for path in train:
        seen, whole = np.zeros(len(sentences), bool), np.zeros(len(pairs), bool)
        holding = np.zeros(len(sets), np.int64)
        shown: list[list[str]] = [[] for _ in sets]
        done = 0
        for rows in read_rows(path):
            hits, known = known_indices(sentences, sentence_hashes(rows.sentences))
            row_of = np.searchsorted(rows.offsets, hits, side="right") - 1
            for number, of_set in enumerate(member[known] for member in members):
                holding[number] += len(np.unique(row_of[of_set]))
                if len(shown[number]) < examples:
                    fresh = hits[of_set & ~seen[known]]
                    shown[number] += _texts(rows, fresh, examples - len(shown[number]))
            seen[known] = True
            whole[known_indices(pairs, row_pairs(sentences[known], row_of))[1]] = True
            done += len(rows)
            progress(str(path), done)
        leaks += [
            Leak(
                str(path),
                done,
                each.name,
                len(np.intersect1d(each.sentences, sentences[seen], assume_unique=True)),
                len(each.sentences),
                int(holding[number]),
                len(np.intersect1d(each.pairs, pairs[whole], assume_unique=True)),
                len(each.pairs),
                tuple(shown[number]),
            )
            for number, each in enumerate(sets)
        ]
    return leaks


def _texts(rows: Rows, indices: Indices, count: int) -> list[str]:
    """Returns the first `count` distinct sentences at `indices`."""
    chosen = rows.sentences.gather(indices)
    _, firsts = np.unique(sentence_hashes(chosen), return_index=True)
    return chosen.gather(np.sort(firsts)[:count]).to_list()
