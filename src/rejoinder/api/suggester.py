"""`Suggester`: suggests replies from the past of an index, which it reads once it is asked."""

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from rejoinder.api.adjacent import with_adjacent
from rejoinder.api.collection import Collection, open_collection
from rejoinder.api.past_replies import past_replies
from rejoinder.api.suggest import Suggestions
from rejoinder.index.where import conditions_of
from rejoinder.inference.suggested import Suggested

_MOST = 4
"""Authors whose replies are ready at a time."""


class Suggester:
    """Suggests the replies of all authors, or of one. Threads take turns."""

    def __init__(self, index: Path, threads: int | None = None) -> None:
        """Prepares for an index of messages."""
        self._index, self._threads = index, threads
        self._lock = Lock()
        self._collection: Collection | None = None
        self._ready: OrderedDict[str | None, Suggestions] = OrderedDict()

    def __call__(self, message: str, top_k: int, author: str | None) -> Suggested:
        """Returns the `top_k` best replies to a message, by an author if one is given.

        Raises:
            RejoinderError: the index can't be read, or has no such reply.
        """
        with self._lock:
            if author not in self._ready:
                self._ready[author] = self._open(author)
            self._ready.move_to_end(author)
            if len(self._ready) > _MOST:
                self._ready.popitem(last=False)
            return self._ready[author].suggest(message, top_k)

    def _open(self, author: str | None) -> Suggestions:
        if self._collection is None:
            self._collection = with_adjacent(open_collection(self._index, threads=self._threads))
        where = conditions_of({} if author is None else {"author": author})
        return Suggestions(past_replies(self._collection, where), None)
