"""`Scorer`: scores how similar two texts are from 0 to 5, with an interval and the reasons.

Its folder holds the facts of the fit, the intervals, the keys of the training pairs, and the
`Regression`, which computes a score from features with a linear part and trees.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.encoders.layers import Array
from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import Sentences, as_texts, flag, whole_number
from rejoinder.inference.outputs import each_batch
from rejoinder.io.files.atomic import new_folder, write_bytes, write_text
from rejoinder.io.files.claims import read_one_state
from rejoinder.io.files.hashed import Record, check_file, file_facts, read_sealed, sealed_text
from rejoinder.io.files.system import default_workers
from rejoinder.measures import Indices
from rejoinder.models.config import read_tensors
from rejoinder.models.find import shipped_model
from rejoinder.scoring.batch import PairReader
from rejoinder.scoring.families import FAMILIES, Family, features_of
from rejoinder.text.features import WordFeatures

_TREE_ROWS = 256
"""Rows of features that the trees process at a time."""
Places = NDArray[np.int32]


@dataclass(frozen=True)
class Regression:
    """score = bias + z · linear + the values of the leaves that the features reach in T trees.

    z are the features minus their `mean`, divided by their `spread`. All trees together have M
    nodes. Features above the threshold of a node go to its right child, which follows the left.
    """

    mean: Array
    """(F,) float32."""
    spread: Array
    """(F,) float32, above 0."""
    linear: Array
    """(F,) float32."""
    bias: Array
    """(1,) float32."""
    roots: Places
    """(T,) int32: the first node of each tree."""
    features: NDArray[np.int16]
    """(M,) int16: the feature that a node compares; 0 for a leaf."""
    thresholds: Array
    """(M,) float32; infinite for a leaf."""
    children: Places
    """(M,) int32: the left child of a node, later than the node; for a leaf, the leaf itself."""
    values: Array
    """(M,) float32: the mean leaf value of the training pairs that pass a node."""

    FARTHEST: ClassVar[float] = 5.0
    """Deviations at which the linear part clips features, so that none decides alone."""
    TYPES: ClassVar[Mapping[str, type]] = {
        "features": np.int16, "roots": np.int32, "children": np.int32,
    }  # fmt: skip

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[Any]], features: int, where: str) -> Self:
        """Returns the regression with the given tensors.

        Raises:
            ModelError: a tensor is missing, or its shape, type or values are impossible.
        """
        trees, nodes = (
            tensors[name].shape[:1] if name in tensors else () for name in ("roots", "values")
        )
        shapes: dict[str, tuple[int, ...]] = {"bias": (1,), "roots": trees}
        shapes |= dict.fromkeys(("mean", "spread", "linear"), (features,))
        shapes |= dict.fromkeys(("features", "thresholds", "children", "values"), nodes)
        for name, shape in shapes.items():
            tensor, kind = tensors.get(name), np.dtype(cls.TYPES.get(name, np.float32))
            if tensor is None or tensor.shape != shape or tensor.dtype != kind or len(shape) != 1:
                found = "missing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
                raise ModelError(f"{where}: {name} is {found}; expected {kind} of shape {shape}.")
            if np.isnan(tensor).any() or (name != "thresholds" and not np.isfinite(tensor).all()):
                raise ModelError(f"{where}: {name} contains values that are not finite.")
        regression = cls(**{name: tensors[name] for name in shapes})
        if not regression._is_possible():
            raise ModelError(f"{where}: a tensor contains values out of range.")
        return regression

    def _is_possible(self) -> bool:
        count, places = len(self.values), np.arange(len(self.values))
        inner = self.children != places
        return bool(
            (self.spread > 0).all()
            and ((self.features >= 0) & (self.features < len(self.mean))).all()
            and ((self.roots >= 0) & (self.roots < count)).all()
            and ((self.children[inner] > places[inner]) & (self.children[inner] < count - 1)).all()
            and np.isposinf(self.thresholds[~inner]).all()
        )

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays by name, as `of` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, features: Array) -> Array:
        """Returns (N,) float32 scores of (N, F) features."""
        scores = self._standardised(features) @ self.linear + self.bias
        for low in range(0, len(features), _TREE_ROWS):
            nodes = self._places[0][None]
            for _, nodes in self._steps(features[low : low + _TREE_ROWS]):  # noqa: B007
                pass
            scores[low : low + _TREE_ROWS] += self.values[nodes].sum(axis=1)
        return np.asarray(scores, np.float32)

    def _standardised(self, features: Array) -> Array:
        z = (features - self.mean) / self.spread
        return np.asarray(np.clip(z, -self.FARTHEST, self.FARTHEST))

    @cached_property
    def _places(self) -> tuple[Indices, Indices, Indices]:
        """The roots, features and children of nodes in the types that NumPy indexes fastest."""
        roots, features, children = (
            each.astype(np.int64) for each in (self.roots, self.features, self.children)
        )
        return roots, features, children

    def _steps(self, features: Array) -> Iterator[tuple[Indices, Indices]]:
        """Yields (N, T) current nodes of rows of features, and their next nodes, to the leaves."""
        roots, compared, children = self._places
        values, width = features.ravel(), features.shape[1]
        begins = np.arange(0, len(features) * width, width)[:, None]
        nodes = np.broadcast_to(roots, (len(features), len(roots)))
        while True:
            above = values.take(begins + compared.take(nodes)) > self.thresholds.take(nodes)
            reached = children.take(nodes) + above
            if (reached == nodes).all():
                return
            yield nodes, reached
            nodes = reached

    @property
    def usual(self) -> float:
        """The score of a usual pair: the trees' mean over training pairs, and the line's bias."""
        return float(self.bias[0] + self.values[self.roots].sum())

    def moves(self, features: Array) -> Array:
        """Returns (N, F) float32: how far each feature moved the score from `usual`.

        They sum to the score minus `usual`. A node of a tree moves it from the mean of its training
        pairs to the mean of the child taken (Saabas 2014).
        """
        moved = self._standardised(features) * self.linear
        width = len(self.mean)
        for low in range(0, len(features), _TREE_ROWS):
            part = moved[low : low + _TREE_ROWS]
            for nodes, reached in self._steps(features[low : low + _TREE_ROWS]):
                owner = np.arange(len(part))[:, None] * width + self.features[nodes]
                steps = self.values[reached] - self.values[nodes]
                sums = np.bincount(owner.ravel(), steps.ravel(), part.size)
                part += sums.reshape(part.shape).astype(np.float32)
        return np.asarray(moved, np.float32)


FILE, WEIGHTS = "scorer.json", "scorer.safetensors"
_FORMAT = 2
_REMEDY = "Copy the whole folder again, or fit it again: `rejoinder fit-scorer`."
_INTERVAL, _PAIRS = ("interval.scores", "interval.low", "interval.high"), "fitted_pairs"

Interval = tuple[Array, Array, Array]
"""Scores in ascending order, and the offsets of the interval's ends from each."""
Keys = NDArray[np.uint64]
"""`datasets.sts.pair_keys` of pairs."""


