"""Removes messages from indexes, explored folders and pairs, by author or by pattern.

Also finds addresses, numbers and keys in messages, with the patterns that mask them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.conversations import explore, replies
from rejoinder.conversations.explore import Prepared, Watch
from rejoinder.corpus.export_options import find_pii
from rejoinder.corpus.manifest import FILE as PAIRS
from rejoinder.corpus.manifest import SPLITS
from rejoinder.corpus.reading.columns import as_arrow, clean_and_letters
from rejoinder.corpus.texts import entries_of
from rejoinder.corpus.writer import COLUMNS, Pairs, open_pairs, rewrite, whole_blocks
from rejoinder.errors import InputError
from rejoinder.index.files import FILE as INDEX
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import EncodedTexts, Segment, encoded_texts
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.hashed import sha256_of
from rejoinder.text.columns import as_series

_TURNS = pl.List(pl.String)
KINDS = {
    "messages": "messages",
    "links": "links to them",
    "titles": "subjects that they gave to messages of others",
    "replies": "past replies to suggest",
    "questions": "repeated questions that quoted them",
    "topics": "topics that quoted them",
    "pairs": "pairs",
    "turns": "turns before messages of other pairs",
}
"""Kinds of removed things, with their names in messages."""


@dataclass(frozen=True)
class Forgotten:
    """What was removed, and what is left."""

    removed: Mapping[str, int]
    """Numbers of removed things by `KINDS`."""
    mentions: int
    """Number of remaining messages that name the author."""
    trained: tuple[Path, ...] = ()
    """Models in the folders, which may know words of removed messages."""


@dataclass(frozen=True)
class _Wanted:
    """Which messages to remove."""

    author: str | None
    match: str | None

    def __post_init__(self) -> None:
        """Checks the pattern.

        Raises:
            InputError: the pattern is not valid, or matches every text.
        """
        if self.match is None:
            return
        try:
            matches_all = pl.Series([""]).str.contains(self.match).item()
        except pl.exceptions.ComputeError as error:
            reason = str(error).partition("\n\n")[0].rpartition("error: ")[2].rstrip(".")
            raise InputError(
                f"`match` {self.match!r} is not an expression of Rust's crate regex: {reason}."
            ) from None
        if matches_all:
            raise InputError(f"`match` {self.match!r} matches every text; remove the folder.")

    def among(self, part: EncodedTexts) -> NDArray[np.bool_]:
        """Returns (N,) bool: which texts to remove."""
        if self.author is not None:
            return np.array([_author(about) == self.author for about in part.known], np.bool_)
        return self.matching(_strings(part))

    def matching(self, rows: Iterable[Sequence[str]]) -> NDArray[np.bool_]:
        """Returns (N,) bool: rows with a string that the pattern matches, in linear time."""
        return _with(rows, lambda strings: strings.str.contains(self.match or ""))

    def mentioned(self, part: EncodedTexts) -> int:
        """Returns the number of texts that name the author."""
        if self.author is None:
            return 0
        lowered = ([text.casefold() for text in row] for row in _strings(part))
        name = self.author
        return int(_with(lowered, lambda some: some.str.contains(name, literal=True)).sum())


def _with(rows: Iterable[Sequence[str]], test: Any) -> NDArray[np.bool_]:
    given = list(rows)
    tested = test(pl.Series([text for row in given for text in row], dtype=pl.String))
    numbers = np.repeat(np.arange(len(given)), [len(row) for row in given])
    found = np.zeros(len(given), np.bool_)
    found[numbers[tested.to_numpy()]] = True
    return found


def _author(about: Mapping[str, Any]) -> str:
    return str(about.get("author", "")).casefold()


def _strings(part: EncodedTexts) -> Iterator[list[str]]:
    """Yields for each text its id, the text, and the known strings about it."""
    for name, text, about in zip(part.ids, part.texts, part.known, strict=True):
        known = (one for key, one in about.items() if key != "answers" and isinstance(one, str))
        yield [name or "", text, *known]


class _Removal:
    """Removes messages from an index, and what other messages contain of them."""

    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted
        self.ids: set[str] = set()
        self._unlinked: set[str] = set()
        """Matching ids, of messages that others answer and that the index may not have."""
        self.texts: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.mentions = 0
        self.authors: set[str] = set()
        self.left = 0

    def __call__(self, segments: Sequence[Segment]) -> Iterator[EncodedTexts]:
        """Yields the remaining texts."""
        began = dict[tuple[Any, Any], bool]()
        for part in encoded_texts(segments):
            gone = self._wanted.among(part)
            if self._wanted.match is not None:
                answered = [about.get("answers", "") for about in part.known]
                hits = self._wanted.matching([name] for name in answered)
                self._unlinked.update(compress(answered, hits.tolist()))
            for name, text, about, goes in zip(
                part.ids, part.texts, part.known, gone.tolist(), strict=True
            ):
                began.setdefault((about.get("thread"), about.get("title")), goes)
                self.authors.add(_author(about))
                if goes:
                    self.ids.add(name or "")
                    self.texts.add(text)
        self.counts["messages"] = len(self.ids)
        self._unlinked |= self.ids
        lost = {key for key, goes in began.items() if goes and key[1] is not None}
        for part in encoded_texts(segments):
            kept = [at for at, name in enumerate(part.ids) if name not in self.ids]
            if not kept:
                continue
            left = EncodedTexts(
                [part.ids[at] for at in kept],
                [part.texts[at] for at in kept],
                part.embeddings[kept],
                [self._without(dict(part.about[at]), lost) for at in kept] if part.about else (),
            )
            self.mentions += self._wanted.mentioned(left)
            self.left += len(kept)
            yield left

    def _without(self, about: dict[str, Any], lost: set[tuple[Any, Any]]) -> dict[str, Any]:
        """Returns what is known about a remaining message."""
        thread, title = about.get("thread"), about.get("title")
        if about.get("answers") in self._unlinked:
            self.counts["links"] += 1
            del about["answers"]
            about.pop("confidence", None)
        if (thread, title) in lost:  # the first message of a thread sets its subject
            self.counts["titles"] += 1
            del about["title"]
        if thread in self.ids:  # a mail's id may contain its author's name
            about["thread"] = _unnamed(thread)
        return about


def _unnamed(name: str) -> str:
    return sha256_of(name.encode("utf-8", "surrogatepass"))[:16]


def forget(
    folders: Sequence[Path],
    *,
    author: str | None = None,
    match: str | None = None,
    dry_run: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Forgotten:
    """Removes messages from folders, and everything made from them.

    No file keeps anything of the messages: indexes are written again without them, and the results
    (repeated questions, topics, the map, replies to suggest) are computed again.

    Args:
        folders: Indexes, folders of `explore`, folders of pairs. Pairs do not record authors: to
            remove an author from pairs, also name an index of the same messages.
        author: Remove this author's messages; case is ignored.
        match: Remove messages whose text, id, author, channel or subject matches this
            regular expression, in linear time, by Rust's crate regex.
        dry_run: Only count.
        threads: CPU threads; by default all.
        watch: Called with the progress.

    Raises:
        InputError: `author` and `match` are both given or both missing, a folder is not of a known
            kind, no message is by the author, or no message would be left.
        BusyError: another command is writing a folder.
    """
    if (author is None) == (match is None):
        raise InputError("give either `author` or `match`.")
    wanted = _Wanted(None if author is None else author.casefold(), match)
    indexes, pairs = _sorted(folders)
    if pairs and not indexes and author is not None:
        raise InputError("pairs do not say who wrote them; name their index, too, or `match`.")
    found = [_looked(wanted, index, made) for index, made in indexes]
    ids, said, authors, counts = set[str](), set[str](), set[str](), Counter[str]()
    for one in found:
        ids |= one.ids
        said |= one.texts
        authors |= one.authors
        counts += one.counts
    if indexes and wanted.author is not None and not ids:
        close = get_close_matches(wanted.author, authors, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(f"no message is by {author!r}{hint}. Nothing was removed.")
    if not dry_run:
        for (index, made), one in zip(indexes, found, strict=True):
            if one.counts["messages"] or one.counts["links"]:
                _remove(wanted, index, made, threads, watch or Watch())
    for some in pairs:
        counts.update(_forget_pairs(some, _PairRemoval(some, wanted, ids, said), dry_run=dry_run))
    removed = {kind: counts[kind] for kind in KINDS if counts[kind]}
    trained = tuple(index / "model" for index, _ in indexes if (index / "model").is_dir())
    return Forgotten(removed, sum(one.mentions for one in found), trained)


def _sorted(folders: Sequence[Path]) -> tuple[list[tuple[Path, Prepared | None]], list[Pairs]]:
    """Returns the indexes, each with its explored results, and the pairs.

    Raises:
        InputError: a folder is neither an index nor pairs.
    """
    indexes, pairs = list[tuple[Path, Prepared | None]](), list[Pairs]()
    for folder in folders:
        made = explore.prepared_in(folder)
        if made is not None:
            indexes.append((made.index, made))
        elif (folder / PAIRS).is_file():
            pairs.append(open_pairs(folder))
        elif (folder / INDEX).is_file():
            indexes.append((folder, None))
        else:
            raise InputError(
                f"{folder} is neither an index, nor pairs, nor explored by this version."
            )
    return indexes, pairs


def _looked(wanted: _Wanted, index: Path, made: Prepared | None) -> _Removal:
    """Counts what to remove.

    Raises:
        InputError: no message would be left.
    """
    removal = _Removal(wanted)
    for _ in removal(TextIndex(index).segments):
        pass
    if removal.ids and not removal.left:
        raise InputError(f"no message of {index} would be left; remove the folder instead.")
    if made is None:
        return removal
    asked, topics = (
        msgspec.json.decode((made.folder / name).read_bytes())
        for name in (explore.ASKED, explore.TOPICS)
    )
    removal.counts["questions"] = sum(_names(one, removal.ids) for one in asked)
    every = [*topics["topics"], *topics["wider"]]
    removal.counts["topics"] = sum(_names(one, removal.ids) for one in every)
    if kept := replies.read_kept(index):
        names = kept[0].collection.ids
        both = zip(kept[0].asked.tolist(), kept[0].replied.tolist(), strict=True)
        gone = [not removal.ids.isdisjoint((names[one], names[other])) for one, other in both]
        removal.counts["replies"] = sum(gone)
    return removal


def _names(tree: Any, ids: set[str]) -> bool:
    """Returns whether a string in a JSON tree is one of the ids."""
    if isinstance(tree, dict | list):
        return any(_names(one, ids) for one in (tree.values() if isinstance(tree, dict) else tree))
    return tree in ids


def _remove(
    wanted: _Wanted, index: Path, made: Prepared | None, threads: int | None, watch: Watch
) -> None:
    def change(opened: TextIndex) -> None:
        opened.compact(_Removal(wanted))
        (opened.folder / replies.FILE).unlink(missing_ok=True)

    if made is not None and made.index.parent == made.folder:
        explore.change_prepared(made.folder, change, threads, watch)
        return
    change(TextIndex(index))
    if made is not None:  # its stamp records that the index has changed
        explore.explore(index, out=made.folder, threads=threads, watch=watch)


def _forget_pairs(pairs: Pairs, removal: "_PairRemoval", *, dry_run: bool) -> Counter[str]:
    """Removes pairs, and returns what was removed."""
    if dry_run:
        for split in SPLITS:
            for _, frame in whole_blocks(pairs, split):
                removal(frame)
    else:
        with new_folder(pairs.folder, overwrite=True) as new:
            rewrite(pairs, new, removal)
    return removal.counts


class _PairRemoval:
    """Removes pairs, and turns before other pairs."""

    def __init__(self, pairs: Pairs, wanted: _Wanted, ids: set[str], said: Iterable[str]) -> None:
        """Prepares to remove messages with these ids and these texts."""
        self._wanted, self._ids, self._said = wanted, ids, {*_clean(said)}
        self.counts: Counter[str] = Counter()
        for split in SPLITS:
            for frame in pairs.iter_frames(split):
                for side in ("input", "response"):
                    rows = frame.filter(pl.col(f"{side}_id").is_in(list(ids)))
                    self._said.update(rows[side])

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns the remaining pairs."""
        ids, columns = list(self._ids), ("input_id", "response_id")
        gone = frame.select(pl.any_horizontal(pl.col(columns).is_in(ids))).to_series().to_numpy()
        if self._wanted.match is not None:
            gone = gone | self._wanted.matching(frame.select(COLUMNS).iter_rows())
        self.counts["pairs"] += int(gone.sum())
        left = frame.filter(~gone)
        if "context" in left.columns:
            turns = pl.Series("context", [*map(self._turns, left["context"])], _TURNS)
            left = left.with_columns(turns)
        threads = [_unnamed(one) if one in self._ids else one for one in left["thread_id"]]
        return left.with_columns(pl.Series("thread_id", threads, pl.String))

    def _turns(self, turns: Iterable[str]) -> list[str]:
        """Returns the remaining turns."""
        before = list(turns)
        kept = [turn for turn in before if turn not in self._said]
        if self._wanted.match is not None and kept:
            hit = self._wanted.matching([turn] for turn in kept)
            kept = [turn for turn, goes in zip(kept, hit.tolist(), strict=True) if not goes]
        self.counts["turns"] += len(before) - len(kept)
        return kept


