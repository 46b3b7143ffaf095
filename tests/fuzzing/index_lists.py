"""The inverted lists of an index, changed or cut: the same results as before, or one sentence.

`index.json` is changed too, with its hash mended. That of the lists is not mended: FAISS does not
check what it reads, so that lists with a forged hash may end the process (SECURITY.md).
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np

from fuzzing.index_folders import contents
from fuzzing.models import mutated_bytes, mutated_tree
from rejoinder.errors import RejoinderError
from rejoinder.index import lists
from rejoinder.index.files import FILE, IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts
from rejoinder.io.files.hashed import sealed

_ROWS, _DIM = 300, 8
_HEAD = 300
"""Bytes at the beginning of the file, where its sizes are."""


def _changed(random: Random, content: bytes) -> bytes:
    kind = random.random()
    if kind < 0.2:
        return content[: random.randrange(len(content))]
    if kind < 0.4:
        return mutated_bytes(random, content)
    turned = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        place = random.randrange(_HEAD if random.random() < 0.5 else len(turned))
        turned[place] ^= 1 << random.randrange(8)
    return bytes(turned)


def _edited(random: Random, content: bytes) -> bytes:
    """`index.json` with another value in how the lists are read, or anywhere."""
    tree = json.loads(content)
    tree.pop("sha256")
    [entry] = tree["segments"]
    if random.random() < 0.7:
        entry["probing"] = mutated_tree(random, entry["probing"])
    else:
        tree = mutated_tree(random, tree)
    return json.dumps(sealed(tree) if isinstance(tree, dict) else tree).encode()


def checker(folder: Path) -> Callable[[Random], bool]:
    """What searches one changed index; true: it could be searched."""
    unit = np.random.default_rng(0).standard_normal((_ROWS, _DIM)).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    names = [str(number) for number in range(_ROWS)]
    model = IndexModel("model", "ab" * 32, None, None)
    with patch.object(lists, "LEAST_ROWS", _ROWS):
        index = create_index(
            folder / "index", Manifest(model, _DIM), [EncodedTexts(names, names, unit)]
        )
    assert not index.is_exact
    whole, place = contents(folder / "index"), folder / "edited"
    [file] = [name for name in whole if name.endswith(lists.FILE)]
    expected = index.nearest(unit[:3], 5)

    def checked(random: Random) -> bool:
        shutil.rmtree(place, ignore_errors=True)
        edits_manifest = random.random() < 0.3
        name, change = (FILE, _edited) if edits_manifest else (file, _changed)
        for path, content in {**whole, name: change(random, whole[name])}.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(content)
        try:
            found = TextIndex(place).nearest(unit[:3], 5)
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            return False
        if not edits_manifest:
            assert found == expected
        return True

    return checked
