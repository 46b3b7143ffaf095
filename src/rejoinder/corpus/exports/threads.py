"""Threads of messages whose export names none: those of what they answer."""

from sys import intern

from rejoinder.corpus.exports.key_numbers import KeyNumbers


class Threads:
    """Names the threads of messages. Each takes about 30 bytes, and each thread its name.

    >>> threads = Threads()
    >>> said = (("a", None), ("b", "a"), ("c", "b"), ("d", "lost"))
    >>> [threads.name(id_, parent) for id_, parent in said]
    ['a', 'a', 'a', 'lost']
    """

    def __init__(self) -> None:
        self._ids = KeyNumbers()
        self._names: list[str | None] = []
        """None: the message's own id."""
        self.are_apart = True
        """Whether no message answered one of another thread."""

    def name(self, id_: str, parent: str | None, given: str | None = None) -> str:
        """Returns the thread of a message: `given`, or else that of the message that it answers.

        It is the id of what it answers if that has not come, and its own if it answers nothing.
        """
        above = -1 if parent is None else self._ids.find(hash(parent))
        name = parent
        if above >= 0:
            name = self._names[above] = self._names[above] or parent
        if given is not None and given != name:
            self.are_apart &= above < 0
            name = intern(given)
        if self._ids.add(hash(id_)) == len(self._names):
            self._names.append(None if name == id_ else name)
        return name or id_
