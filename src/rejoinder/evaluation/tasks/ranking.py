"""Tasks that rank texts for a query: responses, questions, turns of conversations, translations.

`response/p@n`: is the true response among the first N, ranked with 99 random ones?
`cqa-b/2016`, `cqa-b/2017` rank related questions (SemEval task 3, subtask B): MAP, AvgRec and MRR
follow the scorer of SemEval-2016 task 3. `rerank/askubuntu` ranks 20 questions (Lei et al.
2016): MAP and MRR over complete lists, P@1 and P@5. `memory/locomo`, `memory/realtalk`: which
turns of a long conversation answer a question? The score follows LMEB (2026): NDCG@10 among turns
of the question's conversation. `translation/es` ...: is the translation of a sentence the nearest
of 1,000, in both directions? This is the task of Artetxe and Schwenk 2019 (§4.3), on FLORES-200.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.labelled import Translations, read_translations
from rejoinder.datasets.memory import SOURCES, Conversation, Conversations, read_conversations
from rejoinder.datasets.semeval import QuestionSet, read_askubuntu, read_cqa
from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation import metrics, responses
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval, resampled_interval
from rejoinder.evaluation.results import Group, Scored, recomputed
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part, reads, reads_splits
from rejoinder.measures import Floats, Indices, unit_rows
from rejoinder.protocols import Embeddings, EncodesResponses

TEXTS = ("both", "subject", "body")
_SPLITS = {"2016": ("dev", "test"), "2017": ("test",)}


def rank_responses(
    embedder: Embedder,
    pairs: responses.ResponsePairs,
    *,
    seed: int = 0,
    tell: responses.Tell = lambda _doing: None,
) -> Scored:
    """Returns P@1, P@3 and P@10 of the true response among 99 random ones, overall and by source.

    Ties count against the encoder. `seed` seeds the negatives and the interval.

    Raises:
        InputError: fewer than two pairs, or an embedding is not usable.
    """
    ranked = responses.ranked_responses(embedder, pairs, seed=seed, tell=tell)
    ranks, count = ranked.ranks, ranked.candidates
    texts = np.unique([" ".join(text.split()) for text in pairs.responses], return_inverse=True)[1]
    same = int((texts[ranked.negatives] == texts[:, None]).sum())
    notes = [f"{same} of {ranked.negatives.size} negatives repeat the right response's text"]
    if not isinstance(embedder.encoder, EncodesResponses):
        notes.append("the encoder has no encode_response; encode was used for both sides")
    sources = np.array(pairs.sources, dtype=object)
    both = metrics.joined(pairs.inputs, pairs.responses)
    return Scored(
        main=responses.precision_name(1, count),
        scores=ranked.precisions,
        intervals={
            responses.precision_name(n, count): mean_interval((ranks <= n).astype(np.float64), seed)
            for n in responses.CUTOFFS
        },
        groups={
            str(source): Group(int(own.sum()), responses.precisions(ranks[own], count))
            for source in sorted(set(sources))
            for own in [sources == source]
        },
        data={"name": "pairs", "candidates": count},
        notes=notes,
        items=metrics.numbered(pairs.split, ranks, np.ones(len(pairs)), both),
    )


def _read_responses(context: Context, ids: Sequence[str]) -> Data:
    if context.pairs is None:
        raise DataMissingError("the task response needs pairs; name their folder with `pairs`.")
    pairs = context.pairs()
    return {(ids[0], pairs.split): pairs}


def _run_responses(
    embedder: Embedder, context: Context, _part: Part, pairs: responses.ResponsePairs
) -> Scored:
    embedder.prepare("response", [*pairs.inputs, *pairs.responses])
    return rank_responses(embedder, pairs, seed=context.seed, tell=context.tell)


RESPONSES = (
    Family({"response/p@n": ("response",)}, _read_responses, _run_responses, options=("pairs",)),
)


CUTOFF = 10
"""Only the first ten entries of a list count."""

Flags = NDArray[np.bool_]
"""(N,) bool: whether each entry of a list is relevant, best score first."""


def ranked(scores: Floats, relevant: Flags) -> Flags:
    """Returns `relevant` in the order of (N,) scores, highest first; ties keep their order.

    The official scorer sorts stably: a system that gives all entries the same score keeps the order
    of the file.
    """
    return relevant[np.argsort(-scores, kind="stable")]


def average_precision(flags: Flags, cutoff: int | None = CUTOFF) -> float:
    """Returns the mean precision at each relevant entry before the cutoff, or 0 without one.

    The mean is over these relevant entries only. None reads the complete list.

    >>> round(average_precision(np.array([True, False, True])), 4)
    0.8333
    """
    flags = flags[:cutoff]
    if not flags.any():
        return 0.0
    positions = np.flatnonzero(flags) + 1
    return float((np.arange(1, len(positions) + 1) / positions).mean())


def reciprocal_rank(flags: Flags, cutoff: int | None = CUTOFF) -> float:
    """Returns 1 / rank of the first relevant entry before the cutoff, or 0 if there is none."""
    positions = np.flatnonzero(flags[:cutoff])
    return float(1 / (positions[0] + 1)) if len(positions) else 0.0


def average_recall(lists: Sequence[Flags]) -> float:
    """Returns the mean over k = 1 to 10 of the recall at k, relative to the best possible order.

    All lists are pooled, so a query counts in proportion to its relevant questions.
    """
    retrieved, possible = np.zeros(CUTOFF), np.zeros(CUTOFF)
    for flags in lists:
        top = np.pad(flags[:CUTOFF], (0, max(0, CUTOFF - len(flags))))
        retrieved += np.cumsum(top)
        possible += np.minimum(np.arange(1, CUTOFF + 1), flags.sum())
    return float((retrieved / possible).mean())


def official_scores(lists: Sequence[Flags]) -> dict[str, float]:
    """Returns MAP, AvgRec and MRR in percent. A query without a relevant question counts as 0.

    Raises:
        InputError: no list has a relevant entry.
    """
    if not any(flags.any() for flags in lists):
        raise InputError("no question is relevant to any query: nothing can be ranked right.")
    return {
        "map": 100 * float(np.mean([average_precision(flags) for flags in lists])),
        "avg_rec": 100 * average_recall(lists),
        "mrr": 100 * float(np.mean([reciprocal_rank(flags) for flags in lists])),
    }


def whole_scores(lists: Sequence[Flags]) -> dict[str, float]:
    """Returns MAP, MRR, P@1 and P@5 of complete lists, in percent."""
    return {
        "map": 100 * float(np.mean([average_precision(flags, None) for flags in lists])),
        "mrr": 100 * float(np.mean([reciprocal_rank(flags, None) for flags in lists])),
        **{f"P@{n}": 100 * float(np.mean([sum(flags[:n]) / n for flags in lists])) for n in (1, 5)},
    }


def engine_order(questions: QuestionSet) -> list[Flags]:
    """Returns the lists in the search engine's order: the baseline to beat."""
    return [ranked(-query.ranks.astype(np.float64), query.relevant) for query in questions.queries]


