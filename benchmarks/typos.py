"""What one typing error does to the vector of a sentence.

    python benchmarks/typos.py rejoinder-base spelt/ --data ../shared/data
    python benchmarks/typos.py spelt/ --data ../shared/data --sentences file.txt --speed

The longest word of a sentence, of at least five letters and in at least five of the sentences,
gets one error, in turn: two neighbouring letters swapped, one dropped, doubled, or that of a
neighbouring key. Prints the cosine of the sentence with and without it, and in how many cases the
known word nearest to the misspelt one is the right one; an error that makes another known word
counts as wrong. Sentences are those of STS-B dev by default. `--speed` encodes them in parts of
4,096, and prints processor time per sentence and the share of unknown words.

Then come words with a capital of STS-B dev and test that the model does not know: how many it reads
as others, alone and in their sentence. `--words FILE` has more, a line each, such as names.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rejoinder.corpus.texts import entries_of
from rejoinder.datasets.semeval import read_stsb
from rejoinder.evaluation.tasks.similarity import KINDS, WORD, misspell
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.text.features import WordFeatures
from rejoinder.text.normalize import tokens_of

_NAME = re.compile(r"(?<![\w'])[A-Z][A-Za-z]{2,}(?![\w'])")
_OFTEN = 5
_PART = 4_096


class Typo(NamedTuple):
    """A sentence with an error."""

    kind: str
    sentence: str
    wrong: str
    word: str
    misspelt: str


def typos(sentences: Sequence[str], count: int, seed: int) -> list[Typo]:
    """Returns `count` sentences with an error, or as many as there are."""
    draw, made = random.Random(seed), list[Typo]()  # noqa: S311
    often = Counter(word for text in sentences for word in set(tokens_of(text)))
    for text in draw.sample(sentences, len(sentences)):
        words = [word for word in WORD.findall(text) if often[word] >= _OFTEN]
        if not words or len(made) == count:
            continue
        word, kind = max(words, key=len), KINDS[len(made) % len(KINDS)]
        misspelt = misspell(word, kind, draw)
        wrong = re.sub(rf"(?<![\w']){word}(?![\w'])", misspelt, text, count=1)
        made.append(Typo(kind, text, wrong, word, misspelt))
    return made


def report(encoder: SentenceEncoder, made: Sequence[Typo]) -> dict[str, float]:
    """Returns the figures of an encoder."""
    one, other = (
        encoder.encode(list(side))
        for side in zip(*((t.sentence, t.wrong) for t in made), strict=True)
    )
    cosines = encoder.similarity_pairwise(one, other)
    features = encoder._model.features
    found = {"median cosine": np.median(cosines), "10th percentile": np.quantile(cosines, 0.1)}
    if isinstance(features, WordFeatures):
        words = features.vocabulary.words
        hits = encoder.search([t.misspelt for t in made], list(words), top_k=1)
        right = np.array([words[hit.index] == t.word for [hit], t in zip(hits, made, strict=True)])
        kinds = np.array([t.kind for t in made])
        found["nearest is right"] = right.mean()
        found |= {f"... {kind}": right[kinds == kind].mean() for kind in KINDS}
        found["makes a known word"] = np.mean(
            [t.misspelt in features.vocabulary.index for t in made]
        )
    return {name: float(value) for name, value in found.items()}


def speed(encoder: SentenceEncoder, sentences: Sequence[str]) -> dict[str, float]:
    """Returns the processor time of the first and a second time through the sentences."""
    parts = [list(sentences[low : low + _PART]) for low in range(0, len(sentences), _PART)]
    encoder.encode(parts[0])
    found = {}
    for name in ("first time", "again"):
        begun = time.process_time()
        for part in parts[1:]:
            encoder.encode(part)
        count = sum(map(len, parts[1:]))
        found[f"µs per sentence, {name}"] = (time.process_time() - begun) / count * 1e6
    features = encoder._model.features
    if isinstance(features, WordFeatures):
        words = [word for text in sentences for word in tokens_of(text)]
        index = features.vocabulary.index
        found["% unknown words"] = 100 * sum(word not in index for word in words) / len(words)
    return found


def names(encoder: SentenceEncoder, data: Path, words: Path | None) -> dict[str, str]:
    """Returns how many words with a capital are read as others."""
    features, found = encoder._model.features, dict[str, str]()
    if not isinstance(features, WordFeatures):
        return {}
    places: dict[str, str] = {}
    for pairs in (read_stsb(data, "dev"), read_stsb(data, "test")):
        for text in (*pairs.first, *pairs.second):
            for word in _NAME.findall(text):
                places.setdefault(word, text)
    given = [] if words is None else words.read_text("utf-8").split()
    for name, rows in {
        "STS-B": places,
        "in their sentence": places,
        "words": {word: word for word in given},
    }.items():
        unknown = [word for word in rows if word.lower() not in features.vocabulary.index]
        texts = [rows[word] if name == "in their sentence" else word for word in unknown]
        read = encoder.read_as(texts)
        others = sum(word.lower() in row for word, row in zip(unknown, read, strict=True))
        found[name] = f"{others} of {len(unknown)}"
    return found


def main() -> None:
    """Prints a table with a column per model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", help="Names or folders of models.")
    parser.add_argument("--data", type=Path, required=True, help="Folder of data sets.")
    parser.add_argument("--sentences", type=Path, help="File of texts, as encode reads it.")
    parser.add_argument("--columns", help="Of the file, as encode takes it.")
    parser.add_argument("--most", type=int, default=80_000, help="Texts that are read of the file.")
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--words", type=Path, help="Names that the models may not know.")
    args = parser.parse_args()
    if args.sentences is None:
        pairs = read_stsb(args.data, "dev")
        sentences = list(dict.fromkeys([*pairs.first, *pairs.second]))
    else:
        entries = islice(entries_of(args.sentences, args.columns), args.most)
        sentences = [entry.text for entry in entries]
    made = typos(sentences, args.count, args.seed)
    print(f"n = {len(made)}, of {len(sentences):,} texts, seed {args.seed}")
    for name in args.models:
        encoder = SentenceEncoder.load(name, threads=1)
        found = report(encoder, made) | (speed(encoder, sentences) if args.speed else {})
        print(name, ", ".join(f"{key} {value:.3f}" for key, value in found.items()), sep=": ")
        print("read as other words", names(encoder, args.data, args.words), sep=": ")


if __name__ == "__main__":
    main()
