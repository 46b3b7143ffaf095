"""Similarity of graded pairs: STS Benchmark, STS 2012 to 2017, SICK-R, SemRel, and your own.

`stsb/*` and `stsb-unrepeated/*` score angular similarities or cosines, overall and by genre; the
others score cosines. `pairs/…`: do two tweets or questions mean the same? The score is the average
precision of cosines, as in pair classification of MTEB.

`robust/…`: how much of the cosine score on STS-B dev remains when the second sentences change. The
changes are a typing error, another case, sentences of other pairs before and after, and a greeting
and a signature. The seed of the evaluation draws them.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.datasets import semeval
from rejoinder.datasets.labelled import PAIRS, LabelledSet, read_pairs, read_sick
from rejoinder.errors import DataMissingError
from rejoinder.evaluation import metrics, resampled
from rejoinder.evaluation.encoding import Embedder, call, numbers_of
from rejoinder.evaluation.intervals import Interval, correlation_interval
from rejoinder.evaluation.results import Group, Scored, recomputed
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part, reads, set_of
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats, Indices, angular_similarity
from rejoinder.protocols import TellsFittedPairs

_DIFFICULT = (115, 84, 184, 14, 78, 195)
"""Lines of the pairs of Table 12 in Cer et al. 2017, in the file of track 5."""
_SICK = {"test": ("test",), "all": ("train", "dev", "test")}
"""SICK splits for each split of the results. Peers publish correlations over all 9,927 pairs,
papers over test."""


@dataclass(frozen=True)
class _Part:
    """Pairs to score, and the texts of all splits, which prepare an encoder."""

    pairs: semeval.GradedPairs
    texts: Sequence[str]

    @property
    def sha256(self) -> str:
        """Hash of the pairs."""
        return self.pairs.sha256


@dataclass(frozen=True)
class _Compared:
    """A task's pairs with their (N,) similarities, notes, and the seed of intervals."""

    task: str
    pairs: semeval.GradedPairs
    values: Floats
    notes: Sequence[str]
    seed: int

    @property
    def name(self) -> str:
        return self.task.split("/")[0]

    @property
    def facts(self) -> dict[str, str]:
        """The name and the form of the data, for a result."""
        return {"name": self.name, "form": self.pairs.form}

    @property
    def form_note(self) -> str:
        return f"the {self.pairs.form} form of the data"

    @property
    def items(self) -> metrics.Items:
        texts = metrics.joined(self.pairs.first, self.pairs.second)
        return metrics.Items(self.pairs.ids, self.values, self.pairs.gold, texts)

    def rows(self) -> dict[str, Indices]:
        """Returns the indices of the pairs of each genre."""
        genres = np.array(self.pairs.genres)
        return {name: np.flatnonzero(genres == name) for name in dict.fromkeys(self.pairs.genres)}

    def groups(self) -> dict[str, Group]:
        """Returns the correlations of each genre."""
        return {
            genre: Group(len(rows), metrics.correlations(self.values[rows], self.pairs.gold[rows]))
            for genre, rows in sorted(self.rows().items())
        }

    def interval(self, **options: Any) -> Interval:
        return correlation_interval(self.values, self.pairs.gold, self.seed, **options)

    def correlated(self, main: str = "pearson", **facts: Any) -> Scored:
        """Returns the correlations over all pairs."""
        intervals = {"pearson": self.interval(), "spearman": self.interval(ranks=True)}
        scores = metrics.correlations(self.values, self.pairs.gold)
        return Scored(main, scores, self.items, intervals, **facts)


Score = Callable[[_Compared], Scored]


def _similarity(
    embedder: Embedder, pairs: semeval.GradedPairs, where: str
) -> tuple[Floats, list[str]]:
    """Returns the cosine of each pair, and notes, such as how many pairs were used for fitting."""
    similarity, notes = embedder.similarity(pairs.first, pairs.second, where)
    encoder = embedder.encoder
    if isinstance(encoder, TellsFittedPairs):
        who = embedder.who(where, "_fitted_pairs")
        keys = call(encoder._fitted_pairs, who=who)
        fitted = numbers_of(keys, (None,), who, "(M,) keys of pairs are")
        if len(fitted):
            shared = int(np.isin(semeval.pair_keys(pairs.first, pairs.second), fitted).sum())
            fact = (
                f"{shared:,} of {len(pairs):,} pairs are among those that the encoder was adapted "
                "on (either order, letters and digits alone)"
            )
            notes = [fact, *notes]
    return similarity, notes