class ScorerFacts(Record, frozen=True):
    """Training pairs, encoder and features of a scorer: the content of `scorer.json`."""

    encoder: str
    """Name of the model whose embeddings the features use."""
    encoder_sha256: str
    """SHA-256 of the weights of that model."""
    families: Mapping[str, list[str]]
    """Names of the features of each family."""
    pairs: Mapping[str, int]
    """Pairs fitted on, by set."""
    leaks_dropped: int
    """Number of pairs of those sets left out as leaks from evaluation sets, or duplicates."""
    seed: int
    dev: Mapping[str, float]
    """Scores on STS-B dev."""
    files: Mapping[str, Mapping[str, Any]]
    """Size and SHA-256 of each other file."""


def shipped_scorer() -> Path:
    """Returns the folder of the scorer in the package.

    Raises:
        ModelError: this installation has none.
    """
    folder = Path(str(files("rejoinder").joinpath("data", "scorer")))
    if not (folder / FILE).is_file():
        raise ModelError(
            "this installation has no scorer. Give the folder of one, which `rejoinder fit-scorer` "
            "writes."
        )
    return folder


def known_families(families: Mapping[str, Sequence[str]], where: object) -> list[Family]:
    """Returns the families with these names, after checking the names of their features.

    Raises:
        ModelError: a family is unknown, or has other features in this version.
    """
    found = []
    for name, features in families.items():
        if name not in FAMILIES or [*FAMILIES[name].features] != [*features]:
            raise ModelError(
                f"{where}: the family of features {name!r} is unknown to this version, or has "
                "other features. Fit the scorer again, or use the version that wrote it."
            )
        found.append(FAMILIES[name])
    return found


