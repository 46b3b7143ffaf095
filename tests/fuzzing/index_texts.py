"""Files of texts to index, plain or compressed: their ids and texts, or one sentence."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import zstandard

from fuzzing.datasets import damaged
from fuzzing.json_lines import json_lines
from fuzzing.texts import text
from rejoinder.corpus.texts import entries_of
from rejoinder.errors import RejoinderError
from rejoinder.inference.sentence_stream import given_texts

_PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress,
}  # fmt: skip
_IDS: tuple[Any, ...] = (1, 0, -5, 2**70, True, 1.5, None, "", "a", "é\ud800", [], {}, "1" * 3_000)
_GIVEN: tuple[Any, ...] = (None, 5, b"a", ("a",), ("a", 5), (5, "a"), ("a", "b", "c"), ["a", "b"],
                           {}, ("\ud800", "\udfff"), ("", ""), (None, "a"))  # fmt: skip


def _line(random: Random, suffix: str) -> str:
    said = text(random)
    if suffix == ".jsonl":
        tree: dict[str, Any] = {"text": said if random.random() < 0.95 else random.choice(_IDS)}
        if random.random() < 0.6:
            tree["id"] = random.choice(_IDS[:9]) if random.random() < 0.3 else text(random)
        if random.random() < 0.1:
            tree["more"] = random.choice(_IDS)
        return json.dumps(tree, ensure_ascii=random.random() < 0.5)
    said = "".join(sign for sign in said if not "\ud800" <= sign <= "\udfff")
    if suffix in (".tsv", ".csv"):
        between = "\t" if suffix == ".tsv" else ","
        return f"{random.randrange(99)}{between}{said}" if random.random() < 0.95 else said
    return said


def content(random: Random, suffix: str) -> bytes:
    """A file, most of them with a fault or two."""
    if suffix == ".jsonl" and random.random() < 0.1:
        return json_lines(random)
    lines = [_line(random, suffix) for _ in range(random.choice((0, 1, 2, 5)))]
    if suffix in (".tsv", ".csv") and random.random() < 0.9:
        lines.insert(0, "id\ttext" if suffix == ".tsv" else "id,text")
    end = random.choice(("\n", "\n", "\r\n"))
    joined = "".join(f"{line}{end}" for line in lines).encode("utf-8", "surrogatepass")
    return damaged(joined, random) if random.random() < 0.4 else joined


def checker(folder: Path) -> Callable[[Random], bool]:
    """What reads one file, or texts that a program gives; true: they were read."""

    def checked(random: Random) -> bool:
        try:
            found = list(_read(random))
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            str(error).encode()
            return False
        for name, said, *_ in found:
            assert name is None or isinstance(name, str)
            (name or "").encode()
            said.encode()
        return True

    def _read(random: Random) -> Any:
        if random.random() < 0.1:
            return given_texts([text(random), random.choice(_GIVEN), ("a", text(random))])
        suffix = random.choice((".txt", ".tsv", ".csv", ".jsonl", ".jsonl", ""))
        written = content(random, suffix)
        packing = random.choice(("",) * 6 + tuple(_PACKED))
        if packing:
            written = _PACKED[packing](written)
            written = damaged(written, random) if random.random() < 0.5 else written
        path = folder / f"texts{suffix}{packing}"
        path.write_bytes(written)
        return entries_of(path)

    return checked
