"""What `rejoinder explore` found in the conversations of an index, ready to be sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rejoinder.conversations.suggestions import Suggested


@dataclass(frozen=True)
class Explored:
    """Answers of the routes of `serve.routes.explored`; None where something was not looked for."""

    name: str | None
    """What is explored, as the page calls it."""
    command: str
    """The index, as a command names it."""
    asked: bytes | None = None
    """JSON of the answer of `/asked`."""
    topics: bytes | None = None
    """JSON of the answer of `/topics`."""
    points: bytes = b""
    """The answer of `/points`."""
    ids: Sequence[str] = field(default=(), repr=False)
    """Ids of the messages of the points."""

    suggest: Callable[[str, int, str | None], Suggested] | None = None
    """Suggests so many replies to a message, by an author if one is given."""

    @property
    def found(self) -> list[str]:
        """Names of what was looked for."""
        return [name for name in ("asked", "topics", "suggest") if getattr(self, name) is not None]
