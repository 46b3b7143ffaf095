"""Finds which texts say the same or next to nothing, and the distinctive words of topics.

The list of everyday words is English. For other languages, a model that knows both compares words:
its row of "immer" is near that of "always".

Also draws a map of topics: discs in the plane, near discs of similar topics, with a place per row.

t-SNE (van der Maaten & Hinton 2008) places the few centres of topics. Rows are placed in the disc
of their topic: typical ones in the middle, others towards the topics that they resemble, too. This
takes a second for 100,000 rows, where t-SNE or UMAP of rows takes minutes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations.clusters import BLOCK, EXTRA, TopicCentres
from rejoinder.errors import require
from rejoinder.measures import Floats, Indices, unit_rows
from rejoinder.protocols import Embeddings
from rejoinder.text.features import NumberedWords
from rejoinder.text.languages import TYPICAL, language_to_stem
from rejoinder.text.normalize import tokens_of
from rejoinder.text.ragged import Ragged, offsets_of

Encode = Callable[[list[str]], Embeddings]


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_EVERYDAY = _set_of(
    # pronouns, articles, prepositions, conjunctions
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its "
    "itself we us our ours ourselves they them their theirs themselves one ones someone somebody "
    "anyone anybody everyone everybody noone nobody something anything everything nothing a an the "
    "this that these those here there where when while who whom whose which what why how some any "
    "all both each every few many much more most less least other others another such same own "
    "and or but nor so if then else than because as until unless although though whether of at by "
    "for with about against between into through during before after above below to from up down "
    "in out on off over under again further once within without upon per via toward towards "
    "across along around besides beyond except near onto since till out etc "
    # auxiliaries and verbs of conversation
    "be am is are was were been being have has had having do does did doing done will would shall "
    "should can could may might must need ought let lets get gets got getting gotten go goes going "
    "gone went come comes came coming make makes made making take takes took taking put keep say "
    "says said saying tell told know knows knew known think thinks thought thinking guess mean "
    "means meant see sees saw seen seeing look looks looked looking seem seems seemed want wants "
    "wanted wanna gonna gotta use used using try tries tried trying give gives gave given happen "
    "happens happened like likes liked feel feels felt sound sounds find found believe suppose "
    "wonder wondering understand hope ask asked talk talking remember call called start started "
    "help work works worked working "
    # adverbs, adjectives, nouns that go with anything
    "not no yes yeah yep yup ya yea nope nah ok okay k kk well oh ah ahh aha uh um hmm hm huh wow "
    "lol haha hahaha hehe heh lmao rofl omg btw imo imho tbh idk afaik ouch oops ooh eh aw aww "
    "hi hello hey hiya bye goodbye cheers thanks thank thx thanx ty tia please pls plz sorry "
    "welcome congrats congratulations greetings regards dear sir kind good great nice cool fine "
    "awesome amazing excellent wonderful perfect lovely interesting funny bad better best worse "
    "worst right wrong true sure exactly indeed correct agree agreed definitely certainly "
    "appreciate appreciated appreciates helpful helped glad luck wish wishing hopefully "
    "absolutely probably maybe perhaps possibly actually really very quite pretty rather too also "
    "just only even still already yet ever never always often sometimes usually now today ago "
    "soon later back away together instead anyway anyways however therefore thus hence almost "
    "enough lot lots bit kinda sorta kind sort thing things stuff way ways time times people guy "
    "guys man dude folks idea point fact case reason part end rest course sense matter sake kind "
    "new old big little small long high low different able possible important easy hard clear "
    "first second next last two three least rather whatever whenever wherever whoever either "
    "neither far else forward "
    "yo sup howdy hola bro bruh dudes mate fellow lmk "
    # addresses of pages
    "http https www com org net html htm "
    # contractions without their apostrophe
    "dont doesnt didnt cant cannot couldnt wont wouldnt isnt arent wasnt werent hasnt havent "
    "hadnt shouldnt mustnt aint im ive ill id youre youve youll youd hes shes theyre theyve thats "
    "whats theres heres yall"
)
_MEANS, _FALL, _LEAST = 0.55, 0.15, 0.3
"""Cosine from which a foreign word counts as an everyday one, if a text in a thousand has it;
how much it falls where ten times as many do, and the least."""
_AT_ONCE = 8_192
_DISTINCT = 8
"""Number of distinctive words per topic."""
_NAMED = 5
"""A name counts as a word from this many occurrences per text by authors of that name."""
_RARE = 3
"""Least number of a topic's texts with a distinctive word."""


