"""COCO: captions and image features, in the layout of `rejoinder data add coco`."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from rejoinder.datasets.files import find_folder, read_bytes, senteval_folders
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.decoding import Record, decoded
from rejoinder.io.formats.tensor_files import UNREADABLE

CAPTIONS = 5
"""Number of captions per image. SentEval uses the first five."""


@dataclass(frozen=True)
class Captioned:
    """The images of one split with their captions."""

    features: NDArray[np.float32]
    """(M, F) float32, a row per image."""
    captions: list[str]
    """5 M captions; those of an image are adjacent."""
    sha256: str

    def __len__(self) -> int:
        return len(self.features)


def read_coco(data: Path, split: str) -> Captioned:
    """Reads a split: train, valid or test.

    Raises:
        InputError: a file is missing or damaged, or an image has fewer than five captions.
    """
    names = [f"{split}.safetensors", f"{split}.json"]
    folder = find_folder(data, senteval_folders("downstream/COCO"), names[0], "COCO")
    contents = [read_bytes(folder / name) for name in names]
    features = _features(contents[0], folder / names[0])
    groups = parse_captions(contents[1], folder / names[1])
    if len(groups) != len(features):
        raise InputError(
            f"{folder}/{split}: {len(features)} images, but captions of {len(groups)} images."
        )
    for image, group in enumerate(groups):
        if len(group) < CAPTIONS:
            raise InputError(
                f"{folder}/{names[1]}: image {image} has {len(group)} captions; expected 5."
            )
    captions = [text for group in groups for text in group[:CAPTIONS]]
    return Captioned(features, captions, sha256_of(*contents))


def _features(content: bytes, path: Path) -> NDArray[np.float32]:
    """Reads the matrix `features` of a safetensors file, which must hold finite numbers."""
    try:
        features = np.asarray(load(content)["features"], np.float32)
    except UNREADABLE as error:
        raise InputError(
            f"{path} is damaged: {error}; add it again with `rejoinder data add coco`."
        ) from None
    if features.ndim != 2 or not features.size or not np.isfinite(features).all():
        raise InputError(
            f"{path} has features of shape {features.shape}; expected one row of finite numbers "
            "per image."
        )
    return features


class _Captions(Record, frozen=True):
    captions: list[list[str]]
    format_version: int = 1


def parse_captions(content: bytes, path: Path) -> list[list[str]]:
    """Parses the captions of each image from JSON."""
    try:
        return decoded(_Captions, json.loads(content)).captions
    except (ValueError, RecursionError):
        raise InputError(
            f"{path}: expected JSON with the key captions, a list of strings per image."
        ) from None