def write_scorer(
    folder: Path, facts: ScorerFacts, regression: Regression, interval: Interval,
    fitted_pairs: Keys, *, overwrite: bool = False,
) -> None:  # fmt: skip
    """Writes the folder completely or not at all; the same scorer gives the same bytes.

    Raises:
        InputError: `folder` is occupied.
    """
    tensors: dict[str, NDArray[Any]] = dict(regression.tensors())
    tensors |= dict(zip(_INTERVAL, interval, strict=True)) | {_PAIRS: fitted_pairs}
    with new_folder(folder, overwrite=overwrite) as new:
        write_bytes(new / WEIGHTS, save({name: tensors[name] for name in sorted(tensors)}))
        listed = to_builtins(facts) | {"files": file_facts(new, [WEIGHTS])}
        write_text(new / FILE, sealed_text(ScorerFacts(**listed), _FORMAT))


def read_scorer(folder: Path) -> tuple[ScorerFacts, Regression, Interval, Keys]:
    """Reads what `write_scorer` wrote.

    Raises:
        ModelError: the folder is missing, damaged, or not a scorer.
    """
    return read_one_state(folder / FILE, lambda: _read(folder))


def _read(folder: Path) -> tuple[ScorerFacts, Regression, Interval, Keys]:
    facts = read_sealed(
        folder / FILE, ScorerFacts, _FORMAT, ModelError, _REMEDY,
        unreadable=f"{folder} is not a scorer",
    )  # fmt: skip
    path = folder / WEIGHTS
    check_file(path, facts.files.get(WEIGHTS), ModelError, _REMEDY)
    tensors = read_tensors(path, remedy=_REMEDY)
    regression = Regression.of(tensors, sum(map(len, facts.families.values())), str(path))
    interval = tuple(tensors.get(name, np.empty(0)) for name in _INTERVAL)
    found = {(each.dtype, each.shape) for each in interval}
    right = found == {(np.dtype(np.float32), (interval[0].size,))} and interval[0].size > 0
    if not right or not np.isfinite(interval).all() or (np.diff(interval[0]) <= 0).any():
        raise ModelError(f"{path} has no intervals that can be read. {_REMEDY}")
    keys = tensors.get(_PAIRS)
    if keys is None or keys.dtype != np.uint64 or keys.ndim != 1:
        raise ModelError(f"{path} does not say what it was fitted on. {_REMEDY}")
    return facts, regression, interval, keys  # type: ignore[return-value]


HIGHEST = 5.0
"""The score of texts with the same meaning; unrelated texts score 0."""
COVERAGE = 0.9
"""Share of true scores that lie within their interval."""
_BLOCK = 128
"""Number of pairs to compute features for at a time."""


Found = TypeVar("Found")
"""A hit of a search: a dataclass with a `text` and a `score`."""


@dataclass(frozen=True)
class Move:
    """How far a feature of a pair moved its score."""

    family: str
    feature: str
    value: float
    """The value of the feature."""
    by: float
    """Score points, from the score of a usual pair."""


@dataclass(frozen=True)
class ScoredPair:
    """The score of a pair of texts, with its interval and the reasons."""

    score: float
    """From 0 (unrelated) to 5 (same meaning)."""
    low: float
    """The true score is between `low` and `high` for nine of ten pairs."""
    high: float
    usual: float
    """The score of a pair with the mean value of each feature. Added to all `moves` it gives
    `score`, before that is clipped to the range from 0 to 5."""
    moves: tuple[Move, ...]
    """How far each feature moved the score, the largest first."""

    def families(self) -> dict[str, float]:
        """Returns how far each family of features moved the score, the largest first."""
        sums: dict[str, float] = {}
        for move in self.moves:
            sums[move.family] = sums.get(move.family, 0.0) + move.by
        return dict(sorted(sums.items(), key=lambda each: -abs(each[1])))