@dataclass(frozen=True)
class TextWords:
    """The words of N texts: tokens with a letter or a digit."""

    words: list[str]
    numbers: Ragged
    """For each text, its words in order, as indices into `words`."""
    firsts: Indices
    """(N,) int64: the first text with the same words in the same order."""
    telling: NDArray[np.bool_]
    """(words,) bool: words that have letters, and are neither everyday words nor names."""
    says: NDArray[np.bool_]
    """(N,) bool: whether the text has any such word."""

    @cached_property
    def table(self) -> Any:
        """An (N, words) matrix of SciPy: 1 for each telling word of each first text."""
        from scipy.sparse import csr_matrix

        first = self.firsts == np.arange(len(self.firsts))
        kept = self.telling[self.numbers.ids] & np.repeat(first, self.numbers.lengths)
        left = self.numbers.only(kept)
        ones = np.ones(len(left.ids), np.float64)
        table = csr_matrix((ones, left.ids, left.offsets), (len(first), len(self.words)))
        table.sum_duplicates()
        table.data[:] = 1
        return table


def words_of(
    texts: Sequence[str], authors: Sequence[str] = (), encode: Encode | None = None
) -> TextWords:
    """Returns the words of texts, and which of them are telling.

    Words of an author's name are not, unless many more texts have them than authors of that name
    wrote: such a name is an ordinary word, too.

    >>> found = words_of(["Thanks!", "It crashes.", "thanks", "it crashes"])
    >>> found.firsts.tolist(), found.says.tolist()
    ([0, 1, 0, 1], [False, True, False, True])

    Args:
        texts: N texts.
        authors: The names of their authors, "" if unknown; or none.
        encode: Returns unit or zero rows of words. In texts of other languages than English, words
            near an everyday English word count as everyday words, too.
    """
    table = NumberedWords()
    numbers = table(texts)
    words = table.since(0)
    numbers = numbers.only(
        np.array([any(map(str.isalnum, word)) for word in words], np.bool_)[numbers.ids]
    )
    content, offsets = numbers.ids.tobytes(), (numbers.offsets * numbers.ids.itemsize).tolist()
    places: dict[bytes, int] = {}
    firsts = [
        places.setdefault(content[begin:end], row)
        for row, (begin, end) in enumerate(pairwise(offsets))
    ]
    named = _written_by(authors)
    often = np.bincount(numbers.ids, minlength=len(words)).tolist()
    telling = np.array(
        [
            _is_telling(word) and (word not in named or count > _NAMED * named[word])
            for word, count in zip(words, often, strict=True)
        ],
        np.bool_,
    )
    language = "english" if encode is None else language_to_stem(texts)
    if encode is not None and language in TYPICAL.keys() - {"english"}:
        near = _nearness(words, encode)
        share = np.bincount(numbers.ids, minlength=len(words)) * 1_000 / max(len(texts), 1)
        telling &= near < np.maximum(_MEANS - _FALL * np.log10(np.maximum(share, 1)), _LEAST)
        typical = {*TYPICAL[language].split()}
        telling &= np.fromiter((word not in typical for word in words), np.bool_, len(words))
    told = offsets_of(telling[numbers.ids].astype(np.int64))[numbers.offsets]
    return TextWords(words, numbers, np.array(firsts, np.int64), telling, told[1:] > told[:-1])


def _nearness(words: list[str], encode: Encode) -> Embeddings:
    """Returns (N,) float32: the cosine of each word with the nearest everyday word."""
    everyday = encode(sorted(_EVERYDAY)).T
    starts = range(0, len(words), _AT_ONCE)
    near = [(encode(words[start : start + _AT_ONCE]) @ everyday).max(axis=1) for start in starts]
    return np.concatenate([np.empty(0, np.float32), *near])


def _written_by(authors: Sequence[str]) -> dict[str, int]:
    """Returns for each word of authors' names how many texts those authors wrote.

    >>> sorted(_written_by(["Ann Lee", "ann_9", "Ann Lee", ""]).items())
    [('ann', 3), ('lee', 2)]
    """
    written: Counter[str] = Counter()
    for author, count in Counter(authors).items():
        for word in {*tokens_of(author)}:
            if len(word) > 1 and word.isalpha():
                written[word] += count
    return dict(written)


