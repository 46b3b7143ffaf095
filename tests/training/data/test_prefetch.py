"""Items made ahead: in order, few at a time, errors passed on, the thread gone at the end."""

import threading
from contextlib import closing

import pytest

from rejoinder.training.data.stream import prefetched


def counting(made, last=1_000, error=None):
    try:
        for number in range(last):
            made.append(number)
            yield number
        if error is not None:
            raise error
    finally:
        made.append("closed")


def test_items_come_in_order_and_end():
    with closing(prefetched(counting([], 20), 3)) as items:
        assert list(items) == list(range(20))
        assert next(items, None) is None


def test_no_more_than_the_bound_is_made_ahead():
    made = []
    with closing(prefetched(counting(made), 3)) as items:
        assert [next(items), next(items)] == [0, 1]
    # two used, and three ahead at most: closing waits for the one that is being made
    *numbers, last = made
    assert numbers == list(range(len(numbers)))
    assert 2 <= len(numbers) <= 5
    assert last == "closed"


def test_an_error_is_raised_where_items_are_used_after_those_before_it():
    error = ValueError("torn")
    with closing(prefetched(counting([], 2, error), 8)) as items:
        assert [next(items), next(items)] == [0, 1]
        with pytest.raises(ValueError, match="torn") as caught:
            next(items)
        assert caught.value is error


def test_closing_early_ends_the_thread_and_closes_the_items():
    made, before = [], threading.active_count()
    with closing(prefetched(counting(made), 2)) as items:
        next(items)
    assert threading.active_count() == before
    assert made[-1] == "closed"


def test_an_error_of_the_user_closes_too():
    before = threading.active_count()
    with pytest.raises(KeyError), closing(prefetched(counting([]), 2)) as items:
        raise KeyError(next(items))
    assert threading.active_count() == before
