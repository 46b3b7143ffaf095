"""Notes on whether a model's training data was checked for the sentences of an evaluation set."""

from collections.abc import Mapping

_SET_NAMES = {"sts17": "sts2017"}
"""Tasks whose evaluation set has another name in the list of leak sets."""
_BY_SPLIT = ("stsb", "snli")
"""Tasks of which each split is an evaluation set of its own."""
_UNCHECKED = ("response",)
"""Tasks on the model's own kind of data. Their splits hold other threads than train."""


def leak_note(task: str, split: str, encoder: Mapping[str, object]) -> str | None:
    """Returns a sentence on leaks from an evaluation set into the training data of an encoder.

    Args:
        task: id of the task.
        split: the split that is scored.
        encoder: what the encoder describes itself with.

    Returns:
        The sentence. None if the encoder's description does not name the `leak_sets` of its
        training, as that of models of rejoinder does, or if the task needs no check.
    """
    training = encoder.get("training")
    family = task.partition("/")[0].removesuffix("-unrepeated")
    if not isinstance(training, Mapping) or "leak_sets" not in training or family in _UNCHECKED:
        return None
    name = f"{family}-{split}" if family in _BY_SPLIT else _SET_NAMES.get(family, family)
    sets = training["leak_sets"]
    if not isinstance(sets, list | tuple) or name not in sets:
        return "the training data was not checked for sentences of this set"
    dropped = training.get("leaks_dropped")
    count = f"{dropped:,} pairs" if isinstance(dropped, int) else "all pairs"
    return f"training left out {count} with sentences of {', '.join(map(str, sets))}"
