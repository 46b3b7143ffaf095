"""Unusual files of JSON lines, and lines that are not comments."""

from collections.abc import Callable
from random import Random

KEYS = ("id", "parent_id", "link_id", "author", "subreddit", "body", "extra")

_NUMBERS = (
    "0", "1", "2", "2.0", "-0", "-0.0", "2.50", "1e3", "1E+3", "1.0e16", "1e-7", "1e21", "5e-324",
    "1.7976931348623157e308", "1.8e308", "-1e400", "1e-400", "0e99999", "12345678901234567890.0",
    "9007199254740993", "-9223372036854775809", "18446744073709551616",
    "340282366920938463463374607431768211455", "340282366920938463463374607431768211456",
    "0.1000000000000000055511151231257827",
)  # fmt: skip
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_NO_VALUES = ("01", "+1", ".5", "1.", "1e", "0x10", "--1", "nan", "True", "None", "", "'a'")
_PARTS = (
    "a", "b", "t1_a", "t1_2.0", "2.0", "words", " ", "\u00e9", "\U0001f600", "\u2028", "\x85",
    "\ufeff", "\x7f", "\t", "\x00", "\x01", "\x0b", "\r", r"\n", r"\t", r"\"", r"\\", r"\/",
    r"\u0000", r"\u0041", r"\ud83d", r"\ude00", r"\ud83d\ude00", r"\ud83d\u0041", r"\uDBFF\uDFFF",
    r"\\ud83d", "NaN", "1e999", "{", "]", "'", ", ", "&amp;", "[deleted]", r"\x", r"\u12", r"\ud83",
    '"',
)  # fmt: skip
_BROKEN_PARTS = 4
"""The last of them end a string early or are not escapes."""
_SPACES = ("",) * 100 + (" ", "\t", "  ") * 30 + ("\x0b", "\x85")
_LINE_ENDS = (b"\n",) * 9 + (b"\r\n", b"\n\n", b" \n", b"\n \t\n", b"\r", b"\n\x0c\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BAD_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xf0\x9f\x98", b"\xc0\x80")
_MALFORMED = (
    b'{"id": "x", "body": "cut', b"[1, 2]", b"null", b'"text"', b"5", b"{}", b'{"id": "x"}',
    b'{"id": null, "body": "y"}', b'{"id": "x", "body": "y"} z', b"\x00\x00", b"{'id': 1}", b"}{",
    b'{"id": "x", "body": "y",}', b"id,parent_id,body", b'{"id": NaN, "body": 1}',
)  # fmt: skip


def malformed_line(random: Random) -> bytes:
    """A line that is not a comment, without its end."""
    return random.choice(_MALFORMED)


def json_lines(random: Random) -> bytes:
    """A file of a few lines: most of them comments, some of which no reader should take.

    Numbers beyond 64 and 128 bits, floats, NaN, nesting, repeated keys, halves of surrogate
    pairs, control characters, byte order marks, bytes that are not UTF-8, line ends of all kinds.
    """
    tame = random.random() < 0.3  # else hardly any file would be read at the first attempt
    content = [_BYTE_ORDER_MARK] if random.random() < 0.1 else []
    for _ in range(random.randint(1, 8)):
        content.append(_tame(random) if tame else _line(random))
        content.append(b"\n" if tame else random.choice(_LINE_ENDS))
    return b"".join(content if random.random() < 0.8 else content[:-1])


def _tame(random: Random) -> bytes:
    """A line that is fine but for numbers, repeated keys and halves of surrogate pairs."""
    numbers = ("1", "2", "2.0", "1e3", "-0.0", "12345678901234567890123", "2.5", "true", "null")
    strings = (r'"a"', r'"t1_2.0"', r'"\ud83d"', r'"\ud83d!"', r'"\u0000"', '"[1]"', "[1.0, {}]")
    keys = ["id", "parent_id", "body", *random.choices(KEYS, k=random.randint(0, 4))]
    random.shuffle(keys)
    items = [f'"{key}": {random.choice(random.choice((numbers, strings)))}' for key in keys]
    return ("{" + ", ".join(items) + "}").encode()


def _line(random: Random) -> bytes:
    if random.random() < 0.05:
        return malformed_line(random)
    keys = ["id", "parent_id", "body", *random.choices(KEYS, k=random.randint(0, 6))]
    if random.random() < 0.02:
        keys += [f"key{number}" for number in range(40)]
    random.shuffle(keys)
    if random.random() < 0.05:
        del keys[random.randrange(len(keys))]
    space: Callable[[], str] = lambda: random.choice(_SPACES)  # noqa: E731
    items = [f"{space()}{_key(random, key)}{space()}:{space()}{_value(random, 0)}" for key in keys]
    end = random.choice(("}",) * 60 + ("", ",}", "} x", "}{}", "}]", "}\x0b"))
    line = (space() + "{" + ",".join(items) + end + space()).encode()
    if random.random() < 0.08:
        cut = random.randrange(len(line))
        line = line[:cut] + random.choice(_BAD_BYTES) + line[cut:]
    if random.random() < 0.03:
        line = _BYTE_ORDER_MARK + line
    return line.replace(b"\n", b" ")


def _key(random: Random, key: str) -> str:
    if random.random() < 0.05:  # the same key, escaped
        key = f"\\u{ord(key[0]):04x}{key[1:]}"
    return f'"{key}"'


def _value(random: Random, depth: int) -> str:
    if random.random() < 0.01:
        return random.choice(_NO_VALUES)
    draw = random.random()
    if draw < 0.45:
        return '"' + "".join(random.choices(_PARTS[:6], k=random.randint(0, 3))) + '"'
    if draw < 0.6:
        parts = _PARTS if random.random() < 0.3 else _PARTS[:-_BROKEN_PARTS]
        return '"' + "".join(random.choices(parts, k=random.randint(0, 4))) + '"'
    if draw < 0.8:
        return random.choice(_NUMBERS)
    if draw < 0.88 or depth > 3:
        return random.choice(_WORDS)
    if draw < 0.89:
        levels = random.choice((50, 900, 1_010, 1_023, 1_024, 1_025, 1_100, 5_000))
        return "[" * levels + "1.0" + "]" * levels
    inner = [_value(random, depth + 1) for _ in range(random.randint(0, 3))]
    comma = ", " if random.random() < 0.98 else ",,"
    if draw < 0.95:
        return "[" + comma.join(inner) + "]"
    return "{" + comma.join(f"{_key(random, random.choice(KEYS))}: {v}" for v in inner) + "}"
