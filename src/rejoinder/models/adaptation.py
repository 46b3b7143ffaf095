"""`Adaptation`: the map, what it was fitted on, and its file, `adaptation.safetensors`.

`Adapted`: any encoder with an adaptation applied to its embeddings.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from rejoinder import protocols
from rejoinder.errors import InputError, ModelError
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import decoded, refuse_constant, sha256_of_array
from rejoinder.io.formats.embedding_files import UNREADABLE

FILE = "adaptation.safetensors"
FORMAT = 1
_FACTS = "adaptation"
_FLATTEST = 1e-6
"""Smallest ratio of the least to the largest singular value of a W that float32 can invert."""


class _Facts(Struct, frozen=True):
    """The facts that are read by code. The others are for people."""

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
    """JSON values: what it was fitted on, how, and the correlations on dev before and after."""
    fitted_pairs: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    """(M,) uint64, ascending: `datasets.sts.pair_keys` of the pairs that W was fitted on."""

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, np.ndarray) or self.matrix.dtype != np.float32:
            given = getattr(self.matrix, "dtype", type(self.matrix).__name__)
            raise ModelError(f"the matrix of an adaptation is of {given}; float32 is needed.")
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise ModelError(f"an adaptation of shape {shape}; a square matrix is needed.")
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
                "the adaptation can't be inverted, so responses can't be ranked with it; fit it "
                "with smaller steps or a larger penalty."
            )
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def check_dim(self, dim: int, where: str = "") -> None:
        """Refuses embeddings of another dimension than W; `where` begins the message.

        Raises:
            ModelError: `dim` is another dimension.
        """
        if dim != self.dim:
            raise ModelError(
                f"{where}the adaptation was fitted for {self.dim} dimensions; the encoder's "
                f"embeddings have {dim}. Fit one for this encoder: `rejoinder adapt`."
            )

    def write(self, path: Path) -> None:
        """Writes the file, whole or not at all. The same adaptation gives the same bytes."""
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
        ModelError: the file is missing, damaged or of another format version.
    """
    if not isinstance(path, str | Path):
        raise InputError(f"a path is needed, of a file or a folder; got {path!r}.")
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
            f"{path} is not an adaptation of format version {FORMAT}, or damaged: {error}; copy it "
            "again, or fit it again."
        ) from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    if pairs.dtype != np.uint64 or pairs.ndim != 1:
        raise ModelError(
            f"{path} is damaged: fitted_pairs of {pairs.dtype} in shape {pairs.shape}; copy it "
            "again."
        )
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
    encoder has them, because callers ask an encoder for its methods (`protocols.py`). `entail` is
    the wrapped encoder's own, without the map.

    Attributes:
        adaptation: the map W, what it was fitted on, and how.
    """

    def __init__(self, encoder: protocols.Encodes, adaptation: Adaptation) -> None:
        """Wraps an encoder.

        Raises:
            InputError: `encoder` is not an encoder, or `adaptation` not an adaptation.
            ModelError: the encoder can't be adapted, or it describes itself with another
                dimension than the adaptation has. If it describes none, `encode` raises this.
        """
        if not isinstance(adaptation, Adaptation):
            raise InputError(
                f"an adaptation is needed, as read_adaptation(path) returns it; got a "
                f"{type(adaptation).__name__}."
            )
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
        """Returns (N, D) float32 rows W⁻ᵀ v', not of length 1. They rank as without W."""
        rows = np.asarray(self._encode_response(sentences), np.float32)
        return self.adaptation.apply_responses(rows)


def refuse_unadaptable(encoder: protocols.Encodes) -> None:
    """Refuses an encoder whose similarities a map of its vectors would not change, or change twice.

    Raises:
        InputError: it has no method `encode`.
        ModelError: it scores pairs itself, or is adapted already.
    """
    if isinstance(encoder, type | str) or not isinstance(encoder, protocols.Encodes):
        raise InputError(
            f"an encoder is needed, an object with encode(list of strings); got {encoder!r}. "
            "SentenceEncoder(path) opens a model folder."
        )
    about = described(encoder)
    if isinstance(encoder, protocols.ScoresPairs):
        raise ModelError(
            f"{about['name']} can't be adapted: it scores pairs itself, not by cosines of vectors."
        )
    if about.get("adaptation"):
        raise ModelError(f"{about['name']} is adapted already; adapt the original model.")


def described(encoder: protocols.Encodes) -> dict[str, Any]:
    """Returns what an encoder says of itself, at least the name of its class."""
    about = encoder.describe() if isinstance(encoder, protocols.Describes) else {}
    return {"name": type(encoder).__name__, **about}
