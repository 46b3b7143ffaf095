"""What evaluation is handed: it knows no folder of pairs, so the command line reads it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoinder.evaluation.tasks.response import ResponsePairs
    from rejoinder.protocols import Encodes


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


def open_encoder(name: str, adaptation: Path | None = None) -> "Encodes":
    """The encoder that a name on the command line means.

    Args:
        name: a folder, or a kind and a name.
        adaptation: a file of `rejoinder adapt`, or its folder, to put behind the encoder.

    Raises:
        RejoinderError: there is none of that name, or the adaptation does not fit it.
    """
    if adaptation is not None:
        from rejoinder.adaptation.adapted import Adapted
        from rejoinder.adaptation.linear import read_adaptation

        fitted = read_adaptation(adaptation)
        return Adapted(open_encoder(name), fitted)
    kind, colon, rest = name.partition(":")
    if colon and kind == "baseline":
        from rejoinder.evaluation.baselines import open_baseline

        return open_baseline(rest)
    if colon and kind in ("py", "st", "vectors"):
        from rejoinder.evaluation import adapters

        if kind == "py":
            return adapters.open_function(rest)
        if kind == "st":
            return adapters.SentenceTransformers(rest)
        return adapters.StoredVectors(Path(rest))
    from rejoinder.runtime.encoder import SentenceEncoder

    return SentenceEncoder.load(name)
