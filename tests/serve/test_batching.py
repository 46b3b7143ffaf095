"""Requests share batches, and each gets its own rows."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rejoinder.serve.batching import Batcher
from rejoinder.serve.errors import RequestError


class Recorder:
    """An encode function that remembers its batches; a text's embedding is its length."""

    def __init__(self):
        self.batches = []

    def __call__(self, texts):
        self.batches.append(list(texts))
        if "bad" in texts:
            raise ValueError("bad")
        return np.array([[len(text)] for text in texts], np.float32)


def batcher(**changed):
    return Batcher(**{"max_batch": 100, "max_queue": 1_000, **changed})


async def held_back(queue, work):
    """Starts `work` while the worker is busy, and returns the results."""
    held, leave = threading.Event(), threading.Event()
    busy = asyncio.create_task(queue.call(lambda: (held.set(), leave.wait(120)), 0))
    await asyncio.to_thread(held.wait, 30)
    tasks = [asyncio.create_task(one) for one in work]
    await asyncio.sleep(0)
    leave.set()
    await busy
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_waiting_requests_share_a_batch_and_get_their_rows():
    queue, encode = batcher(), Recorder()
    texts = [["a"], ["bb", "ccc"], [], ["dddd"]]
    rows = asyncio.run(held_back(queue, [queue.encode(encode, some) for some in texts]))
    assert [part[:, 0].tolist() for part in rows[:2]] == [[1], [2, 3]]
    assert rows[2].shape == (0, 1)
    assert rows[3].tolist() == [[4]]
    assert encode.batches == [["a", "bb", "ccc", "dddd"]]


def test_a_batch_holds_no_more_than_its_limit_and_one_function():
    first, second = Recorder(), Recorder()
    queue = batcher(max_batch=3)
    work = [(first, 2), (first, 1), (first, 5), (second, 1), (first, 1)]
    asyncio.run(held_back(queue, [queue.encode(function, ["a"] * n) for function, n in work]))
    assert [len(batch) for batch in first.batches] == [3, 5, 1]
    assert [len(batch) for batch in second.batches] == [1]


def test_an_error_goes_to_the_request_that_caused_it():
    queue, encode = batcher(), Recorder()
    work = [queue.encode(encode, [text]) for text in ("a", "bad", "ccc")]
    first, bad, third = asyncio.run(held_back(queue, work))
    assert (first.tolist(), third.tolist()) == ([[1]], [[3]])
    assert isinstance(bad, ValueError)


def test_a_full_queue_takes_no_more():
    queue, encode = batcher(max_queue=3), Recorder()
    work = [queue.encode(encode, ["a"] * n) for n in (2, 2, 1)]
    two, refused, one = asyncio.run(held_back(queue, work))
    assert (len(two), len(one)) == (2, 1)
    assert isinstance(refused, RequestError)
    assert refused.status_code == 429
    assert queue.waiting == 0


def test_work_of_a_client_that_left_is_skipped():
    queue, encode = batcher(), Recorder()

    held, leave = threading.Event(), threading.Event()

    async def main():
        busy = asyncio.create_task(queue.call(lambda: (held.set(), leave.wait(120)), 0))
        await asyncio.to_thread(held.wait, 30)
        gone = asyncio.create_task(queue.encode(encode, ["gone"]))
        stays = asyncio.create_task(queue.encode(encode, ["stays"]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        leave.set()
        await busy
        assert (await stays).tolist() == [[5]]

    asyncio.run(main())
    assert encode.batches == [["stays"]]


def test_clients_share_batches_and_get_their_own_vectors(server, encoder):
    texts = [[f"client {n} says {word}" for word in ("how", "old")] for n in range(64)]

    def ask(some):
        return server.client.post("/embed", json={"inputs": some}).json()

    sizes = []
    observed = server.service.batcher._observe
    server.service.batcher._observe = sizes.append
    with ThreadPoolExecutor(16) as pool:
        with server.held():
            answers = pool.map(ask, texts)
            while server.service.batcher.waiting < 32:
                threading.Event().wait(0.01)
        rows = list(answers)
    server.service.batcher._observe = observed
    assert max(sizes) >= 32
    assert sum(sizes) == 128
    for some, got in zip(texts, rows, strict=True):
        assert np.allclose(got, encoder.encode(some), atol=1e-6)
