"""One module a task; the names by which they are asked for."""

from collections.abc import Sequence

from rejoinder.errors import InputError, nearest

GROUPS: dict[str, tuple[str, ...]] = {
    "response": ("response/p@n",),
    "stsb": ("stsb/angular", "stsb/cosine"),
}
"""What a person asks for, and the task ids that it stands for."""


def resolve(names: Sequence[str]) -> list[str]:
    """Task ids of groups and ids, each once, in the order asked for.

    >>> resolve(["stsb", "stsb/cosine"])
    ['stsb/angular', 'stsb/cosine']

    Raises:
        InputError: a name is unknown.
    """
    ids = [task for tasks in GROUPS.values() for task in tasks]
    found: list[str] = []
    for name in names:
        if name not in GROUPS and name not in ids:
            raise InputError(f"--tasks {name!r}: {nearest(name, [*GROUPS, *ids])}.")
        found += GROUPS.get(name, (name,))
    return list(dict.fromkeys(found))