def distinctive_words(found: TextWords, labels: Indices, count: int) -> list[dict[str, float]]:
    """Returns the words that set each topic apart from other texts, with falling scores.

    The score of a word is p ln(p / q): class-based tf-idf (Grootendorst 2022) of the share p of the
    topic's texts and the share q of all texts that have the word. Texts with the same words count
    once. Everyday words and other forms of a word are left out.

    Args:
        found: The words of N texts.
        labels: (N,) int64: topics of texts, -1 for none.
        count: Number of topics.
    """
    from scipy.sparse import csr_matrix

    table = found.table
    kept = np.flatnonzero((found.firsts == np.arange(len(labels))) & (labels >= 0))
    sizes = np.bincount(labels[kept], minlength=count)
    members = csr_matrix((np.ones(len(kept)), (labels[kept], kept)), (count, len(labels)))
    by_topic = (members @ table).tocsr()
    different = int(np.count_nonzero(found.firsts == np.arange(len(labels))))
    overall = np.bincount(table.indices, minlength=len(found.words)) / max(different, 1)
    names = []
    for topic in range(count):
        span = slice(*by_topic.indptr[topic : topic + 2])
        numbers, texts = by_topic.indices[span], by_topic.data[span]
        often = texts >= min(_RARE, max(int(sizes[topic]) // 3, 1))
        numbers, share = numbers[often], texts[often] / int(sizes[topic])
        scores = share * np.log(share / overall[numbers])
        best = np.lexsort((numbers, -scores))[: min(8 * _DISTINCT, int((scores > 0).sum()))]
        by_word = {found.words[numbers[place]]: float(scores[place]) for place in best.tolist()}
        names.append({word: by_word[word] for word in _other_words([*by_word])})
    return names


def _other_words(words: Sequence[str]) -> list[str]:
    """Returns the words that are not forms of an earlier one.

    >>> _other_words(["vote", "votes", "close", "voting", "queue"])
    ['vote', 'close', 'queue']
    """
    kept: list[str] = []
    for word in words:
        if not any(_is_form(word, other) for other in kept):
            kept.append(word)
        if len(kept) == _DISTINCT:
            break
    return kept


def _is_form(word: str, other: str) -> bool:
    shortest = min(len(word), len(other))
    stem = other[: max(3, shortest - 1)]
    return word.startswith(stem) and abs(len(word) - len(other)) <= 3


def _is_telling(token: str) -> bool:
    """Returns whether a token has a letter, is longer than one, and is not an everyday word."""
    return (
        len(token) > 1
        and any(map(str.isalpha, token))
        and token not in _EVERYDAY
        and token.partition("'")[0] not in _EVERYDAY
        and token.replace("'", "") not in _EVERYDAY
    )


_COVERED = 0.35
"""Share of the map that discs cover."""
_GAP = 1.06
"""Least distance of the centres of two discs, as a multiple of the sum of their radii."""
_ROUNDS = 500
"""Number of rounds in which overlapping discs move apart."""
_PERPLEXITY = 12
_SHARP = 8.0
"""Steepness of the weights of other topics by cosine."""
_LEANING = 0.4
"""Weight of the direction towards similar topics, relative to that of the row."""
_NEAREST = 3
"""Number of nearest topics between which a row without a topic is placed."""


@dataclass(frozen=True)
class TopicMap:
    """A disc for each of T topics, in the square from -1 to 1."""

    positions: Embeddings
    """(T, 2) float32: the middle of each disc."""
    radii: Embeddings
    """(T,) float32."""
    axes: Embeddings
    """(2, D) float32: directions along which rows of a topic are spread."""

    def place(self, rows: Embeddings, labels: Indices, centres: TopicCentres) -> Embeddings:
        """Returns (N, 2) float32: the places of rows.

        Args:
            rows: (N, D) float32, unit or zero rows.
            labels: (N,) int64: their topics. Rows without one, -1, lie between the nearest topics.
            centres: The topics.
        """
        places = np.zeros((len(rows), 2), np.float32)
        if len(centres):
            for low in range(0, len(rows), BLOCK):
                part = slice(low, low + BLOCK)
                places[part] = self._placed(rows[part], labels[part], centres)
        return np.clip(places, -1, 1)

    def _placed(self, rows: Embeddings, labels: Indices, centres: TopicCentres) -> Embeddings:
        cosines = centres.cosines(rows)
        each, found = np.arange(len(rows)), np.maximum(labels, 0)
        own = cosines[each, found]
        depth = _depth(own, centres.quantiles[found])
        others = cosines.copy()
        others[each, found] = -np.inf
        towards = unit_rows(_mixed(others, self.positions, len(centres)) - self.positions[found])
        aside = unit_rows(
            (rows - centres.mean - own[:, None] * centres.centres[found]) @ self.axes.T
        )
        offset = (self.radii[found] * np.sqrt(depth))[:, None] * unit_rows(
            _LEANING * towards + aside
        )
        between = _mixed(cosines, self.positions, _NEAREST)
        placed: Embeddings = np.where(
            (labels >= 0)[:, None], self.positions[found] + offset, between
        )
        return placed


def map_of(centres: TopicCentres, sizes: Indices, seed: int = 0) -> TopicMap:
    """Returns a map of topics; disc areas are proportional to the `sizes`, (T,) int64.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    radii = np.sqrt(_COVERED * 4 / np.pi * sizes / max(sizes.sum(), 1))
    positions = _apart(_laid_out(centres.centres, seed), radii)
    low, high = (positions - radii[:, None]), (positions + radii[:, None])
    if len(sizes):
        middle = (low.min(axis=0) + high.max(axis=0)) / 2
        scale = max(float((high.max(axis=0) - low.min(axis=0)).max()) / 2, 1e-9)
        positions, radii = (positions - middle) / scale, radii / scale
    _, _, axes = np.linalg.svd(
        np.vstack([centres.centres, np.eye(2, len(centres.mean))]), full_matrices=False
    )
    return TopicMap(
        positions.astype(np.float32), radii.astype(np.float32), axes[:2].astype(np.float32)
    )


def _laid_out(centres: Embeddings, seed: int) -> Floats:
    """Returns (T, 2) places of centres, from -1 to 1: similar ones are near each other."""
    number = len(centres)
    if number < 4:
        return np.stack([np.linspace(-0.5, 0.5, number), np.zeros(number)], axis=1)
    require(EXTRA, "sklearn")
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (number - 1) / 3)
    way = TSNE(2, perplexity=perplexity, metric="cosine", init="pca", method="exact",
               random_state=seed)  # fmt: skip
    places: Floats = way.fit_transform(centres).astype(np.float64)
    places -= places.mean(axis=0)
    return places / max(float(np.abs(places).max()), 1e-9)


def _apart(positions: Floats, radii: Floats) -> Floats:
    """Returns positions of discs that do not overlap, as near as possible to the given ones."""
    least = _GAP * (radii[:, None] + radii)
    for _ in range(_ROUNDS):
        steps = positions[:, None] - positions
        distances = np.maximum(np.sqrt((steps**2).sum(axis=-1)), 1e-9)
        missing = np.maximum(least - distances, 0)
        np.fill_diagonal(missing, 0)
        if missing.max(initial=0) < 1e-4:
            break
        positions = positions + 0.25 * ((missing / distances)[..., None] * steps).sum(axis=1)
    return positions


def _depth(cosines: Embeddings, quantiles: Embeddings) -> Embeddings:
    """Returns the share of each topic's rows that are nearer to its centre than a row is.

    >>> _depth(np.array([0.5, 0.9]), np.array([[0.1, 0.5, 0.7], [0.1, 0.5, 0.7]]))
    array([0.5, 0. ])
    """
    last = quantiles.shape[1] - 1
    below = (quantiles[:, 1:-1] <= cosines[:, None]).sum(axis=1)
    each = np.arange(len(cosines))
    low, high = quantiles[each, below], quantiles[each, below + 1]
    part = np.clip((cosines - low) / np.maximum(high - low, 1e-9), 0, 1)
    depth: Embeddings = 1 - (below + part) / last
    return depth


def _mixed(cosines: Embeddings, positions: Embeddings, count: int) -> Embeddings:
    """Returns the mean of positions, weighted by how near the `count` nearest topics are."""
    count = min(count, cosines.shape[1])
    border = np.partition(cosines, -count, axis=1)[:, -count, None]
    weights = np.exp(_SHARP * (cosines - np.maximum(cosines.max(axis=1, keepdims=True), -1)))
    weights = np.where(cosines >= border, weights, 0)
    mixed: Embeddings = weights @ positions / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return mixed
