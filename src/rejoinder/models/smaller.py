"""Makes a model smaller: fewer words, buckets or dimensions, or weights of fewer bits.

Also fits rows of letter sequences, so that the rows of a known word's sequences add up to its row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rejoinder.encoders import BIGRAM_ROWS
from rejoinder.encoders.layers import Tensors, dequantized, quantize_rows, scales_name
from rejoinder.errors import InputError, ModelError, require
from rejoinder.models.config import RESPONSES
from rejoinder.models.folder import ModelContents
from rejoinder.text.features import Spellings, WordFeatures
from rejoinder.text.vocabulary import Vocabulary, letter_buckets

DTYPES = ("float32", "float16", "int8")
_LARGEST_HALF = float(np.finfo(np.float16).max)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """How to make a model smaller; None changes nothing."""

    dtype: str | None = None
    """Type of the weights. `int8` applies to the embedding table; other matrices get float16."""
    dim: int | None = None
    """Number of dimensions to keep, from the first."""
    max_words: int | None = None
    """Number of words to keep, the most frequent ones."""
    unknown_buckets: int | None = None
    """Number of buckets of unknown words to keep, from the first; 0 ignores unknown words."""
    letter_buckets: int | None = None
    """Number of buckets of letter sequences to read unknown words by; 0 removes them."""
    spelling: bool | None = None
    """Whether to read misspelt words as the intended known words."""
    saturation: float | None = None
    """K by which long rows are shortened: length n, in medians, becomes (1 + K) n / (n + K)."""


def smaller(
    model: ModelContents, options: ExportOptions, *, any_dim: bool = False
) -> ModelContents:
    """Returns a smaller model, with the same name and the same facts of training.

    Its `export` names the original model, the options, and the heads left out. With `any_dim`, even
    a model that was not trained for `options.dim` is cut.

    Raises:
        InputError: an option has no effect, or the model can't be cut like this.
        ModelError: a weight exceeds the largest float16.
    """
    if options == ExportOptions():
        raise InputError(f"no option is given; give one of {', '.join(vars(options))}.")
    if options.dtype not in (None, *DTYPES):
        raise InputError(f"dtype is {options.dtype!r}; allowed: {', '.join(DTYPES)}.")
    made = replace(model, tensors=dequantized(model.tensors))
    if options.dim is not None:
        made = _with_dim(made, options.dim, any_dim=any_dim)
    if options.letter_buckets is not None:
        made = _with_letters(made, options)
    if options.unknown_buckets is not None or options.max_words is not None:
        made = _with_rows(made, options)
    if options.spelling is not None:
        made = _with_spelling(made, spelling=options.spelling)
    if options.saturation is not None:
        made = _with_saturation(made, options.saturation)
    made = replace(made, tensors=_stored(model, made, options.dtype))
    again = options == ExportOptions(dtype="int8") and model.weight_type == "int8"
    if again or (made.features == model.features and _equal(made.tensors, model.tensors)):
        raise InputError(
            f"{model.name} already has weights of {options.dtype}, so the export changes nothing."
        )
    facts = export_facts(model, options, model.heads.keys() - made.heads.keys())
    return replace(made, export=facts, sha256="")


def _equal(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(
        tensor.dtype == other[name].dtype and np.array_equal(tensor, other[name])
        for name, tensor in one.items()
    )


def export_facts(
    model: ModelContents, options: ExportOptions, dropped: Iterable[str] = ()
) -> dict[str, Any]:
    """Returns the facts of an export; `dropped` are the heads that it left out."""
    before = {} if model.export is None else {"export": dict(model.export)}
    earlier = [] if model.export is None else model.export["dropped"]
    return {
        "from": {"name": model.name, "sha256": model.sha256, **before},
        **asdict(options),
        "dropped": sorted({*earlier, *dropped}),
    }


def nested_dims(model: ModelContents) -> Sequence[int]:
    """Returns the dimensions that a model was trained to be cut to, from its config."""
    table: Any = model.training
    for key in ("config", "training", "nested_dims"):
        table = table.get(key) if isinstance(table, Mapping) else None
    return [size for size in table if isinstance(size, int)] if isinstance(table, list) else []


def _with_dim(model: ModelContents, dim: int, *, any_dim: bool) -> ModelContents:
    """Returns a linear DAN with the first `dim` columns of its table."""
    encoder = model.encoder
    if not model.is_sum_of_rows:
        what = "its dense layers" if model.kind.name == "dan" else f"a {model.kind.name}"
        raise InputError(
            f"dim can't be cut: {model.name} computes its embedding by {what}; only a DAN with "
            "encoder.layers = [] can be cut."
        )
    if model.adaptation is not None:
        raise InputError(
            f"dim can't be cut: the adaptation of {model.name} reads all {model.dim} dimensions."
        )
    if not 1 <= dim < model.dim:
        raise InputError(f"dim must be from 1 to {model.dim - 1}; got {dim}.")
    nested = nested_dims(model)
    if dim not in nested and not any_dim:
        trained = f"for {', '.join(map(str, nested))}" if nested else f"for {model.dim} alone"
        raise InputError(
            f"{model.name} was trained {trained}; its first {dim} dimensions alone are worse; "
            "train one with training.nested_dims, or allow it with `any_dim=True`."
        )
    table = "encoder.table.weight"
    tensors = {name: part for name, part in model.tensors.items() if not name.startswith("heads.")}
    tensors[table] = tensors[table][:, :dim]
    heads: dict[str, Mapping[str, Any]] = {}
    head = model.heads.get(RESPONSES)
    if head is not None and (dim in nested or not head["layers"]):
        heads[RESPONSES] = {**head, "layers": [*head["layers"][:-1], dim][: len(head["layers"])]}
        tensors |= _cut_head(model.tensors, len(head["layers"]), dim)
    return replace(model, encoder={**encoder, "width": dim}, heads=heads, tensors=tensors)


def _cut_head(tensors: Tensors, layers: int, dim: int) -> Tensors:
    """Returns the response head F cut to `dim`: it reads and returns only the first entries.

    Training with nested dimensions ranks responses in the same way.
    """
    prefix = f"heads.{RESPONSES}.layers."
    cut = {name: value for name, value in tensors.items() if name.startswith(prefix)}
    if layers:
        first, last = f"{prefix}0.weight", f"{prefix}{layers - 1}"
        cut[first] = cut[first][:, :dim]
        for part in ("weight", "bias"):
            cut[f"{last}.{part}"] = cut[f"{last}.{part}"][:dim]
    return cut


def _with_rows(model: ModelContents, options: ExportOptions) -> ModelContents:
    """Returns a model with fewer words, or fewer buckets of unknown words.

    Rows stay as they were trained. Averaging the rows that share a bucket was not better on STS-B
    dev and P@1: trained rows point in unrelated directions, so their mean is short.
    """
    features = model.features
    if not isinstance(features, WordFeatures) or model.kind.table is None:
        raise InputError(
            "max_words and unknown_buckets are for models that read words; the "
            f"{model.kind.name} {model.name} reads subwords."
        )
    known, before = len(features.vocabulary), features.unknown_buckets
    words = known if options.max_words is None else options.max_words
    buckets = before if options.unknown_buckets is None else options.unknown_buckets
    if options.max_words is not None and not 1 <= words < known:
        raise InputError(
            f"max_words must be from 1 to {known - 1:,}, below that of {model.name}; got {words:,}."
        )
    if options.unknown_buckets is not None and not 0 <= buckets < before:
        allowed = f"from 0 to {before - 1:,}" if before else "it has none"
        raise InputError(f"unknown_buckets is {buckets:,}; {model.name}: {allowed}.")
    tensors, table = dict(model.tensors), f"encoder.{model.kind.table}"
    of_words, of_buckets, bigrams = np.split(tensors[table], [known, known + before])
    tensors[table] = np.concatenate([of_words[:words], of_buckets[:buckets], bigrams])
    if BIGRAM_ROWS in tensors:  # their rows follow all others
        rows = tensors[BIGRAM_ROWS]
        moved = rows - np.int32(known + before - words - buckets)
        tensors[BIGRAM_ROWS] = np.where(rows < 0, rows, moved)
    vocabulary = Vocabulary(features.vocabulary.words[:words])
    kept = replace(features, vocabulary=vocabulary, unknown_buckets=buckets)
    return replace(model, features=kept, tensors=tensors)


def _with_letters(model: ModelContents, options: ExportOptions) -> ModelContents:
    """Returns a model that reads unknown words by their letters, or no longer does."""
    features, buckets = model.features, options.letter_buckets or 0
    if not isinstance(features, WordFeatures) or features.buckets or model.kind.table is None:
        raise InputError(
            f"letter_buckets is for models of words without bigrams; {model.name} is not one."
        )
    if options.unknown_buckets is not None:
        raise InputError("letter_buckets replaces unknown_buckets; leave unknown_buckets out.")
    if buckets < 0 or (buckets == 0 and not features.letter_buckets):
        least = 0 if features.letter_buckets else 1
        raise InputError(f"letter_buckets must be {least} or more; got {buckets}.")
    table = f"encoder.{model.kind.table}"
    rows = model.tensors[table].astype(np.float32)
    if buckets:
        require("eval", "scipy")

        features, rows = with_letter_rows(features, rows, buckets)
    else:
        rows = rows[: len(features.vocabulary) + features.unknown_buckets]
        features = replace(features, letter_buckets=0, arabic_letter_buckets=0)
    return replace(model, features=features, tensors={**model.tensors, table: rows})


def _with_spelling(model: ModelContents, *, spelling: bool) -> ModelContents:
    """Returns a model that reads misspelt words as known ones, or no longer does."""
    features = model.features
    if not isinstance(features, WordFeatures):
        raise InputError(
            f"spelling is for models of words; the {model.kind.name} {model.name} reads subwords."
        )
    wanted: Spellings = "likely" if spelling else "as written"
    if features.spelling == wanted:
        does = "already reads" if spelling else "already does not read"
        raise InputError(f"{model.name} {does} misspelt words as known ones.")
    return replace(model, features=replace(features, spelling=wanted))


def _with_saturation(model: ModelContents, k: float) -> ModelContents:
    """Returns a model whose long rows, which belong to rare words, count less.

    The lengths of rows saturate like word counts in BM25; rows of median length keep theirs.
    """
    if not model.is_sum_of_rows or model.adaptation is not None:
        raise InputError(
            f"saturation is for sums of rows; {model.name} has other layers, or an adaptation."
        )
    if not 0 < k < np.inf:
        raise InputError(f"saturation must be above 0; got {k}.")
    table = f"encoder.{model.kind.table}"
    rows = model.tensors[table].astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    median = np.median(lengths[lengths > 0])
    shortened = rows * ((1 + k) * median / (lengths + k * median))
    return replace(model, tensors={**model.tensors, table: shortened})


def _stored(source: ModelContents, made: ModelContents, dtype: str | None) -> Tensors:
    """Returns the tensors of a model in their stored types: by default the types of `source`."""
    tensors = dict(made.tensors)
    table = None if made.kind.table is None else f"encoder.{made.kind.table}"
    if dtype == "int8" and table is None:
        raise InputError(
            f"int8 is for embedding tables; the {made.kind.name} {made.name} has none: use float16."
        )
    for name, tensor in made.tensors.items():
        if tensor.ndim < 2 or tensor.dtype == np.int32:
            continue
        kept = np.dtype(dtype or source.tensors[name].dtype)
        if kept == np.int8 and name == table:
            rows, scales = quantize_rows(tensor.astype(np.float32))
            tensors[name], tensors[scales_name(name)] = rows, scales
        else:
            made_as = np.dtype(np.float16) if kept == np.int8 else kept
            largest = float(np.abs(tensor).max(initial=0)) if made_as == np.float16 else 0
            if largest > _LARGEST_HALF and tensor.dtype != np.float16:
                raise ModelError(
                    f"{name} holds {largest:.3g}, above {_LARGEST_HALF:,.0f}: use float32."
                )
            tensors[name] = tensor.astype(made_as)
    return tensors


_FREQUENT = 500
"""Number of most frequent words to leave out, as their letters don't predict their meaning."""
_PENALTY = 3.0
_ITERATIONS = 12
_PULL = 2.0
"""Weight of the letters in the row of the rarest word, relative to the word's trained row."""
_RARE = 0.25
"""The share of known words that count as rare: they resemble unknown words."""
_LENGTH = 0.85
"""Length of the sum of an unknown word's letters, relative to a rare word's row. With regression
alone it is half as long, and an unknown word, often a name, would count less than any other. Chosen
on STS-B dev, SemRel and news (notebook/languages.md)."""

