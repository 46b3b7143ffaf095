"""Records of topics."""

from dataclasses import dataclass

from rejoinder.io.formats.decoding import Count


@dataclass(frozen=True)
class Topic:
    """A topic, or a wider one."""

    id: Count
    """Topics are numbered from 0 on, the largest first; wider ones follow."""
    name: str
    """Its three most distinctive words."""
    words: tuple[str, ...]
    """Distinctive words, the best first."""
    typical: tuple[str, ...]
    """Typical messages, the best first."""
    typical_ids: tuple[str, ...]
    """Their ids."""
    size: Count
    """Number of messages."""
    parent: Count | None
    """The id of its wider topic, if others are in that, too."""
    months: dict[str, Count]
    """Messages a month, such as `2024-01`, in UTC; of those whose time is known."""


@dataclass(frozen=True)
class FoundTopics:
    """What messages are about."""

    topics: tuple[Topic, ...]
    wider: tuple[Topic, ...]
    """Topics that hold several topics."""
    months: dict[str, Count]
    """All messages a month."""
