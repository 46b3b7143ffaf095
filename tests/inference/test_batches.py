"""Batches in threads: all of them, once each, and the libraries as they were afterwards."""

from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.outputs import each_batch
from rejoinder.io.files.storage import default_workers
from tiny_models import dan_model

LINES = [f"hello you {'are ' * (number % 7)}old" for number in range(3_000)]


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@settings(max_examples=30)
@given(st.integers(0, 5_000), st.integers(1, 2_000), st.integers(1, 4))
def test_each_place_is_worked_on_once(count, batch_size, workers):
    seen = np.zeros(count, int)

    def work(part):
        assert 0 < part.stop - part.start <= batch_size
        seen[part] += 1

    each_batch(count, batch_size, workers, work, show=False)
    assert (seen == 1).all()


def test_an_error_of_one_batch_is_raised():
    def work(part):
        if part.start == 600:
            raise InputError("the second")

    with pytest.raises(InputError, match="the second"):
        each_batch(3_000, 600, 2, work, show=False)
    assert 1 <= default_workers() <= 16


def test_the_number_of_threads_changes_no_result():
    model = dan_model()
    one = SentenceEncoder(model, threads=1).encode(LINES)
    for threads in (2, 3):
        several = SentenceEncoder(model, threads=threads)
        np.testing.assert_allclose(several.encode(LINES, batch_size=700), one, atol=1e-6)
    with pytest.raises(InputError, match="threads must be from 1 to 1,024; got 0"):
        SentenceEncoder(model, threads=0)


def test_encoding_from_several_threads_leaves_the_libraries_as_they_were():
    # the tests run on one thread, where a limit of one would go unnoticed
    with threadpool_limits(2, user_api="blas"):
        encoder = SentenceEncoder(dan_model(), threads=2)
        expected = encoder.encode(LINES)
        before = blas_threads()
        assert max(before) == 2
        start = Barrier(3)
        found = [None] * 3

        def run(place):
            start.wait()
            found[place] = encoder.encode(LINES, batch_size=600 + 100 * place)

        threads = [Thread(target=run, args=(place,)) for place in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for embeddings in found:
            np.testing.assert_allclose(embeddings, expected, atol=1e-6)
        assert blas_threads() == before
