"""How results are shown: labels for results of the same task, and scores."""

from collections.abc import Iterable, Mapping
from typing import Any

from rejoinder.evaluation.results import Key, Result


def variants(results: Iterable[Result]) -> dict[Key, str]:
    """Returns a label for each key of `results`, empty if no other has its task and split.

    The label names the settings that differ, such as `kfold 3, mode compat`, and the data if that
    differs.
    """
    groups: dict[tuple[str, str], dict[Key, dict[str, Any]]] = {}
    for result in results:
        members = groups.setdefault((result.task, result.split), {})
        members[result.key] = _flat(result.settings) | {"data": result.key[2][:8]}
    labels: dict[Key, str] = {}
    for members in groups.values():
        names = list(dict.fromkeys(name for about in members.values() for name in about))
        names.sort(key="data".__eq__)
        differing = [
            name for name in names if len({str(about.get(name)) for about in members.values()}) > 1
        ]
        for key, about in members.items():
            labels[key] = ", ".join(f"{name} {about.get(name, '–')}" for name in differing)
    return labels


def with_label(task: str, split: str, label: str) -> str:
    """Returns a task, its split, and the label of its settings.

    >>> with_label("mr/senteval", "all", "kfold 3")
    'mr/senteval all (kfold 3)'
    """
    return f"{task} {split} ({label})" if label else f"{task} {split}"


def differences(first: Result, second: Result) -> str:
    """Returns the settings and data in which two results differ, or an empty string."""
    a, b = (
        _flat(result.settings) | {"form": result.data.get("form", "–"), "data": result.key[2][:8]}
        for result in (first, second)
    )
    names = [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]
    return ", ".join(f"{name} {a.get(name, '–')} against {b.get(name, '–')}" for name in names)


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings without nesting, and without those that follow from others."""
    outer = {name: value for name, value in settings.items() if name != "classifiers"}
    inner = settings.get("classifiers", {})
    named = {f"classifier {n}" if n in outer else n: value for n, value in dict(inner).items()}
    return {**{n: v for n, v in named.items() if n not in ("penalties", "fold_seed")}, **outer}


def score_text(value: float, *, percent: bool, sign: bool = False) -> str:
    """Returns a score as people read it: percentages have two digits, others four.

    >>> score_text(71.25, percent=True), score_text(0.5, percent=False, sign=True)
    ('71.25', '+0.5000')
    """
    return f"{value:{'+' if sign else ''}.{2 if percent else 4}f}"
