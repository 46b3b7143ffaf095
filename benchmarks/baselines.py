"""Train the baselines that need training, with gensim, on the train split of pairs.

    python benchmarks/baselines.py --pairs pairs/ --out baselines/

Writes `words.bin` (skip-gram word vectors, for baseline:average, sif and soft-cosine),
`sent2vec.bin` (the same format, for baseline:average) and `doc2vec.safetensors` (PV-DBOW, for
`doc2vec.py`). With more than one worker two runs differ.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import Word2Vec
from gensim.models.doc2vec import TaggedDocument
from safetensors.numpy import save

from doc2vec import untrained
from rejoinder.corpus.writer import open_pairs
from rejoinder_papers.baselines.words import tokens

SAMPLE = 1e-5
"""Frequency of a word, as a share of all words, above which training skips some occurrences."""

SENT2VEC: Mapping[str, Any] = {
    "sg": 0,
    "window": 1_000,
    "shrink_windows": False,
    "negative": 10,
    "sample": 1e-4,
    "alpha": 0.2,
}
"""Each word from the mean of all others of its text (Pagliardini et al. 2018), of words alone."""


def write_texts(pairs: Path, place: Path, most: int | None) -> list[str]:
    """Writes `most` of the different texts of the train split, a line each, and returns them."""
    seen: dict[str, None] = {}
    for frame in open_pairs(pairs).iter_frames("train", ["input", "response"]):
        for column in ("input", "response"):
            seen.update(dict.fromkeys(frame.get_column(column).to_list()))
    texts = list(seen)
    if most is not None:
        texts = texts[:: max(len(texts) // most, 1)][:most]
    with place.open("w", encoding="utf-8") as file:
        for text in texts:
            file.write(" ".join(tokens(text)) + "\n")
    return texts


def write_words(place: Path, corpus: Path, args: argparse.Namespace, **options: Any) -> None:
    """Trains word vectors on a file of texts."""
    begun = time.perf_counter()
    found = Word2Vec(
        corpus_file=str(corpus), vector_size=args.dim, min_count=5, epochs=args.epochs,
        workers=args.workers, seed=1, **options,
    ).wv  # fmt: skip
    found.save_word2vec_format(str(place), binary=True)
    minutes = (time.perf_counter() - begun) / 60
    print(f"{place.name}: {len(found):,} words, {minutes:.1f} minutes", flush=True)


def write_doc2vec(
    place: Path, texts: Iterable[str], *, dim: int = 300, epochs: int = 10, workers: int = 1
) -> None:
    """Train PV-DBOW and write what inference needs: the words, their counts, the output layer.

    With one worker, and PYTHONHASHSEED set, the same texts give the same model.
    """
    documents = [TaggedDocument(tokens(text), [row]) for row, text in enumerate(texts)]
    model = untrained(dim, sample=SAMPLE, epochs=epochs, workers=workers)
    model.build_vocab(documents)
    model.train(documents, total_examples=len(documents), epochs=epochs)
    words = model.wv.index_to_key
    counts = {word: int(model.wv.get_vecattr(word, "count")) for word in words}
    metadata = {"format": "rejoinder-doc2vec-1", "counts": json.dumps(counts)}
    place.write_bytes(save({"output": np.ascontiguousarray(model.syn1neg)}, metadata))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--texts", type=int, help="of word vectors; default: all")
    parser.add_argument("--documents", type=int, default=400_000, help="of PV-DBOW")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "texts.txt"
        texts = write_texts(args.pairs, corpus, args.texts)
        skip_gram = {"sg": 1, "window": 5, "negative": 5, "sample": 1e-4}
        write_words(args.out / "words.bin", corpus, args, **skip_gram)
        write_words(args.out / "sent2vec.bin", corpus, args, **SENT2VEC)
    texts = texts[: args.documents]
    begun = time.perf_counter()
    write_doc2vec(args.out / "doc2vec.safetensors", texts, dim=args.dim, workers=args.workers)
    minutes = (time.perf_counter() - begun) / 60
    print(f"doc2vec.safetensors: {len(texts):,} texts, {minutes:.1f} minutes")


if __name__ == "__main__":
    main()