def _genres(given: _Compared) -> Scored:
    values = np.clip(given.values, -1, 1)
    if given.task.endswith("/angular"):
        values = angular_similarity(values)
    given = replace(given, values=values)
    notes = [given.form_note, *given.notes]
    main = "spearman" if given.name == "stsb-v2" else "pearson"  # as in MTEB
    scored = given.correlated(main, groups=given.groups(), data=given.facts, notes=notes)
    within = metrics.share_within_one(values, given.pairs.gold)
    return replace(scored, scores={**scored.scores, "within_1_rescaled": within})


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder, form = context.folder("stsb"), context.form
    whole = {split: semeval.read_stsb(folder, split, form) for split in context.splits}
    # all pairs, so that scores do not depend on the other requested tasks
    texts = [text for pairs in whole.values() for text in (*pairs.first, *pairs.second)]
    editions = {"stsb": whole}
    if not all(task.startswith("stsb/") for task in ids):
        editions |= _editions(folder, form)
    parts = [(task, split) for split in context.splits for task in ids]
    return {part: _Part(editions[part[0].split("/")[0]][part[1]], texts) for part in parts}


def _editions(folder: Path, form: str | None) -> dict[str, dict[str, semeval.GradedPairs]]:
    """Returns train, dev and test of each edition with fewer repeated pairs."""
    every = {split: semeval.read_stsb(folder, split, form) for split in semeval.ROWS}
    # the earlier splits decide which pairs remain; in v2, all splits do
    hashes = [sha256_of(text.encode()) for text in accumulate(s.sha256 for s in every.values())]
    known: set[frozenset[str]] = set()
    return {
        "stsb-unrepeated": {
            split: replace(semeval.without_repeats(pairs, known), sha256=sha256)
            for (split, pairs), sha256 in zip(every.items(), hashes, strict=True)
        },
        "stsb-v2": {
            split: replace(pairs, sha256=hashes[-1])
            for split, pairs in semeval.without_repeated(every).items()
        },
    }


def _as_given(given: _Compared) -> Scored:
    return given.correlated(data={"name": given.name}, notes=given.notes)


def _by_spearman(given: _Compared) -> Scored:
    return given.correlated("spearman", data=given.facts, notes=given.notes)


def _related(given: _Compared) -> Scored:
    notes = [*row_notes("sick", Counter(given.pairs.genres)), *given.notes]
    return given.correlated(data={"name": "SICK"}, notes=notes)


def _subsets(given: _Compared) -> Scored:
    """Returns three scores over subsets: mean, weighted mean, and all pairs as one set."""
    main, pairs = "pearson_weighted_mean", given.pairs
    return Scored(
        main,
        metrics.metric_of(main).recompute(given.items),
        given.items,
        {main: given.interval(groups=list(given.rows().values())), "pearson_all": given.interval()},
        given.groups(),
        given.facts,
        [*row_notes(given.name, {pairs.split: len(pairs)}), given.form_note, *given.notes],
    )


def _tracks(given: _Compared) -> Scored:
    """Scores all tracks. "Primary" is ambiguous in the paper, so both means are given."""
    items, main = given.items, "pearson_track5"
    pearson = metrics.metric_of(main).recompute(items)
    chosen = given.rows()["track5"]
    english, gold = given.values[chosen], given.pairs.gold[chosen]
    five = [pearson[f"pearson_track{track}"] for track in ("1", "2", "3", "4a", "5")]
    scores = {
        **pearson,
        "pearson_mean_of_7": float(np.mean(list(pearson.values()))),
        "pearson_mean_of_1_to_5": float(np.mean(five)),
        "within_1_rescaled_track5": metrics.share_within_one(english, gold),
    }
    intervals = {main: correlation_interval(english, gold, given.seed)}
    means = "mean of tracks 1 to 5 with 4a, 4b left out"
    notes = [*row_notes("sts17", {"test": len(given.pairs)}), means, *given.notes]
    return Scored(main, scores, items, intervals, given.groups(), given.facts, notes)


def _difficult(given: _Compared) -> Scored:
    """Scores the six difficult pairs of Cer et al. 2017 on the scale of gold.

    Similarities are rescaled by the smallest and the largest of track 5.
    """
    pairs, english, main = given.pairs, given.rows()["track5"], "mean_absolute_error"
    if len(english) < max(_DIFFICULT):
        raise DataMissingError(f"{given.task} needs 250 pairs of track 5, not {len(english)}.")
    lines = np.array(_DIFFICULT) - 1
    values = metrics.rescaled(given.values[english])[lines]
    items = replace(given, pairs=pairs.at(english[lines].tolist()), values=values).items
    each = zip(_DIFFICULT, items.gold, items.predictions, strict=True)
    listed = ", ".join(f"{line}: {gold:.1f} / {ours:.1f}" for line, gold, ours in each)
    notes = [f"line of track 5: gold / ours from 0 to 5: {listed}", *given.notes]
    scores = metrics.metric_of(main).recompute(items)
    return Scored(main, scores, items, data=given.facts, notes=notes)


