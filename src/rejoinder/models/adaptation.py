"""`Adaptation`: a linear map W, its file and its fit. `Adapted`: an encoder with such a map.

The W of u* = W u is fitted on graded pairs (Yang et al. 2018, §4.4.1, eq. 2), for any encoder. The
paper says that W is "parameterized using the STS training data", but not how. Here the loss is the
squared error of a·s + b, where s is the score of eq. (2), plus a penalty on the squared distance of
W from the identity.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import numpy as np
from msgspec import Meta, Struct, convert
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from rejoinder import protocols
from rejoinder.errors import ConfigError, InputError, ModelError
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import Count, decoded, refuse_constant, sha256_of_array
from rejoinder.io.formats.embedding_files import UNREADABLE

if TYPE_CHECKING:
    from rejoinder.datasets.semeval import GradedPairs

FILE = "adaptation.safetensors"
FORMAT = 1
_FACTS = "adaptation"
_FLATTEST = 1e-6
"""Least ratio of the smallest to the largest singular value at which float32 can invert W."""


class _Facts(Struct, frozen=True):
    """The facts that code reads. The others are for people."""

    data: Mapping[str, Any] | None = None
    pairs: int | None = None
    dev_pearson_before: float | None = None
    dev_pearson_after: float | None = None


class _Saved(Struct, frozen=True):
    format_version: Literal[1]
    sha256: str
    facts: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A linear map u* = W u (Yang et al. 2018, §4.4.1)."""

    matrix: NDArray[np.float32]
    """W, (D, D) float32, finite and invertible."""
    facts: Mapping[str, Any]
    """JSON values: training data and settings of the fit, correlations on dev before and after."""
    fitted_pairs: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    """(M,) uint64, ascending: `datasets.sts.pair_keys` of the pairs that W was fitted on."""

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, np.ndarray) or self.matrix.dtype != np.float32:
            given = getattr(self.matrix, "dtype", type(self.matrix).__name__)
            raise ModelError(f"the matrix of an adaptation is of {given}; it must be float32.")
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise ModelError(f"the matrix of an adaptation has shape {shape}; it must be square.")
        if not np.isfinite(self.matrix).all():
            raise ModelError("the adaptation holds values that are not finite.")
        try:
            decoded(_Facts, self.facts)
        except ValueError as error:
            raise ModelError(f"the facts of the adaptation are damaged: {error}.") from None

    @property
    def dim(self) -> int:
        """Dimension D of the embeddings that W was fitted for."""
        return len(self.matrix)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the matrix, in hexadecimal."""
        return sha256_of_array(self.matrix)

    def describe(self) -> dict[str, Any]:
        """Returns JSON values: the facts, `dim`, and the SHA-256 of the matrix."""
        return {**self.facts, "dim": self.dim, "sha256": self.sha256}

    @property
    def source(self) -> str:
        """Name and split of the data that W was fitted on, such as `stsb train`."""
        return source_of(self.facts)

    def summary(self) -> str:
        """Describes the adaptation in one line."""
        text = f"on {self.source}, {self.facts.get('pairs') or 0:,} pairs"
        before, after = (self.facts.get(f"dev_pearson_{when}") for when in ("before", "after"))
        if before is None or after is None:
            return text
        return f"{text}; Pearson on dev {before:.4f} before, {after:.4f} after"

    def project(self, rows: protocols.Embeddings) -> protocols.Embeddings:
        """Returns W u of (N, D) float32 rows of any length, not normalised.

        Raises:
            ModelError: the rows have another dimension than W.
        """
        self.check_dim(rows.shape[1] if rows.ndim == 2 else 0)
        return rows @ self.matrix.T

    def apply(self, embeddings: protocols.Embeddings) -> protocols.Embeddings:
        """Returns (N, D) float32 rows of length 1: W u of embeddings of any length.

        Zero rows stay zero. A row that is not finite stays so, so that callers can detect it.

        Raises:
            ModelError: the embeddings have another dimension than W.
        """
        rows = np.asarray(embeddings, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            wide = self.project(rows).astype(np.float64)
            lengths = np.linalg.norm(wide, axis=1)
            return (wide / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)

    def apply_responses(self, embeddings: protocols.Embeddings) -> protocols.Embeddings:
        """Returns (N, D) float32 rows W⁻ᵀ v' of response embeddings v', not of length 1.

        An input becomes W u / |W u|, so its dot product with W⁻ᵀ v' is u·v' / |W u|. Responses
        therefore rank as they did before the adaptation, which was not fitted on responses.

        Raises:
            ModelError: the embeddings have another dimension than W, or W can't be inverted.
        """
        self.check_dim(embeddings.shape[1] if embeddings.ndim == 2 else 0)
        with np.errstate(over="ignore", invalid="ignore"):
            # in float64, so that equal rows stay equal wherever they are in a batch
            responses = embeddings.astype(np.float64) @ self._inverse
            return np.asarray(responses, np.float32)

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        """W⁻¹. Rows v' times W⁻¹ are W⁻ᵀ v'."""
        matrix = self.matrix.astype(np.float64)
        values = np.linalg.svd(matrix, compute_uv=False)
        if values[-1] <= _FLATTEST * values[0]:
            raise ModelError(
                "the adaptation can't be inverted to rank responses; fit it with a larger penalty."
            )
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def check_dim(self, dim: int, where: str = "") -> None:
        """Refuses embeddings of another dimension than W; `where` begins the message.

        Raises:
            ModelError: `dim` is another dimension.
        """
        if dim != self.dim:
            raise ModelError(
                f"{where}the adaptation was fitted for {self.dim} dimensions; the encoder's have "
                f"{dim}: `rejoinder adapt` fits another."
            )

    def write(self, path: Path) -> None:
        """Writes the file completely or not at all. The same adaptation gives the same bytes."""
        tree = {"format_version": FORMAT, "sha256": self.sha256, "facts": dict(self.facts)}
        tensors: dict[str, NDArray[Any]] = {
            "matrix": np.ascontiguousarray(self.matrix, np.float32),
            "fitted_pairs": np.ascontiguousarray(self.fitted_pairs, np.uint64),
        }
        metadata = {_FACTS: json.dumps(tree, ensure_ascii=False, sort_keys=True)}
        write_bytes(path, save(tensors, metadata))


def read_adaptation(path: str | Path) -> Adaptation:
    """Reads an adaptation from its file, or from a folder that holds `adaptation.safetensors`.

    Raises:
        InputError: `path` is not a path.
        ModelError: the file is missing, damaged or has another format version.
    """
    if not isinstance(path, str | Path):
        raise InputError(f"an adaptation is given by the path of a file or folder; got {path!r}.")
    path = Path(path)
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise ModelError(
            f"{path} is missing. `rejoinder adapt` writes a folder that holds an adaptation."
        )
    try:
        with safe_open(path, "numpy") as file:
            tree = json.loads((file.metadata() or {})[_FACTS], parse_constant=refuse_constant)
            json.dumps(tree, ensure_ascii=False).encode()  # refuses halves of surrogate pairs
            saved = decoded(_Saved, tree)
            matrix, pairs = file.get_tensor("matrix"), file.get_tensor("fitted_pairs")
        adaptation = Adaptation(matrix, saved.facts, pairs)
    except UNREADABLE as error:
        raise ModelError(
            f"{path} is not an adaptation of format version {FORMAT}, or damaged: {error}."
        ) from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    if pairs.dtype != np.uint64 or pairs.ndim != 1:
        raise ModelError(f"{path} is damaged: fitted_pairs of {pairs.dtype}, {pairs.shape}.")
    if adaptation.sha256 != saved.sha256:
        raise ModelError(f"{path} was changed (SHA-256 of the matrix); copy it again.")
    return adaptation


def source_of(facts: Mapping[str, Any]) -> str:
    """Returns the name and split of the data in the facts of an adaptation."""
    data = facts.get("data") or {}
    return " ".join(str(data[key]) for key in ("name", "split") if key in data) or "unnamed data"


class Adapted:
    """An encoder whose embeddings are W u, where u is the embedding of the encoder it wraps.

    It has the methods `prepare`, `cache_in`, `encode_response` and `entail` only if the wrapped
    encoder has them, because callers check which methods an encoder has (`protocols.py`). `entail`
    is the method of the wrapped encoder, without the map.

    Attributes:
        adaptation: the map W and the facts of its fit.
    """

    def __init__(self, encoder: protocols.Encodes, adaptation: Adaptation) -> None:
        """Wraps an encoder.

        Raises:
            InputError: `encoder` is not an encoder, or `adaptation` not an adaptation.
            ModelError: the encoder can't be adapted, or its description has another dimension than
                the adaptation. If it has none, `encode` raises this instead.
        """
        if not isinstance(adaptation, Adaptation):
            raise InputError(f"an adaptation is needed; got a {type(adaptation).__name__}.")
        refuse_unadaptable(encoder)
        dim = described(encoder).get("dim")
        if isinstance(dim, int):
            adaptation.check_dim(dim)
        self._encoder = encoder
        self.adaptation = adaptation
        if isinstance(encoder, protocols.Prepares):
            self.prepare = encoder.prepare
        if isinstance(encoder, protocols.CachesItself):
            self.cache_in = encoder.cache_in
        if isinstance(encoder, protocols.EncodesResponses):
            self._encode_response = encoder.encode_response
            self.encode_response = self._responses
        if isinstance(encoder, protocols.Entails):
            self.entails, self.entail = encoder.entails, encoder.entail

    def describe(self) -> dict[str, Any]:
        """Returns the description of the wrapped encoder with the key `adaptation` added."""
        return {**described(self._encoder), "adaptation": self.adaptation.describe()}

    def _fitted_pairs(self) -> NDArray[np.uint64]:
        """Returns (M,) uint64 keys of the pairs that the adaptation was fitted on."""
        return self.adaptation.fitted_pairs

    def encode(self, sentences: Sequence[str], /) -> protocols.Embeddings:
        """Returns (N, D) float32 rows W u of length 1. Zero rows stay zero.

        Raises:
            ModelError: the encoder's embeddings have another dimension.
        """
        return self.adaptation.apply(np.asarray(self._encoder.encode(sentences), np.float32))

    def _responses(self, sentences: Sequence[str], /) -> protocols.Embeddings:
        """Returns (N, D) float32 rows W⁻ᵀ v', not of length 1. Ranks are the same without W."""
        rows = np.asarray(self._encode_response(sentences), np.float32)
        return self.adaptation.apply_responses(rows)


