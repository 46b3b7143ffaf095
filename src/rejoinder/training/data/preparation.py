"""Prepares a run: its data and their licences, its vocabulary, and the leaks to leave out.

`Mixture` mixes the pairs and labelled files: the task and stream of a step are drawn from the seed
and the number of the step.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.writer import Pairs
from rejoinder.datasets.catalogue import NOT_STATED, DataRow, licence_of_file, licence_of_source
from rejoinder.datasets.leaks import EvaluationHashes
from rejoinder.errors import InputError, TrainingError
from rejoinder.models.card import training_rows
from rejoinder.models.config import read_config
from rejoinder.models.find import find_model
from rejoinder.text.columns import learn_vocabulary, tokenize
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.training.config.settings import RunConfig, TrainingConfig
from rejoinder.training.data.examples import Labelled, LabelledText
from rejoinder.training.data.stream import (
    Batch,
    IdCache,
    LabelledStream,
    PairStream,
    Part,
    Position,
    Stream,
    text_key,
)
from rejoinder.training.objectives import OBJECTIVES, Task

_LISTED = 100
"""Maximum number of sources to list in a message."""
LabelledTasks = Sequence[tuple[Task, Sequence[Labelled]]]
"""The labelled files of each task."""
PreparationProgress = Callable[[int, int], None]
"""Called with the number of pairs read so far and the number of all pairs."""


@dataclass(frozen=True)
class Selection:
    """The sources of a folder of pairs to train on and to leave out."""

    chosen: Mapping[str, int]
    """Number of pairs in the train split, by source."""
    left_out: Mapping[str, int]


def select_sources(pairs: Pairs, training: TrainingConfig) -> Selection:
    """Returns the sources that `training.sources` chooses.

    Raises:
        InputError: the pairs have no source of that name, or no train pair is left.
    """
    present = {name: splits.get("train", 0) for name, splits in pairs.manifest.sources.items()}
    names = training.sources or present
    unknown = [name for name in names if name not in present]
    chosen = {name: count for name, count in present.items() if name in names}
    if unknown or (training.sources and not any(chosen.values())):
        what = f"has no {', '.join(map(repr, unknown))}" if unknown else "has no pair of these"
        raise InputError(
            f"training.sources: {pairs.folder} {what} in its train split: {_listed(present)}."
        )
    left_out = {name: count for name, count in present.items() if name not in chosen}
    return Selection(chosen, left_out)


def _listed(present: Mapping[str, int]) -> str:
    largest = sorted(present.items(), key=lambda item: (-item[1], item[0]))
    more = f", and {len(largest) - _LISTED:,} smaller ones" if len(largest) > _LISTED else ""
    return ", ".join(f"{name} ({count:,})" for name, count in largest[:_LISTED]) + more


def read_labelled(
    task: Task, folder: Path | None, hashes: EvaluationHashes | None, known: dict[str, LabelledText]
) -> list[Labelled]:
    """Returns the files of a task in `folder`, without the sentences in `hashes`.

    Files in `known` are not read again; every file that is read is added to it.

    Raises:
        InputError: no folder is given, a file is missing or has another format, or too few of its
            rows are left.
    """
    kind = OBJECTIVES[task.objective]
    labelled = []
    for file in task.data:
        assert kind.read is not None  # noqa: S101 -- it has data
        if folder is None:
            raise InputError(
                f"the task {task.objective} reads {file.path}; give its folder with `data`."
            )
        path, sets = folder / file.path, "" if hashes is None else hashes.name
        key = f"{kind.read.__module__}.{kind.read.__qualname__} {sets} {file.model_dump_json()}"
        if key not in known:
            known[key] = kind.read(file, path, hashes)
        content = known[key]
        examples: Any = kind.examples(task, content) if kind.examples else content
        if len(examples) < 2:
            raise InputError(
                f"{path} leaves {len(examples)} rows for {task.objective}, and needs 2: "
                f"{content.leaks} have an evaluation sentence, {content.unlabelled} no used label."
            )
        labelled.append(Labelled(file.path, content, examples))
    return labelled


@dataclass(frozen=True)
class Data:
    """The data of a run.

    Labelled files are read once for all tasks that read them in the same way, and stay in memory
    until `forget_labelled`, so that training does not read them again after preparation.
    """

    pairs: Pairs | None = None
    """Read by the task `responses`; None if no task needs pairs."""
    folder: Path | None = None
    """The folder that paths of labelled files are relative to."""
    _texts: dict[str, LabelledText] = field(default_factory=dict, repr=False, compare=False)

    @property
    def pairs_sha256(self) -> str | None:
        """SHA-256 of the pairs, None if there are none."""
        return None if self.pairs is None else self.pairs.sha256

    def needed_pairs(self) -> Pairs:
        """Returns the pairs.

        Raises:
            InputError: there are none.
        """
        if self.pairs is None:
            raise InputError("the task responses reads pairs; name their folder with `pairs`.")
        return self.pairs

    def selection(self, config: RunConfig) -> Selection:
        """Returns the sources of the pairs that a config trains on; none if it reads no pairs.

        Raises:
            InputError: the config names a missing source, or no source is left.
        """
        if not config.reads_pairs:
            return Selection({}, {})
        return select_sources(self.needed_pairs(), config.training)

    def labelled(
        self, config: RunConfig, leak_sets: Sequence[str]
    ) -> list[tuple[Task, list[Labelled]]]:
        """Returns the labelled files of each task, without the sentences of `leak_sets`.

        Raises:
            InputError: a task needs a folder and there is none, or a file can't be used.
        """
        hashes = _hashes(leak_sets)
        return [
            (task, read_labelled(task, self.folder, hashes, self._texts)) for task in config.mixture
        ]

    def forget_labelled(self) -> None:
        """Frees the memory of the labelled files; `labelled` then reads them again."""
        self._texts.clear()


WordRows = NDArray[np.float16]
"""(W, D) unit rows of the first W ids; zero if a word keeps its random row."""


@dataclass(frozen=True)
class Prepared:
    """The result of preparation: the vocabulary, the leaks, facts about labelled files."""

    features: TextFeatures
    excluded: dict[int, NDArray[np.int64]]
    """Indices of the pairs left out, as leaks or by their source, by block number; complete blocks
    are absent."""
    pairs: int
    """Number of pairs of the chosen sources in the train split, including leaks."""
    leaks: int
    """Number of these pairs left out as leaks."""
    labelled: dict[str, dict[str, Any]]
    """Result of `labelled_facts` for each labelled file, by path."""
    rows: WordRows | None = None
    """The rows that training starts from; None for random rows."""
    leaks_by_set: dict[str, int] = field(default_factory=dict)
    """Number of the pairs left out as leaks by evaluation set; a pair can count for several."""
    leak_sets: Sequence[str] = ()
    """The evaluation sets known when the run began; a later version may know more."""
    initial: Mapping[str, Any] = field(default_factory=dict)
    """Name, hash and training data of the model that training starts from, if there is one."""


def _hashes(sets: Sequence[str]) -> EvaluationHashes | None:
    """Returns the sentences to exclude from training; None for no exclusions."""
    return EvaluationHashes.load(sets) if sets else None


def prepare(
    data: Data, config: RunConfig, progress: PreparationProgress, features: TextFeatures | None
) -> Prepared:
    """Learns the vocabulary and finds what to leave out, in one pass over the train split.

    `features` are from the model that training starts from; None learns a vocabulary.

    Raises:
        InputError: no word is frequent enough, or data is missing or unusable.
    """
    blocks = data.needed_pairs().blocks("train") if config.reads_pairs else ()
    total = sum(block.rows for block in blocks)
    selection = data.selection(config)
    pairs = 0
    excluded: dict[int, NDArray[np.int64]] = {}
    left_out: list[pl.DataFrame] = []  # the leaks themselves
    sets = config.training.excluded_sets
    tasks = data.labelled(config, sets)

    def texts() -> Iterator[pl.Series]:
        nonlocal pairs
        yield from distinct_texts(tasks)
        done, hashes = 0, _hashes(sets)
        columns = ["input", "response", *(["source"] if selection.left_out else [])]
        for number, block in enumerate(blocks):
            frame = data.needed_pairs().read(block, columns)
            kept = np.arange(len(frame))
            if selection.left_out:
                kept = np.flatnonzero(frame.get_column("source").is_in(list(selection.chosen)))
                frame = frame[kept]
            inputs, responses = frame.get_column("input"), frame.get_column("response")
            pairs += len(kept)
            if hashes is not None:
                leaked = hashes.contains(inputs) | hashes.contains(responses)
                left_out.append(frame.filter(pl.Series(leaked)))
                kept = kept[~leaked]
            if len(kept) < block.rows:
                excluded[number] = np.setdiff1d(np.arange(block.rows), kept)
            yield pl.concat([inputs, responses])
            done += block.rows
            progress(done, total)

    if features is None:
        features = _features(texts(), config, _allowed_words(data, tasks))
    else:
        for _ in texts():  # read only to find leaks
            pass
    return Prepared(
        features,
        excluded,
        pairs,
        sum(map(len, left_out)),
        labelled_facts(tasks),
        leaks_by_set=_counted(left_out, sets),
        leak_sets=sets,
    )


def distinct_texts(tasks: LabelledTasks) -> Iterator[pl.Series]:
    """Yields the texts of labelled files, once for files that two tasks read in the same way."""
    contents = {id(file.content): file.content for _, files in tasks for file in files}
    for content in contents.values():
        yield pl.Series(content.texts, dtype=pl.String)


def _counted(leaks: Sequence[pl.DataFrame], sets: Sequence[str]) -> dict[str, int]:
    """Returns the number of leaked pairs by evaluation set."""
    if not leaks:
        return dict.fromkeys(sets, 0)
    frame = pl.concat(leaks)
    counts = {}
    for name in sets:
        hashes = EvaluationHashes.load((name,))
        found = hashes.contains(frame["input"]) | hashes.contains(frame["response"])
        counts[name] = int(found.sum())
    return counts


def labelled_facts(tasks: LabelledTasks) -> dict[str, dict[str, Any]]:
    """Returns the SHA-256 of each labelled file, its rows by task, and the rows left out."""
    facts: dict[str, dict[str, Any]] = {}
    for task, files in tasks:
        for file in files:
            rows = facts[file.name]["rows"] if file.name in facts else {}
            facts[file.name] = {
                "sha256": file.content.sha256,
                "rows": {**rows, task.label: len(file.examples)},
                "leaks": file.content.leaks,
                "unlabelled": file.content.unlabelled,
            }
    return facts


def _allowed_words(data: Data, tasks: LabelledTasks) -> frozenset[str] | None:
    """Returns the words that the vocabulary may contain; None for all.

    Pairs of private conversations list the words that several people used. Words of labelled files,
    which anybody can have, are also allowed.
    """
    if data.pairs is None or data.pairs.words is None:
        return None
    labelled = (tokenize(texts).explode().drop_nulls() for texts in distinct_texts(tasks))
    return data.pairs.words.union(*labelled)


def _features(
    texts: Iterator[pl.Series], config: RunConfig, allowed: frozenset[str] | None
) -> TextFeatures:
    text = config.text
    if text.kind == "subwords":
        from rejoinder.text.vocabulary import learn_subwords

        return learn_subwords(
            texts, size=text.max_words, min_count=text.min_count, max_tokens=text.max_tokens
        )
    vocabulary, _ = learn_vocabulary(
        texts,
        max_words=text.max_words,
        min_count=text.min_count,
        allowed=allowed,
        fold=text.fold_marks,
    )
    return WordFeatures(vocabulary, text.bigram_buckets, text.unknown_buckets, text.fold_marks)


def data_rows(config: RunConfig, pairs: Pairs | None = None) -> list[DataRow]:
    """Returns the sources of pairs and the labelled files that a config trains on.

    Without `pairs`, only the sources in `training.sources` are known, and only by name; if the
    config names none, a single row stands for all sources, without a licence.

    Raises:
        InputError: the config names a source that is not in the pairs, or no source is left.
        ModelError: the model that training starts from is missing.
    """
    rows = _sources(config, pairs) if config.reads_pairs else []
    files = dict.fromkeys(file.path for task in config.mixture for file in task.data)
    rows += [DataRow("file", path, licence_of_file(path)) for path in files]
    if config.training.init_from:
        initial = read_config(find_model(config.training.init_from))
        rows += training_rows(initial.get("training") or {}, initial.get("adaptation"))
    return rows


def _sources(config: RunConfig, pairs: Pairs | None) -> list[DataRow]:
    if pairs is not None:
        inputs = [str(file["file"]) for file in pairs.manifest.inputs]
        chosen = select_sources(pairs, config.training).chosen
        return [
            DataRow("source", name, licence_of_source(name, inputs), count)
            for name, count in chosen.items()
            if count
        ]
    named = [DataRow("source", name, licence_of_source(name)) for name in config.training.sources]
    return named or [DataRow("source", "the pairs", NOT_STATED)]


_IDS = "ids"
"""Folder of the cache of token ids in the run's folder."""
_DRAW = 0x3141
"""Makes the draws of streams differ from other draws with the same seed."""


