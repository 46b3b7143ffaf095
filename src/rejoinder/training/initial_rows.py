"""Learns the initial rows of words from the training text, and whitens rows during training.

Random rows must learn the meaning of every word from the objectives, and rare words are seen too
seldom for that. Rows that start as word vectors have it before the first step: the positive
pointwise mutual information of neighbouring words, factorised (Levy and Goldberg 2014; Levy et al.
2015, §3) by a randomised method (Halko et al. 2011, algorithm 4.4).

Synonyms and definitions can move these rows (Faruqui et al. 2015), and so can regular forms of the
same word, such as `peel`, `peels`, `peeling`, `peeled`: the row of a rare form is poor, although
the row of its lemma may be good.

Frequency weights and whitening apply at the beginning of a phase. Training on examples leaves the
rows of frequent words long and the variance of sentences in few directions. Both can be fixed in
the table, without any sentence: weighting and turning rows weights and turns their sums.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import polars as pl
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.encoders import ENCODERS
from rejoinder.measures import unit_rows
from rejoinder.text.features import WordFeatures
from rejoinder.text.ragged import Ragged
from rejoinder.training.config.loading import to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data import preparation
from rejoinder.training.data.examples import GroupText
from rejoinder.training.data.stream import read_without

_SEED = 0
"""Fixed, as rows depend only on the data, like the vocabulary: runs of several seeds share them."""
_MOST_PAIRS = 5_000_000
"""Larger data is sampled: word vectors gain little from more, and counts would outgrow memory."""
Rows = NDArray[np.float32]

_ITERATIONS = 5
FUNCTION_WORDS = 150
"""Number of most frequent words to ignore in definitions, as they say nothing about the word."""


def learn_rows(
    config: RunConfig,
    data: preparation.Data,
    prepared: preparation.Prepared,
    progress: preparation.PreparationProgress,
) -> preparation.WordRows:
    """Returns the rows of a config whose `training.row_init` is not random."""
    features = prepared.features
    ranked = isinstance(features, WordFeatures)  # ids of subwords are in order of merges
    words = len(features.vocabulary) if isinstance(features, WordFeatures) else features.rows
    counts = Cooccurrences(words, _SEED, ranked=ranked)
    labelled = data.labelled(config, prepared.leak_sets)
    others = [each for each in labelled if not getattr(each[0], "interleave", False)]
    for texts in _texts(config, data, others, prepared, progress):
        counts.add(features(texts))
    for groups in _groups(labelled, "interleave"):
        counts.add(interleave(groups, features(groups.texts)))
    kind = ENCODERS[config.encoder.kind]
    assert kind.token_rows is not None  # noqa: S101 -- `row_init` is idle for kinds without them
    shapes = kind.tensor_shapes(to_tree(config.encoder), features.config(), "")
    rows = counts.rows(shapes[kind.token_rows][1])
    function_words = counts.most_frequent(FUNCTION_WORDS)
    if defined := _groups(labelled, "retrofit"):
        links = (
            links_of(each, features(each.texts), len(rows), function_words) for each in defined
        )
        rows = retrofitted(rows, sum(links))
    inflected = _groups(labelled, "inflections")
    if inflected and isinstance(features, WordFeatures):
        lemmas = chain.from_iterable(each.texts for each in inflected)
        vocabulary = features.vocabulary.words
        rows = retrofitted(rows, inflection_links(vocabulary, map(str.lower, lemmas), len(rows)))
    return rows.astype(np.float16)


def _groups(labelled: preparation.LabelledTasks, setting: str) -> list[GroupText]:
    """Returns the files of paraphrase tasks that have a setting, which is off by default."""
    return [
        file.content
        for task, files in labelled
        if getattr(task, setting, False)
        for file in files
        if isinstance(file.content, GroupText)
    ]


@torch.no_grad()
def turn_rows(weight: Tensor, directions: Tensor) -> None:
    """Turns the first rows of `weight` to the `directions` (N, width), keeping their lengths.

    Rows with a zero direction stay as they are.
    """
    known = directions.any(dim=1).nonzero().squeeze(1)
    lengths = weight[known].norm(dim=1, keepdim=True)
    weight[known] = directions[known].float() * lengths


def _texts(
    config: RunConfig,
    data: preparation.Data,
    labelled: preparation.LabelledTasks,
    prepared: preparation.Prepared,
    progress: preparation.PreparationProgress,
) -> Iterator[pl.Series]:
    """Yields the training texts of the run; if there are many pairs, a sample of them."""
    yield from preparation.distinct_texts(labelled)
    blocks = list(enumerate(data.needed_pairs().blocks("train"))) if config.reads_pairs else []
    rows = sum(block.rows for _, block in blocks)
    sample = blocks[:: -(-rows // _MOST_PAIRS) or 1]
    done, total = 0, sum(block.rows for _, block in sample)
    for number, block in sample:
        frame = read_without(data.needed_pairs(), block, prepared.excluded.get(number))
        yield pl.concat([frame["input"], frame["response"]])
        done += block.rows
        progress(done, total)


def interleave(groups: GroupText, ids: Ragged) -> Ragged:
    """Merges each two neighbouring texts of a group into one text, with their ids alternating.

    `ids` are the token ids of `groups.texts`.
    """
    last = np.zeros(len(groups.members), bool)
    last[groups.starts[1:] - 1] = True
    left = np.flatnonzero(~last)
    sides = [ids.take(groups.members[left]), ids.take(groups.members[left + 1])]
    owners = [np.repeat(np.arange(len(side)), side.lengths) for side in sides]
    places = [
        (np.arange(len(side.ids)) - side.offsets[owner] + 0.5) / side.lengths[owner]
        for side, owner in zip(sides, owners, strict=True)
    ]
    order = np.lexsort((np.concatenate(places), np.concatenate(owners)))
    joined = np.concatenate([side.ids for side in sides])[order]
    return Ragged(joined, sides[0].offsets + sides[1].offsets)


def retrofitted(rows: Rows, links: sp.csr_matrix) -> Rows:
    """Returns unit rows near their old direction and near the rows that they are linked to.

    Equation 2 of Faruqui et al. with α = 1 and β = 1 / degree, on unit rows.

    Args:
        rows: (V, D) float32; zero rows get the direction of their neighbours.
        links: (V, V), the weight of each link. Words without links keep their row.
    """
    degrees = np.asarray(links.sum(axis=1)).ravel()
    linked = np.flatnonzero(degrees)
    shares = (sp.diags(1 / degrees[linked]) @ links[linked]).astype(np.float32)
    moved = rows.copy()
    for _ in range(_ITERATIONS):
        moved[linked] = unit_rows(rows[linked] + shares @ moved)
    return moved


def links_of(
    groups: GroupText, ids: Ragged, words: int, function_words: NDArray[np.int64]
) -> sp.csr_matrix:
    """Returns (words, words) links from single words to the other texts of their groups.

    A text of n words is one link, divided among its words. This links synonyms to each other, and a
    word to the words of its definition.

    Args:
        groups: groups of texts.
        ids: token ids of `groups.texts`.
        words: number of ids that have a row; others are ignored.
        function_words: ids that are ignored in definitions.
    """
    one, other, weights = [], [], []
    single = ids.lengths == 1
    ids = ids.only(np.repeat(single, ids.lengths) | ~np.isin(ids.ids, function_words))
    for first, last in zip(groups.starts[:-1], groups.starts[1:], strict=True):
        members = groups.members[first:last]
        for word in members[single[members]]:
            for text in members[members != word]:
                linked = ids[text]
                one.append(np.full(len(linked), ids[word][0]))
                other.append(linked)
                weights.append(np.full(len(linked), 1 / max(1, len(linked)), np.float32))
    if not one:
        return sp.csr_matrix((words, words), dtype=np.float32)
    rows, columns = np.concatenate(one), np.concatenate(other)
    known = (rows < words) & (columns < words) & (rows != columns)
    return sp.csr_matrix(
        (np.concatenate(weights)[known], (rows[known], columns[known])), shape=(words, words)
    )


_VOWELS = "aeiou"
_UNDOUBLED = _VOWELS + "wxy"
"""Last letters that are not doubled before -ing and -ed."""
_HISSING = ("s", "x", "z", "ch", "sh")
_SHORTEST = 3
"""Least number of letters of a lemma: shorter words have more chance matches than forms."""


def regular_forms(word: str) -> list[str]:
    """Returns the regular forms in -s, -ing and -ed of a word of three or more letters.

    It does not distinguish nouns from verbs, or irregular verbs from regular ones, so the caller
    must keep only forms that occur.

    >>> regular_forms("stop")
    ['stops', 'stoping', 'stoped', 'stopping', 'stopped']
    >>> regular_forms("carry")
    ['carries', 'carrying', 'carried']
    """
    as_i = word[-1] == "y" and word[-2] not in _VOWELS
    stem = word.removesuffix("e")
    plural = word[:-1] + "ies" if as_i else word + ("es" if word.endswith(_HISSING) else "s")
    forms = [plural, stem + "ing", word[:-1] + "ied" if as_i else stem + "ed"]
    last, before, first = word[-1], word[-2], word[-3]
    if last not in _UNDOUBLED and before in _VOWELS and first not in _VOWELS:
        forms += [word + last + "ing", word + last + "ed"]
    return forms


def inflection_links(vocabulary: Sequence[str], lemmas: Iterable[str], rows: int) -> sp.csr_matrix:
    """Returns (rows, rows) links of weight 1 between lemmas and their forms, in both directions.

    Args:
        vocabulary: the words, of which the first `rows` have a row.
        lemmas: words; those without a row, shorter than three letters, or with other characters
            than letters are ignored.
        rows: number of rows.
    """
    ids = {word: index for index, word in enumerate(vocabulary[:rows])}
    found = [
        (ids[lemma], ids[form])
        for lemma in sorted(set(lemmas) & ids.keys())
        if len(lemma) >= _SHORTEST and lemma.isalpha()
        for form in regular_forms(lemma)
        if form in ids and form != lemma
    ]
    one, other = np.array(found, np.int64).reshape(-1, 2).T
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    return sp.csr_matrix((np.ones(2 * len(found), np.float32), ends), shape=(rows, rows))


_ROWS = 16_384
"""Number of rows to turn at a time."""


@torch.no_grad()
def whiten(weight: Tensor, words: int, sif: float, whitening: float) -> None:
    """Weights and whitens rows in place; their mean length stays the same.

    The frequency p of a word follows from its rank by Zipf's law. Rows without a word, such as
    buckets of unknown words, count as the rarest word.

    Args:
        weight: (rows, D) float32, first the rows of words in order of frequency.
        words: number of rows that belong to words.
        sif: a, if above 0: rows are multiplied by a / (a + p), the smooth inverse frequency of
            Arora et al. (2017), section 3.
        whitening: s from 0 to 1: rows are multiplied by C^(-s/2), where C (D, D) is the covariance
            about 0 of rows weighted by p (Yokoi et al. 2024, section 3). 1 makes C the identity.
    """
    lengths = weight.norm(dim=1).mean()
    frequencies = torch.from_numpy(zipf(words)).to(weight.device)
    if sif:
        weights = (sif / (sif + frequencies)).float()
        weight[:words].mul_(weights.unsqueeze(1))
        weight[words:].mul_(weights[-1])
    if whitening:
        turn = _power(_covariance(weight[:words], frequencies), -whitening / 2)
        for start in range(0, len(weight), _ROWS):
            weight[start : start + _ROWS] = weight[start : start + _ROWS] @ turn
    weight.mul_(lengths / weight.norm(dim=1).mean())


def _covariance(rows: Tensor, frequencies: Tensor) -> Tensor:
    """Returns (D, D) float64, the sum of the outer products of rows times their frequencies."""
    total = rows.new_zeros((rows.shape[1], rows.shape[1]), dtype=torch.float64)
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS].double()
        total += part.T @ (part * frequencies[start : start + _ROWS].unsqueeze(1))
    return total


def _power(matrix: Tensor, exponent: float) -> Tensor:
    """Returns a symmetric positive matrix to a power, float32, with eigenvalues of mean 1.

    Directions without variance, such as unused dimensions, keep the scale of the mean.
    """
    values, vectors = torch.linalg.eigh(matrix)
    values = values / values.mean()
    scales = torch.where(values > 1e-9, values, 1.0).pow(exponent)
    turned: Tensor = (vectors * scales) @ vectors.T
    return turned.float()


_WINDOW = 5
"""Largest distance d at which words are neighbours; they count 1/d."""
_FREQUENT = 1e-4
"""Words more frequent than this share of the text are skipped at random (Mikolov et al. 2013)."""
_SMOOTHING = 0.75
"""Exponent of context counts, against a bias for rare contexts (Levy et al. 2015, §3.2)."""
_LEAST_NEIGHBOURS = 5
"""Words with fewer different neighbours get no row."""
_MOST_WORDS = 100_000
"""Number of most frequent words that get a row; bounds the memory."""
_CHUNK = 3_000_000
"""Least number of ids to count at a time."""
_OVERSAMPLING = 32
_PASSES = 2


class Cooccurrences:
    """Counts of words that are near each other in a text."""

    def __init__(self, words: int, seed: int, *, ranked: bool = True) -> None:
        """Counts the first `words` ids.

        If they are `ranked` (in order of frequency), frequencies follow Zipf's law; otherwise they
        are counted in the texts so far.
        """
        self.words = min(words, _MOST_WORDS)
        self._generator = np.random.default_rng(seed)
        self._shares = _kept_shares(zipf(words)[: self.words])
        self._occurrences = None if ranked else np.zeros(self.words)
        self._counts = sp.csr_matrix((self.words, self.words), dtype=np.float32)
        self._waiting: list[Ragged] = []

    def add(self, texts: Ragged) -> None:
        """Counts the neighbours in each text."""
        kept = texts.ids < self.words
        ids = texts.ids[kept]
        if self._occurrences is not None and len(ids):
            self._occurrences += np.bincount(ids, minlength=self.words)
            self._shares = _kept_shares(self._occurrences / self._occurrences.sum())
        kept[kept] = self._generator.random(len(ids)) < self._shares[ids]
        self._waiting.append(texts.only(kept))
        if sum(len(each.ids) for each in self._waiting) >= _CHUNK:
            self._count()

    def _count(self) -> None:
        """Counts the pending texts together, as summing large sparse matrices is slow per call."""
        lengths = np.concatenate([each.lengths for each in self._waiting])
        ids = np.concatenate([each.ids for each in self._waiting])
        self._waiting.clear()
        owner = np.repeat(np.arange(len(lengths)), lengths)
        firsts, lasts, weights = [], [], []
        for distance in range(1, _WINDOW + 1):
            together = owner[:-distance] == owner[distance:]
            one, other = ids[:-distance][together], ids[distance:][together]
            firsts.append(np.minimum(one, other))
            lasts.append(np.maximum(one, other))
            weights.append(np.full(len(one), 1 / distance, np.float32))
        pairs = np.concatenate(firsts), np.concatenate(lasts)
        self._counts += sp.coo_matrix((np.concatenate(weights), pairs), self._counts.shape).tocsr()

    def most_frequent(self, count: int) -> NDArray[np.int64]:
        """Returns the ids of the `count` most frequent words, or of all if they are fewer."""
        return np.argsort(self._shares, kind="stable")[:count]

    def rows(self, width: int) -> NDArray[np.float32]:
        """Returns (words, width) float32, unit rows; zero rows for words with few neighbours."""
        if self._waiting:
            self._count()
        information = _positive_information(self._counts + self._counts.T)
        vectors = _factors(information, min(width, self.words), self._generator)
        rows = np.zeros((self.words, width), np.float32)
        rows[:, : vectors.shape[1]] = vectors
        rows[np.diff(information.indptr) < _LEAST_NEIGHBOURS] = 0
        return rows


def zipf(words: int) -> NDArray[np.float64]:
    """Returns the (words,) frequencies of words in order of frequency, by Zipf's law."""
    ranks = np.arange(1, words + 1)
    return np.asarray(1 / ranks / (1 / ranks).sum())