def sick_pairs(data: LabelledSet, split: str, parts: Sequence[str]) -> semeval.GradedPairs:
    """Returns some splits of SICK as one, whose genres are the splits."""
    chosen = [data.splits[part] for part in parts]
    return semeval.GradedPairs(
        split,
        "",
        [text for part in chosen for text in part.first],
        [text for part in chosen for text in part.second],
        np.concatenate([part.scores for part in chosen]),
        [name for name, part in zip(parts, chosen, strict=True) for _ in part.ids],
        data.sha256,
        [name for part in chosen for name in part.ids],
        ["SICK"] * sum(len(part.ids) for part in chosen),
    )


def _sick(context: Context) -> list[semeval.GradedPairs]:
    data = read_sick(context.folder("sick"))
    return [sick_pairs(data, split, parts) for split, parts in _SICK.items()]


def _read_semrel(language: str, context: Context, ids: Sequence[str]) -> Data:
    folder, parts, absent = context.folder(ids[0]), {}, None
    for split in context.splits:
        try:
            parts[split] = semeval.read_semrel(folder, language, split)
        except DataMissingError as error:  # the authors withhold the scores of some splits
            absent = error
    if absent and not parts:
        raise absent
    texts = [text for pairs in parts.values() for text in (*pairs.first, *pairs.second)]
    return {(ids[0], split): _Part(pairs, texts) for split, pairs in parts.items()}


def _read_scored(name: str, context: Context) -> list[semeval.GradedPairs]:
    return [semeval.read_scored(context.folder(name), name)]


def _graded(context: Context) -> list[semeval.GradedPairs]:
    if context.graded is None:
        raise DataMissingError("the task graded needs pairs; name their file with `data`.")
    return [context.graded()]


def _run_pairs(embedder: Embedder, context: Context, part: Part, data: LabelledSet) -> Scored:
    pairs = data.splits["test"]
    embedder.prepare(part[0], [*pairs.first, *pairs.second])
    similarity, notes = embedder.similarity(pairs.first, pairs.second, part[0])
    texts = metrics.joined(pairs.first, pairs.second)
    items = metrics.numbered("test", similarity, pairs.labels, texts)
    return recomputed(
        resampled.AVERAGE_PRECISION,
        items,
        resampled.score_interval(resampled.average_precision, items, context.seed),
        data={"name": part[0]},
        notes=[f"{int(pairs.labels.sum()):,} pairs mean the same", *notes],
    )


def _reader(read: Callable[[Context], Sequence[semeval.GradedPairs]]) -> Callable[..., Data]:
    """Returns `Family.read` for a list of pairs whose last entry contains the others."""

    def read_all(context: Context, ids: Sequence[str]) -> Data:
        parts = read(context)
        texts = [*parts[-1].first, *parts[-1].second]
        return {(task, one.split): _Part(one, texts) for one in parts for task in ids}

    return read_all


def _family(
    read: Callable[..., Data],
    tasks: Mapping[str, tuple[Score, tuple[str, ...]]],
    options: tuple[str, ...] = (),
) -> Family:
    """Returns a family of tasks, with the score and groups of each."""

    def run(embedder: Embedder, context: Context, part: Part, data: _Part) -> Scored:
        task, split = part
        embedder.prepare(set_of(task), data.texts)
        similarity, notes = _similarity(embedder, data.pairs, f"{task} on {split}")
        return tasks[task][0](_Compared(task, data.pairs, similarity, notes, context.seed))

    return Family({task: groups for task, (_, groups) in tasks.items()}, read, run, options=options)


def _year(year: int) -> Family:
    def read(context: Context) -> list[semeval.GradedPairs]:
        return [semeval.read_sts_year(context.folder(task), year, context.form)]

    task, groups = f"sts{year}/cosine", (f"sts{year}", "sts", "senteval")
    return _family(_reader(read), {task: (_subsets, groups)}, ("form",))


FAMILIES = (
    *map(_year, semeval.YEARS),
    _family(
        _reader(lambda context: [semeval.read_sts_2017(context.folder("sts17"))]),
        {
            "sts17/cosine": (_tracks, ("sts17", "sts")),
            "sts17/difficult": (_difficult, ("contrasts",)),
        },
    ),
    _family(_reader(_sick), {"sick-r/cosine": (_related, ("sick-r",))}),
    _family(
        _read,
        {
            "stsb/angular": (_genres, ("stsb",)),
            "stsb/cosine": (_genres, ("stsb", "sts")),
            "stsb-unrepeated/angular": (_genres, ("stsb-unrepeated",)),
            "stsb-unrepeated/cosine": (_genres, ("stsb-unrepeated",)),
            "stsb-v2/cosine": (_genres, ("stsb-v2",)),
        },
        ("form",),
    ),
    *(
        _family(partial(_read_semrel, name), {f"semrel/{name}": (_by_spearman, ("semrel",))})
        for name in semeval.SEMREL
    ),
    *(
        _family(_reader(partial(_read_scored, name)), {f"{name}/cosine": (_by_spearman, (name,))})
        for name in semeval.SCORED
    ),
    _family(_reader(_graded), {"graded/cosine": (_as_given, ("graded",))}),
    *(
        Family({f"pairs/{name}": ("pairs",)}, reads(partial(read_pairs, name=name)), _run_pairs)
        for name in PAIRS
    ),
)


