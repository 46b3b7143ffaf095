"""Dumps as tables, Parquet and compressed lines, damaged: rows, counted lines, or one sentence."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from random import Random

import polars as pl
import zstandard

from dumps import comment
from fuzzing.datasets import damaged
from rejoinder.corpus.options import ExtractOptions, as_columns
from rejoinder.corpus.reading.columns import ARROW
from rejoinder.corpus.reading.readers import Report, read_comments
from rejoinder.errors import RejoinderError

_COMMENTS = [
    comment("a", "A message, \"quoted\"\nand more"), comment("b", "très 😀\ta reply", "t1_a"),
    comment("c", "[deleted]", "t1_b", author=None), comment("d", "1,2;3", "t1_b", score=5),
]  # fmt: skip
_PAIRS = [{"message": "How are you?", "reply": 'Fine, "thanks"'}, {"message": "é", "reply": ""}]


def _table(rows: list[dict[str, object]], separator: str) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(rows, strict=False).write_csv(out, separator=separator)
    return out.getvalue()


def _parquet(rows: list[dict[str, object]], packing: str) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(rows, strict=False).write_parquet(out, compression=packing)
    return out.getvalue()


_LINES = "".join(f"{json.dumps(row)}\n" for row in _COMMENTS).encode()
FILES: dict[str, tuple[bytes, str | None]] = {
    "a.csv": (_table(_COMMENTS, ","), None),
    "b.tsv": (_table(_COMMENTS, "\t"), None),
    "c.csv": (_table(_COMMENTS, ";"), None),
    "pairs.csv": (_table(_PAIRS, ","), "message=message,reply=reply"),
    "pairs.tsv.gz": (gzip.compress(_table(_PAIRS, "\t")), "message=message,reply=reply"),
    "d.parquet": (_parquet(_COMMENTS, "zstd"), None),
    "e.parquet": (_parquet(_COMMENTS, "uncompressed"), None),
    "f.jsonl": (_LINES, None),
    "g.jsonl.gz": (gzip.compress(_LINES), None),
    "h.jsonl.zst": (zstandard.compress(_LINES), None),
    "i.jsonl.bz2": (bz2.compress(_LINES), None),
    "j.jsonl.xz": (lzma.compress(_LINES), None),
}
"""By name: a file, and its columns where they are not those of the public dumps."""


def checker(folder: Path) -> Callable[[Random], bool]:
    """What reads one damaged dump; true: all of its rows are comments."""

    def checked(random: Random) -> bool:
        name = random.choice(list(FILES))
        content, columns = FILES[name]
        path = folder / name
        path.write_bytes(damaged(content, random))
        report = Report()
        try:
            options = ExtractOptions(columns=as_columns(columns))
            batches = list(read_comments([path], options, report, lambda batch: batch))
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            str(error).encode()
            return False
        for batch in batches:
            assert batch.schema == ARROW
            assert not batch["text"].null_count
        return not report.files[0].malformed

    return checked