def _kept_shares(frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the share of the occurrences of each word that is not skipped."""
    return np.asarray(np.sqrt(_FREQUENT / frequencies.clip(min=_FREQUENT)))


def _positive_information(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Returns the positive pointwise mutual information of words and smoothed contexts."""
    by_word = np.asarray(counts.sum(axis=1)).ravel()
    by_context = by_word**_SMOOTHING
    table = counts.tocoo()
    expected = by_word[table.row] * by_context[table.col] / by_context.sum()
    information = np.log(table.data / expected)
    positive = information > 0
    return sp.csr_matrix(
        (information[positive].astype(np.float32), (table.row[positive], table.col[positive])),
        shape=counts.shape,
    )


def _factors(
    matrix: sp.csr_matrix, width: int, generator: np.random.Generator
) -> NDArray[np.float32]:
    """Returns (rows, width) unit rows: left singular vectors times the roots of their values."""
    forward, backward = _as_torch(matrix), _as_torch(matrix.T.tocsr())
    sketch = min(width + _OVERSAMPLING, matrix.shape[0])
    noise = generator.standard_normal((matrix.shape[1], sketch), np.float32)
    basis = _orthonormal(forward @ torch.from_numpy(noise))
    for _ in range(_PASSES):
        basis = _orthonormal(forward @ (backward @ basis))
    squares, left = _eigen(backward @ basis)
    vectors = (basis @ left)[:, :width] * squares[:width] ** 0.25  # the root of singular values
    return F.normalize(vectors, dim=1).numpy()


def _orthonormal(columns: Tensor) -> Tensor:
    """Returns an orthonormal basis of the space of (N, k) columns.

    It uses the eigenvectors of the (k, k) products of the columns. This takes half the time of a QR
    decomposition and is exact enough here, as the columns are far from dependent.
    """
    squares, vectors = _eigen(columns)
    return columns @ (vectors / squares.clamp(min=1e-9 * squares[0]).sqrt())


def _eigen(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Returns eigenvalues, descending, and eigenvectors of the products of (N, k) columns."""
    values, vectors = torch.linalg.eigh((columns.T @ columns).double())
    return values.flip(0).clamp(min=0).float(), vectors.flip(1).float()


def _as_torch(matrix: sp.csr_matrix) -> Tensor:
    """Returns the matrix as a torch tensor, as torch's products use all threads."""
    starts, columns = (
        torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices)
    )
    with warnings.catch_warnings():  # torch has called sparse rows "in beta state" for years
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, torch.from_numpy(matrix.data), matrix.shape)
