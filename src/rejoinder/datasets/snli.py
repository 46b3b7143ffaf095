"""SNLI's dev and test splits, as published."""

from pathlib import Path

from rejoinder.datasets.files import is_file
from rejoinder.datasets.inference import InferencePairs, read_inference
from rejoinder.errors import DataMissingError

_FOLDERS = ("snli_1.0", "nli", "raw/snli_1.0", "")
_SUFFIXES = (".jsonl", ".jsonl.zst", ".txt", ".txt.zst")


def read_snli_split(data: Path, split: str) -> InferencePairs:
    """Reads a split of SNLI 1.0 from its published file below a folder of data sets.

    Raises:
        DataMissingError: the file is missing.
        InputError: the file is invalid.
    """
    names = [f"snli_1.0_{split}{suffix}" for suffix in _SUFFIXES]
    for folder in _FOLDERS:
        for name in names:
            if is_file(data / folder / name):
                return read_inference(data / folder / name)
    tried = ", ".join(str(data / folder / names[0]) for folder in _FOLDERS)
    raise DataMissingError(
        f"SNLI's {split} split is not there; looked for {tried}. `rejoinder data list` says more."
    )
