"""Tables of settings that Pydantic checks, and the settings of encoders, without torch.

Defines a frozen base model, shared types of values, readable messages about faults, and the table
`[encoder]` of each kind. `import rejoinder` and encoding with a DAN work without Pydantic.

Raises:
    MissingExtraError: Pydantic is not installed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from rejoinder.errors import ConfigError, nearest, require

require("train", "pydantic")

from pydantic import (  # noqa: E402
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails  # noqa: E402

_TAGS: set[str] = set()
"""The keys that hold the kind of a table."""
_LONGEST = 60
"""Maximum number of characters of a value in a message."""
_FEW = 3
"""Maximum number of paths of a key in a message."""


class Settings(BaseModel):
    """A table of settings that cannot change.

    Unknown keys, values of another type ("3" for 3, true for 1), NaN and infinity are faults.
    Constructing a table with a faulty value raises Pydantic's `ValidationError`, a `ValueError`.
    `check` raises a `ConfigError` written for users instead. The docstring of a field is its
    description in `docs/config.md`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""Converts the lists of TOML to tuples, which frozen settings hold."""


def _printable(value: str) -> str:
    for character in value:
        if ord(character) < 32 or ord(character) == 127:
            raise ValueError(f"holds the control character U+{ord(character):04X}; leave it out")
    return value


Printable = AfterValidator(_printable)
"""Refuses control characters, which file names, lines of TOML and terminals cannot hold."""
Text = Annotated[str, Field(max_length=4_096), Printable]
FilledText = Annotated[str, Field(min_length=1, max_length=4_096), Printable]

Units = Annotated[int, Field(ge=1, le=16_384)]
"""Number of units in a layer."""
Layers = Annotated[tuple[Units, ...], Field(max_length=64), AsTuple]
"""Number of units in each of several consecutive layers."""
Probability = Annotated[float, Field(ge=0, lt=1)]
"""Probability of dropping an item, at least 0 and below 1."""


def tagged(kinds: tuple[type[Settings], ...], tag: str, default: str | None = None) -> Any:
    """Returns the type of a table whose kind, one of `kinds`, is given by the key `tag`.

    `kinds` is a tuple, so that a registry can pass its current content. Each kind has a field
    `tag`, a literal string. A table without the key has the kind `default`; None means that the key
    is required.
    """
    _TAGS.add(tag)
    # type checkers can't follow a union built from a tuple
    union = Annotated[Union[kinds], Field(discriminator=tag)]  # type: ignore[valid-type]  # noqa: UP007
    if default is None:
        return union

    def fill(value: Any) -> Any:
        return {tag: default, **value} if isinstance(value, Mapping) else value

    return Annotated[union, BeforeValidator(fill)]


Table = TypeVar("Table", bound=Settings)


def check(model: type[Table], values: object, where: str) -> Table:
    """Returns plain values, as read from TOML or JSON, as a table of settings.

    Messages call the values `where`.

    Raises:
        ConfigError: The values have faults. The message lists all of them, one per line.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise refused(where, faults(model, values, error)) from None


def refused(where: str, lines: Sequence[str]) -> ConfigError:
    """Returns the error for some faults: a sentence for one fault, a line each for several."""
    if len(lines) == 1:
        message = f"{where}: {lines[0]}" + ("" if lines[0].endswith("?") else ".")
    else:
        message = "\n  ".join([f"{where} has {len(lines)} faults:", *lines])
    # an argument that is not UTF-8 contains surrogates, which a terminal can't print
    return ConfigError(message.encode("utf-8", "backslashreplace").decode("utf-8"))


def faults(model: type[Settings], values: object, error: ValidationError) -> list[str]:
    """Returns a line for each fault that Pydantic found: the key, its value, what is allowed."""
    return [
        line
        for details in error.errors(include_url=False)
        # a list with faulty values also counts as too short; each value has its own line
        if details["type"] != "too_short" or len(details["input"]) < details["ctx"]["min_length"]
        for line in _lines(model, values, details)
    ]


def _lines(model: type[Settings], values: object, details: ErrorDetails) -> list[str]:
    path, kind = _path(values, details)
    said, found = details["msg"], details["input"]
    match details["type"]:
        case "value_error":
            # a validator of a whole table names the key itself, and may find several faults
            between = "." if path and isinstance(found, Mapping) else " "
            return [f"{path}{between}{line}".strip() for line in said[13:].split("\n")]
        case "missing":
            return [f"{path} is missing"]
        case "union_tag_not_found":
            return [f"{path}.{details['ctx']['discriminator'][1:-1]} is missing"]
        case "union_tag_invalid":
            tag = details["ctx"]["discriminator"][1:-1]
            known_tags = details["ctx"]["expected_tags"].replace("'", "")
            return [f"{path}.{tag} is {shown(found[tag])}; one of {known_tags} is needed"]
        case "extra_forbidden":
            schema = model.model_json_schema()
            tables = (schema, *schema.get("$defs", {}).values())
            known = {key for table in tables for key in table.get("properties", ())}
            name = path.rpartition(".")[2]
            if not kind and (paths := list(dict.fromkeys(_paths(model, name)))):
                return [f"unknown key {path!r}; it is {' or '.join(paths[:_FEW])}"]
            if name in known:
                return [f"{path} has no effect{f' with {kind!r}' if kind else ''}; leave it out"]
            return [f"unknown key {path!r}, {nearest(name, sorted(known))}"]
    text = f" {said[6:]}" if said.startswith("Input should") else f": {said}"
    return [f"{path or 'the config'}{text}; found {shown(found)}"]


