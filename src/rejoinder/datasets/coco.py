"""COCO's captions with features of their images, as `rejoinder data add coco` lays them out."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from rejoinder.datasets.files import find_folder, read_bytes, senteval_places, sha256_of
from rejoinder.errors import InputError

CAPTIONS = 5
"""Of each image: SentEval takes the first five."""


@dataclass(frozen=True)
class Captioned:
    """Images of one split with their captions."""

    features: NDArray[np.float32]
    """(M, F) float32, a row an image."""
    captions: list[str]
    """5 M, those of an image in a row."""
    sha256: str

    def __len__(self) -> int:
        return len(self.features)


def read_coco(data: Path, split: str) -> Captioned:
    """A split: train, valid or test.

    Raises:
        InputError: a file is not there, damaged, or an image has fewer than five captions.
    """
    names = [f"{split}.safetensors", f"{split}.json"]
    folder = find_folder(data, senteval_places("downstream/COCO"), names[0], "COCO")
    contents = [read_bytes(folder / name) for name in names]
    try:
        features = load(contents[0])["features"]
        groups = json.loads(contents[1])["captions"]
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}/{split} is damaged: {error}; add it again with `rejoinder data add coco`."
        ) from None
    if len(groups) != len(features):
        raise InputError(
            f"{folder}/{split}: {len(features)} images and captions of {len(groups)}; they must be "
            "as many."
        )
    few = next((row for row, group in enumerate(groups) if len(group) < CAPTIONS), None)
    if few is not None:
        raise InputError(
            f"{folder}/{names[1]}: image {few} has {len(groups[few])} captions, not 5."
        )
    captions = [text for group in groups for text in group[:CAPTIONS]]
    return Captioned(np.asarray(features, np.float32), captions, sha256_of(*contents))