Rows = NDArray[np.float32]


def with_letter_rows(features: WordFeatures, rows: Rows, buckets: int) -> tuple[WordFeatures, Rows]:
    """Returns features that read unknown words by their letters, and rows that include letters.

    Buckets of unknown words and existing rows of letters are left out. Rows of rare words turn
    towards their letters and keep their lengths.
    """
    known = rows[: len(features.vocabulary)]
    counts = letter_counts(features.vocabulary.words, buckets)
    letters = fit_letters(counts, known)
    spelt = np.asarray(counts @ letters, np.float32)
    rare = slice(-max(1, int(_RARE * len(known))), None)
    long, short = (float(np.median(_lengths(each[rare]))) for each in (known, spelt))
    letters *= np.float32(_LENGTH * long / short if short else 1)
    features = replace(features, unknown_buckets=0, letter_buckets=buckets, arabic_letter_buckets=0)
    return features, np.concatenate([turned(known, spelt), letters])


def letter_counts(words: Sequence[str], buckets: int, arabic: int = 0) -> sp.csr_matrix:
    """Returns (W, buckets + arabic) float32 counts of the sequences of each word."""
    found = [letter_buckets(word, buckets, arabic) for word in words]
    starts = np.cumsum([0, *map(len, found)])
    ones = np.ones(starts[-1], np.float32)
    return sp.csr_matrix((ones, np.concatenate(found), starts), (len(found), buckets + arabic))


