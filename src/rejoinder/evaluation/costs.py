"""What embeddings cost: time, processor time, memory and energy, and speeds of reference."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from rejoinder.io.files.system import joules, peak_memory
from rejoinder.protocols import Encodes, Prepares

_PARTS = (20, 80, 400, 1_500, 6_000, 12_000)
"""Numbers of reference sentences in the parts that are encoded one after the other."""
_WORDS = (4, 24)


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


@cache
def _reference() -> list[str]:
    """Returns sentences that are always the same.

    The words are those of `rejoinder-small`, drawn about as often as words are used (Zipf's law).
    """
    model = files("rejoinder").joinpath("data/models/rejoinder-small/vocabulary.txt")
    words = np.array(model.read_text("utf-8").split())
    generator = np.random.default_rng(0)
    lengths = generator.integers(*_WORDS, sum(_PARTS), endpoint=True)
    ranks = (len(words) ** generator.random(lengths.sum())).astype(np.int64) - 1
    return [" ".join(part) for part in np.split(words[ranks], np.cumsum(lengths)[:-1])]


def reference_speed(encoder: Encodes) -> float:
    """Returns sentences a second of an encoder on 20,000 sentences that are always the same.

    Larger and larger parts of them are encoded until one takes a second; its speed counts. Divided
    by that of another encoder on the same machine, it compares across machines.
    """
    texts, done, meter = _reference(), 0, Meter()
    if isinstance(encoder, Prepares):
        encoder.prepare("reference", texts)
    for count in _PARTS:
        meter = Meter()
        with meter.running(count):
            encoder.encode(texts[done : done + count])
        done += count
        if meter.seconds > 1:
            break
    return round(meter.sentences / meter.seconds, 1)
