"""Reads the pairs given to library calls, and scores models on held-out pairs.

`folder_of_pairs` takes folders or rows in memory. `DevScores` chooses the best weights during
training, and scores exported models. `HeldOut` and `Questions` score a model that is fine-tuned.
"""

import json
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import polars as pl

from rejoinder.corpus.options import PAIR_FIELDS
from rejoinder.corpus.writer import Pairs, open_pairs
from rejoinder.datasets.groups import FIELDS, graded_rows, read_graded, read_groups
from rejoinder.datasets.semeval import GradedPairs, read_stsb
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.responses import ResponsePairs, ranked_responses, recall_of_all
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.neighbours import nearest_rows
from rejoinder.io.files.storage import scratch_folder
from rejoinder.measures import angular_similarity, pearson_correlation
from rejoinder.protocols import Encodes

Shares = tuple[float, float, float]


@runtime_checkable
class Table(Protocol):
    """A table of Polars, pandas, Arrow or any library that exports its columns as Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the columns."""


GivenPairs = str | Path | Table | Iterable[tuple[str, str] | Mapping[str, str]]
"""A folder that `extract` wrote, rows of message and reply, or a table with these columns."""
Graded = str | Path | Table | Iterable[tuple[str, str, float] | Mapping[str, Any]]
"""A path, rows of two sentences and a score from 0 to 5, or a table with these columns."""


@contextmanager
def folder_of_pairs(given: GivenPairs, shares: Shares) -> Iterator[Path]:
    """Yields a folder of pairs. Pairs in memory are all extracted to a scratch folder.

    Args:
        given: The folder, or pairs.
        shares: Shares of train, dev and test for pairs in memory. The hash of the message decides
            the split, so that all replies to it are in the same one.

    Raises:
        InputError: a pair lacks a message or a reply.
        MissingExtraError: the packages that extract pairs are not installed.
    """
    if isinstance(given, str | Path):
        yield Path(given)
        return
    from rejoinder.corpus.extract import extract  # needs more packages than training

    frame = _frame(given, PAIR_FIELDS, "the pairs")
    with scratch_folder() as work:
        file, folder = work / "pairs.parquet", work / "pairs"
        frame.write_parquet(file)
        names = dict(zip(PAIR_FIELDS, PAIR_FIELDS, strict=True))
        extract(file, folder, rules="none", columns=names, split=shares)
        yield folder


def graded_in_memory(given: Table | Iterable[Any]) -> GradedPairs:
    """Returns graded pairs that are not in a file.

    Raises:
        InputError: a pair lacks a sentence, or its score is not a number from 0 to 5.
    """
    return graded_rows(_frame(given, FIELDS, "the graded pairs"))


def _frame(given: object, columns: Sequence[str], what: str) -> pl.DataFrame:
    """Returns rows with `columns`; all but score are strings."""
    if isinstance(given, Table):
        frame: pl.DataFrame = pl.DataFrame(given)
    elif isinstance(given, Iterable):
        frame = _of_rows(list(given), columns, what)
    else:
        raise InputError(f"{what} are a {type(given).__name__}; give a path or rows.")
    if missing := [name for name in columns if name not in frame.columns]:
        raise InputError(
            f"{what} have no column {', '.join(map(repr, missing))}; their columns are "
            f"{', '.join(map(repr, frame.columns[:20]))}."
        )
    frame = frame.select(columns)
    if frame.is_empty():
        raise InputError(f"{what} are empty.")
    for name in columns:
        column = frame[name]
        if name != "score" and column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            raise InputError(f"{name} of {what} is a column of {column.dtype}, not of strings.")
        if column.null_count():
            row = column.is_null().arg_max()
            raise InputError(f"row {row} of {what} has no {name}; leave it out.")
    return frame.with_columns(pl.col(name).cast(pl.String) for name in columns if name != "score")


