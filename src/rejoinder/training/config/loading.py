"""Loads configs from TOML files. All faults are reported together, before any work begins.

Tables that are each valid can contradict each other, or hold keys that have no effect. Setting a
key that has no effect is refused.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from importlib.resources import files
from math import isclose
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from rejoinder.encoders import ENCODERS, settings
from rejoinder.errors import ConfigError, InputError, nearest
from rejoinder.training.config.settings import RunConfig, config_class
from rejoinder.training.objectives import OBJECTIVES, ParaphraseTask

VOCABULARY_KEYS = ("kind", "bigram_buckets", "unknown_buckets", "max_tokens")
"""Keys of `[text]` that a stored vocabulary must agree with."""


def load_config(config: RunConfig | Path | str, overrides: Sequence[str] = ()) -> RunConfig:
    """Loads and checks a config.

    Args:
        config: The path of a TOML file; the name of a shipped config, such as `dan-modern`; or a
            config, to which the overrides apply. A string is a path if it contains a separator or
            ends in `.toml`.
        overrides: Settings to replace, as `key=value` (see `docs/config.md`).

    Raises:
        InputError: The name is unknown, or the file can't be read or is not TOML.
        ConfigError: Keys, values or their combinations have faults. The message lists all of
            them, one per line.
    """
    if isinstance(config, RunConfig):
        where, text = config.name, to_toml(config)
    elif isinstance(config, str) and is_shipped_name(config):
        where, text = config, shipped_text(config)
    else:
        where, text = str(config), _read(Path(config))
    tree = _parsed_toml(text, where)
    for override in overrides:
        _apply(tree, override)
    return parse_config(tree, where)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:  # not there, not UTF-8, or a name with a NUL
        where = str(path).replace("\0", "\\0")
        shipped = isinstance(error, FileNotFoundError) and path.stem in shipped_names()
        hint = f" The shipped config is called {path.stem}." if shipped else ""
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{where} can't be read: {reason}.{hint}") from None


def _parsed_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where} is not TOML: its values are nested too deeply.") from None
    except ValueError as error:  # also a number with more digits than Python reads
        raise InputError(f"{where} is not TOML: {error}.") from None


def parse_config(tree: Mapping[str, Any], where: str) -> RunConfig:
    """Returns the config from a tree of plain values, as read from TOML or JSON.

    Messages call the tree `where`.

    Raises:
        ConfigError: See `load_config`.
    """
    if not isinstance(tree, Mapping):
        raise settings.refused(where, [f"a config is a table; found {settings.shown(tree)}"])
    values = deepcopy(dict(tree))
    model = config_class()
    lines: list[str] = []
    faulty: frozenset[Any] = frozenset()
    try:
        config = model.model_validate(values)
    except ValidationError as error:
        lines = settings.faults(model, values, error)
        if not all(details["loc"] for details in error.errors()):  # such as half a surrogate pair
            raise settings.refused(where, lines) from None
        # the correct tables of a config are checked together with the defaults of the others
        faulty = frozenset(details["loc"][0] for details in error.errors())
        rest = {name: value for name, value in values.items() if name not in faulty}
        config = model.model_validate(rest)
    lines += contradictions(config, faulty)
    if lines:
        raise settings.refused(where, lines)
    return config


def to_tree(config: Any) -> Any:
    """Returns a config as plain values for JSON or TOML, which `parse_config` reads back.

    Keys come in the order of their definition. This does not use Pydantic's own dump, because
    hashes and stored configs must not depend on the version of Pydantic.
    """
    if isinstance(config, settings.Settings):
        values = {name: to_tree(getattr(config, name)) for name in type(config).model_fields}
        return {name: value for name, value in values.items() if value is not None}
    if isinstance(config, tuple):
        return [to_tree(item) for item in config]
    if isinstance(config, Mapping):
        return dict(config)
    return config


def effective_tree(config: RunConfig) -> dict[str, Any]:
    """Returns the keys of a config that have an effect, including those at their defaults."""
    tree: dict[str, Any] = to_tree(config)
    for path in idle_keys(config):
        *steps, last = path.split(".")
        table: Any = tree
        for step in steps:
            table = table[int(step)] if isinstance(table, list) else table[step]
        table.pop(last, None)
    return tree


def to_toml(config: RunConfig) -> str:
    """Returns a config as TOML: every key that has an effect, including those at their defaults."""
    return tomli_w.dumps(effective_tree(config))


def _apply(tree: dict[str, Any], override: str) -> None:
    """Sets one `a.b.c=value`, where the value is TOML or a bare word for a string."""
    name, equals, text = override.partition("=")
    path = name.strip().split(".")
    if not equals or not all(path):
        raise ConfigError(
            f"{override!r} is not an override; write key=value, such as encoder.width=300."
        )
    *steps, last = path
    table: Any = tree
    for step in steps:
        key = _key(table, step, name)
        table = table[key] if isinstance(table, list) else table.setdefault(key, {})
        if not isinstance(table, dict | list):
            raise ConfigError(f"{name!r}: {step} is a value and has no keys.")
    table[_key(table, last, name)] = _parsed_value(text)


def _key(table: dict[str, Any] | list[Any], step: str, name: str) -> Any:
    if isinstance(table, dict):
        return step
    if step not in map(str, range(len(table))):
        raise ConfigError(
            f"{name!r}: {step!r} is not an index of a list of {len(table)}, as in phases.0.steps."
        )
    return int(step)


def _parsed_value(text: str) -> Any:
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text  # a line break would start another key


_SUFFIX = ".toml"


_FOLDER = files("rejoinder").joinpath("data", "configs")


def shipped_names() -> Sequence[str]:
    """Returns the names of the shipped configs in alphabetical order."""
    names = (file.name for file in _FOLDER.iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def is_shipped_name(config: str) -> bool:
    """Whether a string can only be a name: it has no path separator and no `.toml` at its end.

    >>> [is_shipped_name(config) for config in ("demo", "./demo", "demo.toml")]
    [True, False, False]
    """
    return not ({"/", "\\"} & {*config} or config.lower().endswith(_SUFFIX))


def shipped_text(name: str) -> str:
    """Returns the TOML of a shipped config.

    Raises:
        InputError: No shipped config has this name.
    """
    if name not in shipped_names():
        raise InputError(
            f"there is no shipped config {name!r} ({nearest(name, shipped_names())}); "
            f"the path of a file contains a separator or ends in {_SUFFIX}."
        )
    return _FOLDER.joinpath(name + _SUFFIX).read_text("utf-8")


def purpose(name: str) -> str:
    """Returns what a shipped config is for, which is the first line of its file, a comment."""
    return shipped_text(name).partition("\n")[0].removeprefix("#").strip()


def encoder_kind(name: str) -> str:
    """Returns the kind of encoder of a shipped config; reading it needs no extra."""
    return str(tomllib.loads(shipped_text(name))["encoder"]["kind"])


_MAX_GIB = 64
"""Largest size of the rows of hash buckets, which are allocated whatever the data is."""
_Rules = Callable[[RunConfig], Iterator[tuple[str, str]]]
"""Yields keys that have no effect, with the reason."""


def _encoder(config: RunConfig) -> Iterator[tuple[str, str]]:
    kind = ENCODERS[config.encoder.kind]
    if kind.table is None:
        why = "this kind of encoder has no sparse table; optimizer.dense trains all of it"
        yield "optimizer.table", why
        for number in range(len(config.phases)):
            yield f"phases.{number}.table_learning_rate", why
        yield "training.rank_init", why
    if kind.token_rows is None:
        yield "training.row_init", "this kind of encoder names no tensor with a row per token"
    if not isinstance(config.encoder, settings.TransformerConfig):
        yield "training.compile", "only a Transformer has blocks to compile"
    if isinstance(config.encoder, settings.DanConfig):
        yield from _layers("encoder", config.encoder.layers)


def _layers(table: str, layers: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if len(layers) < 2:
        why = f"it is applied between layers, and {table}.layers has fewer than two"
        yield f"{table}.activation", why
    if not layers:
        yield f"{table}.residual", f"{table}.layers is empty"


def _training(config: RunConfig) -> Iterator[tuple[str, str]]:
    if config.training.init_from:
        yield "training.rank_init", "the rows are taken from training.init_from"
        yield "training.row_init", "the rows are taken from training.init_from"


def _objective(config: RunConfig) -> Iterator[tuple[str, str]]:
    if not config.objective.learn_scale:
        yield "objective.max_scale", "objective.learn_scale is false"


def _tasks(config: RunConfig) -> Iterator[tuple[str, str]]:
    if not config.reads_pairs:
        yield "training.id_cache_gb", "no task reads pairs"
        yield "training.sources", "no task reads pairs"
    if not any(OBJECTIVES[name].ranks for name in config.objectives):
        yield "objective.mask_duplicates", "no task ranks"
        yield "training.nested_dims", "no task ranks"
    if all(task.word_dropout is not None for task in config.mixture):
        yield "objective.word_dropout", "every task sets word_dropout"
    if all(task.batch_size is not None for task in config.mixture):
        for number in range(len(config.phases)):
            yield f"phases.{number}.batch_size", "every task sets batch_size"
    if "entailment" not in config.objectives:
        yield "entailment.hidden", "no task is entailment"
        yield "entailment.activation", "no task is entailment"
    for number, task in enumerate(config.tasks):
        if len(task.data) == 1:
            yield f"tasks.{number}.power", "the task has a single file"
        if isinstance(task, ParaphraseTask):
            yield from _initial_rows(config, f"tasks.{number}")


def _initial_rows(config: RunConfig, task: str) -> Iterator[tuple[str, str]]:
    if config.training.row_init == "random":
        for key in ("retrofit", "interleave", "inflections"):
            yield f"{task}.{key}", 'training.row_init is "random"'
    elif config.text.kind != "words":
        yield f"{task}.inflections", "text.kind is not words, and parts of words have no forms"


_RULES: Mapping[str, _Rules] = {
    "encoder": _encoder,
    "training": _training,
    "head": lambda config: _layers("head", config.head.layers),
    "objective": _objective,
    "tasks": _tasks,
}
"""Rules by the top-level key that they depend on."""


def idle_keys(config: RunConfig, faulty: frozenset[str] = frozenset()) -> dict[str, str]:
    """Returns the keys that have no effect, whether set or not, with the reason.

    Keys are paths such as `phases.0.batch_size`. The top-level keys in `faulty` are invalid and
    have been replaced by their defaults; rules that depend on them are skipped.
    """
    idle: dict[str, str] = {}
    for table, rules in _RULES.items():
        if table not in faulty:
            idle |= dict(rules(config))
    return idle


def is_set(config: RunConfig, path: str) -> bool:
    """Whether a config sets a key, rather than leaving it at its default."""
    *steps, last = path.split(".")
    table: object = config
    for step in steps:
        table = table[int(step)] if isinstance(table, tuple) else getattr(table, step)
    return isinstance(table, settings.Settings) and last in table.model_fields_set


def contradictions(config: RunConfig, faulty: frozenset[str] = frozenset()) -> list[str]:
    """Returns one line per fault; empty for a config that can run.

    The top-level keys in `faulty` are invalid and have been replaced by their defaults; checks that
    depend on them are skipped.
    """
    lines = [
        f"{path} has no effect: {why}; leave it out"
        for path, why in idle_keys(config, faulty).items()
        if is_set(config, path)
    ]
    for keys, check in _CHECKS:
        if faulty.isdisjoint(keys):
            lines += check(config)
    return lines


def _phases(config: RunConfig) -> Iterator[str]:
    if not config.phases:
        yield "no [[phases]]: give the number of steps to train, as [[phases]] steps = 1000"
    for number, phase in enumerate(config.phases):
        if phase.warmup_steps > phase.steps:
            at = f"phases.{number}.warmup_steps"
            yield f"{at} is {phase.warmup_steps}; allowed: up to the phase's steps = {phase.steps}"


def _rates(config: RunConfig) -> Iterator[str]:
    has_table = ENCODERS[config.encoder.kind].table is not None
    for number, phase in enumerate(config.phases):
        if not phase.learning_rate and not (has_table and phase.table_learning_rate):
            yield f"phases.{number}.learning_rate is 0, and nothing else learns; set it above 0"


def _whitening(config: RunConfig) -> Iterator[str]:
    encoder = config.encoder
    sums = isinstance(encoder, settings.DanConfig) and not encoder.layers
    for number, phase in enumerate(config.phases):
        if phase.whitens and not sums:
            what = (
                "encoder.layers" if isinstance(encoder, settings.DanConfig) else f"a {encoder.kind}"
            )
            key = f"phases.{number}.{'sif' if phase.sif else 'whitening'}"
            yield f"{key} is for a DAN without layers; the config has {what}: set {key} to 0"


def _dimensions(config: RunConfig) -> Iterator[str]:
    layers, dim = config.head.layers, config.encoder.dim
    if layers and layers[-1] != dim:
        yield f"head.layers ends in {layers[-1]}, the encoder in {dim}: u·v' needs equal dimensions"


def _nested(config: RunConfig) -> Iterator[str]:
    dim = config.encoder.dim
    for size in config.training.nested_dims:
        if size >= dim:
            yield f"training.nested_dims has {size}; allowed: below the embedding dimension, {dim}"


def _text(config: RunConfig) -> Iterator[str]:
    text, encoder = config.text, config.encoder
    kind = ENCODERS[encoder.kind]
    if text.kind != kind.text:
        yield f'text.kind is "{text.kind}"; encoder.kind "{encoder.kind}" reads "{kind.text}"'
    elif text.kind == "words":
        if text.bigram_buckets and not kind.bigrams:
            buckets = text.bigram_buckets
            yield f"text.bigram_buckets is {buckets}; a {kind.name} reads no bigrams: set it to 0"
        width = getattr(encoder, "width", 0)
        gib = 4 * width * (text.bigram_buckets + text.unknown_buckets) / 2**30
        if gib > _MAX_GIB:
            what = "text.bigram_buckets and text.unknown_buckets"
            yield f"{what} take {gib:,.0f} GiB as rows of {width}; allowed: up to {_MAX_GIB} GiB"


def _shares(config: RunConfig) -> Iterator[str]:
    shares = [task.share for task in config.tasks]
    if shares and not isclose(sum(shares), 1.0, abs_tol=1e-6):
        terms = " + ".join(f"{share:g}" for share in shares)
        yield f"the shares of [[tasks]] are {terms} = {sum(shares):g}; together they must be 1"


def _names(config: RunConfig) -> Iterator[str]:
    labels: dict[str, int] = {}
    for number, task in enumerate(config.tasks):
        first = labels.setdefault(task.label, number)
        if first != number:
            can_be_named = OBJECTIVES[task.objective].read is not None
            advice = "give it another name" if can_be_named else "keep one"
            yield f"tasks.{number} is called {task.label}, as tasks.{first} is; {advice}"


def _files(config: RunConfig) -> Iterator[str]:
    for number, task in enumerate(config.tasks):
        paths: set[str] = set()
        for index, file in enumerate(task.data):
            if file.path in paths:
                yield f'tasks.{number}.data.{index} is "{file.path}", which the task already has'
            paths.add(file.path)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[[RunConfig], Iterator[str]]], ...] = (
    (("phases",), _phases),
    (("phases", "encoder"), _rates),
    (("phases", "encoder"), _whitening),
    (("head", "encoder"), _dimensions),
    (("training", "encoder"), _nested),
    (("text", "encoder"), _text),
    (("tasks",), _shares),
    (("tasks",), _names),
    (("tasks",), _files),
)
"""The top-level keys that a check depends on, and the check."""
