"""What embeddings cost: time, processor time, memory and energy, and speeds of reference."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from rejoinder.io.files.system import joules, peak_memory
from rejoinder.protocols import Encodes, Prepares

REFERENCE_TEXTS = 20_000
"""Number of sentences that the reference encoders encode, at most 24 words each."""
_WORDS = (4, 24)
_WARM_UP = 1_000


@dataclass
class Meter:
    """Adds up what calls of an encoder cost."""

    sentences: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Of all threads of this process."""
    joules: float = 0.0
    """Of the whole machine; 0 where the system does not let it be read."""
    dimensions: int = 0

    @contextmanager
    def running(self, sentences: int) -> Iterator[None]:
        """Counts what the block costs, which encodes that many `sentences`."""
        wall, processor, energy = time.perf_counter(), time.process_time(), joules()
        yield
        self.joules += max(joules() - energy, 0.0)  # the counter begins anew from time to time
        self.processor_seconds += time.process_time() - processor
        self.seconds += time.perf_counter() - wall
        self.sentences += sentences

    def cost(self) -> dict[str, float]:
        """Returns what was counted, in seconds, joules and bytes, empty without a sentence.

        `peak_bytes` is the most memory that this process had until now.
        """
        if not self.sentences:
            return {}
        whole = {**vars(self), "peak_bytes": peak_memory()}
        return {key: round(value, 4) for key, value in whole.items() if value}


def speed(costs: Iterable[Mapping[str, float]]) -> float | None:
    """Returns sentences a second over all of the `costs`, None if none was encoded."""
    known = [cost for cost in costs if cost.get("seconds")]
    seconds = sum(cost["seconds"] for cost in known)
    return sum(cost["sentences"] for cost in known) / seconds if seconds else None


def reference_speeds(encoders: Mapping[str, Encodes]) -> dict[str, float]:
    """Returns sentences a second of encoders, by name, on sentences that are always the same.

    Speeds of other encoders on the same machine, divided by these, compare across machines. The
    words are those of `rejoinder-small`, drawn about as often as words are used (Zipf's law).
    """
    model = files("rejoinder").joinpath("data/models/rejoinder-small/vocabulary.txt")
    words = np.array(model.read_text("utf-8").split())
    generator = np.random.default_rng(0)
    lengths = generator.integers(*_WORDS, REFERENCE_TEXTS, endpoint=True)
    ranks = (len(words) ** generator.random(lengths.sum())).astype(np.int64) - 1
    texts = [" ".join(part) for part in np.split(words[ranks], np.cumsum(lengths)[:-1])]
    speeds = {}
    for name, encoder in encoders.items():
        if isinstance(encoder, Prepares):
            encoder.prepare("reference", texts)
        encoder.encode(texts[:_WARM_UP])
        meter = Meter()
        with meter.running(len(texts)):
            encoder.encode(texts)
        speeds[name] = round(len(texts) / meter.seconds, 1)
    return speeds