def score_questions(
    embedder: Embedder, questions: QuestionSet, task: str, text: str = "both", seed: int = 0
) -> Scored:
    """Returns the scores of questions ranked by their similarity to the original question.

    Scores are `official_scores`, or `whole_scores` for `rerank/…`. `text` is subject, body, or both
    with a space between. The interval is over queries.

    Raises:
        InputError: `text` has another value, or a similarity is not usable.
    """
    if text not in TEXTS:
        raise InputError(f"text {text!r} of questions: one of {', '.join(TEXTS)} is needed.")
    first = [query.original.text(text) for query in questions.queries for _ in query.related]
    second = [related.text(text) for query in questions.queries for related in query.related]
    embedder.prepare(task, list(dict.fromkeys([*first, *second])))
    scores, notes = embedder.similarity(first, second, task)
    ends = np.cumsum([len(query.related) for query in questions.queries])[:-1]
    parts = zip(np.split(scores, ends), questions.queries, strict=True)
    lists = [ranked(part, query.relevant) for part, query in parts]
    whole = task.startswith("rerank/")
    scores_of, cutoff = (whole_scores, None) if whole else (official_scores, CUTOFF)
    precisions = np.array([average_precision(flags, cutoff) for flags in lists])
    return Scored(
        main="map",
        scores=scores_of(lists),
        intervals={"map": resampled_interval(precisions, seed, unit=100)},
        groups={"search engine's order": Group(len(questions), scores_of(engine_order(questions)))},
        data={"name": task if whole else f"CQA {questions.year} subtask B"},
        notes=[
            *row_notes(f"cqa{questions.year[2:]}", {questions.split: len(second)}),
            f"text of questions: {text}",
            *notes,
        ],
        items=metrics.Items(
            [query.original.id for query in questions.queries],
            precisions,
            np.ones(len(precisions)),
            [query.original.text() for query in questions.queries],
        ),
    )


def _run(embedder: Embedder, context: Context, part: Part, questions: QuestionSet) -> Scored:
    return score_questions(embedder, questions, part[0], context.text, context.seed)


_PUBLISHED = 10
"""Number of conversations of each set."""
_GAINS = 1 / np.log2(np.arange(2, CUTOFF + 2))


