"""What interrupted commands left, and caches, changed or edited: the same result, or refused."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np

from dumps import comment, lines
from fuzzing.models import mutated_bytes, mutated_tree
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import RejoinderError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.vector_cache import VectorCache
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.encoding import encode_file
from rejoinder.inference.sentence_stream import CHUNK
from rejoinder.io.files.hashed import sealed
from rejoinder.models.folder import write_model
from tiny_models import WORDS, dan_model

TEXTS = (WORDS * CHUNK)[: CHUNK + 10]
"""The first `CHUNK` are encoded before the interruption."""
SUFFIXES = ("npy", "parquet", "jsonl")
MARCH = lines(comment("a", "How are you today?"), comment("b", "Fine, thank you", "t1_a"))
APRIL = lines(comment("c", "That is good to hear", "t1_b"))


class LeftOvers:
    """Outputs that were interrupted, a cache and carried comments, and what comes of them."""

    def __init__(self, folder: Path) -> None:
        """Makes them in `folder`."""
        self.base, self.work = folder / "base", folder / "work"
        self.base.mkdir()
        write_model(self.base / "model", dan_model())
        self.encoder = SentenceEncoder.load(self.base / "model", threads=1)
        self.results: dict[str, bytes] = {}
        for suffix in SUFFIXES:
            encode_file(self.encoder, TEXTS, self.base / f"whole.{suffix}")
            self.results[suffix] = (self.base / f"whole.{suffix}").read_bytes()
            self._interrupt(self.base / f"e.{suffix}")
        VectorCache(self.base / "cache", "dan").completed(
            WORDS, lambda texts: [self.encoder.encode(texts)]
        )
        for name, dump in (("march", MARCH), ("april", APRIL)):
            (self.base / f"{name}.jsonl").write_bytes(dump)
        extract(self.base / "march.jsonl", self.base / "pairs", carry=self.base / "state")

    def _interrupt(self, out: Path) -> None:
        def texts():
            yield from TEXTS[:CHUNK]
            raise ZeroDivisionError

        with suppress(ZeroDivisionError):
            encode_file(self.encoder, texts(), out)

    def encode(self, random: Random) -> None:
        """Continues an encoding of which a file was changed."""
        suffix = random.choice(SUFFIXES)
        out = self.work / f"e.{suffix}"
        _change(random, self.work / f".e.{suffix}.unfinished")
        encode_file(self.encoder, TEXTS, out, resume=True)
        assert out.read_bytes() == self.results[suffix], "other bytes"

    def cached(self, random: Random) -> None:
        """Reads a cache that was changed."""
        _change(random, self.work / "cache")
        embedder = Embedder(self.encoder, cache=VectorCache(self.work / "cache", "dan"))
        rows = embedder.embed(WORDS, "words")
        # a row's last bits depend on the batch that it is computed in
        assert np.allclose(rows, self.encoder.encode(WORDS), atol=1e-6), "other embeddings"

    def carried(self, random: Random) -> None:
        """Extracts with carried comments of which a file was changed."""
        _change(random, self.work / "state" / "00001" / "increment.json")
        extract(self.work / "april.jsonl", self.work / "more", carry=self.work / "state")

    def pairs(self, random: Random) -> None:
        """Reads pairs whose manifest was changed."""
        _change(random, self.work / "pairs" / "manifest.json")
        pairs = open_pairs(self.work / "pairs")
        for split in ("train", "dev", "test"):
            for frame in pairs.iter_frames(split):
                assert len(frame)


def _change(random: Random, place: Path) -> None:
    """Changes a file, or one of a folder; JSON gets its hash again half of the times."""
    files = sorted(path for path in place.iterdir()) if place.is_dir() else [place]
    path = random.choice(files)
    content = path.read_bytes()
    if path.suffix != ".json" or random.random() < 0.2:
        path.write_bytes(mutated_bytes(random, content))
        return
    tree = json.loads(content)
    tree.pop("sha256")
    changed = mutated_tree(random, tree)
    if isinstance(changed, dict) and random.random() < 0.8:
        changed = sealed(changed)
    path.write_text(json.dumps(changed), "utf-8")


def checker(folder: Path) -> Callable[[Random], bool]:
    """The check of this area."""
    left = LeftOvers(folder)
    ways = (left.encode, left.encode, left.cached, left.pairs, left.pairs, left.carried)

    def check(random: Random) -> bool:
        shutil.rmtree(left.work, ignore_errors=True)
        shutil.copytree(left.base, left.work)
        try:
            random.choice(ways)(random)
        except RejoinderError:
            return False
        return True

    return check
