"""Bytes for the readers of files, chosen by Atheris after the lines that they reach.

    pip install atheris
    python benchmarks/fuzz_bytes.py --inputs 200000 --seed 0

The first byte names the reader, the rest is the file. A reader takes it or refuses it with one
sentence (a `RejoinderError`). Any other exception, or ten seconds without an end, ends the run with
a traceback, and Atheris writes the input to the working folder.
"""

import argparse
import json
import pickle
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["rejoinder"]):
    from rejoinder.corpus.reading.readers import keys_of, parse_block
    from rejoinder.corpus.texts import entries_of
    from rejoinder.datasets.acquire.files import read_coco_pickle
    from rejoinder.datasets.semeval import parse_stsb
    from rejoinder.errors import RejoinderError
    from rejoinder.evaluation.results import read_results
    from rejoinder.index.files import IndexModel, Manifest, StringTable, read_manifest
    from rejoinder.io.formats.compression import decompressed
    from rejoinder.io.formats.text_lines import separated_rows
    from rejoinder.training.config.loading import load_config

FIELDS, NEEDED = ("id", "parent_id", "link_id", "author", "subreddit", "body"), ("id", "body")
Reader = Callable[[bytes, Path], object]


def _written(content: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _strings(content: bytes, folder: Path) -> list[str]:
    """A string table of two strings, the bytes of which follow the three numbers of their ends."""
    _written(content[:24], folder, "x.offsets")
    _written(content[24:], folder, "x.bin")
    return list(map(StringTable(folder, "x", 2).__getitem__, range(2)))


READERS: dict[str, Reader] = {
    "JSON lines": lambda content, _: parse_block(content, FIELDS, NEEDED, "dump.jsonl", 1),
    "keys of JSON lines": lambda content, _: keys_of(content),
    "table": lambda content, _: list(separated_rows(iter([content]), ",")),
    "labelled rows": lambda content, folder: parse_stsb(content, folder / "a"),
    "index.json": lambda content, at: read_manifest(_written(content, at, "index.json").parent),
    "strings": _strings,
    "texts.tsv": lambda content, at: list(entries_of(_written(content, at, "a.tsv"))),
    "texts.jsonl": lambda content, at: list(entries_of(_written(content, at, "a.jsonl"))),
    "compressed": lambda content, at: list(decompressed(_written(content, at, "a.jsonl.gz"))),
    "results.json": lambda content, at: read_results(_written(content, at, "results.json")),
    "config": lambda content, at: load_config(_written(content, at, "c.toml")),
    "pickle": lambda content, at: read_coco_pickle(_written(content, at, "a.pkl")),
}


def seeds(folder: Path) -> None:
    """Small sound files to begin with."""
    line = json.dumps({"id": "a", "body": "words", "parent_id": "t1_b", "text": "é"}).encode()
    Manifest(IndexModel("m", "ab", None, "x"), 4).write(folder)
    sound = {
        "JSON lines": line, "keys of JSON lines": line, "table": b'id,body\na,"b, ""c"""\n',
        "labelled rows": b"main-news\tf\t2012\t1\t2.5\tone\ttwo\n",
        "index.json": (folder / "index.json").read_bytes(), "texts.tsv": b"1\tone\n2\ttwo\n",
        "strings": bytes(8) + (2).to_bytes(8, "little") + (4).to_bytes(8, "little") + b"abcd",
        "texts.jsonl": line, "compressed": b"\x1f\x8b\x08\x00", "results.json": b'{"results": []}',
        "config": b'[encoder]\nkind = "dan"\nwidth = 4\nlayers = []\n',
        "pickle": pickle.dumps({"features": [], "captions": {}}, 2),
    }  # fmt: skip
    for number, (name, content) in enumerate(sound.items()):
        place = list(READERS).index(name)
        _written(bytes([place]) + content, folder, f"seed-{number}")
    (folder / "index.json").unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    readers, counts = list(READERS.items()), Counter[str]()
    corpus, place = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    seeds(corpus)

    def check(content: bytes) -> None:
        name, reader = readers[content[0] % len(readers)] if content else readers[0]
        try:
            reader(content[1:], place)
        except RejoinderError as error:
            str(error).encode()
            counts[f"{name}: refused"] += 1
        else:
            counts[f"{name}: accepted"] += 1
        if sum(counts.values()) == args.inputs:  # Atheris ends the process without clean-up
            print(*(f"{name}: {count:,}" for name, count in sorted(counts.items())), sep="\n")
            sys.stdout.flush()

    options = [f"-runs={args.inputs}", f"-seed={args.seed + 1}", "-timeout=10", "-max_len=4096"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
