"""`Suggester`: suggests replies from the past of an index that was prepared to be explored."""

from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from threading import Lock

from rejoinder.api.collection import encoder_of
from rejoinder.api.past_replies import PastReplies
from rejoinder.api.suggest import Suggestions
from rejoinder.errors import InputError
from rejoinder.index.folder import TextIndex
from rejoinder.index.where import conditions_of
from rejoinder.index.whole import WholeIndex
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.suggested import Fitted, Suggested

_MOST = 4
"""Authors whose replies are ready at a time."""


class _Messages(WholeIndex):
    """The messages of an index, and its model."""

    def __init__(self, opened: TextIndex, threads: int | None) -> None:
        super().__init__(opened)
        self._opened, self._threads = opened, threads

    @cached_property
    def encoder(self) -> SentenceEncoder:
        return encoder_of(self._opened, None, self._threads)


class Suggester:
    """Suggests the replies of all authors, or of one. Threads take turns."""

    def __init__(
        self, index: Path, replies: Path, fitted: Fitted | None, threads: int | None = None
    ) -> None:
        """Opens the messages of an index.

        Args:
            index: Folder of the index, of which only what is used is read.
            replies: What `PastReplies.save` wrote of them.
            fitted: What `Suggestions.fitted` was of the replies of all authors.
            threads: Number of CPU cores; None means all that the process may use.

        Raises:
            InputError: a file is damaged.
        """
        self._messages = _Messages(TextIndex(index), threads)
        self._past = PastReplies.load(replies, self._messages)
        self._fitted, self._lock = fitted, Lock()
        self._ready: OrderedDict[str | None, Suggestions] = OrderedDict()

    def __call__(self, message: str, top_k: int, author: str | None) -> Suggested:
        """Returns the `top_k` best replies to a message, by an author if one is given.

        Raises:
            RejoinderError: the index is damaged, or has no such reply.
        """
        with self._lock:
            if author not in self._ready:
                self._ready[author] = self._open(author)
            self._ready.move_to_end(author)
            if len(self._ready) > _MOST:
                self._ready.popitem(last=False)
            return self._ready[author].suggest(message, top_k)

    def _open(self, author: str | None) -> Suggestions:
        if author is None:
            return Suggestions(self._past, None, fitted=self._fitted)
        past = self._past.only(self._messages.meeting(conditions_of({"author": author})))
        if not len(past):
            raise InputError(f"there is no reply by {author!r} to a message by somebody else.")
        return Suggestions(past, None)
