"""What evaluation is handed: it knows no folder of pairs, so the command line reads it."""

from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.api.pairs import response_pairs as response_pairs

if TYPE_CHECKING:
    from rejoinder.protocols import Encodes


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