def ndcg(flags: Flags, relevant: int) -> float:
    """Returns the NDCG of the first ten of a ranked list, in which `relevant` entries are relevant.

    >>> ndcg(np.array([True, False]), 1), round(ndcg(np.array([False, True]), 1), 3)
    (1.0, 0.631)
    """
    flags = flags[:CUTOFF]
    return float(_GAINS[: len(flags)][flags].sum() / _GAINS[:relevant].sum())


def _run_talks(embedder: Embedder, context: Context, part: Part, data: Conversations) -> Scored:
    turns = [[turn.dated for turn in talk.turns] for talk in data.all]
    asked = [[question.text for question in talk.questions] for talk in data.all]
    embedder.prepare(part[0], [text for texts in (*turns, *asked) for text in texts])
    values: list[float] = []
    for talk, said, texts in zip(data.all, turns, asked, strict=True):
        if texts:
            rows, queries = embedder.embed(said, part[0]), embedder.embed(texts, part[0])
            values += _scores(talk, unit_rows(queries) @ unit_rows(rows).T)
    questions = [question for talk in data.all for question in talk.questions]
    items = metrics.Items(
        [f"{question.kind}:{row}" for row, question in enumerate(questions)],
        np.array(values),
        np.ones(len(values)),
        [question.text for question in questions],
    )
    kinds = dict(sorted(metrics.subsets_of(items.ids).items()))
    notes = [f"{len(data.all)} of {_PUBLISHED} published conversations"]
    return recomputed(
        metrics.NDCG,
        items,
        resampled_interval(items.predictions, context.seed, groups=list(kinds.values())),
        groups={
            kind: Group(len(rows), {metrics.NDCG.name: float(items.predictions[rows].mean())})
            for kind, rows in kinds.items()
        },
        data={"name": data.name, "conversations": len(data.all)},
        notes=notes if len(data.all) != _PUBLISHED else [],
    )


def _scores(talk: Conversation, cosines: Embeddings) -> Iterator[float]:
    for question, scores in zip(talk.questions, cosines, strict=True):
        relevant = np.array([turn.id in question.answers for turn in talk.turns])
        yield ndcg(ranked(scores, relevant), int(relevant.sum()))


LANGUAGES = ("es", "ar", "tr", "de", "fr", "it")
"""Languages with sentences to find by their English translations, and the reverse."""
_SENTENCES = 1_000


def translation_ranks(sentences: Embeddings, translations: Embeddings) -> Indices:
    """Returns (N,) int64 ranks, from 1, of row i of `translations` for row i of `sentences`.

    Both are (N, D); candidates are ranked by cosine. Ties count against the encoder, so a zero
    vector finds nothing.
    """
    scores = unit_rows(sentences) @ unit_rows(translations).T
    ranks: Indices = (scores >= scores.diagonal()[:, None]).sum(axis=1)
    return ranks


def _run_translation(
    embedder: Embedder, context: Context, part: Part, data: Translations
) -> Scored:
    task, language = part[0], part[0].split("/")[1]
    english, other = data.texts["en"], data.texts[language]
    embedder.prepare("translation", [text for column in data.texts.values() for text in column])
    vectors, translated = embedder.embed(english, task), embedder.embed(other, task)
    ranks = {
        f"en-{language}": translation_ranks(vectors, translated),
        f"{language}-en": translation_ranks(translated, vectors),
    }
    metric = metrics.metric_of(responses.precision_name(1, len(english)))
    items = metrics.Items(
        [f"{direction}:{row}" for direction in ranks for row in range(len(english))],
        np.concatenate(list(ranks.values())).astype(np.float64),
        np.ones(2 * len(english)),
        metrics.joined([*english, *other], [*other, *english]),
    )
    return recomputed(
        metric,
        items,
        mean_interval((items.predictions <= 1).astype(np.float64), context.seed),
        groups={
            direction: Group(len(own), metric.recompute(metrics.numbered("", own, own, ())))
            for direction, own in ranks.items()
        },
        data={"name": "FLORES-200 devtest", "candidates": len(english)},
    )


def _read_translations(folder: Path) -> Translations:
    # all languages, so that scores do not depend on the other requested tasks
    return read_translations(folder, ("en", *LANGUAGES), _SENTENCES)


FAMILIES = (
    Family(
        {"rerank/askubuntu": ("rerank",)}, reads_splits(read_askubuntu), _run, options=("text",)
    ),
    *(
        Family(
            {f"cqa-b/{year}": ("cqa",)},
            reads_splits(partial(read_cqa, year=year), splits),
            _run,
            options=("text",),
        )
        for year, splits in _SPLITS.items()
    ),
    Family(
        {f"translation/{language}": ("translation",) for language in LANGUAGES},
        reads(_read_translations),
        _run_translation,
    ),
    *(
        Family(
            {f"memory/{name}": ("memory",)},
            reads(partial(read_conversations, name=name)),
            _run_talks,
        )
        for name in SOURCES
    ),
)
