from hypothesis import given
from hypothesis import strategies as st

from rejoinder.exports.base import KeyNumbers

KEYS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9).map(lambda low: low << 40)


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
