"""Records of questions that were asked again and again."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """Replies that say nearly the same."""

    id: str
    """Of the first of them."""
    text: str
    author: str | None
    time: float | None
    """Seconds since 1970 in UTC."""
    count: int
    """How often it was said."""


@dataclass(frozen=True)
class Asked:
    """Messages that ask the same."""

    id: str
    """Of the message that stands for them."""
    text: str
    count: int
    authors: int
    """Number of different authors; 0 if none is known."""
    first: float | None
    """Seconds since 1970 in UTC of the first and the last of them; None if they have no time."""
    last: float | None
    ways: list[str]
    """Other ways in which it was asked, without greetings; the most frequent first."""
    ids: list[str]
    """Ids of the messages, at most 50."""
    replies: list[Reply]
    """What was replied, the most frequent first; at most 8."""
    replied: int
    """Number of all replies."""
    begins: bool
    """Whether they begin conversations. If not, each answers a message, or all but one do."""
