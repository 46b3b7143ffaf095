"""Encodes the texts of all requests together, in one thread."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from rejoinder.protocols import Embeddings

Encode = Callable[[list[str]], Embeddings]
"""Texts to (N, D) embeddings. Requests with the same function are encoded together."""


class OverloadedError(Exception):
    """So many texts wait for the encoder that no more are taken."""


class StoppedError(Exception):
    """The server is stopping."""


@dataclass(frozen=True, eq=False, slots=True)
class _Job:
    """Work of one request: texts for an encode function, or (without texts) a call."""

    function: Callable[..., Any]
    texts: Sequence[str] | None
    weight: int
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


class Batcher:
    """A bounded queue in front of one worker thread.

    While the worker encodes a batch, requests queue up, and all of them make the next batch. A
    request therefore waits for others only if `max_wait` asks for it.
    """

    def __init__(
        self,
        *,
        max_batch: int,
        max_wait: float,
        max_queue: int,
        observe: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Starts the worker.

        Args:
            max_batch: Number of texts from which on a batch takes no further request.
            max_wait: Seconds that the first request of a batch may wait for others.
            max_queue: Most texts in the queue.
            observe: Called in the worker with the number of texts of each batch.
        """
        self._max_batch, self._max_wait, self._max_queue = max_batch, max_wait, max_queue
        self._observe = observe
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._stopped = False
        self._changed = threading.Condition()
        self._worker = threading.Thread(target=self._work, name="rejoinder-batches", daemon=True)
        self._worker.start()

    @property
    def waiting(self) -> int:
        """Number of texts in the queue."""
        return self._waiting

    async def encode(self, function: Encode, texts: Sequence[str]) -> Embeddings:
        """Returns `function(texts)`, computed together with the texts of other requests.

        Raises:
            OverloadedError: the queue is full.
            StoppedError: `close` was called.
        """
        rows: Embeddings = await self._put(function, texts, len(texts))
        return rows

    async def call(self, function: Callable[[], Any], weight: int = 1) -> Any:
        """Returns `function()`, called in the worker between two batches.

        `weight` is the number of texts that it counts as in the queue. Errors are those of `encode`
        and of the function.
        """
        return await self._put(function, None, weight)

    def close(self) -> None:
        """Lets the worker finish what is in the queue, and waits for it."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._worker.join()

    async def _put(self, function: Callable[..., Any], texts: Sequence[str] | None, w: int) -> Any:
        loop = asyncio.get_running_loop()
        job = _Job(function, texts, w, loop, loop.create_future())
        with self._changed:
            if self._stopped:
                raise StoppedError
            if self._waiting + w > self._max_queue:
                raise OverloadedError
            self._jobs.append(job)
            self._waiting += w
            self._changed.notify_all()
        return await job.future

    def _work(self) -> None:
        while batch := self._next_batch():
            # a client that went away has cancelled its future
            batch = [job for job in batch if not job.future.cancelled()]
            if batch:
                _deliver(batch, self._results(batch))

    def _next_batch(self) -> list[_Job]:
        """Waits for jobs that can be computed together; none means that the work is over."""
        with self._changed:
            while not self._jobs and not self._stopped:
                self._changed.wait()
            if self._max_wait and self._jobs:
                self._wait_for_more()
            batch: list[_Job] = []
            texts = 0
            while self._jobs:
                job = self._jobs[0]
                alone = job.texts is None or (batch and batch[0].function != job.function)
                if batch and (alone or texts + job.weight > self._max_batch):
                    break
                batch.append(self._jobs.popleft())
                texts += job.weight
                self._waiting -= job.weight
                if job.texts is None:
                    break
            return batch

    def _wait_for_more(self) -> None:
        end = time.monotonic() + self._max_wait
        while not self._stopped and self._waiting < self._max_batch:
            left = end - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    def _results(self, batch: list[_Job]) -> list[Any]:
        """Returns the result of each job, or the exception that it ends with."""
        try:
            if batch[0].texts is None:
                return [batch[0].function()]
            texts = [text for job in batch for text in job.texts or ()]
            self._observe(len(texts))
            rows = batch[0].function(texts)
        except Exception as error:
            if len(batch) == 1:
                return [error]
            # the others must not suffer for one request
            return [result for job in batch for result in self._results([job])]
        ends = accumulate((job.weight for job in batch), initial=0)
        return [rows[low:high] for low, high in pairwise(ends)]


def _deliver(batch: list[_Job], results: list[Any]) -> None:
    """Hands over the results in one step for each event loop, which is woken once."""
    for loop in {job.loop for job in batch}:
        pairs = [
            (job.future, result)
            for job, result in zip(batch, results, strict=True)
            if job.loop is loop
        ]
        try:
            loop.call_soon_threadsafe(_settle, pairs)
        except RuntimeError:  # the loop was closed: nobody waits any more
            continue


def _settle(pairs: "list[tuple[asyncio.Future[Any], Any]]") -> None:
    for future, result in pairs:
        if future.cancelled():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
