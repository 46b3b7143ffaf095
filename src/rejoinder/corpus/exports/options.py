"""What becomes of the messages of exports: the options, and which messages are left out."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rejoinder.corpus.exports.base import Message
from rejoinder.corpus.exports.languages import is_in_others
from rejoinder.corpus.exports.masks import mask_pii
from rejoinder.corpus.exports.near_duplicates import Doubles
from rejoinder.errors import InputError


@dataclass(frozen=True)
class ExportOptions:
    """What becomes of the messages of exports."""

    pair: str | None = None
    """`links`: a message answers what the export says; `adjacent`: or else the message before it by
    another author. None: `adjacent` for exports that say it of no message, or of few."""
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
    languages: tuple[str, ...] = ()
    """Codes of the languages whose messages are kept. Empty: all."""
    dedupe: bool = False
    """Whether messages that say nearly the same as an earlier one are left out."""

    def __post_init__(self) -> None:
        if self.pair not in (None, "links", "adjacent"):
            raise InputError(f"`pair` {self.pair!r}: links or adjacent.")
        if self.mask not in (None, "pii"):
            raise InputError(f"`mask` {self.mask!r}: pii.")
        if self.context is not None and self.context < 1:
            raise InputError(f"`context` {self.context}: 1 turn or more.")

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that decide the content of the pairs; later ones only where they are used."""
        every = asdict(self)
        return {name: every[name] for name in every if name not in _LATER or every[name]}


OPTIONS = (
    "`pair`", "`within`", "`context`", "`language`", "`dedupe`",
    "`include_private`", "`mask`", "`min_authors`",
)  # fmt: skip
_LATER = ("context", "languages", "dedupe")

REASONS = {
    "system": "written by the program itself",
    "bot": "written by a bot",
    "private": "internal notes, direct messages; `include_private=True` keeps them",
    "empty": "no text: a picture, a file, a deleted message",
    "language": "in another language than `language`",
    "double": "nearly the same as an earlier message; see `dedupe`",
}
"""Why a message is left out, in the order in which that is tested."""


def why_not(message: Message, options: ExportOptions) -> str | None:
    """Returns the reason for which a message is left out whatever it says, None for none."""
    if message.is_system:
        return "system"
    if message.is_bot:
        return "bot"
    if message.is_private and not options.include_private:
        return "private"
    return None if message.text.strip() else "empty"


class Texts:
    """Says which messages are left out for what they say."""

    def __init__(self, options: ExportOptions) -> None:
        """Prepares what the options ask for.

        Raises:
            InputError: a language is unknown.
            MissingExtraError: a package is not installed.
        """
        self._mask = options.mask
        self._reasons: dict[str, Callable[[str], bool]] = {}
        if options.languages:
            self._reasons["language"] = is_in_others(options.languages)
        if options.dedupe:
            self._reasons["double"] = Doubles()

    def masked(self, text: str) -> str:
        """Returns a text as pairs have it."""
        return mask_pii(text) if self._mask else text

    def why_not(self, text: str) -> str | None:
        """Returns the reason for which a text is left out, None for one that is kept."""
        return next((why for why, is_so in self._reasons.items() if is_so(text)), None)
