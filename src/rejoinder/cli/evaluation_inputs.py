"""What evaluation is handed: it knows no folder of pairs, so the command line reads it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoinder.evaluation.tasks.response import ResponsePairs


def response_pairs(folder: Path, split: str) -> "ResponsePairs":
    """A split of a folder of pairs, as the response task takes it."""
    from rejoinder.corpus.shards import open_pairs
    from rejoinder.evaluation.tasks.response import ResponsePairs

    pairs = open_pairs(folder)
    frame = pairs.frame(split, ["input", "response", "source"])
    return ResponsePairs(
        split,
        frame.get_column("input").to_list(),
        frame.get_column("response").to_list(),
        frame.get_column("source").to_list(),
        pairs.sha256,
    )
