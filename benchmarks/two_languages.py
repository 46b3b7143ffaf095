"""Conversations in two languages: what fine-tuning keeps of each, and what is suggested.

    python benchmarks/two_languages.py help --data ../shared/data
    python benchmarks/two_languages.py desk --models rejoinder-multi --shares both

`help`: headings of LibreOffice's help and the paragraph below each. English and German have a half
of the pairs each; a model is fine-tuned on one, on both, and on one with a tenth of the other. P@1
is that of the same 548 test headings in each language, among the paragraphs of both.

`desk`: a made-up help desk of 12 topics. Four of the six ways to ask are the past and what a model
is fine-tuned on; the first suggestion to the other two is right if it is the answer of the topic in
the language of the message. Three splits.

Prints a line of JSON for each model and share.
"""

import argparse
import hashlib
import json
import random
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from rejoinder import SentenceEncoder, Suggestions, finetune
from rejoinder.corpus.texts import Entry
from rejoinder.io.formats.compression import decompressed

Pair = tuple[str, str]
Rows = Sequence[Pair]
SHARES = {"en": (1, 0), "de": (0, 1), "both": (1, 1), "10:1": (1, 0.1), "1:10": (0.1, 1)}
LANGUAGES = "en", "de"
HELD_OUT = (0, 1), (2, 3), (4, 5)
DESK = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PAST = 400
"""Messages of a language in the past of the desk, times its share."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("help", "desk"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--models", nargs="+", default=["rejoinder-base", "rejoinder-multi"])
    parser.add_argument("--shares", nargs="+", default=[*SHARES], choices=[*SHARES])
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for model in chosen.models:
        if chosen.what == "help":
            train, test = help_pairs(chosen.data / "parallel/more/libreoffice_help.jsonl.zst")
            shown(model=model, share="before", **found_first(model, test))
        for name in chosen.shares:
            with tempfile.TemporaryDirectory() as work:
                if chosen.what == "help":
                    pairs = mixed(train, SHARES[name])
                    tune(pairs, model, Path(work), chosen.seed)
                    found: dict[str, float | str] = {**found_first(Path(work) / "model", test)}
                else:
                    found = answered(model, SHARES[name], Path(work), chosen.seed)
            shown(model=model, share=name, **found)


def shown(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def tune(pairs: Rows, model: str, work: Path, seed: int) -> None:
    finetune(
        pairs, out=work / "model", model=model, threads=1, force=True, seed=seed, overwrite=True
    )


def part_of(text: str) -> float:
    """Returns a number from 0 to 1 that follows from a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def help_pairs(path: Path) -> tuple[Sequence[Rows], Sequence[Rows]]:
    """Returns headings and paragraphs to train on and to test with, in English and in German."""
    lines = b"".join(decompressed(path)).splitlines()
    rows = [row for row in map(json.loads, lines) if row["lang"] == "en-de"]
    seen = set[str]()
    train: tuple[list[Pair], list[Pair]] = ([], [])
    test: tuple[list[Pair], list[Pair]] = ([], [])
    for above, below in pairwise(rows):
        heading = above["sentence1"]
        is_heading = 2 <= len(heading.split()) <= 12
        if (
            not is_heading
            or heading.rstrip().endswith((".", ":", ","))
            or heading in seen
            or len(below["sentence1"].split()) < 8
        ):
            continue
        seen.add(heading)
        pairs = [(above[side], below[side]) for side in ("sentence1", "sentence2")]
        if part_of(heading) < 0.15:
            for kept, pair in zip(test, pairs, strict=True):
                kept.append(pair)
        else:
            side = int(part_of("z" + below["sentence1"]) >= 0.5)
            train[side].append(pairs[side])
    return train, test


def mixed(train: Sequence[Rows], shares: Sequence[float]) -> Rows:
    """Returns a share of the pairs of each language."""
    return [
        pair
        for rows, share in zip(train, shares, strict=True)
        for pair in rows
        if part_of("t" + pair[0]) < share
    ]


def found_first(model: str | Path, test: Sequence[Rows]) -> dict[str, float]:
    """Returns P@1 of each language, among the replies of both."""
    encoder = SentenceEncoder.load(model)
    replies = list(dict.fromkeys(reply for rows in test for _, reply in rows))
    embeddings = encoder.encode_response(replies)
    scores = {}
    for language, rows in zip(LANGUAGES, test, strict=True):
        best = (encoder.encode([message for message, _ in rows]) @ embeddings.T).argmax(axis=1)
        pairs = set(rows)
        right = [(row[0], replies[at]) in pairs for row, at in zip(rows, best, strict=True)]
        scores[language] = round(float(np.mean(right)), 3)
    return scores


def asked(language: str, held: Sequence[int], count: int) -> Iterator[tuple[str, str]]:
    """Yields questions to the desk in other words than those held out, and their answers."""
    draw = random.Random(f"{'ab'[language == 'de']}0{held}")  # noqa: S311 -- no secret
    for _ in range(count):
        topic = draw.choice(DESK["topics"])[language]
        way = draw.choice([one for at, one in enumerate(topic["asked"]) if at not in held])
        opening, ending = (draw.choice(DESK[name][language]) for name in ("openings", "endings"))
        yield opening + way + ending, topic["answer"]


def answered(model: str, shares: Sequence[float], work: Path, seed: int) -> dict[str, float | str]:
    """Returns how many first suggestions are right, of all, before and after fine-tuning."""
    right, tried = Counter[str](), Counter[str]()
    for held in HELD_OUT:
        counts = [int(PAST * share) for share in shares]
        pairs = [
            pair
            for language, count in zip(LANGUAGES, counts, strict=True)
            for pair in asked(language, held, count)
        ]
        tune(pairs, model, work, seed)
        past = [entry for number, pair in enumerate(pairs) for entry in entries(number, *pair)]
        for when, encoder in (("before", model), ("after", str(work / "model"))):
            opened = Suggestions.open(past, encoder)
            for topic, language, at in product(DESK["topics"], LANGUAGES, held):
                [first] = opened.suggest(topic[language]["asked"][at], 1).suggestions
                tried[f"{language} {when}"] += 1
                right[f"{language} {when}"] += first.reply == topic[language]["answer"]
    return {name: f"{right[name]} of {count}" for name, count in tried.items()}


def entries(number: int, question: str, answer: str) -> Iterator[Entry]:
    yield Entry(f"q{number}", question, {"author": "customer", "thread": str(number)})
    about = {"author": "desk", "thread": str(number), "answers": f"q{number}"}
    yield Entry(f"a{number}", answer, about)


if __name__ == "__main__":
    main()
