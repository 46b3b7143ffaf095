"""Labels for results of the same task under several settings or on other data."""

from collections.abc import Iterable, Mapping
from typing import Any

from rejoinder.evaluation.results import Key, Result


def variants(results: Iterable[Result]) -> dict[Key, str]:
    """Returns a label for each key of `results`, empty if no other has its task and split.

    The label names the settings that differ, such as `kfold 3, mode compat`, and the data if that
    differs.
    """
    groups: dict[tuple[str, str], dict[Key, Result]] = {}
    for result in results:
        groups.setdefault((result.task, result.split), {}).setdefault(result.key, result)
    labels: dict[Key, str] = {}
    for members in groups.values():
        labels |= _labels(members)
    return labels


def with_label(task: str, split: str, label: str) -> str:
    """Returns a task, its split, and the label of its settings.

    >>> with_label("mr/senteval", "all", "kfold 3")
    'mr/senteval all (kfold 3)'
    """
    return f"{task} {split} ({label})" if label else f"{task} {split}"


def differences(first: Result, second: Result) -> str:
    """Returns the settings and data in which two results differ, or an empty string."""
    a, b = (_flat(result.settings) | _data(result) for result in (first, second))
    names = [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]
    return ", ".join(f"{name} {a.get(name, '–')} against {b.get(name, '–')}" for name in names)


def _data(result: Result) -> dict[str, str]:
    form = {"form": str(result.data["form"])} if "form" in result.data else {}
    return {**form, "data": str(result.data.get("sha256"))[:8]}


def _labels(members: Mapping[Key, Result]) -> dict[Key, str]:
    """Returns a label for each result of one task and split."""
    flat = {key: _flat(result.settings) for key, result in members.items()}
    names = list(dict.fromkeys(name for settings in flat.values() for name in settings))
    differing = [
        name for name in names if len({str(settings.get(name)) for settings in flat.values()}) > 1
    ]
    hashes = {key[2] for key in members}
    labels = {}
    for key, settings in flat.items():
        parts = [f"{name} {settings.get(name, '–')}" for name in differing]
        parts += [f"data {key[2][:8]}"] if len(hashes) > 1 else []
        labels[key] = ", ".join(parts)
    return labels


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings without nesting, and without those that follow from others."""
    classifiers = settings.get("classifiers", {})
    outer = {name: value for name, value in settings.items() if name != "classifiers"}
    inner = classifiers if isinstance(classifiers, Mapping) else {}
    named = {f"classifier {n}" if n in outer else n: value for n, value in inner.items()}
    return {**{n: v for n, v in named.items() if n not in ("penalties", "fold_seed")}, **outer}
