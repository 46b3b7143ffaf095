"""Evaluation tasks. Each module defines families of tasks in `FAMILIES`."""

from collections.abc import Mapping, Sequence
from importlib import import_module

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.tasks.base import Family

_MODULES = (
    "response",
    "inference",
    "classification",
    "regression",
    "retrieval",
    "similarity",
    "sick",
    "cqa",
    "contrasts",
    "bias",
)
"""Modules of this package; a new family needs a line here, or a call of `register_family`. Tasks of
a group run in this order."""

_families: dict[str, Family] = {}
"""The family of each task, by the task's id."""


def register_family(family: Family) -> None:
    """Makes a family of tasks known, so that `evaluate` finds them by id and by group.

    Raises:
        InputError: a task has an id that another task or a group has already, or one of its
            groups has the id of a task.
    """
    groups = task_groups()
    for task, own in family.tasks.items():
        taken = [name for name in (task, *own) if name in _families]
        taken += [task] if task in groups else []
        if taken:
            raise InputError(f"the name {taken[0]!r} of a task or group is registered already.")
    _families.update(dict.fromkeys(family.tasks, family))


def task_groups() -> Mapping[str, list[str]]:
    """Returns the ids of the tasks of each group."""
    groups: dict[str, list[str]] = {}
    for task, family in _families.items():
        for group in family.tasks[task]:
            groups.setdefault(group, []).append(task)
    return groups


def resolve(names: Sequence[str]) -> list[str]:
    """Returns the task ids that groups and ids stand for, each once, in the order asked for.

    >>> resolve(["stsb", "stsb/cosine"])
    ['stsb/angular', 'stsb/cosine']

    Raises:
        InputError: a name is unknown.
    """
    groups = task_groups()
    ids: list[str] = []
    for name in names:
        if name not in groups and name not in _families:
            raise InputError(f"--tasks {name!r}: {nearest(name, [*groups, *_families])}.")
        ids += groups.get(name, [name])
    return list(dict.fromkeys(ids))


def families_of(ids: Sequence[str]) -> list[tuple[Family, list[str]]]:
    """Returns the families of some tasks in the order asked for, each with those of its tasks."""
    chosen: dict[int, tuple[Family, list[str]]] = {}
    for task in ids:
        family = _families[task]
        chosen.setdefault(id(family), (family, []))[1].append(task)
    return list(chosen.values())


for _module in _MODULES:
    for _family in import_module(f"{__name__}.{_module}").FAMILIES:
        register_family(_family)
