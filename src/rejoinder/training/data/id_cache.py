"""Token ids of pairs, kept on disk so that the text of a run is turned into ids once.

A folder of the cache holds `SHARD-KEY/START.safetensors`, a file for each block of a shard. The key
covers the shard's SHA-256 and all that ids depend on, so that other data, another vocabulary or
other rules of text never meet old ids. Files are written under another name and renamed, checked
by their SHA-256 whenever they are read, and made again where they are damaged: a cache can be
removed or cut at any time, and training computes the same with and without it.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.corpus.shards import Block, Pairs
from rejoinder.errors import BusyError, ModelError, StorageError
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import file_facts, sha256_of
from rejoinder.models.tensors import Tensors, read_tensors
from rejoinder.text.ragged import Ragged, offsets_of

_FORMAT = 1
_DIGITS = 16
"""Hexadecimal digits of a key in the name of a folder."""
_ARRAYS = ("input_ids", "input_lengths", "response_ids", "response_lengths", "keys")


@dataclass(frozen=True, slots=True)
class PairTexts:
    """Pairs as token ids, and keys that are equal for equal texts."""

    inputs: Ragged
    responses: Ragged
    input_keys: NDArray[np.int64]
    response_keys: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.inputs)


class IdCache:
    """The ids of the blocks of `pairs` in a folder, of `most_bytes` at most.

    Once the limit is reached or the disk is full, further blocks are not stored.
    """

    def __init__(
        self, folder: Path, pairs: Pairs, text: str, most_bytes: float, workers: int = 1
    ) -> None:
        """Opens the cache; folders of other shards or another `text` (see `text_key`) go.

        It is one of `workers`, which share the room and each store different blocks.
        """
        self._folders: Mapping[Path, Path] = {
            pairs.folder / shard.file: folder
            / f"{Path(shard.file).stem}-{sha256_of(f'{shard.sha256} {text}'.encode())[:_DIGITS]}"
            for shard in pairs.manifest.shards
        }
        if folder.is_dir():
            for old in set(folder.iterdir()) - set(self._folders.values()):
                shutil.rmtree(old, ignore_errors=True)
        stored = sum(path.stat().st_size for path in folder.glob("*/*.safetensors"))
        self._left = (most_bytes - stored) / workers

    def read(self, block: Block) -> PairTexts | None:
        """Returns the ids of a block; None if they are not stored, or damaged."""
        try:
            tensors = read_tensors(self._path(block), mapped=True)
        except ModelError:
            return None
        if tensors.keys() != {*_ARRAYS, "sha256"} or tensors["sha256"].tobytes() != _hash(tensors):
            return None
        if len(tensors["input_lengths"]) != block.rows:  # blocks of another size
            return None
        inputs, responses = (
            Ragged(tensors[f"{side}_ids"], offsets_of(tensors[f"{side}_lengths"]))
            for side in ("input", "response")
        )
        return PairTexts(inputs, responses, *tensors["keys"])

    def write(self, block: Block, texts: PairTexts) -> None:
        """Stores the ids of a block, if there is room."""
        tensors: Tensors = {
            "input_ids": texts.inputs.ids,
            "input_lengths": texts.inputs.lengths.astype(np.int32),
            "response_ids": texts.responses.ids,
            "response_lengths": texts.responses.lengths.astype(np.int32),
            "keys": np.stack([texts.input_keys, texts.response_keys]),
        }
        content = save({**tensors, "sha256": np.frombuffer(_hash(tensors), np.uint8)})
        if len(content) > self._left:
            self._left = 0
            return
        try:
            write_bytes(self._path(block), content)
        except (StorageError, BusyError):  # the run goes on, and says so where it needs the disk
            self._left = 0
        self._left -= len(content)

    def _path(self, block: Block) -> Path:
        return self._folders[block.shard] / f"{block.start}.safetensors"


def text_key(vocabulary: Path, config: Mapping[str, object]) -> str:
    """Returns a hash of all that ids depend on but the text.

    Args:
        vocabulary: the folder that `TextFeatures.save` wrote.
        config: the result of `TextFeatures.config`.
    """
    files = file_facts(vocabulary, sorted(path.name for path in vocabulary.iterdir()))
    # keys of texts are Polars' hashes, which differ from version to version
    facts = {"format": _FORMAT, "files": files, "text": dict(config), "polars": pl.__version__}
    return sha256_of(json.dumps(facts, sort_keys=True).encode())


def _hash(tensors: Mapping[str, NDArray[np.generic]]) -> bytes:
    shapes = json.dumps([tensors[name].shape for name in _ARRAYS]).encode()
    return bytes.fromhex(sha256_of(shapes, *(tensors[name].tobytes() for name in _ARRAYS)))
