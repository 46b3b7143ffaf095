"""Licences of training data: a table of what authors state, and which of them are open."""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

_FILE = Path(__file__).parent.parent / "data" / "licences.toml"
_OPEN = re.compile(
    r"CC0-.*|CC-BY-(SA-)?\d.*|MIT|ISC|BSD-.*|CDLA-.*|Apache-.*|MPL-.*|OANC|PSF-.*|Unicode-\d.*"
)
"""Open licences by SPDX identifier. Those with NC or ND are not among them."""


@dataclass(frozen=True)
class Licence:
    """What is known about the licence of a file or of a source of conversations."""

    licence: str
    """SPDX identifiers joined by AND, or words such as `none stated` and `research`."""
    origin: str = ""
    """Where the text was taken from, such as `owner/name` of a repository."""
    citation: str = ""
    repository: str = ""
    """Licence of a repository that has a copy of the text. It does not count."""
    hub: str = ""
    """Name of the data set on the Hugging Face hub, if it has one."""

    @property
    def open(self) -> bool:
        """Whether the text may be used by everybody for everything: see `is_open`."""
        return is_open(self.licence)

    @property
    def known(self) -> bool:
        """Whether the table has the data, rather than nothing being known about it."""
        return self != NOT_STATED

    def __str__(self) -> str:
        return self.licence + (f" (repository: {self.repository})" if self.repository else "")


NOT_STATED = Licence("not stated")
"""The licence of data that the table does not have, such as a user's own."""


@dataclass(frozen=True)
class DataRow:
    """A source of conversations or a labelled file, with its licence."""

    kind: str
    """`source`, `file`, `model` (training started from it) or `adaptation`."""
    name: str
    """Name of the source, or path of the file below the folder of data sets."""
    licence: Licence
    rows: int | None = None
    """Number of pairs, groups or rows. None means unknown."""
    detail: str = ""
    """Rows by task, for a file that several tasks read."""


def is_open(licence: str) -> bool:
    """Returns whether all of the licences are open.

    CC0, CC BY, CC BY-SA, MIT, ISC, BSD, CDLA, Apache, MPL, PSF and Unicode are, and those of the
    Open American National Corpus, whose texts everybody may use, change and share.

    >>> [is_open(licence) for licence in ("CC-BY-SA-4.0 AND MIT", "CC-BY-NC-4.0", "none stated")]
    [True, False, False]
    """
    return all(_OPEN.fullmatch(part) for part in licence.split(" AND "))


@cache
def _table() -> tuple[Mapping[str, Licence], Mapping[str, tuple[str, Licence]]]:
    """Returns the licences of files by path, and of sources by name, with the source's file."""
    tree = tomllib.loads(_FILE.read_text("utf-8"))
    files = {path: _licence(row) for row in tree["files"] for path in row["paths"]}
    sources = {
        source: (str(row["file"]), _licence(row))
        for row in tree["conversations"]
        for source in row["sources"]
    }
    return files, sources


def _licence(row: Mapping[str, str]) -> Licence:
    optional = {name: row[name] for name in ("repository", "hub") if name in row}
    return Licence(row["licence"], row["from"], row["cite"], **optional)


def all_rows() -> list[DataRow]:
    """Returns the whole table: sources of conversations, then files."""
    files, sources = _table()
    rows = [DataRow("source", name, licence) for name, (_, licence) in sources.items()]
    return rows + [DataRow("file", path, licence) for path, licence in files.items()]


def licence_of_file(path: str) -> Licence:
    """Returns the licence of a labelled file, by its path below the folder of data sets."""
    files, _ = _table()
    plain = str(PurePosixPath(path)).removesuffix(".zst")
    return files.get(plain) or files.get(f"{plain}.zst") or NOT_STATED


def licence_of_source(source: str, inputs: Iterable[str] | None = None) -> Licence:
    """Returns the licence of a source of conversations.

    `inputs` are the names of the files that the pairs were extracted from. Unless all of them are
    in the table, and one is the file of the source, the licence is not stated, because a subreddit
    of another dump may have the name of a corpus. With None, only the name counts.
    """
    _, sources = _table()
    file, licence = sources.get(source, ("", NOT_STATED))
    if inputs is None:
        return licence
    given: Collection[str] = set(inputs)
    known = {name for name, _ in sources.values()}
    return licence if file in given and known.issuperset(given) else NOT_STATED