def fit_letters(counts: sp.csr_matrix, rows: Rows) -> Rows:
    """Returns (buckets, D) float32 rows of letter sequences.

    Ridge regression by conjugate gradients, on the `counts` and `rows` (W, D) of words, the most
    frequent first.
    """
    chosen = slice(_FREQUENT if len(rows) > 2 * _FREQUENT else 0, None)
    letters = counts[chosen]
    backward = letters.T.tocsr()
    fitted: Rows = np.zeros((letters.shape[1], rows.shape[1]), np.float32)
    residual = np.asarray(backward @ rows[chosen], np.float32)
    direction, size = residual.copy(), (residual**2).sum(axis=0)
    for _ in range(_ITERATIONS):
        product = backward @ (letters @ direction) + np.float32(_PENALTY) * direction
        step = size / np.maximum((direction * product).sum(axis=0), 1e-12)
        fitted += step * direction
        residual -= step * product
        after = (residual**2).sum(axis=0)
        direction = residual + after / np.maximum(size, 1e-12) * direction
        size = after
    return fitted


def turned(rows: Rows, spelt: Rows) -> Rows:
    """Returns (W, D) float32 rows of words, turned towards the sums of rows of their letters.

    The rarer a word, the more it turns, as training saw it too seldom. By Zipf's law the r-th most
    frequent of W words was seen W / r times as often as the last.
    """
    share = np.linspace(0, _PULL, len(rows), endpoint=False, dtype=np.float32)[:, None]
    moved = (rows + share * spelt) / (np.float32(1) + share)
    return np.asarray(moved * (_lengths(rows) / np.maximum(_lengths(moved), np.float32(1e-12))))


def _lengths(rows: Rows) -> Rows:
    return np.asarray(np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
