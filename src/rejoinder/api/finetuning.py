"""Fine-tunes a model on pairs of one's own, and keeps it only if it got better."""

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from rejoinder.api.dev_scores import DevScores
from rejoinder.api.pairs import response_pairs
from rejoinder.api.training import Run, train
from rejoinder.corpus.shards import Pairs, open_pairs
from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.tasks.response import rank_responses, recall_of_all
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.claims import claim_output
from rejoinder.io.files.places import scratch_folder
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures
from rejoinder.training.data.preparation import PreparationProgress
from rejoinder.training.finetuning import SHARES, least_count, mixed, recipe, widened
from rejoinder.training.loop.reporting import Reporter

_PROBED = 40
"""Steps after which the time of a step is known."""
_LEAST_PAIRS = 20
"""Held-out pairs without which nobody can tell whether a model got better."""
_MOST_WORDS = 50_000
_RANKED = 3_000
"""Inputs of the dev split by which the share is chosen."""
Stage = Callable[[str], None]


@dataclass(frozen=True)
class FineTuned:
    """What fine-tuning did."""

    folder: Path | None
    """The model; None if it got worse and was not kept."""
    before: Mapping[str, float]
    """Scores of the model that it began with, on the held-out threads of the test split."""
    after: Mapping[str, float]
    pairs: int
    """Number of pairs trained on."""
    words: int
    """Number of words that the model did not know before."""
    steps: int
    seconds: float
    share: float
    """How far the weights went from the old ones to the trained ones, from 0 to 1."""

    @property
    def is_better(self) -> bool:
        """Whether the first reply is right at least as often as before."""
        return self.first_right[1] >= self.first_right[0]

    @property
    def first_right(self) -> tuple[float, float]:
        """P@1 before and after."""
        before, after = next(iter(self.before.values())), next(iter(self.after.values()))
        return before, after


def finetune(
    pairs: str | Path,
    *,
    out: str | Path,
    model: str | Path = "rejoinder-base",
    minutes: float = 5.0,
    data: str | Path | None = None,
    seed: int = 0,
    threads: int | None = None,
    force: bool = False,
    overwrite: bool = False,
    reporter: Reporter | None = None,
    progress: PreparationProgress | None = None,
    stage: Stage = lambda _doing: None,
) -> FineTuned:
    """Goes on training a model on pairs, and writes it if it got better at finding replies.

    The model keeps its shape, its words and its terms, and learns the words of the pairs. Weights
    between the old and the trained ones are chosen on the dev split (Wortsman et al. 2022, Robust
    fine-tuning of zero-shot models); the scores are those of the test split.

    Args:
        pairs: a folder that `extract` wrote, with dev and test pairs.
        out: the model folder to write.
        model: name or folder of the model to begin with.
        minutes: about how long to train. Small data take less.
        data: a folder of data sets. If it holds the STS Benchmark, its dev split shows how much of
            the general similarity was kept.
        seed: seed of the order of the pairs.
        threads: number of CPU threads; None leaves torch's setting.
        force: keep a model that got worse.
        overwrite: replace what is at `out`.
        reporter: told about steps.
        progress: called with the number of prepared pairs and that of all pairs.
        stage: called with what is being done.

    Raises:
        RejoinderError: the pairs or the model can't be used, or `out` can't be written.
    """
    folder, target = Path(pairs), Path(out)
    with claim_output(target, overwrite=overwrite, inputs=[folder, model]):
        opened = open_pairs(folder)
        start = read_model(find_model(str(model)))
        scores = _HeldOut(opened, None if data is None else Path(data))
        stage("scoring the model as it is")
        before = scores.test(start)
        stage("learning the words")
        words = _new_words(start, opened)
        wider = widened(start, words, _texts(opened))
        with scratch_folder() as work:
            write_model(work / "start", wider)
            count, begin = opened.count("train"), str(work / "start")
            config = recipe(wider, begin, target.name, count, seed=seed)
            if config.steps > 2 * _PROBED:
                stage("measuring the speed")
                probe = train(
                    config, out=work / "probe", pairs=folder, threads=threads, stop_at=_PROBED
                )
                _end_if_interrupted(probe)
                most = max(1, int(60 * minutes * _PROBED / max(probe.seconds, 1e-3)))
                config = recipe(wider, begin, target.name, count, seed=seed, most_steps=most)
            stage("training")
            run = train(
                config,
                out=work / "run",
                pairs=folder,
                threads=threads,
                evaluate=lambda _encoder: {},
                reporter=reporter,
                progress=progress,
            )
            _end_if_interrupted(run)
            trained = read_model(run.folder / "model")
        stage("choosing between the old and the trained weights")
        # of equal scores the first one counts, which stays nearest to the old weights
        share = max(SHARES, key=lambda share: scores.dev(mixed(wider, trained, share)))
        made = _stored_as(start, mixed(wider, trained, share))
        stage("scoring the fine-tuned model")
        after = scores.test(made)
        tuned = FineTuned(
            folder=target,
            before=before,
            after=after,
            pairs=run.pairs,
            words=len(words),
            steps=run.steps,
            seconds=run.seconds,
            share=share,
        )
        if not (tuned.is_better or force):
            return replace(tuned, folder=None)
        write_model(target, made, overwrite=overwrite)
    return tuned


