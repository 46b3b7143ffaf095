"""The manifest of a folder of pairs: counts, rules, and the shards with their hashes."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from rejoinder.exports.base import Malformed
from rejoinder.io.files.addresses import AnyPath
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import Count, Digest, FileName, Record, sealed

FORMAT = 1
FILE = "manifest.json"
SPLITS = ("train", "dev", "test")


class Shard(Record, frozen=True):
    """A Parquet file of pairs of one split."""

    file: FileName
    split: str
    rows: Count
    bytes: Count
    sha256: Digest


class Counts(Record, frozen=True):
    """Counts of the lines of the dumps, by their outcome."""

    lines: Count
    """Number of lines or rows that are not blank, including malformed ones."""
    malformed: Count
    comments: Count
    """Number of comments read. A row of message and reply holds two."""
    duplicates: Count
    """Number of comments dropped because they repeat another comment, field by field."""
    conflicts: Count
    """Number of comments dropped because a different comment with the same id was kept."""
    dropped: Mapping[str, Count]
    """Number of comments dropped, by the first rule that they break, in the order of the rules."""
    kept: Count
    """Number of comments that no rule drops."""
    without_parent: Count
    """Number of kept comments that reply to a post, or to nothing."""
    parent_not_found: Count
    """Number of kept comments whose parent comment is not in the dumps."""
    parent_dropped: Count
    """Number of kept comments whose parent broke a rule."""
    capped: Count
    """Number of pairs left out by limits on pairs."""
    pairs: Count
    """Number of pairs written."""
    unique_inputs: Count
    """Number of distinct texts."""
    unique_responses: Count


class Carried(Record, frozen=True):
    """Counts of what an extraction with `--carry` took from earlier extractions.

    `Counts` covers only the comments of this extraction's dumps; a carried reply only counts in
    `pairs`. So `kept` is `without_parent + parent_not_found + parent_dropped + capped + pairs`
    minus `replies`. Counts of replies are a snapshot: a later dump may bring the parent.
    """

    increment: Count
    """Number of this extraction's increment, from 1."""
    comments: Count
    """Number of comments of earlier increments."""
    messages: Count
    """Number of pairs with a carried message."""
    replies: Count
    """Number of pairs with a carried reply, whose message came later."""
    overruled: Count
    """Number of carried comments for which one extraction of all dumps might have kept another
    comment with the same id. If it is 0 everywhere, the pairs are those of one extraction."""


class ExportCounts(Record, frozen=True):
    """Counts of the messages of an export. `Counts` begins with the remaining messages."""

    format: str
    messages: Count
    malformed: Count
    dropped: Mapping[str, Count]
    """Number of messages left out, by reason."""
    linked: Count
    """Number of messages with a reply link in the export."""
    adjacent: Count
    """Number of messages that answer the message before them."""
    modelled: Count = 0
    """Number of messages that answer another message by a linker."""


class WordsFile(Record, frozen=True):
    """A file of the words that a model of these pairs may know, one per line."""

    file: FileName
    words: Count
    sha256: Digest


class Manifest(Record, frozen=True):
    """The content of `manifest.json`, which is written last."""

    rejoinder_version: str
    rules: str
    options: Mapping[str, Any]
    """The options that decide the content: columns, filters, shares of splits, limits."""
    inputs: tuple[Mapping[str, Any], ...]
    """A mapping per input file: `file` (its name), `bytes`, `comments`, `malformed`."""
    counts: Counts
    splits: Mapping[str, Count]
    """Number of pairs by split."""
    sources: Mapping[str, Mapping[str, Count]]
    """Number of pairs by source and split."""
    shards: tuple[Shard, ...]
    malformed: tuple[Malformed, ...] = ()
    """The first malformed lines, at most 20."""
    carry: Carried | None = None
    """None without `--carry`; `manifest.json` then has no such key."""
    exports: tuple[ExportCounts, ...] = ()
    """Counts per export. Without exports, `manifest.json` has no such key."""
    words: WordsFile | None = None
    """None: a model may know all words, and `manifest.json` has no such key."""
    format_version: int = FORMAT

    def write(self, folder: AnyPath) -> None:
        """Writes `manifest.json` into `folder`, with its own hash as the last key."""
        tree = to_builtins(self)
        for name in ("carry", "exports", "words"):
            if not tree[name]:
                del tree[name]
        text = json.dumps(sealed(tree), indent=1, ensure_ascii=False) + "\n"
        write_text(folder / FILE, text)