def _of_rows(rows: Sequence[Any], columns: Sequence[str], what: str) -> pl.DataFrame:
    """Returns tuples or dictionaries as a table."""
    values: list[list[Any]] = []
    for number, row in enumerate(rows):
        named = isinstance(row, Mapping)
        is_row = named or (isinstance(row, Sequence) and not isinstance(row, str))
        one = [row.get(name) for name in columns] if named else list(row) if is_row else []
        if len(one) != len(columns):
            found = f"has {len(one)} values" if is_row else f"is {reprlib.repr(row)}"
            raise InputError(f"row {number} of {what} {found}; ({', '.join(columns)}) is needed.")
        for name, value in zip(columns, one, strict=True):
            kind, needed = (Real, "a number") if name == "score" else (str, "a string")
            if not isinstance(value, kind):
                raise InputError(
                    f"row {number} of {what}: {name} is {reprlib.repr(value)}; {needed} is needed."
                )
        values.append(one)
    schema = {name: pl.String if name != "score" else pl.Float64 for name in columns}
    return pl.DataFrame(values, schema, orient="row", strict=False)


def response_pairs(folder: Path, split: str, without: Collection[str] = ()) -> ResponsePairs:
    """Reads the split `train`, `dev` or `test` of a folder that `rejoinder extract` wrote.

    Pairs of the sources `without` are left out.

    Raises:
        InputError: the folder holds no usable pairs.
    """
    pairs = open_pairs(folder)
    frame = pairs.frame(split, ["input", "response", "source"])
    if without:
        frame = frame.filter(~frame.get_column("source").is_in(list(without)))
    inputs, responses, sources = (frame.get_column(name).to_list() for name in frame.columns)
    return ResponsePairs(split, inputs, responses, sources, pairs.sha256)


class DevScores:
    """Scores an encoder on the dev split of the pairs and of the STS Benchmark."""

    def __init__(
        self,
        pairs: Path | None,
        data: Path | None,
        *,
        max_inputs: int | None = None,
        without: Collection[str] = (),
        needed: bool = False,
    ) -> None:
        """Reads the dev splits of a folder of pairs and of a folder of data sets, if given.

        Pairs of the sources `without` are left out, so that sources excluded from training don't
        choose the weights either.

        Raises:
            InputError: the folder of pairs is not usable, or the benchmark is damaged.
            DataMissingError: the benchmark is `needed` but missing.
        """
        self._max_inputs, self._needed = max_inputs, needed
        self._pairs = None if pairs is None else response_pairs(pairs, "dev", without)
        try:
            self._benchmark = None if data is None else read_stsb(data, "dev")
        except DataMissingError:
            if needed:
                raise
            self._benchmark = None

    def __call__(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns the scores by name; scores on pairs come first, if there are any."""
        return {**self.responses(encoder), **self.similarity(encoder)}

    def responses(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns P@1, P@3 and P@10 of `max_inputs` inputs (None means all)."""
        if self._pairs is None or (len(self._pairs) < 2 and not self._needed):
            return {}
        ranked = ranked_responses(Embedder(encoder), self._pairs, max_inputs=self._max_inputs)
        return ranked.precisions

    def similarity(self, encoder: Encodes) -> Mapping[str, float]:
        """Returns `STS-B Pearson` (angular)."""
        if self._benchmark is None:
            return {}
        return {"STS-B Pearson": agreement(Embedder(encoder), self._benchmark)}


def agreement(embedder: Embedder, pairs: GradedPairs) -> float:
    """Returns Pearson's r of angular similarities with gold, as in `stsb/angular`.

    Raises:
        InputError: an embedding is not usable, or the correlation is not defined.
    """
    cosine, _ = embedder.similarity(pairs.first, pairs.second, f"stsb on {pairs.split}")
    return pearson_correlation(angular_similarity(np.clip(cosine, -1, 1)), pairs.gold)


LEAST_PAIRS = 20
"""Fewest held-out pairs that can show whether a model got better."""
_LEAST = 200
"""Fewest groups or graded pairs: a tenth is held out for dev and another for test."""
_RANKED = 3_000
"""Inputs of the dev split that weights are chosen on."""
QUESTIONS_SCORE = "questions P@1"
Split = Literal["train", "dev", "test"]


def tenths(count: int, split: Split) -> Sequence[int]:
    """Returns the rows of a split: of every ten rows, one is dev and one is test.

    >>> tenths(11, "dev"), tenths(11, "test"), len(tenths(11, "train"))
    ([8], [9], 9)
    """
    last = {"dev": (8,), "test": (9,)}.get(split, range(8))
    return [row for row in range(count) if row % 10 in last]


class Questions:
    """Groups of questions, each of which has the same answer."""

    def __init__(self, path: Path) -> None:
        """Reads a file for `read_groups`.

        Raises:
            InputError: the file can't be read, or has too few groups.
        """
        self._groups = read_groups(path)
        _refuse_few(len(self._groups), "groups", path)

    def write_train(self, path: Path) -> None:
        """Writes the groups to train on, as JSON lines."""
        rows = tenths(len(self._groups), "train")
        lines = [json.dumps({"sentences": self._groups[row]}) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines))

    def found_first(self, encoder: SentenceEncoder, split: Split) -> float:
        """Returns the share of questions whose nearest other question is in the same group."""
        groups = [dict.fromkeys(self._groups[row]) for row in tenths(len(self._groups), split)]
        texts = [text for group in groups for text in group]
        group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        rows = encoder.encode(texts)
        nearest, _ = nearest_rows(rows, rows, 2)
        own = np.arange(len(texts))
        other = np.where(nearest[:, 0] == own, nearest[:, 1], nearest[:, 0])
        return float((group_of[other] == group_of).mean())


