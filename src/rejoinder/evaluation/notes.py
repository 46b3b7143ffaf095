"""Notes on results: leaks into the training data, and data that is not as published."""

from collections.abc import Mapping

from rejoinder.datasets.catalogue import official_rows

_SET_NAMES = {"sts17": "sts2017", "translation": "flores200"}
"""Tasks whose evaluation set has another name in the list of leak sets."""
_BY_SPLIT = ("stsb", "snli", "mrpc", "sst2", "trec")
"""Tasks whose splits are separate evaluation sets."""
_UNCHECKED = ("response", "bias")
"""Tasks without leaks: splits of the pairs hold other threads than train, and `bias` has no right
answer that training could show."""


def leak_note(task: str, split: str, encoder: Mapping[str, object]) -> str | None:
    """Returns a sentence on leaks from the evaluation set into the training data of an encoder.

    Returns None if the encoder's description does not name the `leak_sets` of its training, as that
    of models of rejoinder does, or if the task needs no check.
    """
    training = encoder.get("training")
    family = task.partition("/")[0].removesuffix("-unrepeated")
    if not isinstance(training, Mapping) or "leak_sets" not in training or family in _UNCHECKED:
        return None
    sets = training["leak_sets"]
    name = _set_name(task, split)
    if not isinstance(sets, list | tuple) or name not in sets:
        return "the training data was not checked for sentences of this set"
    dropped = training.get("leaks_dropped")
    count = f"{dropped:,} pairs" if isinstance(dropped, int) else "all pairs"
    others = len(sets) - 1
    more = f" or of {others} other {'set' if others == 1 else 'sets'}" if others else ""
    return f"training left out {count} with sentences of {name}{more}"


def _set_name(task: str, split: str) -> str:
    """Returns the name that the evaluation set of a split of a task has among the leak sets."""
    family, _, variant = task.partition("/")
    family = family.removesuffix("-unrepeated")
    if family == "cqa-b":
        return f"cqa{variant}-{split}"
    return f"{family}-{split}" if family in _BY_SPLIT else _SET_NAMES.get(family, family)


def row_notes(name: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Returns a sentence for each split of a data set that does not have the published rows.

    >>> row_notes("sick", {"train": 299, "test": 4927})
    ('train of sick has 299 rows, and 4,500 were published: the scores are of another set',)
    """
    notes = []
    for split, count in counts.items():
        published = official_rows(name, split)
        if published not in (None, count):
            notes.append(
                f"{split} of {name} has {count:,} rows, and {published:,} were published: the "
                "scores are of another set"
            )
    return tuple(notes)