@dataclass(frozen=True, slots=True)
class MixedBatch:
    """A batch with the task and the stream that it comes from."""

    task: Task
    stream: str
    batch: Batch


class Mixture:
    """Batches of several streams; each step takes a batch from one stream.

    The state of a mixture is the position of each stream, as the draw depends only on the step.
    """

    def __init__(self, tasks: Sequence[tuple[Task, Sequence[Stream]]], seed: int) -> None:
        """Divides the share of each task among its streams in proportion to (rows)^power."""
        self._streams: list[tuple[Task, Stream]] = []
        shares: list[float] = []
        for task, streams in tasks:
            parts = np.array([stream.rows for stream in streams], np.float64) ** task.power
            shares += (task.share * parts / parts.sum()).tolist()
            self._streams += [(task, stream) for stream in streams]
        self.shares = {
            f"{task.label}/{stream.name}": share
            for (task, stream), share in zip(self._streams, shares, strict=True)
        }
        """Share of the steps of each stream, by its name."""
        self._bounds = np.cumsum(shares)[:-1]
        self._seed = seed

    def drawn(self, step: int) -> int:
        """Returns the index of the stream that `step` (from 0) belongs to."""
        if not len(self._bounds):
            return 0
        value = np.random.default_rng([self._seed, _DRAW, step]).random()
        return int(np.searchsorted(self._bounds, value, side="right"))

    def batches(
        self, step: int, positions: Mapping[str, Position], size: Callable[[int, Task], int]
    ) -> Iterator[MixedBatch]:
        """Yields the batches of all steps from `step` (counted from 0).

        `positions` are positions of streams by name; absent streams are at their start. `size`
        returns the batch size of a task at a step.
        """
        now = step

        def opened(name: str, task: Task, stream: Stream) -> Iterator[Batch]:
            start = positions.get(name, Position())
            return stream.batches(start, lambda: size(now, task))

        names = list(self.shares)
        batches = [opened(name, *each) for name, each in zip(names, self._streams, strict=True)]
        while True:
            index = self.drawn(now)
            yield MixedBatch(self._streams[index][0], names[index], next(batches[index]))
            now += 1


