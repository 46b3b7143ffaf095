"""Keys that change nothing in a config as it is; whoever sets one is told so."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoinder.encoders.settings import DanConfig
from rejoinder.schema.base import Settings

if TYPE_CHECKING:
    from rejoinder.training.settings import RunConfig

_RANKING = {"responses", "entailment-ranking", "paraphrase"}


@dataclass(frozen=True)
class _Rule:
    """Keys that have no effect under a condition."""

    keys: tuple[str, ...]
    """`*` stands for each number of a list."""
    reads: tuple[str, ...]
    """Top-level keys that the condition reads."""
    idle: Callable[["RunConfig"], bool]
    why: str


def _layers_of_dan(config: "RunConfig", least: int) -> bool:
    return isinstance(config.encoder, DanConfig) and len(config.encoder.layers) < least


_RULES = (
    _Rule(
        ("optimizer.table", "phases.*.table_learning_rate", "training.rank_init"),
        ("encoder",),
        lambda config: not config.encoder.has_table,
        "this kind of encoder has no table of words; optimizer.dense moves its subwords",
    ),
    _Rule(
        ("training.rank_init",),
        ("training",),
        lambda config: bool(config.training.init_from),
        "the rows begin as those of training.init_from",
    ),
    _Rule(
        ("training.leak_sets",),
        ("training",),
        # one who says that leaks are not excluded, as --no-exclude-leaks does, knows it
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
        lambda config: "responses" not in config.objectives,
        "no task is responses",
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
        "it is applied between layers, and encoder.layers has less than two",
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
        "it is applied between layers, and head.layers has less than two",
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
        lambda config: not config.objectives & _RANKING,
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
    """Keys that have no effect, set or not, and why; by their path, as `phases.0.batch_size`.

    Args:
        config: a config, whose tables are right each for itself.
        faulty: top-level keys that are not, of which nothing is said.
    """
    found: dict[str, str] = {}
    for rule in _RULES:
        if faulty.isdisjoint(rule.reads) and rule.idle(config):
            for key in rule.keys:
                if key.partition(".")[0] not in faulty:
                    found |= dict.fromkeys(_paths(config, key), rule.why)
    for number, task in enumerate(config.tasks):
        if len(task.data) == 1:
            found[f"tasks.{number}.power"] = "the task has a single file"
    return found


def _paths(config: "RunConfig", key: str) -> Iterator[str]:
    first, star, rest = key.partition(".*.")
    if not star:
        yield key
        return
    for number in range(len(getattr(config, first))):
        yield f"{first}.{number}.{rest}"


def is_set(config: "RunConfig", path: str) -> bool:
    """Whether a config names a key itself, rather than leaving it at its default."""
    *steps, last = path.split(".")
    table: object = config
    for step in steps:
        table = table[int(step)] if isinstance(table, tuple) else getattr(table, step)
    return isinstance(table, Settings) and last in table.model_fields_set