def refuse_unadaptable(encoder: protocols.Encodes) -> None:
    """Refuses an encoder if a map of its vectors would have no effect or be applied twice.

    Raises:
        InputError: it has no method `encode`.
        ModelError: it scores pairs itself, or is already adapted.
    """
    if isinstance(encoder, type | str) or not isinstance(encoder, protocols.Encodes):
        raise InputError(f"an object with encode(list of strings) is needed; got {encoder!r}.")
    about = described(encoder)
    if isinstance(encoder, protocols.ScoresPairs):
        raise ModelError(
            f"{about['name']} can't be adapted: it scores pairs itself, not by cosines of vectors."
        )
    if about.get("adaptation"):
        raise ModelError(f"{about['name']} is adapted already; adapt the original model.")


def described(encoder: protocols.Encodes) -> dict[str, Any]:
    """Returns an encoder's description of itself, at least the name of its class."""
    about = encoder.describe() if isinstance(encoder, protocols.Describes) else {}
    return {"name": type(encoder).__name__, **about}


Floats = NDArray[np.floating[Any]]
"""float32 or float64. Products are computed in the type of the embeddings."""

_DECAYS = (0.9, 0.999)
_EPSILON = 1e-8
"""Constants of Adam as published (Kingma and Ba 2015, algorithm 1)."""
_MIN_DISTANCE = 1e-6
"""Least distance of a cosine from 1 in the derivative of the angle, which is infinite at 1."""
_MAX_DIM_ONE_CORE = 1_024
"""Largest dimension for which one core is used."""
_MAX_DIM = 8_192
"""Largest dimension D. The map and Adam need four matrices of (D, D)."""