def open_cache(
    run: Path, config: RunConfig, data: Data, prepared: Prepared, workers: int
) -> IdCache | None:
    """Returns the cache of token ids of a worker; None if the config has no cache."""
    most = config.training.id_cache_gb
    if not most or not config.reads_pairs:
        remove_cache(run)
        return None
    text = text_key(run / "vocabulary", prepared.features.config())
    return IdCache(run / _IDS, data.needed_pairs(), text, most * 1e9, workers)


def remove_cache(run: Path) -> None:
    """Removes the cache of token ids of a run."""
    shutil.rmtree(run / _IDS, ignore_errors=True)


def open_mixture(
    config: RunConfig, data: Data, prepared: Prepared, cache: IdCache | None, part: Part
) -> Mixture:
    """Opens the streams of all tasks; `part` is the worker's part of each batch.

    Raises:
        TrainingError: a labelled file is not the same as at the start of the run.
        InputError: a labelled file has too few rows for this number of workers.
    """
    seed = config.training.seed
    labelled = data.labelled(config, prepared.leak_sets)
    facts = labelled_facts(labelled)
    for name in {**facts, **prepared.labelled}:
        if facts.get(name) != prepared.labelled.get(name):
            raise TrainingError(
                f"{name} is not the file that the run began with; name its folder with `data`."
            )
    tasks = []
    for task, files in labelled:
        for file in files:
            part.check(len(file.examples), f"{task.label} from {file.name}")
        own = task.word_dropout
        dropout = config.objective.word_dropout if own is None else own
        streams: list[Stream] = [
            LabelledStream(file, prepared.features, seed=seed, word_dropout=dropout, part=part)
            for file in files
        ]
        if OBJECTIVES[task.objective].read is None:
            pairs = PairStream(
                data.needed_pairs(),
                prepared.features,
                seed=seed,
                excluded=prepared.excluded,
                word_dropout=dropout,
                cache=cache,
                part=part,
            )
            streams = [pairs]
        tasks.append((task, streams))
    return Mixture(tasks, seed)
