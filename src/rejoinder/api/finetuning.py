"""Fine-tunes a model on your pairs, and keeps it only if it got better.

It adds the words of the pairs to the model, trains it further by a recipe, and chooses the weight
of meaning in a hybrid search.
"""

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder.api.pairs import QUESTIONS_SCORE, GivenPairs, HeldOut, folder_of_pairs
from rejoinder.api.training import Run, train
from rejoinder.corpus.writer import Pairs, open_pairs
from rejoinder.encoders import ENCODERS
from rejoinder.encoders.layers import BagSums, dequantized
from rejoinder.errors import InputError
from rejoinder.index.indexing import Index
from rejoinder.index.ranking import DEPTH
from rejoinder.index.state import Mode
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.sentence_stream import model_for
from rejoinder.io.files.claims import claim_output
from rejoinder.io.files.storage import scratch_folder
from rejoinder.measures import unit_rows
from rejoinder.models.adaptation import FitSettings, fit_adaptation
from rejoinder.models.config import RESPONSES
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures
from rejoinder.text.languages import FOUND
from rejoinder.text.readings import Spelling
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.config.loading import VOCABULARY_KEYS, parse_config
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import PreparationProgress
from rejoinder.training.initial_rows import FUNCTION_WORDS
from rejoinder.training.loop.checkpoint import Reporter

WEIGHTS = (0.25, 0.2, 0.3, 0.15, 0.4, 0.1, 0.5, 0.05, 0.7, 0.0, 1.0)
"""Weights of meaning to try, including 0 and 1. Of equally good ones, the first wins."""
_QUERIES = 1_000


@dataclass(frozen=True)
class SearchWeight:
    """How well each kind of search finds the replies of the dev split.

    Scores are MRR: the mean of 1 / rank of the reply among 100 hits, 0 if it is not among them.
    """

    weight: float
    """The weight of meaning with the highest score of a hybrid search."""
    meaning: float
    words: float
    both: float
    queries: int


