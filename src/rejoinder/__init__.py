"""Sentence embeddings learned from conversations (Yang et al. 2018).

Importing the package loads neither torch nor DuckDB: names are looked up when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rejoinder.version import VERSION

if TYPE_CHECKING:
    from rejoinder.corpus.extract import extract
    from rejoinder.runtime.encoder import SentenceEncoder

__version__ = VERSION
__all__ = ["SentenceEncoder", "__version__", "extract"]

_LAZY = {
    "SentenceEncoder": "rejoinder.runtime.encoder",
    "extract": "rejoinder.corpus.extract",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'rejoinder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
