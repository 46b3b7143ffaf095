"""Dumps of JSON lines read in two ways: a line means the same next to any other line."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa

from fuzzing.json_lines import KEYS, json_lines, malformed_line
from rejoinder.corpus.reading.columns import Parsed
from rejoinder.corpus.reading.readers import parse_block

FIELDS = KEYS[:-1]
NEEDED = ("id", "body")


def parse(block: bytes, first_line: int = 1) -> Parsed:
    """A block as a dump holds it."""
    return parse_block(block, FIELDS, NEEDED, "dump.jsonl", first_line)


def ended(content: bytes) -> bytes:
    """The content with an end of its last line."""
    return content if content.endswith(b"\n") else content + b"\n"


def check_with_malformed(content: bytes, malformed: bytes) -> None:
    """The fast path and, as a malformed line follows, the slow one: the same rows."""
    alone, together = parse(content), parse(ended(content) + malformed)
    assert together.table.equals(alone.table)
    assert list(together.numbers) == list(alone.numbers)
    assert together.malformed[:-1] == alone.malformed
    assert together.malformed[-1].line == content.count(b"\n") + (not content.endswith(b"\n")) + 1


def check_line_by_line(content: bytes) -> None:
    """The lines one by one and the whole file: the same rows."""
    whole = parse(content)
    # a byte order mark is not part of a line
    parts = [parse(line, number) for number, line in enumerate(content.split(b"\n"), 1)]
    assert pa.concat_tables([part.table for part in parts]).equals(whole.table)
    assert [n for part in parts for n in part.numbers] == list(whole.numbers)
    assert tuple(bad for part in parts for bad in part.malformed) == whole.malformed


def checker(folder: Path) -> Callable[[Random], bool]:
    """What checks a file of lines; true: all of its lines are comments."""

    def checked(random: Random) -> bool:
        content = json_lines(random)
        if random.random() < 0.5:
            check_with_malformed(content, malformed_line(random))
        else:
            check_line_by_line(content)
        return not parse(content).malformed

    return checked
