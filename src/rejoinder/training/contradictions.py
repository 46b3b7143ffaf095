"""What each value of a config alone allows and all together do not."""

import re
from math import isclose

from rejoinder.training.settings import RunConfig, TaskConfig


def contradictions(config: RunConfig) -> list[str]:
    """One line a fault; none for a config that can run."""
    faults = [
        *_phase_faults(config),
        *_encoder_faults(config),
        *_task_faults(config.mixture),
    ]
    if not 0 <= config.objective.word_dropout < 1:
        faults.append("objective.word_dropout must be in [0, 1)")
    if config.objective.scale <= 0 or config.objective.scale > config.objective.max_scale:
        faults.append("objective.scale must be above 0 and at most objective.max_scale")
    if config.training.rank_init < 0:
        faults.append("training.rank_init must be 0 or more")
    if config.entailment.hidden < 1:
        faults.append("entailment.hidden must be at least 1")
    if config.export.weights != "last" and not config.training.evaluate_every:
        faults.append(f"export.weights {config.export.weights!r} needs training.evaluate_every")
    return faults


def _phase_faults(config: RunConfig) -> list[str]:
    faults = []
    if not config.phases:
        faults.append("no [[phases]]: say for how many steps to train, as [[phases]] steps = 1000")
    for number, phase in enumerate(config.phases):
        if phase.steps < 1 or phase.batch_size < 2:
            faults.append(f"phases.{number}: steps must be >= 1 and batch_size >= 2")
        if not 0 <= phase.warmup_steps <= phase.steps:
            faults.append(f"phases.{number}: warmup_steps must be within its {phase.steps} steps")
        if phase.batch_size > config.training.window_pairs:
            faults.append(f"phases.{number}: batch_size is above training.window_pairs")
    return faults


def _encoder_faults(config: RunConfig) -> list[str]:
    faults = []
    buckets = {name: getattr(config.text, name) for name in ("bigram_buckets", "unknown_buckets")}
    faults += [
        f"text.{name} is {size}; 0 (none) or more" for name, size in buckets.items() if size < 0
    ]
    if config.head.layers and config.head.layers[-1] != config.encoder.dim:
        faults.append(
            f"head.layers ends in {config.head.layers[-1]}, the encoder in {config.encoder.dim}: "
            "u·v' needs one width"
        )
    if (config.text.kind == "subwords") != (config.encoder.kind == "transformer"):
        faults.append(
            f"encoder.kind {config.encoder.kind!r} does not read text.kind {config.text.kind!r}: "
            "a dan and a bilstm read words, a transformer subwords"
        )
    if config.encoder.kind == "bilstm" and config.text.bigram_buckets:
        faults.append(
            f"text.bigram_buckets is {config.text.bigram_buckets}; a bilstm reads words in their "
            "order and no bigrams: set it to 0"
        )
    return faults


def _task_faults(tasks: tuple[TaskConfig, ...]) -> list[str]:
    faults = []
    total = sum(task.share for task in tasks)
    if any(task.share <= 0 for task in tasks) or not isclose(total, 1.0, abs_tol=1e-6):
        said = " + ".join(f"{task.share:g}" for task in tasks)
        faults.append(f"the shares of [[tasks]] are {said} = {total:g}; each > 0, together 1")
    seen: set[str] = set()
    for number, task in enumerate(tasks):
        place = f"tasks.{number} ({task.label})"
        if task.label in seen:
            faults.append(f"{place} is there twice; give it a name of its own")
        seen.add(task.label)
        if task.name and (task.objective == "responses" or not re.fullmatch(r"[\w-]+", task.name)):
            faults.append(f"{place}: a name is letters, digits, - and _; responses has none")
        if bool(task.data) == (task.objective == "responses"):
            needed = "reads the pairs, not data" if task.data else "needs [[tasks.data]]"
            faults.append(f"{place} {needed}")
        if task.batch_size is not None and task.batch_size < 2:
            faults.append(f"{place}: batch_size must be >= 2")
        if not 0 <= (task.word_dropout or 0) < 1:
            faults.append(f"{place}: word_dropout must be in [0, 1)")
        faults += [
            f"{place}: the share of {file.path} must be above 0 and at most 1"
            for file in task.data
            if not 0 < file.share <= 1
        ]
    return faults
