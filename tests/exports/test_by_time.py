from rejoinder.exports.base import Malformed, Message, by_time


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
