"""Finds contradictions between tables of a config that are each valid."""

from collections.abc import Callable, Iterator
from math import isclose
from typing import TYPE_CHECKING

from rejoinder.encoders import ENCODERS
from rejoinder.encoders.dan.config import DanConfig
from rejoinder.training.config.idle import idle_keys, is_set
from rejoinder.training.objectives import OBJECTIVES

if TYPE_CHECKING:
    from rejoinder.training.config.settings import RunConfig

_MAX_GIB = 64
"""Largest size of the hash buckets' rows, which are allocated whatever the data is."""


def contradictions(config: "RunConfig", faulty: frozenset[str] = frozenset()) -> list[str]:
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


def _phases(config: "RunConfig") -> Iterator[str]:
    if not config.phases:
        yield "no [[phases]]: give the number of steps to train, as [[phases]] steps = 1000"
    for number, phase in enumerate(config.phases):
        if phase.warmup_steps > phase.steps:
            yield (
                f"phases.{number}.warmup_steps is {phase.warmup_steps}; allowed: up to the "
                f"phase's steps = {phase.steps}"
            )


def _rates(config: "RunConfig") -> Iterator[str]:
    has_table = ENCODERS[config.encoder.kind].table is not None
    for number, phase in enumerate(config.phases):
        if not phase.learning_rate and not (has_table and phase.table_learning_rate):
            yield f"phases.{number}.learning_rate is 0, and nothing else learns; set it above 0"


def _whitening(config: "RunConfig") -> Iterator[str]:
    encoder = config.encoder
    sums = isinstance(encoder, DanConfig) and not encoder.layers
    for number, phase in enumerate(config.phases):
        if phase.whitens and not sums:
            what = "encoder.layers" if isinstance(encoder, DanConfig) else f"a {encoder.kind}"
            yield (
                f"phases.{number}.{'sif' if phase.sif else 'whitening'} changes rows whose sum is "
                f"the embedding, and {what} would read them; set it to 0"
            )
        if phase.whitens and config.export.weights == "average" and number:
            yield (
                f"phases.{number}.{'sif' if phase.sif else 'whitening'} changes all rows at once: "
                'their mean before and after means nothing; set export.weights to "last"'
            )


def _windows(config: "RunConfig") -> Iterator[str]:
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


def _head(config: "RunConfig") -> Iterator[str]:
    layers, dim = config.head.layers, config.encoder.dim
    if layers and layers[-1] != dim:
        yield f"head.layers ends in {layers[-1]}, the encoder in {dim}: u·v' needs equal dimensions"


def _nested(config: "RunConfig") -> Iterator[str]:
    dim = config.encoder.dim
    for size in config.training.nested_dims:
        if size >= dim:
            yield f"training.nested_dims has {size}; allowed: below the embedding dimension, {dim}"


def _text(config: "RunConfig") -> Iterator[str]:
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


def _sources(config: "RunConfig") -> Iterator[str]:
    if config.training.sources and config.training.exclude_sources:
        yield (
            "training.sources names all that is trained on, and training.exclude_sources what is "
            "not; leave one out"
        )


def _export(config: "RunConfig") -> Iterator[str]:
    if config.export.weights != "last" and not config.training.evaluate_every:
        yield (
            f'export.weights "{config.export.weights}" needs training.evaluate_every, which is 0'
        )


def _shares(config: "RunConfig") -> Iterator[str]:
    shares = [task.share for task in config.tasks]
    if shares and not isclose(sum(shares), 1.0, abs_tol=1e-6):
        terms = " + ".join(f"{share:g}" for share in shares)
        yield f"the shares of [[tasks]] are {terms} = {sum(shares):g}; together they must be 1"


def _names(config: "RunConfig") -> Iterator[str]:
    labels: dict[str, int] = {}
    for number, task in enumerate(config.tasks):
        first = labels.setdefault(task.label, number)
        if first != number:
            advice = (
                "keep one" if OBJECTIVES[task.objective].read is None else "give it another name"
            )
            yield f"tasks.{number} is called {task.label}, as tasks.{first} is; {advice}"


def _files(config: "RunConfig") -> Iterator[str]:
    for number, task in enumerate(config.tasks):
        paths: set[str] = set()
        for index, file in enumerate(task.data):
            if file.path in paths:
                yield f'tasks.{number}.data.{index} is "{file.path}", which the task has already'
            paths.add(file.path)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[["RunConfig"], Iterator[str]]], ...] = (
    (("phases",), _phases),
    (("phases", "encoder"), _rates),
    (("phases", "encoder", "export"), _whitening),
    (("phases", "training", "tasks"), _windows),
    (("head", "encoder"), _head),
    (("training", "encoder"), _nested),
    (("text", "encoder"), _text),
    (("training",), _sources),
    (("export", "training"), _export),
    (("tasks",), _shares),
    (("tasks",), _names),
    (("tasks",), _files),
)
"""The top-level keys that a check depends on, and the check."""
