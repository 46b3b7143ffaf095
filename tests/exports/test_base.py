"""Messages in the order of time, and numbers of keys."""

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.exports.base import KeyNumbers, Malformed, Message, by_time

KEYS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9).map(lambda low: low << 40)


def test_messages_are_sorted_within_their_source():
    rows = [("c", 2.0), ("a", None), ("c", 1.0), ("a", 3.0), ("c", 1.0), ("b", -1.0)]
    messages = [
        Message(id=str(number), text="x", source=source, time=time)
        for number, (source, time) in enumerate(rows)
    ]
    malformed = Malformed("a.json", 7, "no message")
    first, *sorted_ = by_time([*messages, malformed])
    assert first == malformed
    assert sorted_ == [messages[number] for number in (2, 4, 0, 3, 1, 5)]
    assert list(by_time([*messages, *messages])) == sorted_
    assert list(by_time([])) == []


def test_of_messages_of_the_same_time_the_last_may_be_the_earliest():
    messages = [Message(id=id_, text="x", source="s", time=1.0) for id_ in "abc"]
    assert list(by_time(messages, newest_first=True)) == messages[::-1]


@given(st.lists(KEYS), st.lists(KEYS))
def test_keys_are_numbered_as_they_come(keys, others):
    numbers, expected = KeyNumbers(), dict[int, int]()
    for key in keys:
        assert numbers.add(key) == expected.setdefault(key, len(expected))
    assert len(numbers) == len(expected)
    for key in [*keys, *others]:
        assert numbers.find(key) == expected.get(key, -1)


def test_many_keys_are_found_after_the_table_grew():
    numbers = KeyNumbers()
    keys = [hash(str(number)) for number in range(5_000)]
    assert [numbers.add(key) for key in keys] == list(range(5_000))
    assert [numbers.find(key) for key in keys] == list(range(5_000))
