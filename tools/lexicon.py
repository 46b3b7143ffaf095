"""Writes which words are synonyms, antonyms or more general ones, from lexical data.

    python tools/lexicon.py ../shared/data src/rejoinder/data/lexicon.safetensors

Synsets, hypernyms and similar adjectives are those of Open English WordNet; antonyms, and further
synonyms, are the lists of counter-fitting (Mrkšić et al. 2016). Only words that `rejoinder-base`
knows are kept.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.datasets.catalogue import read_bytes
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.scoring.batch import KINDS
from rejoinder.text.features import WordFeatures

_RANK = {name: number for number, name in enumerate(KINDS)}


def main() -> None:
    folder, out = Path(sys.argv[1]) / "lexical", Path(sys.argv[2])
    features = read_model(shipped_model()).features
    if not isinstance(features, WordFeatures):
        raise SystemExit("the model of the package has no words")
    known = {word for word in features.vocabulary.words if word.isalpha()}
    kinds: dict[tuple[str, str], int] = {}
    for kind, first, second in _related(folder):
        if first != second and {first, second} <= known:
            for pair in ((first, second), (second, first)):
                kinds[pair] = max(kinds.get(pair, 0), _RANK[kind])
    words = sorted({first for first, _ in kinds})
    number = {word: place for place, word in enumerate(words)}
    rows = sorted((number[first], number[second], kind) for (first, second), kind in kinds.items())
    starts, others, ranks = (np.array(column) for column in zip(*rows, strict=True))
    tensors: dict[str, NDArray[Any]] = {
        "words": np.frombuffer("\n".join(words).encode(), np.uint8),
        "begins": np.searchsorted(starts, np.arange(len(words) + 1)).astype(np.int32),
        "related": others.astype(np.uint16),
        "kinds": ranks.astype(np.uint8),
    }
    out.write_bytes(save(tensors))
    counts = {name: int((ranks == rank).sum()) // 2 for name, rank in _RANK.items()}
    print(f"{len(words):,} words, {counts}, {out.stat().st_size:,} bytes")


def _related(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Gives kinds and pairs of words."""
    members, above = dict[str, list[str]](), defaultdict[str, list[str]](list)
    for line in read_bytes(folder / "open_english_wordnet.jsonl").splitlines():
        row = json.loads(line)
        members[row["id"]] = [word.lower() for word in row["members"]]
        above[row["id"]] = [*row.get("hypernym", []), *row.get("similar", [])]
    for synset, same in members.items():
        yield from (("synonym", *pair) for pair in product(same, same))
        for higher in above[synset]:
            yield from (("general", *pair) for pair in product(same, members.get(higher, [])))
    for name, kind in (
        ("counterfit_ppdb_synonyms", "synonym"),
        ("counterfit_ppdb_antonyms", "antonym"),
        ("counterfit_wordnet_antonyms", "antonym"),
    ):
        for words in read_bytes(folder / f"{name}.txt").decode().splitlines():
            first, second = words.split()
            yield kind, first, second


if __name__ == "__main__":
    main()
