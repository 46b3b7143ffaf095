"""Search by meaning, by words and by both: what they find, and how fast.

    python benchmarks/hybrid.py find --data ../shared/data --conversations reddit_2015 forums
    python benchmarks/hybrid.py core --exports ../shared/data/exports/mbox/supertux-devel
    python benchmarks/hybrid.py speed --pairs pairs/ --texts 1000000 --folder kept/

`find` asks for what belongs to a query, `--queries` of them in each set. A row gives recall@10, the
share of what is to be found among ten hits, and MRR, the mean of 1 / place of the first of it among
100 hits, else 0.

- Replies: all different replies of a split of a file of conversations are indexed, as responses. A
  query is the message of one of them.
- Quotes: the same replies, indexed as they are. A query is three words in a row of one of them,
  around its rarest word.
- Questions: all related questions of CQA 2016 are indexed. A query is an original question; those
  judged relevant are to be found.

`core` indexes the messages of exports with and without their greetings and signatures
(`corpus.core_text`). A query is a message; the message that answers it is to be found.

`speed` indexes messages and replies of pairs, keeps the index in `--folder`, and searches other
messages and replies, in batches of `--batch` and alone, by each mode. With `--bm25s` the package of
that name searches the same words next to it, for 10 and for 100 hits. Both print JSON.
"""

import argparse
import json
import random
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rejoinder import Index, IndexHit, extract
from rejoinder.corpus.texts import entries_of
from rejoinder.corpus.writer import open_pairs
from rejoinder.datasets.semeval import read_cqa
from rejoinder.text.normalize import words_of

