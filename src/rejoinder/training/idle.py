"""Finds keys that have no effect in a config, so that setting one can be refused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.encoders.settings import DanConfig
from rejoinder.kinds import ENCODERS
from rejoinder.schema.base import Settings
from rejoinder.training.tasks import OBJECTIVES

if TYPE_CHECKING:
    from rejoinder.training.settings import RunConfig


@dataclass(frozen=True)
class _Rule:
    """Keys that have no effect under a condition."""

    keys: tuple[str, ...]
    """`*` stands for each index of a list."""
    reads: tuple[str, ...]
    """Top-level keys that the condition depends on."""
    idle: Callable[["RunConfig"], bool]
    reason: str


def _layers_of_dan(config: "RunConfig", least: int) -> bool:
    return isinstance(config.encoder, DanConfig) and len(config.encoder.layers) < least


_RULES = (
    _Rule(
        ("optimizer.table", "phases.*.table_learning_rate", "training.rank_init"),
        ("encoder",),
        lambda config: ENCODERS[config.encoder.kind].table is None,
        "this kind of encoder has no sparse table; optimizer.dense trains all of it",
    ),
    _Rule(
        ("training.rank_init",),
        ("training",),
        lambda config: bool(config.training.init_from),
        "the rows are taken from training.init_from",
    ),
    _Rule(
        ("training.leak_sets",),
        ("training",),
        # not for a config that sets exclude_leaks itself, as --no-exclude-leaks does
        lambda config: (
            not (
                config.training.exclude_leaks or "exclude_leaks" in config.training.model_fields_set
            )
        ),
        "training.exclude_leaks is false",
    ),
    _Rule(
        ("training.window_pairs", "objective.symmetric"),
        ("tasks",),
        lambda config: not config.reads_pairs,
        "no task reads pairs",
    ),
    _Rule(
        ("optimizer.adam_betas",),
        ("optimizer",),
        lambda config: config.optimizer.dense != "adam",
        'optimizer.dense is not "adam"',
    ),
    _Rule(
        ("encoder.activation",),
        ("encoder",),
        lambda config: _layers_of_dan(config, 2),
        "it is applied between layers, and encoder.layers has fewer than two",
    ),
    _Rule(
        ("encoder.residual",),
        ("encoder",),
        lambda config: _layers_of_dan(config, 1),
        "encoder.layers is empty",
    ),
    _Rule(
        ("head.activation",),
        ("head",),
        lambda config: len(config.head.layers) < 2,
        "it is applied between layers, and head.layers has fewer than two",
    ),
    _Rule(
        ("head.residual",),
        ("head",),
        lambda config: not config.head.layers,
        "head.layers is empty",
    ),
    _Rule(
        ("objective.max_scale",),
        ("objective",),
        lambda config: not config.objective.learn_scale,
        "objective.learn_scale is false",
    ),
    _Rule(
        ("objective.mask_duplicates",),
        ("tasks",),
        lambda config: not any(OBJECTIVES[name].ranks for name in config.objectives),
        "no task ranks",
    ),
    _Rule(
        ("objective.word_dropout",),
        ("tasks",),
        lambda config: all(task.word_dropout is not None for task in config.mixture),
        "every task has a word_dropout of its own",
    ),
    _Rule(
        ("phases.*.batch_size",),
        ("tasks",),
        lambda config: all(task.batch_size is not None for task in config.mixture),
        "every task has a batch_size of its own",
    ),
    _Rule(
        ("entailment.hidden", "entailment.activation"),
        ("tasks",),
        lambda config: "entailment" not in config.objectives,
        "no task is entailment",
    ),
)


def idle_keys(config: "RunConfig", faulty: frozenset[str] = frozenset()) -> dict[str, str]:
    """Returns the keys that have no effect, whether set or not, with the reason.

    Keys are paths such as `phases.0.batch_size`.

    Args:
        config: a config whose tables are each valid.
        faulty: top-level keys that are invalid; rules about them are skipped.
    """
    idle: dict[str, str] = {}
    for rule in _RULES:
        if faulty.isdisjoint(rule.reads) and rule.idle(config):
            for key in rule.keys:
                if key.partition(".")[0] not in faulty:
                    idle |= dict.fromkeys(_paths(config, key), rule.reason)
    for number, task in enumerate(config.tasks):
        if len(task.data) == 1:
            idle[f"tasks.{number}.power"] = "the task has a single file"
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
