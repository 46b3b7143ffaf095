"""Opens encoders by name: models of this package, and encoders of other libraries."""

from pathlib import Path

from rejoinder.adaptation.adapted import Adapted
from rejoinder.adaptation.linear import read_adaptation
from rejoinder.protocols import Encodes


def load_encoder(name: str | Path, adaptation: str | Path | None = None) -> Encodes:
    """Opens the encoder that a name means.

    Args:
        name: a model folder, or a kind and a name: `baseline:NAME`, `py:MODULE:FUNCTION` (a
            function of a list of strings), `st:NAME` (Sentence Transformers), `vectors:FILE`
            (stored embeddings).
        adaptation: a file of `rejoinder adapt`, or its folder, to apply to the embeddings.

    Raises:
        RejoinderError: there is no such encoder, or the adaptation does not fit it.
    """
    if adaptation is not None:
        fitted = read_adaptation(adaptation)
        return Adapted(load_encoder(name), fitted)
    kind, colon, rest = str(name).partition(":")
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
