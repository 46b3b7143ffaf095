"""Reads folders of pairs for evaluation, which itself does not know their format."""

from collections.abc import Collection
from pathlib import Path

from rejoinder.corpus.shards import open_pairs
from rejoinder.evaluation.tasks.base import ResponsePairs


def response_pairs(folder: Path, split: str, without: Collection[str] = ()) -> ResponsePairs:
    """Reads the split `train`, `dev` or `test` of a folder that `rejoinder extract` wrote.

    Pairs of the sources `without` are left out.

    Raises:
        InputError: the folder holds no usable pairs.
    """
    pairs = open_pairs(folder)
    frame = pairs.frame(split, ["input", "response", "source"])
    if without:
        frame = frame.filter(~frame.get_column("source").is_in(list(without)))
    inputs, responses, sources = (frame.get_column(name).to_list() for name in frame.columns)
    return ResponsePairs(split, inputs, responses, sources, pairs.sha256)
