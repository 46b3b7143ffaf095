"""Tells when a model gets texts in a language that it does not know."""

import sys
import warnings
from collections.abc import Sequence

from rejoinder.errors import ForeignTextWarning
from rejoinder.models.config import read_config
from rejoinder.models.folder import ModelContents
from rejoinder.models.shipped import shipped_models
from rejoinder.models.terms import LANGUAGE_NAMES, languages_of

_SAMPLE = 32
_MOST_CHARS = 1_000
"""Characters that are read of a text of the sample."""
_SHARE = 0.4
"""Share of unknown words from which the language is another. Samples of 32 English texts reach at
most .22, those of six other languages .42 or more. Of single sentences, 0.3 % of English ones reach
it, 2.2 % of those on computing, 81 % of French ones."""
_FEWEST = 3
"""Least number of unknown words: fewer may be names."""

_MULTILINGUAL = ("ar", "de", "es", "fr", "it", "tr")
"""Languages of `rejoinder-multi` besides English, for those who have not installed it."""

_told = False
"""Whether this process has warned."""


def warn_if_foreign(model: ModelContents, texts: Sequence[str]) -> None:
    """Warns, once in a process, if the words of a sample of texts are mostly unknown to a model."""
    global _told
    if _told:
        return
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    joined = " ".join(text[:_MOST_CHARS] for text in sample)
    # a third of French words are one letter away from English ones
    share = float(model.features.unknown_share([joined], as_written=True)[0])
    if share >= _SHARE and share * len(joined.split()) >= _FEWEST:
        _told = True
        warnings.warn(
            f"many words of these texts are unknown to {_about(model, joined)}. "
            "Similarities mean little for a language that a model does not know.",
            ForeignTextWarning,
            stacklevel=_outside(),
        )


def _about(model: ModelContents, text: str) -> str:
    """Returns a model's name and languages, the text's language, and models that know it."""
    from rejoinder.text.languages import language_of  # rarely needed

    known, code = languages_of(model.training), language_of(text)
    said = f"{model.name}, which knows {_listed(known)}" if known else model.name
    if code is None or code in known:
        return said
    said += f"; they look like {_listed([code])}"
    able = [
        name
        for name, folder in shipped_models().items()
        if code in languages_of(read_config(folder).get("training") or {})
    ]
    if not able and code in _MULTILINGUAL:
        return f"{said}, which the model of the package rejoinder-multi knows"
    return f"{said}: try {' or '.join(able)}" if able else said


def _listed(codes: Sequence[str]) -> str:
    return ", ".join(LANGUAGE_NAMES.get(code, code) for code in codes)


def _outside() -> int:
    """Returns the level of the nearest caller that is not of this package, for a warning."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("rejoinder."):
        frame, level = frame.f_back, level + 1
    return level
