"""`translation/es` ...: is the translation of a sentence the nearest of 1,000, in both directions?

The task of Artetxe and Schwenk 2019 (§4.3), on the devtest of FLORES-200.
"""

from collections.abc import Sequence

import numpy as np

from rejoinder.datasets.labelled import Translations, read_translations
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.metrics import Items, joined, metric_of, precision_name
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

LANGUAGES = ("es", "ar", "tr", "de", "fr", "it")
"""Languages whose sentences are searched by their English translations, and the other way round."""
_SENTENCES = 1_000


def translation_ranks(sentences: Embeddings, translations: Embeddings) -> Indices:
    """Returns (N,) int64 ranks, from 1, of row i of `translations` for row i of `sentences`.

    Both are (N, D); candidates are ranked by cosine. Ties count against the encoder, so a zero
    vector finds nothing.
    """
    left, right = (
        side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
        for side in (sentences, translations)
    )
    scores = left @ right.T
    ranks: Indices = (scores >= scores.diagonal()[:, None]).sum(axis=1)
    return ranks


def _run(embedder: Embedder, context: Context, part: Part, data: Translations) -> Scored:
    task, language = part[0], part[0].split("/")[1]
    english, other = data.texts["en"], data.texts[language]
    embedder.prepare("translation", [text for column in data.texts.values() for text in column])
    vectors, translated = embedder.embed(english, task), embedder.embed(other, task)
    ranks = {
        f"en-{language}": translation_ranks(vectors, translated),
        f"{language}-en": translation_ranks(translated, vectors),
    }
    main = precision_name(1, len(english))
    precisions = metric_of(main).recompute
    items = Items(
        [f"{direction}:{row}" for direction in ranks for row in range(len(english))],
        np.concatenate(list(ranks.values())).astype(np.float64),
        np.ones(2 * len(english)),
        joined([*english, *other], [*other, *english]),
    )
    return Scored(
        main=main,
        scores=precisions(items),
        items=items,
        intervals={main: mean_interval((items.predictions <= 1).astype(np.float64), context.seed)},
        groups={
            direction: Group(
                len(own), precisions(Items((), own.astype(np.float64), np.ones(len(own))))
            )
            for direction, own in ranks.items()
        },
        data={"name": "FLORES-200 devtest", "candidates": len(english)},
    )


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder = context.folder(ids[0])
    # all languages, so that no score depends on which other tasks were asked for
    data = read_translations(folder, ("en", *LANGUAGES), _SENTENCES)
    return {(task, "test"): data for task in ids}


FAMILIES = (
    Family({f"translation/{language}": ("translation",) for language in LANGUAGES}, _read, _run),
)
