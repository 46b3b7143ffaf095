"""Encoder kinds: one record each, looked up by name. Importing this needs no torch.

The rest of the package knows a kind only by its record. To add a kind, write a module with a
record, and call `register_encoder` (docs/extend/encoder.md).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from reprlib import repr as short
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from rejoinder.errors import ModelError
from rejoinder.io.files.hashed import decoded
from rejoinder.registry import Registry, resolve

Shapes = dict[str, tuple[int, ...]]
"""Shapes of tensors by name; -1 stands for any size."""

LARGEST = 2**31 - 1
"""The largest size: ids of words and rows are int32."""
Size = Annotated[int, Meta(ge=1, le=LARGEST)]
SizeOrNone = Annotated[int, Meta(ge=0, le=LARGEST)]
ActivationName = Annotated[str, Meta(pattern=r"\A(gelu|none|relu|tanh)\Z")]

_Table = TypeVar("_Table")


class WordSizes(Struct, frozen=True):
    """The sizes in the table `text` of a model that reads words."""

    words: Size
    unknown_buckets: SizeOrNone
    bigram_buckets: SizeOrNone
    letter_buckets: SizeOrNone = 0
    arabic_letter_buckets: SizeOrNone = 0

    @property
    def rows(self) -> int:
        """Number of rows of words: known words, buckets of unknown words and of their letters."""
        letters = self.letter_buckets + self.arabic_letter_buckets
        return self.words + self.unknown_buckets + letters


class SubwordSizes(Struct, frozen=True):
    """The sizes in the table `text` of a model that reads subwords."""

    subwords: Size
    bigram_buckets: SizeOrNone = 0

    @property
    def rows(self) -> int:
        """Number of rows of subwords."""
        return self.subwords


TextSizes = WordSizes | SubwordSizes


def checked(kind: type[_Table], tree: object, where: str, name: str = "") -> _Table:
    """Returns a table of a `config.json` as an object of `kind`.

    Messages name the file `where` and the table `name`.

    Raises:
        ModelError: a key is missing, or a value does not match its annotation.
    """
    try:
        return decoded(kind, tree)
    except ValueError as error:
        said, _, at = str(error).partition(" - at `$")
        at, found = at.rstrip("`").partition("[...]")[0], tree
        for key, index in re.findall(r"\.([^.[]+)|\[(\d+)\]", at):
            found = found[key or int(index)]  # type: ignore[index]
        raise ModelError(
            f"{where}: {(name + at).lstrip('.') or 'the content'} is {short(found)}: {said}."
        ) from None


class _Sized(Struct, frozen=True):
    dim: Size


def _configured_dim(encoder: Mapping[str, Any]) -> int:
    return checked(_Sized, encoder, "config.json", "encoder").dim


@dataclass(frozen=True, kw_only=True)
class EncoderKind:
    """One kind of encoder. Tensors have the same names in training and in model folders."""

    name: str
    """The value of `encoder.kind` in a config."""
    text: Literal["words", "subwords"]
    """The text features it reads."""
    config: Any
    """Its config class, a subclass of `EncoderSettings`, or `"module:class"`."""
    module: Any
    """Its `nn.Module`, a `TrainableEncoder` built from (rows, config, generator), or
    `"module:class"`."""
    table: str | None = None
    """Name of the tensor with one row per token and bucket, the weight of a `SparseTable`. Rows
    never trained are dropped at export. None means that all tensors are dense."""
    embedding: str | None = None
    """Name of a dense tensor with one row per token, of a kind without a `table`; see
    `token_rows`."""
    bigrams: bool = False
    """Whether it reads hashed bigrams."""
    runtime: Any = None
    """Computes its embeddings without torch: an `inference.runtimes.Runtime` built from
    (`ModelContents`, number of threads or None), or `"module:class"`. None means its module."""
    dim: Callable[[Mapping[str, Any]], int] = _configured_dim
    """Embedding dimension of a valid `encoder` table; by default its key `dim`."""
    sizes: Any = None
    """For a kind with `shapes`: a `Struct` of the keys of the table `encoder` that they need."""
    shapes: Callable[[Any, TextSizes], Shapes] | None = None
    """Tensor shapes of a model from `sizes` and the text sizes, for a kind that computes without
    torch. None means that they are taken from the module."""

    @property
    def token_rows(self) -> str | None:
        """Name of the tensor with one row per token, initialised by `training.row_init`."""
        return self.table or self.embedding

    @property
    def config_class(self) -> Any:
        """The config class, imported."""
        return resolve(self.config)

    @property
    def module_class(self) -> Any:
        """The `nn.Module`, imported."""
        return resolve(self.module)

    def tensor_shapes(self, encoder: object, text: object, where: str) -> Shapes:
        """Shapes of its tensors in a model folder, without the prefix `encoder.`.

        `encoder` and `text` are tables of a `config.json`, which messages call `where`.

        Raises:
            ModelError: the tables describe no such encoder.
            MissingExtraError: the kind has no `shapes`, and torch is not installed.
        """
        sizes = self.text_sizes(text, where)
        if self.shapes is None:
            of_module = resolve("rejoinder.encoders.nn.layers:shapes_of")
            return of_module(self, encoder, sizes, where)  # type: ignore[no-any-return]
        return self.shapes(checked(self.sizes, encoder, where, "encoder"), sizes)

    def text_sizes(self, text: object, where: str) -> TextSizes:
        """Returns the sizes in the table `text` of a `config.json`, which messages call `where`.

        Raises:
            ModelError: the table does not describe the text that this kind reads.
        """
        of_text: type[TextSizes] = WordSizes if self.text == "words" else SubwordSizes
        sizes = checked(of_text, text, where, "text")
        if sizes.bigram_buckets and not self.bigrams:
            raise ModelError(
                f"{where}: text.bigram_buckets is {sizes.bigram_buckets}; a {self.name} reads none."
            )
        return sizes


def dense_shapes(name: str, width: int, layers: Sequence[int], *, residual: bool) -> Shapes:
    """Shapes of dense layers (`encoders.nn.layers.FeedForward`) called `name` on inputs of `width`.

    >>> dense_shapes("dnn", 3, [2], residual=True)["dnn.skip.weight"]
    (2, 3)
    """
    shapes: Shapes = {}
    for number, (inside, outside) in enumerate(pairwise([width, *layers])):
        shapes[f"{name}.layers.{number}.weight"] = (outside, inside)
        shapes[f"{name}.layers.{number}.bias"] = (outside,)
    if residual and layers and layers[-1] != width:
        shapes[f"{name}.skip.weight"] = (layers[-1], width)
    return shapes


BIGRAM_ROWS = "encoder.bigram_rows"
"""Maps a bigram bucket to its row of the embedding table; -1 if the bucket was never trained."""
COMBINERS: Mapping[str, float] = {"mean": 1.0, "sqrtn": 0.5, "sum": 0.0}
"""A sum of n rows is divided by n to this power."""


def _dan_dim(encoder: Mapping[str, Any]) -> int:
    return int((encoder["layers"] or [encoder["width"]])[-1])


class _DanSizes(Struct, frozen=True):
    width: Size
    layers: list[Size]
    activation: ActivationName
    combiner: Annotated[str, Meta(pattern=r"\A(mean|sqrtn|sum)\Z")]
    residual: bool


def _dan_shapes(encoder: _DanSizes, text: TextSizes) -> Shapes:
    shapes: Shapes = {"table.weight": (-1 if text.bigram_buckets else text.rows, encoder.width)}
    if text.bigram_buckets:
        shapes["bigram_rows"] = (text.bigram_buckets,)
    return shapes | dense_shapes("dnn", encoder.width, encoder.layers, residual=encoder.residual)


DAN = EncoderKind(
    name="dan",
    text="words",
    config="rejoinder.encoders.settings:DanConfig",
    module="rejoinder.encoders.modules:DanEncoder",
    runtime="rejoinder.encoders.layers:DanRuntime",
    table="table.weight",
    bigrams=True,
    dim=_dan_dim,
    sizes=_DanSizes,
    shapes=_dan_shapes,
)


BILSTM = EncoderKind(
    name="bilstm",
    text="words",
    config="rejoinder.encoders.settings:BilstmConfig",
    module="rejoinder.encoders.modules:BilstmEncoder",
    table="table.weight",
)


TRANSFORMER = EncoderKind(
    name="transformer",
    text="subwords",
    config="rejoinder.encoders.settings:TransformerConfig",
    module="rejoinder.encoders.modules:TransformerEncoder",
    embedding="embedding.weight",
)


ENCODERS: Registry[EncoderKind] = Registry(
    "encoder", {kind.name: kind for kind in (DAN, TRANSFORMER, BILSTM)}
)
"""Every encoder kind by its name."""


def register_encoder(kind: EncoderKind) -> None:
    """Adds an encoder kind defined outside rejoinder.

    Raises:
        InputError: another kind has the same name.
    """
    ENCODERS.register(kind.name, kind)
