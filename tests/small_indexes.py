"""Small indexes of made-up texts, whose embeddings are all the same."""

import numpy as np

from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts

ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), 2)


def part(texts):
    """EncodedTexts of a dict of texts by id."""
    rows = np.tile(np.array([1, 0], np.float32), (len(texts), 1))
    return EncodedTexts(list(texts), list(texts.values()), rows)


def made(folder, *parts):
    index = create_index(folder / "index", ABOUT, map(part, parts))
    return TextIndex(index.folder)


def random_texts(count, seed=0):
    """Texts of words as frequent as in natural text."""
    generator = np.random.default_rng(seed)
    drawn = np.minimum(generator.zipf(1.3, (count, 12)), 3_000)
    lengths = generator.integers(0, 13, count)
    return {
        f"{seed}-{number}": " ".join(f"w{word:x}" for word in row[:length])
        for number, (row, length) in enumerate(zip(drawn.tolist(), lengths.tolist(), strict=True))
    }
