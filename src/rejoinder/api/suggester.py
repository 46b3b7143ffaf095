"""`Suggester`: suggests replies from the past of an index that was prepared to be explored."""

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from rejoinder.api.collection import Model
from rejoinder.api.suggest import Suggestions
from rejoinder.inference.suggested import Suggested

_MOST = 4
"""Authors whose replies are ready at a time."""


class Suggester:
    """Suggests the replies of all authors, or of one. Threads take turns."""

    def __init__(self, index: Path, threads: int | None = None) -> None:
        """Prepares for the messages of an index, which are opened when they are first used.

        Args:
            index: Folder of the index.
            threads: Number of CPU cores; None means all that the process may use.
        """
        self._index, self._threads = index, threads
        self._encoder: Model = None
        self._lock = Lock()
        self._ready: OrderedDict[str | None, Suggestions] = OrderedDict()

    def __call__(self, message: str, top_k: int, author: str | None) -> Suggested:
        """Returns the `top_k` best replies to a message, by an author if one is given.

        Raises:
            RejoinderError: the index is damaged, or has no such reply.
        """
        with self._lock:
            if author not in self._ready:
                where = None if author is None else {"author": author}
                opened = Suggestions.open(
                    self._index, self._encoder, where=where, threads=self._threads
                )
                self._ready[author], self._encoder = opened, opened.encoder
            self._ready.move_to_end(author)
            if len(self._ready) > _MOST:
                self._ready.popitem(last=False)
            return self._ready[author].suggest(message, top_k)
