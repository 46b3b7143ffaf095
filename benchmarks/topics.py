"""Compares the topics of `rejoinder.cluster` with labels, and with those of other libraries.

    pip install bertopic evoc fast-plscan   # for --ways bertopic evoc plscan
    python benchmarks/topics.py --data ../shared/data --sets clinc150 banking77 --stability 3

All ways get the same embeddings. For each, it prints: topics; the share of texts without one; the
adjusted Rand index (ARI) and adjusted mutual information (AMI) with the labels, where texts without
a topic are one more topic, and AMI among texts with a topic; the mean ARI of runs on samples of
90 %, by the texts that both have; and seconds, without loading libraries and with all that the way
does on its first call, and CPU seconds.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations.collection import Collection, open_collection
from rejoinder.conversations.topics import cluster
from rejoinder.io.formats.compression import decompressed

Labels = NDArray[np.int64]
Way = Callable[[Collection, int], Labels]
GROUPS = {"clinc150": "clinc150_groups", "banking77": "banking77_groups"}
SAMPLE, SEED = 0.9, 1


def main() -> None:
    arguments = _arguments()
    for name in arguments.sets:
        texts, labels = read_set(arguments.data, name, arguments.texts)
        collection = open_collection(texts, threads=arguments.threads)
        for way in arguments.ways:
            row = measured(WAYS[way], collection, labels, arguments.stability)
            print(json.dumps({"set": name, "texts": len(texts), "way": way, **row}), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["clinc150"])
    parser.add_argument("--ways", nargs="+", default=["rejoinder"], choices=WAYS)
    parser.add_argument("--texts", type=int, help="texts of a file of conversations, at most")
    parser.add_argument("--stability", type=int, default=0, help="samples to compare")
    parser.add_argument("--threads", type=int)
    return parser.parse_args()


def read_set(data: Path, name: str, most: int | None) -> tuple[list[str], list[str]]:
    """Returns texts with their labels: intents, or the `source` of messages."""
    folder = "paraphrases" if name in GROUPS else "conversations"
    path = data / folder / f"{GROUPS.get(name, name)}.jsonl.zst"
    rows = [json.loads(line) for line in b"".join(decompressed(path)).splitlines()]
    if name in GROUPS:
        pairs = [(text, row["group"]) for row in rows for text in row["sentences"]]
    else:
        pairs = [(row["body"], row["subreddit"]) for row in rows if row["body"].strip()]
    if most is not None and most < len(pairs):
        drawn = np.random.default_rng(SEED).choice(len(pairs), most, replace=False)
        pairs = [pairs[row] for row in np.sort(drawn).tolist()]
    return [text for text, _ in pairs], [label for _, label in pairs]


def measured(way: Way, collection: Collection, labels: list[str], samples: int) -> dict[str, Any]:
    """Returns what the module's docstring lists."""
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

    names = len(set(labels))
    numbers = np.unique(labels, return_inverse=True)[1]
    begun, cpu = time.perf_counter(), _cpu_seconds()
    found = way(collection, names)
    seconds, cpu = time.perf_counter() - begun, _cpu_seconds() - cpu
    inside = found >= 0
    row = {
        "labels": names,
        "topics": len({*found[inside].tolist()}),
        "without": round(1 - float(inside.mean()), 3),
        "ari": round(adjusted_rand_score(numbers, found), 3),
        "ami": round(adjusted_mutual_info_score(numbers, found), 3),
        "ami_inside": round(adjusted_mutual_info_score(numbers[inside], found[inside]), 3),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
    }
    if samples:
        runs = [_sampled(way, collection, names, number) for number in range(samples)]
        scores = [adjusted_rand_score(*_both(one, two)) for one, two in combinations(runs, 2)]
        row["stability"] = round(float(np.mean(scores)), 3)
    return row


def _sampled(way: Way, collection: Collection, names: int, number: int) -> Labels:
    """Returns the topics of a sample, -2 for the texts that are not in it."""
    draws = np.random.default_rng([SEED, number])
    kept = np.flatnonzero(draws.random(len(collection)) < SAMPLE)
    found = np.full(len(collection), -2, np.int64)
    found[kept] = way(_part(collection, kept), names)
    return found


def _part(collection: Collection, kept: Labels) -> Collection:
    rows = kept.tolist()
    return Collection(
        collection.name, [collection.ids[row] for row in rows],
        [collection.texts[row] for row in rows], collection.embeddings[kept],
        [collection.about[row] for row in rows], {}, of_responses=False,
        open_encoder=lambda: collection.encoder,
    )  # fmt: skip


def _both(one: Labels, two: Labels) -> tuple[Labels, Labels]:
    common = (one > -2) & (two > -2)
    return one[common], two[common]


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _rejoinder(collection: Collection, _names: int) -> Labels:
    return cluster(collection).labels


def _bertopic(collection: Collection, _names: int) -> Labels:
    """Its defaults: UMAP to five dimensions, HDBSCAN with clusters of ten and more, c-TF-IDF."""
    from bertopic import BERTopic
    from umap import UMAP

    reduction = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    model = BERTopic(umap_model=reduction, calculate_probabilities=False)
    found, _ = model.fit_transform(collection.texts, collection.embeddings)
    return np.asarray(found, np.int64)


def _reduced(collection: Collection, dim: int) -> NDArray[Any]:
    from sklearn.decomposition import PCA

    reduced: NDArray[Any] = PCA(dim, random_state=0).fit_transform(collection.embeddings)
    lengths = np.linalg.norm(reduced, axis=1, keepdims=True)
    return np.asarray(reduced / np.maximum(lengths, 1e-9))


def _k_means(collection: Collection, names: int) -> Labels:
    """Mini-batch k-means, which is told the number of labels."""
    from sklearn.cluster import MiniBatchKMeans

    way = MiniBatchKMeans(names, random_state=0, n_init=3, batch_size=4_096)
    return np.asarray(way.fit_predict(_reduced(collection, 100)), np.int64)


def _hdbscan(collection: Collection, _names: int) -> Labels:
    from sklearn.cluster import HDBSCAN

    way = HDBSCAN(10, min_samples=5, copy=True)
    return np.asarray(way.fit_predict(_reduced(collection, 20)), np.int64)


def _plscan(collection: Collection, _names: int) -> Labels:
    from fast_plscan import PLSCAN

    return np.asarray(PLSCAN().fit(_reduced(collection, 20)).labels_, np.int64)


def _evoc(collection: Collection, _names: int) -> Labels:
    from evoc import EVoC

    return np.asarray(EVoC(random_state=0).fit_predict(_reduced(collection, 100)), np.int64)


WAYS: dict[str, Way] = {
    "rejoinder": _rejoinder, "bertopic": _bertopic, "k-means": _k_means, "hdbscan": _hdbscan,
    "plscan": _plscan, "evoc": _evoc,
}  # fmt: skip


if __name__ == "__main__":
    main()
