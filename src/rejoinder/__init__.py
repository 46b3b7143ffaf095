"""Sentence embeddings learned from conversations (Yang et al. 2018).

Importing the package imports no dependencies: each name is imported when it is first used.
"""

from rejoinder.version import VERSION

__version__ = VERSION

TYPE_CHECKING = False  # type checkers know the name; importing `typing` would take 15 ms
if TYPE_CHECKING:
    from rejoinder.api.evaluation import evaluate as evaluate
    from rejoinder.api.evaluation import load_encoder as load_encoder
    from rejoinder.api.export import adapt as adapt
    from rejoinder.api.export import export as export
    from rejoinder.api.finetuning import finetune as finetune
    from rejoinder.api.scorer import fit_scorer as fit_scorer
    from rejoinder.api.training import train as train
    from rejoinder.conversations.dedupe import dedupe as dedupe
    from rejoinder.conversations.duplicates import Duplicates as Duplicates
    from rejoinder.conversations.suggest import Suggestions as Suggestions
    from rejoinder.conversations.topics import Topic as Topic
    from rejoinder.conversations.topics import Topics as Topics
    from rejoinder.conversations.topics import cluster as cluster
    from rejoinder.corpus.extract import extract as extract
    from rejoinder.errors import BusyError as BusyError
    from rejoinder.errors import ConditionError as ConditionError
    from rejoinder.errors import ConfigError as ConfigError
    from rejoinder.errors import DataMissingError as DataMissingError
    from rejoinder.errors import ForeignTextWarning as ForeignTextWarning
    from rejoinder.errors import InputError as InputError
    from rejoinder.errors import MissingExtraError as MissingExtraError
    from rejoinder.errors import ModelError as ModelError
    from rejoinder.errors import OtherWorkerError as OtherWorkerError
    from rejoinder.errors import RejoinderError as RejoinderError
    from rejoinder.errors import StorageError as StorageError
    from rejoinder.errors import TrainingError as TrainingError
    from rejoinder.evaluation.report import compare as compare
    from rejoinder.index.hits import IndexHit as IndexHit
    from rejoinder.index.indexing import Index as Index
    from rejoinder.inference.encoder import SentenceEncoder as SentenceEncoder
    from rejoinder.inference.encoding import EncodedFile as EncodedFile
    from rejoinder.inference.encoding import encode_file as encode_file
    from rejoinder.inference.part_encoding import encode_files as encode_files
    from rejoinder.inference.search import Hit as Hit
    from rejoinder.interfaces.scikit_learn import SentenceEmbedder as SentenceEmbedder
    from rejoinder.scoring.scorer import ScoredPair as ScoredPair
    from rejoinder.scoring.scorer import Scorer as Scorer

_NAMES = {
    "api.evaluation": ("evaluate", "load_encoder"),
    "api.export": ("adapt", "export"),
    "api.finetuning": ("finetune",),
    "api.scorer": ("fit_scorer",),
    "api.training": ("train",),
    "conversations.dedupe": ("dedupe",),
    "conversations.duplicates": ("Duplicates",),
    "conversations.suggest": ("Suggestions",),
    "conversations.topics": ("Topic", "Topics", "cluster"),
    "corpus.extract": ("extract",),
    "errors": (
        "BusyError",
        "ConditionError",
        "ConfigError",
        "DataMissingError",
        "ForeignTextWarning",
        "InputError",
        "MissingExtraError",
        "ModelError",
        "OtherWorkerError",
        "RejoinderError",
        "StorageError",
        "TrainingError",
    ),
    "evaluation.report": ("compare",),
    "index.hits": ("IndexHit",),
    "index.indexing": ("Index",),
    "inference.encoder": ("SentenceEncoder",),
    "inference.encoding": ("EncodedFile", "encode_file"),
    "inference.part_encoding": ("encode_files",),
    "inference.search": ("Hit",),
    "interfaces.scikit_learn": ("SentenceEmbedder",),
    "scoring.scorer": ("ScoredPair", "Scorer"),
}
"""The public names of each module below this package."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted({*_MODULES, "__version__"})


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from rejoinder.errors import missing_extra

    try:
        module = import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    value: object = getattr(module, name)
    globals()[name] = value  # the next use needs no call
    return value


def __dir__() -> list[str]:
    """Returns the public names."""
    return __all__
