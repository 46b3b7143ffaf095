"""Questions asked again, among chat: groups that are found, and how pure they are.

    python benchmarks/asked.py --data ../shared/data --chat index/
    python benchmarks/asked.py --data ../shared/data --chat index/ --read 20

Ten messages of each group of `banking77` and `clinc150`, each by another person, are scattered
among 20,000 messages of an index. A group is found if a question that is listed has most of its
messages from it. Precision is the share of the messages of such questions that are of their group,
among all questions with a message of a group. `--read` prints the first questions of the index
alone, to be read.
"""

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from rejoinder.conversations.answers import with_answers
from rejoinder.conversations.asked import Asked, asked_again
from rejoinder.conversations.collection import open_collection
from rejoinder.corpus.texts import Entry
from rejoinder.datasets.groups import read_groups

SETS = ("banking77", "clinc150")
EACH, CHAT, WAYS = 10, 20_000, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--chat", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", type=int, default=0)
    chosen = parser.parse_args()
    opened = open_collection(chosen.chat)
    if chosen.read:
        for one in asked_again(with_answers(opened))[: chosen.read]:
            print(f"{one.authors} people, {one.count} times: {one.text}")
            for way in one.ways[:WAYS]:
                print(f"    {' '.join(way.split())}")
        return
    draw = random.Random(chosen.seed)  # noqa: S311
    entries = [
        Entry(str(at), text, {"author": f"somebody {at % 999}"})
        for at, text in enumerate(draw.sample(list(opened.texts), CHAT))
    ]
    for name in SETS:
        groups = read_groups(chosen.data / f"paraphrases/{name}_groups.jsonl.zst")
        for group in range(len(groups)):
            texts = draw.sample(list(groups[group]), EACH)
            entries += [
                Entry(f"{name} {group}/{at}", text, {"author": f"person {at}"})
                for at, text in enumerate(texts)
            ]
    draw.shuffle(entries)
    found = asked_again(open_collection(entries, opened.encoder))
    count = (len(entries) - CHAT) // EACH
    print(json.dumps({"groups": count, "seed": chosen.seed, **judged(found, count)}))


def judged(found: list[Asked], count: int) -> dict[str, float]:
    """Returns the share of groups that are found, the precision, and the number of questions."""
    seen, right, listed, questions = set[str](), 0, 0, 0
    for one in found:
        groups = Counter(name.partition("/")[0] for name in one.ids if "/" in name)
        if not groups:
            continue
        best, most = groups.most_common(1)[0]
        right, listed, questions = right + most, listed + len(one.ids), questions + 1
        if 2 * most > len(one.ids) and most > 1:
            seen.add(best)
    shares = {"recall": len(seen) / count, "precision": right / max(listed, 1)}
    return {**{key: round(value, 3) for key, value in shares.items()}, "questions": questions}


if __name__ == "__main__":
    main()
