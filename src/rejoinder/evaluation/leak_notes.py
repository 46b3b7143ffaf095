"""What a model's training says of leaks from the set that it is scored on."""

from collections.abc import Mapping

_SETS = {"sts17": "sts2017"}
"""Tasks whose set has another name in the list of leaks."""
_SPLIT = ("stsb", "snli")
"""Tasks whose splits are sets of their own."""
_OWN = ("response",)
"""Tasks on the model's own kind of data: their splits hold other threads than train."""


def leak_note(task: str, split: str, encoder: Mapping[str, object]) -> str | None:
    """A sentence on the sentences of the set scored that were left out of training.

    Args:
        task: id of the task.
        split: the split scored.
        encoder: what the encoder says of itself; only one whose training names its `leak_sets`,
            as models of rejoinder do, can be told about.
    """
    training = encoder.get("training")
    family = task.partition("/")[0].removesuffix("-unrepeated")
    if not isinstance(training, Mapping) or "leak_sets" not in training or family in _OWN:
        return None
    name = f"{family}-{split}" if family in _SPLIT else _SETS.get(family, family)
    sets = training["leak_sets"]
    if not isinstance(sets, list | tuple) or name not in sets:
        return "the training data was not checked for sentences of this set"
    dropped = training.get("leaks_dropped")
    count = f"{dropped:,} pairs" if isinstance(dropped, int) else "all pairs"
    return f"training left out {count} with sentences of {', '.join(map(str, sets))}"
