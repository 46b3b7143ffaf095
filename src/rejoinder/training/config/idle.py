"""Finds keys that have no effect in a config, so that setting one can be refused."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from rejoinder.encoders import ENCODERS
from rejoinder.encoders.dan.config import DanConfig
from rejoinder.encoders.transformer.config import TransformerConfig
from rejoinder.io.schema import Settings
from rejoinder.training.objectives import OBJECTIVES
from rejoinder.training.objectives.paraphrase import ParaphraseTask

if TYPE_CHECKING:
    from rejoinder.training.config.settings import RunConfig

_Rules = Callable[["RunConfig"], Iterator[tuple[str, str]]]
"""Yields keys that have no effect, with the reason; `*` stands for each index of a list."""


def _encoder(config: "RunConfig") -> Iterator[tuple[str, str]]:
    kind = ENCODERS[config.encoder.kind]
    if kind.table is None:
        why = "this kind of encoder has no sparse table; optimizer.dense trains all of it"
        yield "optimizer.table", why
        yield "phases.*.table_learning_rate", why
        yield "training.rank_init", why
    if kind.token_rows is None:
        yield "training.row_init", "this kind of encoder names no tensor with a row per token"
    if not isinstance(config.encoder, TransformerConfig):
        yield "training.compile", "only a Transformer has blocks to compile"
    if isinstance(config.encoder, DanConfig):
        yield from _layers("encoder", config.encoder.layers)


def _head(config: "RunConfig") -> Iterator[tuple[str, str]]:
    yield from _layers("head", config.head.layers)


def _layers(table: str, layers: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if len(layers) < 2:
        why = f"it is applied between layers, and {table}.layers has fewer than two"
        yield f"{table}.activation", why
    if not layers:
        yield f"{table}.residual", f"{table}.layers is empty"


def _training(config: "RunConfig") -> Iterator[tuple[str, str]]:
    training = config.training
    if training.init_from:
        yield "training.rank_init", "the rows are taken from training.init_from"
        yield "training.row_init", "the rows are taken from training.init_from"
    # a config that sets exclude_leaks to false, as --no-exclude-leaks does, may keep its leak_sets
    if not training.exclude_leaks and "exclude_leaks" not in training.model_fields_set:
        yield "training.leak_sets", "training.exclude_leaks is false"


def _optimizer(config: "RunConfig") -> Iterator[tuple[str, str]]:
    if config.optimizer.dense != "adam":
        yield "optimizer.adam_betas", 'optimizer.dense is not "adam"'


def _objective(config: "RunConfig") -> Iterator[tuple[str, str]]:
    if not config.objective.learn_scale:
        yield "objective.max_scale", "objective.learn_scale is false"


def _tasks(config: "RunConfig") -> Iterator[tuple[str, str]]:
    if not config.reads_pairs:
        yield "training.window_pairs", "no task reads pairs"
        yield "training.id_cache_gb", "no task reads pairs"
        yield "training.sources", "no task reads pairs"
        yield "training.exclude_sources", "no task reads pairs"
        yield "objective.symmetric", "no task reads pairs"
    if not any(OBJECTIVES[name].ranks for name in config.objectives):
        yield "objective.mask_duplicates", "no task ranks"
        yield "objective.gather_across_workers", "no task ranks"
        yield "training.nested_dims", "no task ranks"
    if all(task.word_dropout is not None for task in config.mixture):
        yield "objective.word_dropout", "every task has a word_dropout of its own"
    if all(task.batch_size is not None for task in config.mixture):
        yield "phases.*.batch_size", "every task has a batch_size of its own"
    if "entailment" not in config.objectives:
        yield "entailment.hidden", "no task is entailment"
        yield "entailment.activation", "no task is entailment"
    if len(config.mixture) == 1:
        yield "training.tasks_by", "there is one task"
    for number, task in enumerate(config.tasks):
        if len(task.data) == 1:
            yield f"tasks.{number}.power", "the task has a single file"
        if config.training.row_init == "random" and isinstance(task, ParaphraseTask):
            yield f"tasks.{number}.retrofit", 'training.row_init is "random"'


_RULES: Mapping[str, _Rules] = {
    "encoder": _encoder,
    "training": _training,
    "optimizer": _optimizer,
    "head": _head,
    "objective": _objective,
    "tasks": _tasks,
}
"""Rules by the top-level key that they depend on."""


def idle_keys(config: "RunConfig", faulty: frozenset[str] = frozenset()) -> dict[str, str]:
    """Returns the keys that have no effect, whether set or not, with the reason.

    Keys are paths such as `phases.0.batch_size`. Rules that depend on a top-level key in `faulty`
    are skipped: those are invalid, and have been replaced by their defaults.
    """
    idle: dict[str, str] = {}
    for table, rules in _RULES.items():
        if table not in faulty:
            for key, reason in rules(config):
                idle |= dict.fromkeys(_paths(config, key), reason)
    return idle


def _paths(config: "RunConfig", key: str) -> Iterator[str]:
    first, star, rest = key.partition(".*.")
    if not star:
        yield key
        return
    for index in range(len(getattr(config, first))):
        yield f"{first}.{index}.{rest}"


def is_set(config: "RunConfig", path: str) -> bool:
    """Whether a config sets a key, rather than leaving it at its default."""
    *steps, last = path.split(".")
    table: object = config
    for step in steps:
        table = table[int(step)] if isinstance(table, tuple) else getattr(table, step)
    return isinstance(table, Settings) and last in table.model_fields_set