def search_weight(encoder: SentenceEncoder, pairs: Pairs, folder: Path) -> SearchWeight:
    """Returns the weight with which a hybrid search finds most replies of the dev split.

    All distinct replies are indexed in `folder`, as responses. The queries are at most 1,000
    messages from all over the split.
    """
    rows = pairs.frame("dev", ["input", "response"])
    replies = rows["response"].unique(maintain_order=True)
    numbers = {reply: number for number, reply in enumerate(replies)}
    asked = rows.gather_every(-(-len(rows) // _QUERIES))
    right = [str(numbers[reply]) for reply in asked["response"]]
    index = Index.create(folder, [(str(n), reply) for reply, n in numbers.items()], encoder,
                         response=True, recall=1)  # fmt: skip
    queries = asked["input"].to_list()

    def mrr(mode: Mode, weight: float | None = None) -> float:
        hits = index.search(queries, DEPTH, mode=mode, weight=weight)
        found = ([hit.id for hit in of_query] for of_query in hits)
        return float(np.mean([
            1 / (1 + ids.index(one)) if one in ids else 0.0
            for ids, one in zip(found, right, strict=True)
        ]))  # fmt: skip

    found = {weight: mrr("hybrid", weight) for weight in WEIGHTS}
    best = max(WEIGHTS, key=lambda weight: found[weight])
    return SearchWeight(best, mrr("semantic"), mrr("words"), found[best], len(queries))


_PROBED = 40
"""Steps after which the time per step is known."""
_SURE = 120
"""So few steps take less than a minute even on slow machines, so their speed is not measured."""
_MOST_WORDS = 50_000
_SPLIT = (80.0, 10.0, 10.0)
"""Shares of train, dev and test in pairs in memory."""
Stage = Callable[[str], None]


@dataclass(frozen=True)
class FineTuned:
    """The outcome of fine-tuning."""

    folder: Path | None
    """The model; None if it got worse and was not kept."""
    before: Mapping[str, float]
    """Scores of the original model on the held-out threads of the test split."""
    after: Mapping[str, float]
    pairs: int
    """Number of pairs trained on."""
    words: int
    """Number of words added to the model."""
    steps: int
    seconds: float
    share: float
    """Share of the trained weights in the final ones, from 0 (old) to 1 (trained)."""
    search: SearchWeight
    """The default weight of hybrid searches, for indexes made with the model."""
    model: str
    """Name or folder of the original model."""

    @property
    def first_found(self) -> Mapping[str, tuple[float, float]]:
        """P@1 before and after, of replies and, if there are any, of questions."""
        names = [next(iter(self.before)), *({QUESTIONS_SCORE} & {*self.before})]
        return {name: (self.before[name], self.after[name]) for name in names}

    @property
    def is_better(self) -> bool:
        """Whether replies and questions together are ranked first at least as often as before."""
        return sum(after - before for before, after in self.first_found.values()) >= 0


def finetune(
    pairs: GivenPairs,
    *,
    out: str | Path,
    model: str | Path | None = None,
    minutes: float = 5.0,
    questions: str | Path | None = None,
    sts: str | Path | None = None,
    data: str | Path | None = None,
    seed: int = 0,
    threads: int | None = None,
    force: bool = False,
    overwrite: bool = False,
    reporter: Reporter | None = None,
    progress: PreparationProgress | None = None,
    stage: Stage = lambda _doing: None,
) -> FineTuned:
    """Trains a model further on pairs, and writes it if it got better at finding replies.

    The model keeps its shape, words and licence terms, and learns the words of the pairs. The mix
    of old and trained weights is chosen on the dev split (Wortsman et al. 2022, Robust fine-tuning
    of zero-shot models); the reported scores are from the test split.

    Args:
        pairs: a folder that `extract` wrote, with dev and test pairs; rows of message and reply; or
            a table of Polars, pandas or Arrow with these columns. Of rows in memory 80 % are
            trained on, 10 % are dev and 10 % test, by a hash of the message.
        out: the model folder to write.
        model: name or folder of the model to start from. Default: `rejoinder-base`, or the only
            installed model that covers all languages of the pairs.
        minutes: about how long to train. Small data takes less.
        questions: a file of groups of questions with the same answer, as `read_groups` reads them.
            Training includes them, and a tenth of them is held out to measure the effect.
        sts: a file of graded pairs, as `read_graded` reads them. A linear map is fitted on them
            after the training (see `adapt`).
        data: a folder of data sets. If it holds the STS Benchmark, its dev split shows whether
            general similarity got worse.
        seed: seed of the order of the pairs.
        threads: number of CPU threads; None leaves torch's setting.
        force: keep a model that got worse.
        overwrite: replace what is at `out`.
        reporter: told about steps.
        progress: called with the number of prepared pairs and the number of all pairs.
        stage: called with a description of each stage.

    Raises:
        RejoinderError: the pairs or the model can't be used, or `out` can't be written.
    """
    target = Path(out)
    groups, graded, sets = (None if one is None else Path(one) for one in (questions, sts, data))
    inputs = [pairs, *filter(None, (model, groups, graded))]
    with (
        claim_output(target, overwrite=overwrite, inputs=inputs),
        folder_of_pairs(pairs, _SPLIT) as folder,
    ):
        opened = open_pairs(folder)
        held_out = HeldOut(opened, sets, groups, graded)
        if model is None:
            some = next(_texts(opened), pl.Series(dtype=pl.String))
            model = model_for(some.to_list(), FOUND)
        start = read_model(find_model(str(model)))
        stage("scoring the model as it is")
        before = held_out.test(SentenceEncoder(start))
        stage("learning the words")
        words = _new_words(start, opened)
        wider = widened(start, words, _texts(opened))
        with scratch_folder() as work:
            write_model(work / "start", wider)
            if held_out.questions:
                held_out.questions.write_train(work / QUESTIONS)
            count, begin = opened.count("train"), str(work / "start")
            asks = held_out.questions is not None
            trained_on = partial(train, pairs=folder, data=work if asks else None, threads=threads)
            planned = partial(recipe, wider, begin, target.name, count, questions=asks, seed=seed)
            config = planned()
            if config.steps > max(2 * _PROBED, _SURE * minutes):
                stage("measuring the speed")
                probe = trained_on(config, out=work / "probe", stop_at=_PROBED)
                _end_if_interrupted(probe)
                most = max(1, int(60 * minutes * _PROBED / max(probe.seconds, 1e-3)))
                config = planned(most_steps=most)
            stage("training")
            run = trained_on(
                config,
                out=work / "run",
                evaluate=lambda _encoder: {},
                reporter=reporter,
                progress=progress,
            )
            _end_if_interrupted(run)
            trained = read_model(run.folder / "model")
        stage("choosing between the old and the trained weights")
        # of equal scores the first wins, which is nearest to the old weights
        on_dev = {one: held_out.dev(SentenceEncoder(mixed(wider, trained, one))) for one in SHARES}
        share = max(on_dev, key=on_dev.__getitem__)
        made = _begun_from(str(model), mixed(wider, trained, share))
        if start.weight_type != made.weight_type:
            made = smaller(made, ExportOptions(dtype=start.weight_type))
        if (fitting := held_out.graded("train")) and (choosing := held_out.graded("dev")):
            stage("fitting a linear map on the graded pairs")
            settings = FitSettings(seed=seed)
            adaptation = fit_adaptation(
                SentenceEncoder(made), fitting, choosing, settings, name="graded pairs"
            )
            made = replace(made, adaptation=adaptation)
        stage("choosing the weight of a hybrid search")
        with scratch_folder() as work:
            write_model(work / "model", made)
            search = search_weight(SentenceEncoder(work / "model"), opened, work / "index")
        made = replace(made, training={**made.training, "search_weight": search.weight})
        stage("scoring the fine-tuned model")
        after = held_out.test(SentenceEncoder(made))
        tuned = FineTuned(
            folder=target,
            before=before,
            after=after,
            pairs=run.pairs,
            words=len(words),
            steps=run.steps,
            seconds=run.seconds,
            share=share,
            search=search,
            model=str(model),
        )
        if not (tuned.is_better or force):
            return replace(tuned, folder=None)
        write_model(target, made, overwrite=overwrite)
    return tuned


def _end_if_interrupted(run: Run) -> None:
    """Raises a signal that training caught again in this process, which then ends."""
    if run.interrupted is not None:
        signal.raise_signal(run.interrupted)


def _texts(pairs: Pairs) -> Iterator[pl.Series]:
    """Yields the texts of the train split."""
    for frame in pairs.iter_frames("train", ["input", "response"]):
        yield pl.concat([frame["input"], frame["response"].rename("input")])


def _new_words(model: ModelContents, pairs: Pairs) -> list[str]:
    """Returns the words of the pairs that the model does not know, the most frequent first."""
    features = model.features
    if not isinstance(features, WordFeatures):
        return []
    least = 3 if pairs.count("train") < _FEW else 5
    try:
        learned, _ = learn_vocabulary(
            _texts(pairs),
            max_words=_MOST_WORDS,
            min_count=least,
            allowed=pairs.words,
            fold=features.fold_marks,
        )
    except InputError:  # no word is frequent enough, or several people's
        return []
    known = set(features.vocabulary.words)
    return [word for word in learned.words if word not in known]


def _begun_from(name: str, model: ModelContents) -> ModelContents:
    """Returns a model whose config names the original model instead of a scratch folder."""
    config = model.training["config"]
    config = {**config, "training": {**config["training"], "init_from": name}}
    return replace(model, training={**model.training, "config": config})


Rows = NDArray[np.float32]

_SPELT = 0.8
"""Weight of the known word that differs in one letter from a new word; its context weighs 1."""
_TEXTS = 20_000
_FEW = 100_000
"""Number of pairs above which words must occur more often to be added."""
_BATCHES = ((20_000, 256, 12), (500_000, 1_024, 6), (None, 2_048, 1))
"""Largest number of pairs, with the batch size and the number of passes over them."""
_RATE, _TABLE_RATE = 0.0003, 0.01
QUESTIONS = "questions.jsonl"
"""File of groups of questions, below the folder of data."""
_OF_QUESTIONS = 0.3
"""Share of the steps for questions."""
SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the trained weights to try on dev."""


def widened(
    model: ModelContents, words: Sequence[str], texts: Iterable[pl.Series]
) -> ModelContents:
    """Returns a model that also knows `words`.

    The row of a new word points to the known words next to it in `texts` and to the known word that
    differs in one letter, and is as long as rows of rare words. A model that does not read words,
    has bigrams, or needs no new words is returned as it is.
    """
    features = model.features
    if not words or not isinstance(features, WordFeatures) or features.buckets:
        return model
    name = f"encoder.{model.kind.table}"
    tensors = dequantized(model.tensors)
    table = np.asarray(tensors[name], np.float32)
    known = len(features.vocabulary)
    wider = replace(features, vocabulary=Vocabulary((*features.vocabulary.words, *words)))
    unit = unit_rows(table[:known])
    length = np.median(np.linalg.norm(table[known - known // 4 : known], axis=1))
    meant = Spelling(features.vocabulary.words)(words)
    spelt = np.where(meant[:, None] >= 0, _SPELT * unit[meant], 0)
    rows = unit_rows(_by_context(wider, known, len(words), unit, texts) + spelt)
    bare = np.flatnonzero(~rows.any(axis=1))
    if len(bare):  # the vectors that the model has given these words so far
        rows[bare] = unit_rows(BagSums(table)(features([words[row] for row in bare.tolist()])))
    tensors[name] = np.concatenate([table[:known], rows * length, table[known:]])
    return replace(model, features=wider, tensors=tensors, sha256="")


def _by_context(
    features: WordFeatures, known: int, new: int, unit: Rows, texts: Iterable[pl.Series]
) -> Rows:
    """Returns (new, D) unit rows: the mean of the known words next to each new word."""
    sums = np.zeros((new, unit.shape[1]), np.float32)
    for series in texts:
        for start in range(0, len(series), _TEXTS):
            ids = features(series.slice(start, _TEXTS))
            rows = np.repeat(np.arange(len(ids.lengths)), ids.lengths)
            near = (ids.ids >= FUNCTION_WORDS) & (ids.ids < known)
            added = (ids.ids >= known) & (ids.ids < known + new)
            shape = (len(ids.lengths), known)
            one = np.ones(len(ids.ids), np.float32)
            context = sp.csr_matrix((one[near], (rows[near], ids.ids[near])), shape) @ unit
            places = (ids.ids[added] - known, rows[added])
            sums += sp.csr_matrix((one[added], places), (new, len(ids.lengths))) @ context
    return unit_rows(sums)


def _without_defaults(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an encoder's settings without defaults, as configs refuse keys without effect."""
    fields = ENCODERS[encoder["kind"]].config_class.model_fields
    return {
        name: value
        for name, value in encoder.items()
        if name == "kind" or value != fields[name].default
    }


def recipe(
    model: ModelContents,
    folder: str,
    name: str,
    pairs: int,
    *,
    questions: bool = False,
    seed: int = 0,
    most_steps: int | None = None,
) -> RunConfig:
    """Returns the config to train the model in `folder` further on this number of pairs.

    With `questions`, a share of the steps trains on the groups of `QUESTIONS`.

    Raises:
        InputError: the model has no response head.
    """
    head = model.heads.get(RESPONSES)
    if head is None:
        raise InputError(
            f"{model.name} was exported without its response head, which training on replies needs."
        )
    text = model.features.config()
    nested = model.training.get("config", {}).get("training", {}).get("nested_dims", [])
    batch, passes = next(how for most, *how in _BATCHES if most is None or pairs < most)
    batch = min(batch, max(2, pairs // 4))
    steps = -(-pairs * passes // batch)
    steps = max(1, min(steps, most_steps or steps))
    return parse_config(
        {
            "name": name,
            "text": {key: text[key] for key in VOCABULARY_KEYS if key in text},
            "encoder": _without_defaults(model.encoder),
            "head": {key: head[key] for key in ("layers", "activation", "residual")},
            "objective": {
                "scale": float(model.tensors["scale"]),
                "learn_scale": True,
                "mask_duplicates": True,
            },
            "optimizer": {"dense": "adam", "table": "adagrad"},
            "training": {
                "seed": seed,
                "precision": "auto",
                "init_from": folder,
                "exclude_leaks": True,
                "nested_dims": [size for size in nested if size < model.dim],
                "log_every": max(1, steps // 50),
            },
            "tasks": [
                {"objective": "responses", "share": 1 - _OF_QUESTIONS},
                {"objective": "paraphrase", "share": _OF_QUESTIONS, "data": [QUESTIONS]},
            ]
            if questions
            else [],
            "phases": [
                {
                    "steps": steps,
                    "batch_size": batch,
                    "learning_rate": _RATE,
                    "table_learning_rate": _TABLE_RATE,
                    "warmup_steps": min(steps // 10, 100),
                    "decay": "linear",
                }
            ],
        },
        name,
    )


def mixed(old: ModelContents, trained: ModelContents, share: float) -> ModelContents:
    """Returns the trained model with weights between the old ones (share 0) and its own (1).

    Tensors whose shape changed, as for bigrams that were never seen, are taken from the trained
    model. The linear map of the old model stays.
    """
    before, after = dequantized(old.tensors), dequantized(trained.tensors)
    tensors = dict(after)
    for name, array in after.items():
        if name in before and before[name].shape == array.shape and array.dtype.kind == "f":
            one, other = np.asarray(before[name], np.float32), np.asarray(array, np.float32)
            tensors[name] = ((1 - share) * one + share * other).astype(array.dtype)
    return replace(trained, tensors=tensors, adaptation=old.adaptation, sha256="")
