"""Reads folders of pairs for evaluation, which itself does not know their format."""

from pathlib import Path

from rejoinder.corpus.shards import open_pairs
from rejoinder.evaluation.tasks.response import ResponsePairs


def response_pairs(folder: Path, split: str) -> ResponsePairs:
    """Reads the split `train`, `dev` or `test` of a folder that `rejoinder extract` wrote.

    Raises:
        InputError: the folder holds no usable pairs.
    """
    pairs = open_pairs(folder)
    frame = pairs.frame(split, ["input", "response", "source"])
    inputs, responses, sources = (frame.get_column(name).to_list() for name in frame.columns)
    return ResponsePairs(split, inputs, responses, sources, pairs.sha256)
