"""Finds what is wrong with a config whose tables are each valid: contradictions and idle keys.

An idle key has no effect in a config, so that setting it is refused.

The data of a config with their licences, before anything is trained.
"""

from collections.abc import Callable, Iterator, Mapping
from math import isclose

from rejoinder.corpus.writer import Pairs
from rejoinder.datasets.catalogue import (
    NOT_STATED,
    DataRow,
    licence_of_file,
    licence_of_source,
)
from rejoinder.encoders import ENCODERS
from rejoinder.encoders.settings import DanConfig, TransformerConfig
from rejoinder.io.schema import Settings
from rejoinder.models.card import training_rows
from rejoinder.models.config import read_config
from rejoinder.models.find import find_model
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import select_sources
from rejoinder.training.objectives import OBJECTIVES
from rejoinder.training.objectives.paraphrase import ParaphraseTask

_MAX_GIB = 64
"""Largest size of the hash buckets' rows, which are allocated whatever the data is."""
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
    if not isinstance(config.encoder, TransformerConfig):
        yield "training.compile", "only a Transformer has blocks to compile"
    if isinstance(config.encoder, DanConfig):
        yield from _layers("encoder", config.encoder.layers)


def _layers(table: str, layers: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if len(layers) < 2:
        why = f"it is applied between layers, and {table}.layers has fewer than two"
        yield f"{table}.activation", why
    if not layers:
        yield f"{table}.residual", f"{table}.layers is empty"


def _training(config: RunConfig) -> Iterator[tuple[str, str]]:
    training = config.training
    if training.init_from:
        yield "training.rank_init", "the rows are taken from training.init_from"
        yield "training.row_init", "the rows are taken from training.init_from"
    # a config that sets exclude_leaks to false, as --no-exclude-leaks does, may keep its leak_sets
    if not training.exclude_leaks and "exclude_leaks" not in training.model_fields_set:
        yield "training.leak_sets", "training.exclude_leaks is false"


def _objective(config: RunConfig) -> Iterator[tuple[str, str]]:
    if not config.objective.learn_scale:
        yield "objective.max_scale", "objective.learn_scale is false"


def _tasks(config: RunConfig) -> Iterator[tuple[str, str]]:
    if not config.reads_pairs:
        yield "training.window_pairs", "no task reads pairs"
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
    if len(config.mixture) == 1:
        yield "training.tasks_by", "there is one task"
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

    Keys are paths such as `phases.0.batch_size`. Rules that depend on a top-level key in `faulty`
    are skipped: those are invalid, and have been replaced by their defaults.
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
    return isinstance(table, Settings) and last in table.model_fields_set


def contradictions(config: RunConfig, faulty: frozenset[str] = frozenset()) -> list[str]:
    """Returns one line per fault, and none for a config that can run.

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
            yield (
                f"phases.{number}.warmup_steps is {phase.warmup_steps}; allowed: up to the "
                f"phase's steps = {phase.steps}"
            )


def _rates(config: RunConfig) -> Iterator[str]:
    has_table = ENCODERS[config.encoder.kind].table is not None
    for number, phase in enumerate(config.phases):
        if not phase.learning_rate and not (has_table and phase.table_learning_rate):
            yield f"phases.{number}.learning_rate is 0, and nothing else learns; set it above 0"


def _whitening(config: RunConfig) -> Iterator[str]:
    encoder = config.encoder
    sums = isinstance(encoder, DanConfig) and not encoder.layers
    for number, phase in enumerate(config.phases):
        if phase.whitens and not sums:
            what = "encoder.layers" if isinstance(encoder, DanConfig) else f"a {encoder.kind}"
            yield (
                f"phases.{number}.{'sif' if phase.sif else 'whitening'} changes rows whose sum is "
                f"the embedding, and {what} would read them; set it to 0"
            )


def _windows(config: RunConfig) -> Iterator[str]:
    most = config.training.window_pairs
    sizes = {f"phases.{number}": phase.batch_size for number, phase in enumerate(config.phases)}
    sizes |= {
        f"tasks.{number}": task.batch_size or 0
        for number, task in enumerate(config.tasks)
        if OBJECTIVES[task.objective].read is None
    }
    if config.reads_pairs:
        for path, size in sizes.items():
            if size > most:
                yield f"{path}.batch_size is {size}; allowed: up to training.window_pairs = {most}"


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
        yield (f'text.kind is "{text.kind}"; encoder.kind "{encoder.kind}" reads "{kind.text}"')
    elif text.kind == "words":
        if text.bigram_buckets and not kind.bigrams:
            yield (
                f"text.bigram_buckets is {text.bigram_buckets}; a {encoder.kind} reads no bigrams: "
                "set it to 0"
            )
        width = getattr(encoder, "width", 0)
        gib = 4 * width * (text.bigram_buckets + text.unknown_buckets) / 2**30
        if gib > _MAX_GIB:
            yield (
                f"text.bigram_buckets and text.unknown_buckets are rows of encoder.width = {width} "
                f"numbers, {gib:,.0f} GiB; allowed: up to {_MAX_GIB} GiB"
            )


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
            advice = (
                "keep one" if OBJECTIVES[task.objective].read is None else "give it another name"
            )
            yield f"tasks.{number} is called {task.label}, as tasks.{first} is; {advice}"


def _files(config: RunConfig) -> Iterator[str]:
    for number, task in enumerate(config.tasks):
        paths: set[str] = set()
        for index, file in enumerate(task.data):
            if file.path in paths:
                yield f'tasks.{number}.data.{index} is "{file.path}", which the task has already'
            paths.add(file.path)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[[RunConfig], Iterator[str]]], ...] = (
    (("phases",), _phases),
    (("phases", "encoder"), _rates),
    (("phases", "encoder"), _whitening),
    (("phases", "training", "tasks"), _windows),
    (("head", "encoder"), _dimensions),
    (("training", "encoder"), _nested),
    (("text", "encoder"), _text),
    (("tasks",), _shares),
    (("tasks",), _names),
    (("tasks",), _files),
)
"""The top-level keys that a check depends on, and the check."""


def data_rows(config: RunConfig, pairs: Pairs | None = None) -> list[DataRow]:
    """Returns the sources of pairs and the labelled files that a config trains on.

    Without `pairs`, only the sources that `training.sources` names are known, and judged by their
    names alone; a config that names none has one row for all of them, whose licence is not stated.

    Raises:
        InputError: the config names a source that is not among the pairs, or leaves none.
        ModelError: the model that training starts from is not there.
    """
    rows = _sources(config, pairs) if config.reads_pairs else []
    files = dict.fromkeys(file.path for task in config.mixture for file in task.data)
    rows += [DataRow("file", path, licence_of_file(path)) for path in files]
    if config.training.init_from:
        initial = read_config(find_model(config.training.init_from))
        rows += training_rows(initial.get("training") or {}, initial.get("adaptation"))
    return rows


def _sources(config: RunConfig, pairs: Pairs | None) -> list[DataRow]:
    if pairs is not None:
        inputs = [str(file["file"]) for file in pairs.manifest.inputs]
        chosen = select_sources(pairs, config.training).chosen
        return [
            DataRow("source", name, licence_of_source(name, inputs), count)
            for name, count in chosen.items()
            if count
        ]
    named = config.training.sources
    if not named:
        return [DataRow("source", "the pairs", NOT_STATED)]
    return [DataRow("source", name, licence_of_source(name)) for name in named]