DEPTH, TOP = 100, 10
WEIGHTS = (0.15, 0.25, 0.35, 0.5)
ALONE = 200
"""Queries that are searched one by one."""
Wanted = tuple[str, set[str]]
"""A query, and the ids of what is to be found."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    find = commands.add_parser("find")
    find.add_argument("--data", type=Path, required=True)
    find.add_argument("--conversations", nargs="+", default=["reddit_2015", "forums"])
    find.add_argument("--splits", nargs="+", default=["dev", "test"])
    find.add_argument("--queries", type=int, default=5_000)
    core = commands.add_parser("core")
    core.add_argument("--exports", type=Path, nargs="+", required=True)
    core.add_argument("--model", default="rejoinder-base")
    speed = commands.add_parser("speed")
    speed.add_argument("--pairs", type=Path, required=True)
    speed.add_argument("--texts", type=int, default=1_000_000)
    speed.add_argument("--queries", type=int, default=4_096)
    speed.add_argument("--batch", type=int, default=1_024, help="Queries searched together.")
    speed.add_argument("--folder", type=Path, required=True)
    speed.add_argument("--bm25s", type=int, default=0, metavar="N", help="Queries for bm25s.")
    find.add_argument("--model", default="rejoinder-base")
    speed.add_argument("--model", default="rejoinder-small")
    chosen = parser.parse_args()
    command = {"find": _find, "core": _core, "speed": _speed}[chosen.command]
    print(json.dumps(command(chosen), indent=1))


def _find(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.conversations:
            pairs = Path(folder, name)
            source = chosen.data / "conversations" / f"{name}.jsonl.zst"
            extract(source, pairs)
            for split in chosen.splits:
                texts, wanted = _replies(pairs, split, chosen.queries)
                place = Path(folder, f"{name}-{split}")
                index = Index.create(place, texts, chosen.model, response=True)
                rows += _found(f"replies of {name}, {split}", index, wanted)
                index = Index.create(Path(folder, f"{name}-{split}-quotes"), texts, chosen.model)
                rows += _found(f"quotes of {name}, {split}", index, _quotes(texts, chosen.queries))
        for split in chosen.splits:
            texts, wanted = _questions(chosen.data, split)
            index = Index.create(Path(folder, f"cqa-{split}"), texts, chosen.model)
            rows += _found(f"questions of CQA 2016, {split}", index, wanted)
    return rows


def _replies(pairs: Path, split: str, count: int) -> tuple[list[tuple[str, str]], list[Wanted]]:
    frame = open_pairs(pairs).frame(split)
    ids = {text: str(number) for number, text in enumerate(dict.fromkeys(frame["response"]))}
    rows = list(zip(frame["input"], frame["response"], strict=True))
    drawn = random.Random(0).sample(rows, min(count, len(rows)))  # noqa: S311
    return [(name, text) for text, name in ids.items()], [(m, {ids[r]}) for m, r in drawn]


def _quotes(texts: Sequence[tuple[str, str]], count: int) -> list[Wanted]:
    words = [words_of(text) for _, text in texts]
    numbers = Counter(chain.from_iterable(map(set, words)))
    drawn = random.Random(0).sample(range(len(texts)), min(count, len(texts)))  # noqa: S311
    quotes = []
    for row in drawn:
        rarest = min(range(len(words[row])), key=lambda at: numbers[words[row][at]], default=0)
        begin = max(min(rarest - 1, len(words[row]) - 3), 0)
        quotes.append((" ".join(words[row][begin : begin + 3]), {texts[row][0]}))
    return quotes


def _questions(data: Path, split: str) -> tuple[list[tuple[str, str]], list[Wanted]]:
    queries = read_cqa(data, "2016", split).queries
    texts = {one.id: one.text() for query in queries for one in query.related}
    wanted = [
        (
            query.original.text(),
            {q.id for q, good in zip(query.related, query.relevant, strict=True) if good},
        )
        for query in queries
    ]
    return list(texts.items()), [one for one in wanted if one[1]]


def _found(name: str, index: Index, wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
    queries = [query for query, _ in wanted]
    meaning = index.search(queries, DEPTH, exact=True)
    words = index.search(queries, DEPTH, mode="words")
    lists = {"semantic": [_ids(hits) for hits in meaning], "words": [_ids(hits) for hits in words]}
    for weight in WEIGHTS:
        hits = index.search(queries, DEPTH, mode="hybrid", weight=weight, exact=True)
        lists[f"hybrid {weight}"] = [_ids(of_query) for of_query in hits]
    about = {"set": name, "texts": len(index), "queries": len(queries)}
    goods = [good for _, good in wanted]
    return [about | {"mode": mode} | _scores(ids, goods) for mode, ids in lists.items()]


def _ids(hits: Sequence[IndexHit]) -> list[str]:
    return [hit.id for hit in hits]


def _scores(lists: Sequence[Sequence[str]], goods: Sequence[set[str]]) -> dict[str, float]:
    recalls, ranks = [], []
    for ids, good in zip(lists, goods, strict=True):
        recalls.append(len(good & {*ids[:TOP]}) / min(len(good), TOP))
        ranks.append(next((1 / place for place, n in enumerate(ids, 1) if n in good), 0.0))
    return {
        "recall@10": round(statistics.mean(recalls), 4),
        "mrr": round(statistics.mean(ranks), 4),
    }


def _core(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for export in chosen.exports:
        entries = {str(entry.id): entry for entry in entries_of(export)}
        asked = [
            (entry.about["answers"], str(entry.id))
            for entry in entries.values()
            if entry.about.get("answers") in entries
        ]
        cut = sum(entry.encoded != entry.text for entry in entries.values())
        whole = [(name, entry.text) for name, entry in entries.items()]
        about = {"export": export.name, "texts": len(entries), "cut": cut, "queries": len(asked)}
        for name, texts in (("whole", whole), ("core", export)):
            with tempfile.TemporaryDirectory() as folder:
                index = Index.create(Path(folder, "index"), texts, chosen.model)
                found = index.search([entries[one].text for one, _ in asked], DEPTH + 1, exact=True)
            lists = [
                [hit.id for hit in hits if hit.id != one]
                for hits, (one, _) in zip(found, asked, strict=True)
            ]
            rows.append(about | {"encoded": name} | _scores(lists, [{reply} for _, reply in asked]))
    return rows


def _speed(chosen: argparse.Namespace) -> dict[str, Any]:
    texts = list(_texts(chosen.pairs))
    random.Random(0).shuffle(texts)  # noqa: S311
    queries, texts = texts[: chosen.queries], texts[chosen.queries :][: chosen.texts]
    place, report = chosen.folder / "index", dict[str, Any](texts=len(texts))
    if not place.exists():
        begun = time.perf_counter()
        Index.create(place, texts, chosen.model)
        report["build_seconds"] = round(time.perf_counter() - begun, 1)
        report["build_peak_mb"] = _peak()
    index = Index.open(place)
    if chosen.bm25s:
        report["bm25s"] = _beside_bm25s(index, texts, queries[: chosen.bm25s])
    del texts
    report["disk_mb"] = _megabytes(place, "*")
    report["words_mb"] = _megabytes(place, "words.*")
    for mode in ("semantic", "words", "hybrid"):
        report[mode] = _times(index, queries, chosen.batch, mode)
    report["peak_mb"] = _peak()
    return report


def _times(index: Index, queries: Sequence[str], batch: int, mode: Any) -> dict[str, float]:
    first = _seconds(index, queries[:1], mode)
    _seconds(index, queries[:batch], mode)
    parts = [queries[begin : begin + batch] for begin in range(0, len(queries), batch)]
    seconds = [sum(_seconds(index, part, mode) for part in parts) for _ in range(3)]
    alone = sorted(_seconds(index, [query], mode) for query in queries[:ALONE])
    return {
        "queries_per_second": round(len(queries) / statistics.median(seconds)),
        "alone_p50_ms": round(1_000 * statistics.median(alone), 2),
        "alone_p95_ms": round(1_000 * alone[int(0.95 * len(alone))], 2),
        "first_ms": round(1_000 * first, 1),
    }


def _beside_bm25s(
    index: Index, texts: Sequence[str], queries: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Returns the milliseconds of processor time that a query takes, by hits and by whom."""
    import bm25s

    other = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    other.index([words_of(text) for text in texts], show_progress=False)
    tokens = [words_of(query) for query in queries]
    found: dict[str, dict[str, float]] = {}
    for hits in (TOP, DEPTH):
        begun = time.process_time()
        other.retrieve(tokens, k=hits, show_progress=False, n_threads=1)
        between = time.process_time()
        index.search(list(queries), hits, mode="words")
        taken = (between - begun, time.process_time() - between)
        names = ("bm25s", "rejoinder")
        milliseconds = (round(1_000 * each / len(queries), 2) for each in taken)
        found[f"{hits} hits"] = dict(zip(names, milliseconds, strict=True))
    return found


def _texts(folder: Path) -> Iterable[str]:
    pairs, seen = open_pairs(folder), dict[str, None]()
    for split in ("train", "dev", "test"):
        for frame in pairs.iter_frames(split, ["input", "response"]):
            for column in frame.columns:
                seen.update(dict.fromkeys(frame.get_column(column)))
    return seen


def _seconds(index: Index, queries: Sequence[str], mode: Any) -> float:
    begun = time.perf_counter()
    index.search(list(queries), mode=mode)
    return time.perf_counter() - begun


def _megabytes(place: Path, pattern: str) -> float:
    return round(sum(f.stat().st_size for f in place.rglob(pattern) if f.is_file()) / 1e6, 1)


def _peak() -> int:
    """Returns the peak of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
