"""Evaluation tasks. Each module defines families of tasks in `FAMILIES`."""

from collections.abc import Mapping, Sequence

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.tasks.base import Family
from rejoinder.registry import Registry

FAMILIES: Registry[Sequence[Family]] = Registry(
    "task",
    {
        "response": f"{__name__}.response:FAMILIES",
        "inference": f"{__name__}.inference:FAMILIES",
        "classification": f"{__name__}.classification:FAMILIES",
        "regression": f"{__name__}.regression:FAMILIES",
        "retrieval": f"{__name__}.retrieval:FAMILIES",
        "sts": f"{__name__}.sts:FAMILIES",
        "similarity": f"{__name__}.similarity:FAMILIES",
        "cqa": f"{__name__}.cqa:FAMILIES",
        "contrasts": f"{__name__}.contrasts:FAMILIES",
        "bias": f"{__name__}.bias:FAMILIES",
        "translation": f"{__name__}.translation:FAMILIES",
    },
)
"""A new module needs a line here, or a call of `register_family`. Tasks of a group run in this
order."""


def register_family(family: Family) -> None:
    """Makes a family of tasks known, so that `evaluate` finds them by id and by group.

    Raises:
        InputError: a task has an id that another task or a group has already, or one of its
            groups has the id of a task.
    """
    known, groups = _by_task(), task_groups()
    for task, own in family.tasks.items():
        taken = [name for name in (task, *own) if name in known]
        taken += [task] if task in groups else []
        if taken:
            raise InputError(f"the name {taken[0]!r} of a task or group is registered already.")
    FAMILIES.register(next(iter(family.tasks)), (family,))


def _by_task() -> dict[str, Family]:
    return {
        task: family
        for families in FAMILIES.values()
        for family in families
        for task in family.tasks
    }


def task_groups() -> Mapping[str, list[str]]:
    """Returns the ids of the tasks of each group."""
    groups: dict[str, list[str]] = {}
    for task, family in _by_task().items():
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
    groups, known = task_groups(), _by_task()
    for name in names:
        if name not in groups and name not in known:
            raise InputError(f"`tasks` {name!r}: {nearest(name, [*groups, *known])}.")
    return list(dict.fromkeys(task for name in names for task in groups.get(name, [name])))


def families_of(ids: Sequence[str]) -> list[tuple[Family, list[str]]]:
    """Returns the families of some tasks in the order asked for, each with those of its tasks."""
    known = _by_task()
    chosen: dict[int, tuple[Family, list[str]]] = {}
    for task in ids:
        chosen.setdefault(id(known[task]), (known[task], []))[1].append(task)
    return list(chosen.values())
