"""What becomes of the messages of exports: the options, and which messages are left out."""

from dataclasses import asdict, dataclass
from typing import Any

from rejoinder.corpus.exports.base import Message
from rejoinder.errors import InputError


@dataclass(frozen=True)
class ExportOptions:
    """What becomes of the messages of exports."""

    pair: str | None = None
    """`links`: a message answers what the export says; `adjacent`: or else the message before it by
    another author. None: `adjacent` for exports that do not say what messages answer."""
    within: float = 600.0
    """Most seconds between a message outside threads and the one before it that it answers."""
    include_private: bool = False
    mask: str | None = None
    """`pii`: see `masks`. None masks nothing."""
    min_authors: int | None = None
    """Authors that must have used a word before a model may know it. None: 5, and 1 for formats
    that everybody can read."""
    context: int | None = None
    """Number of turns before a message that its pairs keep. None: they have no such column."""

    def __post_init__(self) -> None:
        if self.pair not in (None, "links", "adjacent"):
            raise InputError(f"--pair {self.pair!r}: links or adjacent.")
        if self.mask not in (None, "pii"):
            raise InputError(f"--mask {self.mask!r}: pii.")
        if self.context is not None and self.context < 1:
            raise InputError(f"--context {self.context}: 1 turn or more.")

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that decide the content of the pairs; later ones only where they are used."""
        every = asdict(self)
        return {name: every[name] for name in every if name not in _LATER or every[name]}


_LATER = ("context",)

REASONS = {
    "system": "written by the program itself",
    "bot": "written by a bot",
    "private": "internal notes, direct messages; --include-private keeps them",
    "empty": "no text: a picture, a file, a deleted message",
}
"""Why a message is left out, in the order in which that is tested."""


def why_not(message: Message, options: ExportOptions) -> str | None:
    """Returns the reason for which a message is left out, None for one that is kept."""
    if message.is_system:
        return "system"
    if message.is_bot:
        return "bot"
    if message.is_private and not options.include_private:
        return "private"
    return None if message.text.strip() else "empty"
