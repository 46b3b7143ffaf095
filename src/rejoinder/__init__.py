"""Sentence embeddings learned from conversations (Yang et al. 2018).

Importing the package imports no dependency: a name is looked up when it is first used.
"""

from rejoinder.version import VERSION

__version__ = VERSION

TYPE_CHECKING = False  # type checkers know the name; importing `typing` would take 15 ms
if TYPE_CHECKING:
    from rejoinder.api.evaluation import evaluate, load_encoder
    from rejoinder.api.export import adapt, export
    from rejoinder.api.finetuning import finetune
    from rejoinder.api.scorer import fit_scorer
    from rejoinder.api.training import train
    from rejoinder.conversations.dedupe import dedupe
    from rejoinder.conversations.duplicates import Duplicates
    from rejoinder.conversations.suggest import Suggestions
    from rejoinder.conversations.topics import Topic, Topics, cluster
    from rejoinder.corpus.extract import extract
    from rejoinder.errors import (
        BusyError,
        ConditionError,
        ConfigError,
        DataMissingError,
        ForeignTextWarning,
        InputError,
        MissingExtraError,
        ModelError,
        OtherWorkerError,
        RejoinderError,
        StorageError,
        TrainingError,
    )
    from rejoinder.evaluation.report import compare
    from rejoinder.index.hits import IndexHit
    from rejoinder.index.indexing import Index
    from rejoinder.inference.encoder import SentenceEncoder
    from rejoinder.inference.encoding import EncodedFile, encode_file
    from rejoinder.inference.part_encoding import encode_files
    from rejoinder.inference.search import Hit
    from rejoinder.interfaces.scikit_learn import SentenceEmbedder
    from rejoinder.scoring.scorer import ScoredPair, Scorer

__all__ = [
    "BusyError",
    "ConditionError",
    "ConfigError",
    "DataMissingError",
    "Duplicates",
    "EncodedFile",
    "ForeignTextWarning",
    "Hit",
    "Index",
    "IndexHit",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "OtherWorkerError",
    "RejoinderError",
    "ScoredPair",
    "Scorer",
    "SentenceEmbedder",
    "SentenceEncoder",
    "StorageError",
    "Suggestions",
    "Topic",
    "Topics",
    "TrainingError",
    "__version__",
    "adapt",
    "cluster",
    "compare",
    "dedupe",
    "encode_file",
    "encode_files",
    "evaluate",
    "export",
    "extract",
    "finetune",
    "fit_scorer",
    "load_encoder",
    "train",
]

_MODULES = {
    "Duplicates": "conversations.duplicates",
    "EncodedFile": "inference.encoding",
    "Hit": "inference.search",
    "Index": "index.indexing",
    "IndexHit": "index.hits",
    "ScoredPair": "scoring.scorer",
    "Scorer": "scoring.scorer",
    "SentenceEmbedder": "interfaces.scikit_learn",
    "SentenceEncoder": "inference.encoder",
    "Topic": "conversations.topics",
    "Topics": "conversations.topics",
    "Suggestions": "conversations.suggest",
    "adapt": "api.export",
    "cluster": "conversations.topics",
    "compare": "evaluation.report",
    "dedupe": "conversations.dedupe",
    "encode_file": "inference.encoding",
    "encode_files": "inference.part_encoding",
    "evaluate": "api.evaluation",
    "export": "api.export",
    "extract": "corpus.extract",
    "finetune": "api.finetuning",
    "fit_scorer": "api.scorer",
    "load_encoder": "api.evaluation",
    "train": "api.training",
}
"""The module of each public name below this package. Others are those of classes in `errors`."""


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from rejoinder.errors import missing_extra

    try:
        module = import_module(f"{__name__}.{_MODULES.get(name, 'errors')}")
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    value: object = getattr(module, name)
    globals()[name] = value  # the next use needs no call
    return value


def __dir__() -> list[str]:
    """Returns the public names."""
    return list(__all__)
