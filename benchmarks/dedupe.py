"""Duplicates: which labelled pairs end up in one group, and how long a collection takes.

    python benchmarks/dedupe.py pairs --data ../shared/data
    python benchmarks/dedupe.py speed --texts texts.txt --model rejoinder-small

`pairs`: the texts of labelled pairs are one collection. A pair counts as found if both of its texts
are in one group. The threshold with the highest F1 is chosen on one half of the pairs (CQA 2016: on
dev) and used on the other (test). Of Quora's, every second row is in a half.

- `dedupe`: with that threshold; with the one of `--examples` of the other half; with the default.
- `semhash`: the package of that name, by the same encoder (`pip install semhash`).
- `chained`: texts that are joined by any path of pairs from the threshold on, as union-find does.
- `cosine`: pairs alone, without groups.

`speed` prints seconds and processor time of both packages for the lines of a file, and the largest
memory of the process. Run it once for each: `--only`. Both commands print JSON.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder import SentenceEncoder, dedupe
from rejoinder.conversations.collection import open_collection
from rejoinder.datasets.semeval import read_cqa
from rejoinder.io.formats.compression import decompressed

GRID = [round(0.5 + 0.05 * step, 2) for step in range(10)]
Pairs = list[tuple[str, str, bool]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    pairs = commands.add_parser("pairs")
    pairs.add_argument("--data", type=Path, required=True)
    pairs.add_argument("--sets", nargs="+", default=["quora", "medical", "cqa"])
    speed = commands.add_parser("speed")
    speed.add_argument("--texts", type=Path, required=True)
    speed.add_argument("--count", type=int, default=1_000_000)
    speed.add_argument("--only", choices=("dedupe", "semhash"), required=True)
    speed.add_argument("--threshold", type=float, default=0.9)
    for command in (pairs, speed):
        command.add_argument("--model", default="rejoinder-base")
        command.add_argument("--threads", type=int)
    given = parser.parse_args()
    encoder = SentenceEncoder(given.model, threads=given.threads)
    if given.command == "speed":
        lines = given.texts.read_text("utf-8").split("\n")[: given.count]
        print(json.dumps(_speed(lines, encoder, given.only, given.threshold, given.threads)))
        return
    for name in given.sets:
        for row in _judged(*_halves(given.data, name), encoder):
            print(json.dumps({"set": name, "model": given.model, **row}), flush=True)


def _halves(data: Path, name: str) -> tuple[Pairs, Pairs]:
    """Returns the pairs to choose on, and those to report."""
    if name == "cqa":
        dev, test = (
            [
                (query.original.text(), related.text(), bool(good))
                for query in read_cqa(data, "2016", split).queries
                for related, good in zip(query.related, query.relevant, strict=True)
            ]
            for split in ("dev", "test")
        )
        return dev, test
    file = {"quora": "quora_labelled", "medical": "medical_question_pairs"}[name]
    pairs = labelled_pairs(data, file)
    return pairs[::2], pairs[1::2]


def labelled_pairs(data: Path, name: str) -> Pairs:
    """Returns the pairs of a file of paraphrases, and whether they say the same."""
    content = b"".join(decompressed(data / "paraphrases" / f"{name}.jsonl.zst"))
    rows = [json.loads(line) for line in content.splitlines()]
    return [(row["sentence1"], row["sentence2"], str(row["label"]) == "1") for row in rows]


def _judged(dev: Pairs, test: Pairs, encoder: SentenceEncoder) -> Iterable[dict[str, Any]]:
    for name, grouping in (("dedupe", _dedupe), ("semhash", _semhash), ("chained", _chained)):
        at = grouping(_texts(dev), encoder)
        best = max(GRID, key=lambda threshold: _score(dev, at(threshold))["f1"])
        groups = grouping(_texts(test), encoder)(best)
        yield {"way": name, "threshold": best, **_score(test, groups), "largest": _largest(groups)}
    for name, examples in (("examples", dev), ("default", None)):
        found = dedupe(_texts(test), encoder, examples=examples)
        groups = dict(zip(found.texts, found.kept_for.tolist(), strict=True))
        facts = {"threshold": found.threshold, "basis": found.estimate.basis}
        yield {
            "way": f"dedupe, {name}",
            **facts,
            **_score(test, groups),
            "largest": _largest(groups),
        }
    best, _ = max(((t, _cosine(dev, encoder, t)["f1"]) for t in GRID), key=lambda pair: pair[1])
    yield {"way": "cosine", "threshold": best, **_cosine(test, encoder, best)}


def _texts(pairs: Pairs) -> list[str]:
    return list(dict.fromkeys(text for first, second, _ in pairs for text in (first, second)))


Grouping = Callable[[float], dict[str, Any]]
"""Gives the group of each text at a threshold."""


def _dedupe(texts: list[str], encoder: SentenceEncoder) -> Grouping:
    found = dedupe(texts, encoder, threshold=1.0, floor=GRID[0])
    return lambda at: dict(zip(texts, found.rethreshold(at).kept_for.tolist(), strict=True))


def _chained(texts: list[str], encoder: SentenceEncoder) -> Grouping:
    found = dedupe(texts, encoder, threshold=1.0, floor=GRID[0])

    def at(threshold: float) -> dict[str, Any]:
        root = list(range(found.pairs.rows))

        def find(row: int) -> int:
            while root[row] != row:
                root[row] = row = root[root[row]]
            return row

        near = found.pairs.where(found.pairs.scores >= threshold)
        for first, second in zip(near.first.tolist(), near.second.tolist(), strict=True):
            root[find(first)] = find(second)
        return dict(zip(texts, map(find, found.rows.tolist()), strict=True))

    return at


def _semhash(texts: list[str], encoder: SentenceEncoder) -> Grouping:
    from semhash import SemHash

    index = SemHash.from_records(texts, model=encoder)

    def at(threshold: float) -> dict[str, Any]:
        result = index.self_deduplicate(threshold)
        return {
            **{text: text for text in result.selected},
            **{one.record: one.duplicate_of for one in result.filtered},
        }

    return at


def _cosine(pairs: Pairs, encoder: SentenceEncoder, threshold: float) -> dict[str, float]:
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    cosines = encoder.similarity_pairwise(first, second)
    return _measures(cosines >= threshold, np.array([pair[2] for pair in pairs]))


def _score(pairs: Pairs, groups: dict[str, Any]) -> dict[str, float]:
    found = np.array([groups[first] == groups[second] for first, second, _ in pairs])
    return _measures(found, np.array([alike for _, _, alike in pairs]))


def _measures(found: Any, alike: Any) -> dict[str, float]:
    right = int((found & alike).sum())
    precision, recall = right / max(int(found.sum()), 1), right / max(int(alike.sum()), 1)
    false = float((found & ~alike).sum() / max(int((~alike).sum()), 1))
    measured = {
        "precision": precision, "recall": recall, "false_positives": false,
        "f1": 2 * right / max(int(found.sum() + alike.sum()), 1),
    }  # fmt: skip
    return {name: round(value, 3) for name, value in measured.items()} | {"pairs": len(alike)}


def _largest(groups: dict[str, Any]) -> int:
    return int(np.unique([str(group) for group in groups.values()], return_counts=True)[1].max())


def _speed(
    texts: list[str], encoder: SentenceEncoder, only: str, threshold: float, threads: int | None
) -> dict[str, Any]:
    clocks = [(time.perf_counter(), time.process_time())]

    def lap() -> None:
        clocks.append((time.perf_counter(), time.process_time()))

    if only == "dedupe":
        opened = open_collection(texts, encoder, threads=threads)
        lap()
        found = dedupe(opened, threshold=threshold, threads=threads)
        dropped = len(found.filtered)
        facts = {"search_recall": found.search_recall, "groups": len(found.groups)}
    else:
        from semhash import SemHash

        index = SemHash.from_records(texts, model=encoder)
        lap()
        dropped = len(index.self_deduplicate(threshold).filtered)
        facts = {}
    lap()
    laps = {
        name: [round(after[n] - before[n], 1) for before, after in pairwise(clocks)]
        for n, name in enumerate(("seconds", "processor"))
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    about = {"package": only, "texts": len(texts), "dropped": dropped, "gigabytes": round(peak, 2)}
    return {**about, "threshold": threshold, **facts, **laps}


if __name__ == "__main__":
    main()