def _clean(texts: Iterable[str]) -> Iterator[str]:
    """Yields texts in the form that pairs have."""
    clean, _ = clean_and_letters(as_arrow(as_series(list(texts))))
    return (text for text in pl.Series(clean) if text is not None)


class Personal(NamedTuple):
    """An address, a number or a key in a message."""

    kind: str
    """`email`, `phone`, `key`, `login`, `card`, `iban` or `ip`."""
    id: str | None
    """Id of the message."""
    found: str


def find_personal(path: Path, columns: str | None = None) -> Iterator[Personal]:
    """Yields mail addresses, phone numbers, keys and similar in texts, titles and authors.

    Args:
        path: An index, a folder of `explore`, pairs, an export or a file of texts.
        columns: Columns of a table, as `Index.create` takes them.

    Raises:
        InputError: the path can't be read.
    """
    for name, strings in _texts_of(path, columns):
        for text in dict.fromkeys(strings):
            for kind, found in find_pii(text):
                yield Personal(kind, name, found)


def _texts_of(path: Path, columns: str | None) -> Iterator[tuple[str | None, list[str]]]:
    made = explore.prepared_in(path)
    index = path if made is None else made.index
    if (index / INDEX).is_file():
        for part in TextIndex(index).encoded():
            yield from (
                (name, _said(text, about))
                for name, text, about in zip(part.ids, part.texts, part.known, strict=True)
            )
    elif (path / PAIRS).is_file():
        seen, pairs = set[str](), open_pairs(path)
        sides = [("input_id", "input"), ("response_id", "response")]
        for split in SPLITS:
            for frame in pairs.iter_frames(split):
                for name, text in (row for side in sides for row in frame.select(side).iter_rows()):
                    if name not in seen:
                        seen.add(name)
                        yield name, [text]
    else:
        for number, entry in enumerate(entries_of(path, columns), 1):
            yield entry.id or str(number), _said(entry.text, entry.about)


def _said(text: str, about: Mapping[str, Any]) -> list[str]:
    return [text, *(str(about[name]) for name in ("title", "author") if name in about)]