KINDS = ("swapped", "dropped", "doubled", "key")
"""Typing errors."""
WORD = re.compile(r"(?<![\w'])[a-z]{5,}(?![\w'])")
"""Matches a word that can be misspelt."""
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_GREETINGS = ("Hi,", "Hello all,", "Good morning!", "Dear team,", "Hey everyone,", "Hi there,")
_SIGNATURES = (
    "Thanks, Anna",
    "Best regards, Tom",
    "Cheers",
    "Kind regards, Dr. Maria Keller",
    "Sent from my phone",
    "Thank you in advance!",
)


def keys_next_to(letter: str) -> list[str]:
    """Returns the letters on keys around a letter, on an American keyboard."""
    at = {key: (row, column) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)}
    row, column = at[letter]
    steps = ((0, -1), (0, 1), (1, -1), (1, 0), (-1, 0), (-1, 1))
    near = {(row + down, column + right) for down, right in steps}
    return sorted(key for key, place in at.items() if place in near)


def misspell(word: str, kind: str, draw: random.Random) -> str:
    """Returns a word of letters a to z with one error of a kind; it differs from the word."""
    wrong = word
    while wrong == word:
        at = draw.randrange(len(word) - (kind == "swapped"))
        before, letter, after = word[:at], word[at], word[at + 1 :]
        near = {
            "swapped": after[:1] + letter + after[1:],
            "dropped": after,
            "doubled": 2 * letter + after,
            "key": draw.choice(keys_next_to(letter)) + after,
        }
        wrong = before + near[kind]
    return wrong


def _typo(text: str, draw: random.Random) -> str:
    """Misspells the longest word, if it has at least five lower-case letters."""
    if not (words := list(WORD.finditer(text))):
        return text
    longest = max(words, key=lambda word: len(word[0]))
    wrong = misspell(longest[0], draw.choice(KINDS), draw)
    return text[: longest.start()] + wrong + text[longest.end() :]


def changed(kind: str, texts: Sequence[str], seed: int) -> list[str]:
    """Returns texts changed by `typos`, `case`, `length` or `noise`."""
    draw = random.Random(seed)  # noqa: S311 -- repeatable, and no secret
    cases = (str.lower, str.upper, str.title)
    change: dict[str, Callable[[str], str]] = {
        "typos": lambda text: _typo(text, draw),
        "case": lambda text: draw.choice(cases)(text),
        "length": lambda text: f"{draw.choice(texts)} {text} {draw.choice(texts)}",
        "noise": lambda text: f"{draw.choice(_GREETINGS)} {text} {draw.choice(_SIGNATURES)}",
    }
    return [change[kind](text) for text in texts]


def _read_dev(context: Context, ids: Sequence[str]) -> Data:
    pairs = semeval.read_stsb(context.folder(ids[0]), "dev", context.form)
    return {(task, "dev"): pairs for task in ids}


def _run_changed(
    embedder: Embedder, context: Context, part: Part, pairs: semeval.GradedPairs
) -> Scored:
    task, count = part[0], len(pairs)
    other = changed(task.split("/")[1], pairs.second, context.seed)
    embedder.prepare(task, [*pairs.first, *pairs.second, *other])
    both = [*pairs.second, *other]
    similarity, notes = embedder.similarity(2 * pairs.first, both, task)
    items = metrics.Items(
        [f"{side}:{row}" for side in ("clean", "changed") for row in range(count)],
        similarity,
        np.tile(pairs.gold, 2),
        metrics.joined(2 * pairs.first, both),
    )
    interval = resampled.score_interval(resampled.kept, items, context.seed)
    facts = {"name": "stsb", "form": pairs.form}
    scored = recomputed(resampled.KEPT, items, interval, data=facts, notes=notes)
    clean, after = (
        metrics.correlations(own, pairs.gold)["pearson"] for own in np.split(similarity, 2)
    )
    return replace(scored, scores={**scored.scores, "clean": clean, "changed": after})


_CHANGED = {f"robust/{kind}": ("robust",) for kind in ("typos", "case", "length", "noise")}
ROBUST = (Family(_CHANGED, _read_dev, _run_changed, options=("form",)),)
