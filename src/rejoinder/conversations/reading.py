"""Messages of conversations as `explore` reads them, and what it says about them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rejoinder.conversations.answers import says_little, untrusted
from rejoinder.conversations.changes import Part
from rejoinder.conversations.collection import messages_of_pairs
from rejoinder.corpus.manifest import FILE as PAIRS_FILE
from rejoinder.corpus.texts import Entry, may_be_export, messages_of, refuse_empty
from rejoinder.exports.base import ExportFormat
from rejoinder.exports.files import Files
from rejoinder.inference.sentence_stream import Source
from rejoinder.io.files.storage import first_names


class Reading:
    """What is found while an export, a file of texts or a folder of pairs is read."""

    def __init__(self, source: Path, columns: str | None) -> None:
        self.left_out: Counter[str] = Counter()
        """Messages of an export that were left out, by the reason."""
        self._source, self._columns = source, columns
        self._authors = set[str]()
        self._programs: list[str] = []
        self._unread: dict[str, None] = {}
        self._count = 0

    def parts(self) -> list[Part]:
        """Reads all.

        Raises:
            InputError: there is nothing to read, or it can't be read.
            MissingExtraError: a package is missing that reads it.
        """
        if (self._source / PAIRS_FILE).is_file():
            return [Part("", list(messages_of_pairs(self._source)), linked=False)]
        if self._columns is None and may_be_export(self._source):
            from rejoinder.exports import exports_of  # importing all formats takes a while

            if exports := exports_of(self._source):
                parts = list(map(self._part, exports))
                everything = (one for part in parts for one in part.entries)
                next(refuse_empty(everything, self._source, exports))
                return parts
        return [Part("", list(Source(self._source, self._columns)), linked=False)]

    def _part(self, export: ExportFormat) -> Part:
        entries = list(self._messages(export))
        if not export.knows_replies:
            entries = untrusted(entries)
        return Part(export.title, entries, linked=says_little(entries))

    def _messages(self, export: ExportFormat) -> Iterator[Entry]:
        for entry in messages_of(
            self._source, export, lambda why: self.left_out.update([why]), None, self._note
        ):
            self._authors.update([entry.about["author"]] if "author" in entry.about else ())
            yield entry

    def _note(self, title: str, files: Files) -> None:
        before = self._unread if self._programs else files.names
        self._unread = {name: None for name in before if name not in files.read}
        self._programs.append(title.partition(" (")[0])
        self._count = len(files.names)

    def in_words(self, messages: int) -> str:
        """Returns what was read as one line, empty if it was not an export."""
        if not self._programs:
            return ""
        people = f" of {_counted(len(self._authors), 'person')}" if self._authors else ""
        said = f"{' and '.join(self._programs)}, {_counted(self._count, 'file')}, "
        said += f"{_counted(messages, 'message')}{people}"
        if self._unread:
            names = first_names([*self._unread])
            said += f", {_counted(len(self._unread), 'file')} not read: {names}"
        return said


def _counted(count: int, noun: str) -> str:
    many = "people" if noun == "person" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"