class HeldOut:
    """Scores models on held-out data."""

    def __init__(
        self, pairs: Pairs, data: Path | None, questions: Path | None, graded: Path | None
    ) -> None:
        """Reads the dev and test threads of `pairs`, and the other held-out data if given.

        Raises:
            InputError: a file can't be read, or is too small.
        """
        for split in ("dev", "test"):
            if pairs.count(split) < LEAST_PAIRS:
                raise InputError(
                    f"{pairs.count(split):,} of {pairs.manifest.counts.pairs:,} pairs are {split}, "
                    f"and {LEAST_PAIRS} are needed. Extract with `split=(60, 20, 20)`, with "
                    "`rules='none'`, or from more conversations."
                )
        self.questions = None if questions is None else Questions(questions)
        self._graded = None if graded is None else read_graded(graded)
        if self._graded is not None:
            _refuse_few(len(self._graded), "pairs", graded)
        self._dev = DevScores(pairs.folder, data, max_inputs=_RANKED)
        self._test = response_pairs(pairs.folder, "test")

    def graded(self, split: Split) -> GradedPairs | None:
        """Returns the graded pairs of a split."""
        return self._graded and self._graded.at(tenths(len(self._graded), split))

    def dev(self, encoder: SentenceEncoder) -> float:
        """Returns the score that chooses weights: P@1 of replies, and of questions if any."""
        found = next(iter(self._dev.responses(encoder).values()))
        return found + (self.questions.found_first(encoder, "dev") if self.questions else 0.0)

    def test(self, encoder: SentenceEncoder) -> Mapping[str, float]:
        """Returns the scores by name; P@1 of replies comes first."""
        embedder = Embedder(encoder)
        scores = ranked_responses(embedder, self._test).precisions
        first, *_, last = scores  # P@1 and P@10, of 100 replies or all if there are fewer
        found = {first: scores[first], last: scores[last]}
        found["recall@10 of all"] = recall_of_all(embedder, self._test, 10)
        if self.questions:
            found[QUESTIONS_SCORE] = self.questions.found_first(encoder, "test")
        if graded := self.graded("test"):
            found["graded pairs"] = agreement(embedder, graded)
        for value in self._dev.similarity(encoder).values():
            found["STS-B dev"] = value
        return found


def _refuse_few(count: int, what: str, path: Path | None) -> None:
    if count < _LEAST:
        raise InputError(
            f"{path} has {count} {what}; {_LEAST} are needed, because a tenth is held out."
        )
