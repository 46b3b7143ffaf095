"""Opens encoders by name: models of this package, and encoders of other libraries."""

import re
from collections.abc import Callable
from pathlib import Path

from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation.adapted import Adapted
from rejoinder.models.adaptation.linear import read_adaptation
from rejoinder.protocols import Encodes
from rejoinder.registry import Registry

PREFIXES: Registry[Callable[[str], Encodes]] = Registry(
    "encoder",
    {
        "baseline": "rejoinder.evaluation.baselines:open_baseline",
        "openai": "rejoinder.evaluation.remote:open_openai",
        "py": "rejoinder.evaluation.adapters:open_function",
        "scorer": "rejoinder.scoring.opened:Scorer",
        "st": "rejoinder.evaluation.adapters:SentenceTransformers",
        "tei": "rejoinder.evaluation.remote:open_tei",
        "vectors": "rejoinder.evaluation.adapters:StoredVectors",
    },
)
"""Functions that open an encoder, by the prefix of its name. A name without one is a model."""
_MAY_BE_FOREIGN = re.compile(r"[\w-]+/[\w.-]+")
"""Names as they are in the hub of Sentence Transformers: an owner and a model."""


def load_encoder(
    name: str | Path, adaptation: str | Path | None = None, *, sha256: str | None = None
) -> Encodes:
    """Opens the encoder that a name means.

    Args:
        name: a model as `SentenceEncoder.load` takes it (name, folder, https address), or a prefix
            and a name: `baseline:NAME`, `py:MODULE:FUNCTION` (a function of a list of strings),
            `scorer:FOLDER` (of `fit_scorer`), `st:NAME` (Sentence Transformers), `vectors:FILE`
            (stored embeddings), `openai:MODEL@URL` and `tei:URL` (servers).
        adaptation: a file of `rejoinder adapt`, or its folder, to apply to the embeddings.
        sha256: SHA-256 of the archive at an https address, which needs it.

    Raises:
        RejoinderError: there is no such encoder, the adaptation does not fit it, or `sha256` is
            given for anything but an address.
    """
    if adaptation is not None:
        fitted = read_adaptation(Path(adaptation))
        return Adapted(load_encoder(name, sha256=sha256), fitted)
    prefix, colon, rest = str(name).partition(":")
    if colon and prefix in PREFIXES:
        if sha256 is not None:
            raise InputError(f"sha256 is for a model at an https address, and {name} is none.")
        return PREFIXES[prefix](rest)
    try:
        return SentenceEncoder.load(name, sha256=sha256)
    except ModelError as error:
        if not isinstance(name, str) or not _MAY_BE_FOREIGN.fullmatch(name) or Path(name).exists():
            raise
        raise ModelError(f"{error} A model of Sentence Transformers is st:{name}.") from None


def places_of(encoder: object) -> tuple[object, str]:
    """Returns what may be the path that an encoder is read from, such as that of `vectors:FILE`."""
    return encoder, str(encoder).partition(":")[2]
