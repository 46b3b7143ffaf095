"""Lets threads and processes change one index at the same time, and compares what is left.

    python benchmarks/changes.py --changes 60

Eight threads and four processes add, update, delete and compact, each its own texts. Half of the
threads share one object, the others have their own. Two more threads search what is being changed.
A thread waits for its turn; a process that is told that the index is busy tries again, with other
ids. In the end the index must pass its check and hold the texts of all changes that returned, and
no others.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rejoinder.errors import BusyError
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts

THREADS, PROCESSES, READERS, DIM = 8, 4, 2, 16
FIRST = {f"first-{number}": f"the first text {number}" for number in range(50)}
Texts = dict[str, str]


@dataclass
class Changed:
    """What the changes of one worker should have left, and how many there were of each kind."""

    texts: Texts = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def encoded(texts: Texts) -> EncodedTexts:
    """Texts with the same unit row for the same text."""
    rows = np.array([np.random.default_rng(len(text)).standard_normal(DIM) for text in texts])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return EncodedTexts(list(texts), list(texts.values()), rows.astype(np.float32))


def change(index: TextIndex, name: str, changes: int) -> Changed:
    """Changes an index so many times, by texts whose ids begin with a name."""
    draw, done, tried = random.Random(name), Changed(), 0  # noqa: S311
    while done.counts["changes"] < changes:
        tried += 1
        kind = draw.choices(("add", "update", "delete", "compact"), (12, 3, 3, 1))[0]
        known = draw.sample(sorted(done.texts), min(2, len(done.texts)))
        new = {f"{name}-{tried}-{row}": f"text {row} of {name}" for row in range(tried % 3 + 1)}
        after = done.texts
        try:
            if kind == "compact":
                index.compact()
            elif kind == "delete":
                index.delete(known)
                after = {key: text for key, text in done.texts.items() if key not in known}
            else:
                new |= {key: f"{name} again, {tried}" for key in known if kind == "update"}
                index.add_encoded([encoded(new)], update=kind == "update")
                after = done.texts | new
        except BusyError:
            done.counts["busy"] += 1
            time.sleep(0.01)
            continue
        done.texts = after
        done.counts += Counter(changes=1, **{kind: 1})
    return done


def read(index: TextIndex, ended: threading.Event) -> int:
    """Searches an index until the event, and returns how often."""
    searches = 0
    while not ended.is_set():
        [row] = encoded({"": "the first text 7"}).embeddings[:, None]
        for hits in (
            index.nearest(row, 5),
            index.matching("first text", 5),
            index.best("first text", row, 5),
        ):
            assert len({hit.id for hit in hits[0]}) == 5, hits  # noqa: S101
        assert index.get("first-7") == FIRST["first-7"]  # noqa: S101
        searches += 3
    return searches


def changed_by_many(folder: Path, changes: int) -> Counter[str]:
    """Changes an index at `folder` by threads and processes, and checks what is left.

    Raises:
        AssertionError: texts are missing, or others are there.
    """
    index = create_index(
        folder, Manifest(IndexModel("none", "0" * 64, None, None), DIM), [encoded(FIRST)]
    )
    command = [sys.executable, __file__, "--worker", str(folder), "--changes", str(changes)]
    others = [
        subprocess.Popen([*command, "--name", f"process{number}"], stdout=subprocess.PIPE)
        for number in range(PROCESSES)
    ]
    ended = threading.Event()
    with ThreadPoolExecutor(THREADS + READERS) as pool:
        readers = [pool.submit(read, index, ended) for _ in range(READERS)]
        threads = [
            pool.submit(
                change, index if number % 2 else TextIndex(folder), f"thread{number}", changes
            )
            for number in range(THREADS)
        ]
        try:
            told = [other.communicate()[0] for other in others]
            done = [
                *(thread.result() for thread in threads),
                *(Changed(one["texts"], Counter(one["counts"])) for one in map(json.loads, told)),
            ]
        finally:
            ended.set()
        searches = sum(reader.result() for reader in readers)
    left = TextIndex(folder)
    left.check()
    expected = {
        key: text for texts in (FIRST, *(one.texts for one in done)) for key, text in texts.items()
    }
    found = {
        str(key): text
        for part in left.encoded()
        for key, text in zip(part.ids, part.texts, strict=True)
    }
    assert found == expected, found.items() ^ expected.items()  # noqa: S101
    counts: Counter[str] = sum((one.counts for one in done), Counter())
    return counts + Counter(searches=searches, texts=len(found), segments=len(left.segments))


def main() -> None:
    """Prints the counts, or changes an index as one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=60, help="of each thread and process")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker is not None:
        print(json.dumps(vars(change(TextIndex(chosen.worker), chosen.name, chosen.changes))))
        return
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = changed_by_many(Path(folder) / "index", chosen.changes)
    print(dict(counts), f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