class _HeldOut:
    """The scores of models on threads that they are not trained on."""

    def __init__(self, pairs: Pairs, data: Path | None) -> None:
        for split in ("dev", "test"):
            if pairs.count(split) < _LEAST_PAIRS:
                raise InputError(
                    f"{pairs.folder} has {pairs.count(split):,} pairs of {split}, and "
                    f"{_LEAST_PAIRS} are needed to tell whether a model gets better; extract with "
                    "--split 80,10,10."
                )
        self._dev = DevScores(pairs.folder, data, max_inputs=_RANKED)
        self._test = response_pairs(pairs.folder, "test")

    def dev(self, model: ModelContents) -> float:
        """Returns P@1 on the dev split."""
        return next(iter(self._dev.responses(SentenceEncoder(model)).values()))

    def test(self, model: ModelContents) -> Mapping[str, float]:
        """Returns the scores on the test split by name, and that of the STS Benchmark's dev."""
        encoder = SentenceEncoder(model)
        embedder = Embedder(encoder)
        scores = rank_responses(embedder, self._test).scores
        first, *_, last = scores  # P@1 and P@10, of fewer than 100 replies where there are no more
        found = {first: scores[first], last: scores[last]}
        found["recall@10 of all"] = recall_of_all(embedder, self._test, 10)
        for value in self._dev.similarity(encoder).values():
            found["STS-B dev"] = value
        return found


def _end_if_interrupted(run: Run) -> None:
    """Gives a signal that training caught to this process: there is nothing to go on with."""
    if run.interrupted is not None:
        signal.raise_signal(run.interrupted)


def _texts(pairs: Pairs) -> Iterator[pl.Series]:
    """Yields the texts of the train split."""
    for frame in pairs.iter_frames("train", ["input", "response"]):
        yield pl.concat([frame["input"], frame["response"].rename("input")])


def _new_words(model: ModelContents, pairs: Pairs) -> list[str]:
    """Returns the words of the pairs that the model does not know, the most frequent first."""
    if not isinstance(model.features, WordFeatures):
        return []
    least = least_count(pairs.count("train"))
    try:
        learned, _ = learn_vocabulary(
            _texts(pairs), max_words=_MOST_WORDS, min_count=least, allowed=pairs.words
        )
    except InputError:  # no word is frequent enough, or several people's
        return []
    known = set(model.features.vocabulary.words)
    return [word for word in learned.words if word not in known]


def _stored_as(like: ModelContents, model: ModelContents) -> ModelContents:
    """Returns a model with weights of the type that another one has."""
    if like.weight_type == model.weight_type:
        return model
    return smaller(model, ExportOptions(dtype=like.weight_type))
