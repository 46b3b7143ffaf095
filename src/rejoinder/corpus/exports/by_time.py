"""Messages in the order of time, however large the export."""

from array import array
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from rejoinder.corpus.exports.base import Item, Message
from rejoinder.io.files.places import scratch_folder


def by_time(items: Iterable[Item], *, newest_first: bool = False) -> Iterator[Item]:
    """Yields the messages of each source by time, sources in the order of their first message.

    A message that several files have is given once: same source, time and id. Malformed ones come
    first, and messages without a time after the others of their source. Texts wait in a temporary
    file; 32 bytes for each message are in memory. `newest_first` says that of messages of the same
    time, the last is the earliest.
    """
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Message)
    codes: dict[str, int] = {}
    sources, times, ends = array("q"), array("d"), array("q", [0])
    with scratch_folder() as folder, (folder / "messages").open("w+b") as file:
        for item in items:
            if not isinstance(item, Message):
                yield item
                continue
            sources.append(codes.setdefault(item.source, len(codes)))
            times.append(np.inf if item.time is None else item.time)
            ends.append(ends[-1] + file.write(encoder.encode(item)))
        rows = np.arange(len(times)) * (-1 if newest_first else 1)
        order = np.lexsort((rows, np.frombuffer(times), np.frombuffer(sources, np.int64)))
        del rows
        last, seen = None, set[str]()
        for row in map(int, order):
            file.seek(ends[row])
            message = decoder.decode(file.read(ends[row + 1] - ends[row]))
            if last != (sources[row], times[row]):
                last = (sources[row], times[row])
                seen.clear()
            if message.id not in seen:
                seen.add(message.id)
                yield message
