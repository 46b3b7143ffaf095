"""Encodes the texts of all requests in batches, in one thread.

Also defines the server's counters, in Prometheus' text format.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any

import prometheus_client as prometheus

from rejoinder.protocols import Embeddings
from rejoinder.serve.errors import RequestError

Encode = Callable[[list[str]], Embeddings]
"""Encodes texts to (N, D) embeddings. Requests with the same function share batches."""


@dataclass(frozen=True, eq=False, slots=True)
class _Job:
    """The work of one request: texts for an encode function or, without texts, a call."""

    function: Callable[..., Any]
    texts: Sequence[str] | None
    weight: int
    future: "asyncio.Future[Any]"


class Batcher:
    """A bounded queue with one worker thread. Only the event loop touches the queue.

    Requests that arrive while the worker encodes a batch form the next batch. No request waits for
    others.
    """

    def __init__(
        self, *, max_batch: int, max_queue: int, observe: Callable[[int], None] = lambda _: None
    ) -> None:
        """Starts the worker.

        Args:
            max_batch: Largest number of texts in a batch of several requests.
            max_queue: Largest number of texts in the queue.
            observe: Called by the worker with the number of texts of each batch.
        """
        self._max_batch, self._max_queue, self._observe = max_batch, max_queue, observe
        self._jobs: deque[_Job] = deque()
        self.waiting = 0
        """Number of texts in the queue."""
        self._is_busy = False
        # an executor takes a tenth longer for a single client
        self._batches: SimpleQueue[tuple[list[_Job], asyncio.AbstractEventLoop]] = SimpleQueue()
        Thread(target=self._work, name="rejoinder-batches", daemon=True).start()

    async def encode(self, function: Encode, texts: Sequence[str]) -> Embeddings:
        """Returns `function(texts)`, computed together with other requests.

        Raises:
            RequestError: the queue is full.
        """
        rows: Embeddings = await self._put(function, texts, len(texts))
        return rows

    async def call(self, function: Callable[[], Any], weight: int = 1) -> Any:
        """Returns `function()`, called by the worker between two batches.

        It counts as `weight` texts in the queue. Raises what `encode` and the function raise.
        """
        return await self._put(function, None, weight)

    async def _put(self, function: Callable[..., Any], texts: Sequence[str] | None, w: int) -> Any:
        if self.waiting + w > self._max_queue:
            raise RequestError(429, "the queue of texts is full; send the request again later.")
        loop = asyncio.get_running_loop()
        job = _Job(function, texts, w, loop.create_future())
        self._jobs.append(job)
        self.waiting += w
        # not at once: requests that have just arrived join (64 clients: 24 a batch instead of 18)
        loop.call_soon(self._start, loop)
        return await job.future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Gives the worker the next batch, unless it is busy."""
        if not self._is_busy and (batch := self._next_batch()):
            self._is_busy = True
            self._batches.put((batch, loop))

    def _next_batch(self) -> list[_Job]:
        batch: list[_Job] = []
        texts = 0
        while self._jobs:
            job = self._jobs[0]
            alone = job.texts is None or (batch and batch[0].function != job.function)
            if batch and (alone or texts + job.weight > self._max_batch):
                break
            self._jobs.popleft()
            self.waiting -= job.weight
            if job.future.cancelled():  # the client has left
                continue
            batch.append(job)
            texts += job.weight
            if job.texts is None:
                break
        return batch

    def _work(self) -> None:
        while True:
            batch, loop = self._batches.get()
            results = self._results(batch)
            with suppress(RuntimeError):  # the loop is closed: no client waits
                loop.call_soon_threadsafe(self._finish, batch, results, loop)

    def _results(self, batch: list[_Job]) -> list[Any]:
        """Returns the result of each job, or the exception that it raised."""
        try:
            if batch[0].texts is None:
                return [batch[0].function()]
            texts = [text for job in batch for text in job.texts or ()]
            self._observe(len(texts))
            rows = batch[0].function(texts)
        except Exception as error:
            if len(batch) == 1:
                return [error]
            # an error in one request must not affect the others
            return [result for job in batch for result in self._results([job])]
        ends = accumulate((job.weight for job in batch), initial=0)
        return [rows[low:high] for low, high in pairwise(ends)]

    def _finish(
        self, batch: list[_Job], results: list[Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._is_busy = False
        self._start(loop)
        for job, result in zip(batch, results, strict=True):
            if job.future.cancelled():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096)


class Metrics:
    """The counters of one server."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        """Starts at zero. `waiting` returns the number of texts in the queue."""
        self._registry = registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        prometheus.PlatformCollector(registry=registry)
        self._requests = prometheus.Counter(
            "rejoinder_requests_total",
            "Requests answered, by route and status.",
            ("route", "status"),
            registry=registry,
        )
        self._seconds = prometheus.Histogram(
            "rejoinder_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.batches = prometheus.Histogram(
            "rejoinder_batch_texts",
            "Texts that were encoded at a time.",
            buckets=_TEXTS,
            registry=registry,
        )
        queued = "Texts that wait for the encoder."
        prometheus.Gauge("rejoinder_queue_texts", queued, registry=registry).set_function(waiting)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Returns all values in Prometheus' text format."""
        return prometheus.generate_latest(self._registry)