class Scorer:
    """Scores how similar two texts are, by their embeddings and a comparison of their words.

    >>> scorer = Scorer()
    >>> scorer.score("A man is playing a guitar.", "A man plays the guitar.") > 4
    True
    >>> [pair] = scorer.explain("A man plays a guitar.", "A man plays no guitar.")
    >>> pair.families()["negation"] < 0
    True

    Unlike a cosine, it is fitted on pairs that people scored (`rejoinder.fit_scorer`). The order of
    the two texts does not matter.
    """

    def __init__(
        self,
        scorer: str | Path | None = None,
        encoder: SentenceEncoder | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        """Opens a scorer.

        Args:
            scorer: A folder that `rejoinder fit-scorer` wrote. Default: the scorer in the
                package.
            encoder: The model that the scorer was fitted with. Default: the model with that name in
                the package.
            threads: Number of CPU cores, by default all that the process may use.

        Raises:
            ModelError: there is no such scorer, it is damaged, or it was fitted with another model.
        """
        folder = shipped_scorer() if scorer is None else Path(scorer)
        self.facts, self._regression, self._interval, self._pairs = read_scorer(folder)
        self._families = known_families(self.facts.families, folder)
        if encoder is None:
            encoder = SentenceEncoder(shipped_model(self.facts.encoder), threads=1)
        found = encoder.describe()
        if found["sha256"] != self.facts.encoder_sha256:
            raise ModelError(
                f"{folder} was fitted with {self.facts.encoder}, and the model is {found['name']}, "
                "or has other weights. Take that model, or fit a scorer with yours."
            )
        self.encoder = encoder
        self._features = PairFeatures(encoder, self._families, threads)

    def __repr__(self) -> str:
        count = sum(map(len, self.facts.families.values()))
        return f"Scorer({self.facts.encoder!r}, {count} features)"

    def score(self, first: Sentences, second: Sentences, *, show_progress_bar: bool = False) -> Any:
        """Returns how similar texts are, from 0 (unrelated) to 5 (same meaning).

        Args:
            first: A string, or N strings.
            second: A string, or N strings.
            show_progress_bar: Whether to draw a progress bar on standard error.

        Returns:
            A float for two strings, else (N,) float32.

        Raises:
            InputError: the numbers of texts differ, or an element is not a string.
        """
        left, right, single = _sides(first, second)
        features = self._features(left, right, show=flag("show_progress_bar", show_progress_bar))
        scores = np.clip(self._regression(features), 0, HIGHEST)
        return float(scores[0]) if single else scores

    def intervals(self, scores: Array) -> tuple[Array, Array]:
        """Returns (N,) lower and (N,) upper ends of the intervals of (N,) scores."""
        return interval_ends(scores, self._interval)

    def explain(self, first: Sentences, second: Sentences) -> list[ScoredPair]:
        """Returns the score of each pair with its interval and the reasons.

        Arguments and errors are the same as for `score`; two strings are one pair.
        """
        left, right, _ = _sides(first, second)
        features = self._features(left, right)
        scores = np.clip(self._regression(features), 0, HIGHEST)
        names = [(family.name, name) for family in self._families for name in family.features]
        columns = (scores, *self.intervals(scores), features, self._regression.moves(features))
        pairs, lists = [], [each.tolist() for each in columns]
        for score, low, high, values, moved in zip(*lists, strict=True):
            moves = [Move(*name, *each) for name, *each in zip(names, values, moved, strict=True)]
            moves.sort(key=lambda move: -abs(move.by))
            pairs.append(ScoredPair(score, low, high, self._regression.usual, tuple(moves)))
        return pairs

    def rerank(
        self, queries: Sentences, hits: Sequence[Sequence[Found]], top_k: int | None = None
    ) -> list[list[Found]]:
        """Scores the hits of a search again, and returns the best of each query, best first.

        >>> from rejoinder import Scorer
        >>> scorer = Scorer()
        >>> texts = ["He plays chess.", "He never plays chess.", "It rains."]
        >>> found = scorer.encoder.search(["He is playing chess."], texts, 3)
        >>> [[best]] = scorer.rerank(["He is playing chess."], found, 1)
        >>> best.text, best.score > 4
        ('He plays chess.', True)

        Args:
            queries: A string, or Q strings.
            hits: Q lists of hits of `SentenceEncoder.search` or `Index.search`.
            top_k: Maximum number of hits per query. Default: all.

        Returns:
            Q lists of the same hits with `score` from 0 to 5. Equal scores keep their order.

        Raises:
            InputError: the numbers of queries and lists differ, or `top_k` is not a whole number
                of at least 1.
        """
        texts, _ = as_texts(queries)
        top_k = None if top_k is None else whole_number("top_k", top_k)
        if len(texts) != len(hits):
            raise InputError(
                f"{len(texts)} queries and {len(hits)} lists of hits; give one list per query."
            )
        lists: Sequence[Sequence[Any]] = hits
        asked = [text for text, found in zip(texts, lists, strict=True) for _ in found]
        scores = iter(self.score(asked, [hit.text for found in lists for hit in found]).tolist())
        scored = [[replace(hit, score=next(scores)) for hit in found] for found in lists]
        return [sorted(found, key=lambda hit: -hit.score)[:top_k] for found in scored]

    # called by `rejoinder evaluate`
    def encode(self, sentences: Sequence[str]) -> Array:
        """Returns the embeddings of the model."""
        return np.asarray(self.encoder.encode(sentences))

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> Array:
        """Returns (N,) float32 scores from 0 to 1: a fifth of `score`."""
        return np.asarray(self.score(list(first), list(second)) / np.float32(HIGHEST))

    def _fitted_pairs(self) -> Keys:
        """Returns the keys of the training pairs (`protocols.TellsFittedPairs`)."""
        return self._pairs

    def describe(self) -> dict[str, Any]:
        """Returns JSON values: name, dim, SHA-256 of the scorer's weights, the facts of the fit."""
        facts = to_builtins(self.facts)
        sha256 = facts.pop("files")[WEIGHTS]["sha256"]
        name = f"scorer with {self.facts.encoder}"
        return {"name": name, "dim": self.encoder.dim, "sha256": sha256, "training": facts}


class PairFeatures:
    """Computes the features of pairs, in blocks of similar lengths and in threads."""

    def __init__(
        self, encoder: SentenceEncoder, families: Sequence[Family], threads: int | None = None
    ) -> None:
        model = encoder._model
        words = model.features.vocabulary.index if isinstance(model.features, WordFeatures) else {}
        one = type(encoder)(model, threads=1, on_too_long=encoder.on_too_long)
        self._read = PairReader(one.encode, words)
        self._families, self._threads = families, threads or default_workers()
        self._count = sum(len(family.features) for family in families)

    def __call__(self, first: list[str], second: list[str], *, show: bool = False) -> Array:
        """Returns (N, F) float32 features."""
        found = np.empty((len(first), self._count), np.float32)
        lengths = [len(a) + len(b) for a, b in zip(first, second, strict=True)]
        order = np.argsort(lengths, kind="stable")

        def work(part: slice) -> None:
            rows = order[part].tolist()
            batch = self._read([first[row] for row in rows], [second[row] for row in rows])
            found[rows] = features_of(batch, self._families)

        each_batch(len(first), _BLOCK, self._threads, work, show=show, what="scoring")
        return found


def interval_ends(scores: Array, interval: Interval) -> tuple[Array, Array]:
    """Returns (N,) lower and (N,) upper ends of the intervals of (N,) scores."""
    points, low, high = interval
    ends = [scores + np.interp(scores, points, each) for each in (low, high)]
    lower, upper = (np.clip(end, 0, HIGHEST).astype(np.float32) for end in ends)
    return lower, upper


def _sides(first: Sentences, second: Sentences) -> tuple[list[str], list[str], bool]:
    (left, one), (right, other) = as_texts(first), as_texts(second)
    if len(left) != len(right) or one != other:
        raise InputError(f"{len(left)} and {len(right)} texts; give as many of each.")
    return left, right, one