def _paths(table: type[BaseModel], name: str, before: str = "") -> Iterator[str]:
    """Yields the paths of a key in the tables of a config, with 0 for an item of a list."""
    for key, field in table.model_fields.items():
        if key == name:
            yield before + key
        pending = [(field.annotation, f"{before}{key}.")]
        for kind, path in pending:  # it grows
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _paths(kind, name, path)
            step = "0." if get_origin(kind) is tuple else ""
            pending += [(inner, path + step) for inner in get_args(kind)]


def _path(values: Any, details: ErrorDetails) -> tuple[str, str]:
    """Returns the path of a key and the kind of its table.

    Pydantic counts the kind of a tagged table as a step, although it is not a key.
    """
    steps, kind, location = [], "", details["loc"]
    absent = location[-1:] if details["type"] == "missing" else ()
    for number, step in enumerate(location[: len(location) - len(absent)], 1):
        table = values if isinstance(values, Mapping) else {step: None}
        if not kind and (step not in table or step in map(table.get, _TAGS)):
            kind = str(step)
        elif step != "[key]":
            steps.append(str(step))
            is_item = isinstance(values, list) and isinstance(step, int) and step < len(values)
            values = values[step] if is_item else table.get(step)
            kind = kind if number == len(location) else ""
    return ".".join([*steps, *map(str, absent)]), kind


def shown(value: object) -> str:
    """Returns a value as JSON, which writes values like TOML, shortened if it is long.

    >>> shown([1.5, True, "a"])
    '[1.5, true, "a"]'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    except (RecursionError, ValueError):  # nested too deeply, or more digits than Python prints
        return "a value too large to show"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


Activation = Literal["gelu", "none", "relu", "tanh"]
"""Implemented by `encoders.nn.layers` and `encoders.layers`; a test keeps the lists equal."""
Combiner = Literal["sqrtn", "mean", "sum"]


class EncoderSettings(Settings):
    """Base class of encoder configs: a subclass needs `kind`, and `dim` as a field or property."""

    kind: str

    if TYPE_CHECKING:  # a field or a property of each kind

        @property
        def dim(self) -> int:
            """Embedding dimension."""


class DanConfig(EncoderSettings):
    """A deep averaging network. Defaults are from the paper (§4.1), or ours if it gives none."""

    kind: Literal["dan"] = "dan"
    width: Units = 300
    """Width of the rows of words and bigrams."""
    layers: Layers = (300, 300, 500)
    """Units of the dense layers; the last layer is the embedding. Without layers, the pooled sum is
    the embedding."""
    activation: Activation = "tanh"
    """Activation between layers; there is none after the last."""
    residual: bool = False
    """Add the pooled sum to the output of the layers, through a linear map if the widths
    differ."""
    combiner: Combiner = "sqrtn"
    """Divide the sum of n rows by the square root of n, by n, or by 1."""

    @property
    def dim(self) -> int:
        """Embedding dimension."""
        return self.layers[-1] if self.layers else self.width


class BilstmConfig(EncoderSettings):
    """A bidirectional LSTM with max pooling. Defaults are InferSent's."""

    kind: Literal["bilstm"] = "bilstm"
    width: Units = 300
    """Width of the rows of words."""
    hidden: Units = 2_048
    """Units of each direction."""
    dim: int = Field(default=0, ge=0, le=32_768)
    """Embedding dimension. 0 means 2 * hidden: the pooled states are the embedding, as published.
    Any other number adds a linear map of them."""
    max_tokens: int = Field(default=128, ge=1, le=8_192)
    """Maximum number of known words per sentence; the rest is cut off."""

    @model_validator(mode="after")
    def _pooled_states_by_default(self) -> Self:
        object.__setattr__(self, "dim", self.dim or 2 * self.hidden)
        return self

    @property
    def projected(self) -> bool:
        """Whether a linear map follows the pooled states."""
        return self.dim != 2 * self.hidden


class TransformerConfig(EncoderSettings):
    """A Transformer. Defaults are the paper's."""

    kind: Literal["transformer"] = "transformer"
    layers: int = Field(default=6, ge=1, le=256)
    """Blocks."""
    heads: int = Field(default=8, ge=1, le=1_024)
    """Attention heads per block."""
    hidden: Units = 512
    """Width of a subword's hidden state; a multiple of 2 * heads."""
    filter: int = Field(default=2_048, ge=1, le=65_536)
    """Hidden units of a block's feed-forward network."""
    dim: Units = 500
    """Embedding dimension."""
    dropout: Probability = 0.0
    """Fraction of units dropped after each block during training."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden is {self.hidden}; allowed: a multiple of 2 * heads = {2 * self.heads}"
            )
        return self