_Above = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
_Natural = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True)
class FitSettings:
    """Settings of the fit of W. The defaults were chosen on STS-B dev (notebook/results.md)."""

    learning_rate: _Above = 3e-4
    """Learning rate of Adam for W. With a large rate, W overfits the training pairs."""
    scale_learning_rate: _Above = 1e-3
    """Learning rate of Adam for a and b, which start at the least-squares fit."""
    penalty: Annotated[float, Meta(ge=0, le=sys.float_info.max)] = 1e-3
    """Weight of the squared distance of W from the identity in the loss."""
    batch_size: _Natural = 256
    """Pairs per step."""
    max_epochs: _Natural = 60
    """Maximum number of passes over the pairs."""
    patience: _Natural = 5
    """The fit ends after this many epochs without a better Pearson correlation on dev."""
    seed: Count = 0
    """Seed of the order of pairs."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(FitSettings, include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValueError as error:
                raise ConfigError(f"{name} is {value!r}: {error}.") from None


@dataclass(frozen=True)
class Graded:
    """Embedded pairs with their gold scores."""

    first: Floats
    """(N, D) rows of any length. Zero rows have the cosine 0 with anything."""
    second: Floats
    """(N, D), the other sentence of each pair."""
    gold: NDArray[np.float64]
    """(N,) gold scores, 0 to 5."""

    def __len__(self) -> int:
        return len(self.gold)

    def rows(self, indices: NDArray[np.int64]) -> "Graded":
        """Returns the pairs at `indices`."""
        return Graded(self.first[indices], self.second[indices], self.gold[indices])


def fit_adaptation(
    encoder: protocols.Encodes,
    train: "GradedPairs",
    dev: "GradedPairs",
    settings: FitSettings | None = None,
    *,
    name: str = "stsb",
) -> Adaptation:
    """Fits W on the pairs of `train`, and keeps the W that is best on `dev`.

    The adaptation records `name`, the name of the data.

    Raises:
        ModelError: the encoder can't be adapted, or does not return an (N, D) array.
        InputError: `encoder` is not an encoder, `train` or `dev` are not graded pairs, an
            embedding is not finite, or D is too large.
    """
    from rejoinder.datasets.semeval import GradedPairs, pair_keys

    refuse_unadaptable(encoder)
    for which, pairs in (("train", train), ("dev", dev)):
        if not isinstance(pairs, GradedPairs):
            raise InputError(f"{which} must be GradedPairs; got a {type(pairs).__name__}.")
    texts = list(dict.fromkeys([*train.first, *train.second, *dev.first, *dev.second]))
    if isinstance(encoder, protocols.Prepares):
        encoder.prepare(name, texts)
    embeddings = _embed(encoder, texts)
    index = {text: row for row, text in enumerate(texts)}

    def graded(pairs: "GradedPairs") -> Graded:
        first, second = ([index[text] for text in side] for side in (pairs.first, pairs.second))
        return Graded(embeddings[first], embeddings[second], pairs.gold)

    fitted = fit(graded(train), graded(dev), settings)
    description = described(encoder)
    facts = {
        **fitted.facts,
        "data": {
            "name": name,
            **{key: getattr(train, key) for key in ("split", "form", "sha256")},
            "dev_sha256": dev.sha256,
        },
        "encoder": {key: description[key] for key in ("name", "sha256") if key in description},
    }
    keys = np.unique(pair_keys(train.first, train.second))
    return replace(fitted, facts=facts, fitted_pairs=keys)


def _embed(encoder: protocols.Encodes, texts: Sequence[str]) -> protocols.Embeddings:
    returned = encoder.encode(texts)
    try:
        rows = np.asarray(returned, np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the encoder did not return an array of numbers: {error}.") from error
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ModelError(
            f"the encoder returned the shape {rows.shape} for {len(texts)} sentences, not (N, D)."
        )
    if not 0 < rows.shape[1] <= _MAX_DIM:
        raise InputError(
            f"embeddings of {rows.shape[1]:,} dimensions can't be adapted; at most {_MAX_DIM:,}."
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        text = texts[int(np.argmin(finite))]
        raise InputError(f"the embedding of {short(text)} is not finite.")
    return rows


def fit(train: Graded, dev: Graded, settings: FitSettings | None = None) -> Adaptation:
    """Fits W with Adam, and keeps the epoch with the best correlation on dev, including W = I.

    The facts of the map hold the settings, the Pearson correlations on dev before and after, the
    epoch that was kept, and a and b. The same input and seed give the same map.

    Raises:
        InputError: gold is outside 0-5 or all equal.
    """
    settings = settings or FitSettings()
    for which, gold in (("training", train.gold), ("dev", dev.gold)):
        if len(gold) < 2 or not 0 <= gold.min() < gold.max() <= 5:
            raise InputError(
                f"the {len(gold)} {which} pairs need scores from 0 to 5 that are not all equal."
            )
    from threadpoolctl import threadpool_limits

    # small products are faster on one core: on a busy machine threads wait for each other
    # (24 s instead of 4 on two busy cores)
    cores = 1 if train.first.shape[1] <= _MAX_DIM_ONE_CORE else None
    with threadpool_limits(cores, user_api="blas"):
        matrix: Floats = np.eye(train.first.shape[1], dtype=np.float32)
        scale = _least_squares(scores(matrix, train), train.gold)
        before = _pearson(scores(matrix, dev), dev.gold)
        best, best_matrix, best_scale, best_epoch = before, matrix.copy(), scale.copy(), 0
        adam = _Adam(matrix, settings.learning_rate), _Adam(scale, settings.scale_learning_rate)
        for epoch in range(1, settings.max_epochs + 1):
            order = np.random.default_rng([settings.seed, epoch]).permutation(len(train))
            for low in range(0, len(order), settings.batch_size):
                batch = train.rows(order[low : low + settings.batch_size])
                _, *gradients = loss_and_gradients(matrix, scale, batch, settings.penalty)
                for optimizer, gradient in zip(adam, gradients, strict=True):
                    optimizer.step(gradient)
            after = _pearson(scores(matrix, dev), dev.gold)
            if after > best:
                best, best_epoch = after, epoch
                best_matrix, best_scale = matrix.copy(), scale.copy()
            elif epoch - best_epoch >= settings.patience:
                break
    facts = {
        "kind": "linear",
        "pairs": len(train),
        "dev_pairs": len(dev),
        "dev_pearson_before": before,
        "dev_pearson_after": best,
        "epochs": best_epoch,
        "scale": best_scale.tolist(),
        "settings": asdict(settings),
    }
    return Adaptation(best_matrix.astype(np.float32), facts)


def scores(matrix: Floats, pairs: Graded) -> NDArray[np.float64]:
    """Returns (N,) float64 scores of eq. (2), 0 to 5. Pairs with a zero row get 2.5."""
    return _scores(_cosines(pairs.first @ matrix.T, pairs.second @ matrix.T)[0])


def loss_and_gradients(
    matrix: Floats, scale: NDArray[np.float64], pairs: Graded, penalty: float
) -> tuple[float, Floats, NDArray[np.float64]]:
    """Returns the mean squared error of a·s + b plus `penalty` · ||W - I||², and its gradients.

    `matrix` is W, (D, D), and `scale` is (a, b). The gradients are with respect to W, in the type
    of `matrix`, and to (a, b).
    """
    x, y = pairs.first @ matrix.T, pairs.second @ matrix.T  # (N, D) each
    cosine, x_length, y_length = _cosines(x, y)
    s = _scores(cosine)
    errors = scale[0] * s + scale[1] - pairs.gold
    offset = matrix - np.eye(len(matrix), dtype=matrix.dtype)
    loss = float((errors**2).mean() + penalty * np.square(offset, dtype=np.float64).sum())
    by_scale = 2 * np.array([(errors * s).mean(), errors.mean()])
    # d angle / d x has length 1/|x| at any cosine, but at 1 it is infinity times zero. The infinite
    # factor is bounded there, so that pairs of equal texts, which no W can tell apart, have no
    # gradient
    sine = np.sqrt(np.maximum(1 - cosine**2, 2 * _MIN_DISTANCE))
    by_cosine = 2 / len(pairs) * errors * scale[0] * 5 / np.pi / sine
    by_cosine = np.where((x_length > 0) & (y_length > 0), by_cosine, 0.0)
    x_length, y_length = np.maximum(x_length, 1e-30), np.maximum(y_length, 1e-30)
    across = by_cosine / (x_length * y_length)
    by_x = _times(y, across) - _times(x, by_cosine * cosine / x_length**2)
    by_y = _times(x, across) - _times(y, by_cosine * cosine / y_length**2)
    by_matrix = by_x.T @ pairs.first + by_y.T @ pairs.second + (2 * penalty) * offset
    return loss, by_matrix.astype(matrix.dtype, copy=False), by_scale


def _times(rows: Floats, factors: NDArray[np.float64]) -> Floats:
    return rows * factors.astype(rows.dtype)[:, None]


def _cosines(x: Floats, y: Floats) -> tuple[NDArray[np.float64], ...]:
    """Returns (N,) cosines, 0 for zero rows, and the lengths of both sides, summed in float64."""
    dot, xx, yy = (
        np.einsum("nd,nd->n", a, b, dtype=np.float64) for a, b in ((x, y), (x, x), (y, y))
    )
    x_length, y_length = np.sqrt(xx), np.sqrt(yy)
    lengths = x_length * y_length
    cosine = np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0)
    return np.clip(cosine, -1.0, 1.0), x_length, y_length


def _scores(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    return 5 * (1 - np.arccos(cosine) / np.pi)


def _least_squares(s: NDArray[np.float64], gold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the (a, b) that bring a·s + b nearest to gold."""
    design = np.stack([s, np.ones_like(s)], axis=1)
    return np.linalg.lstsq(design, gold, rcond=None)[0].astype(np.float64)


def _pearson(s: NDArray[np.float64], gold: NDArray[np.float64]) -> float:
    """Returns Pearson's r, or 0 if all scores are equal because the encoder knows no word."""
    s, gold = s - s.mean(), gold - gold.mean()
    spread = float(np.sqrt((s @ s) * (gold @ gold)))
    return float(s @ gold) / spread if spread > 0 else 0.0


class _Adam:
    """Adam (Kingma and Ba 2015, algorithm 1), which changes `values` in place."""

    def __init__(self, values: Floats, rate: float) -> None:
        self.values, self.rate = values, rate
        self.mean, self.square = np.zeros_like(values), np.zeros_like(values)
        self.count = 0

    def step(self, gradient: Floats) -> None:
        """Takes one step against `gradient`."""
        self.count += 1
        slow, slower = _DECAYS
        self.mean += (1 - slow) * (gradient - self.mean)
        self.square += (1 - slower) * (gradient * gradient - self.square)
        size = self.rate / (1 - slow**self.count)
        root = np.sqrt(self.square / (1 - slower**self.count))
        self.values -= size * self.mean / (root + _EPSILON)
