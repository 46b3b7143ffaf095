"""What somebody may hand to `encode`: strings of every kind, and what is none."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

from rejoinder.errors import RejoinderError
from rejoinder.inference.encoder import SentenceEncoder
from tiny_models import WORDS, bilstm_model, dan_model, transformer_model

_PIECES = (
    *WORDS, " ", "  ", "\t", "\n", "\r\n", "\0", "\x1b[31m", "\x7f", "\x85", "\u00a0", "\u00ad",
    "\u200b", "\u200d", "\u200e", "\u202e", "\u2028", "\u2029", "\ufeff", "\ufffd", "\ufffe",
    "\uffff", "\U0010ffff", "\ud800", "\udfff", "\ud83d", "\ude00", "\ud83d\ude00", "é", "e\u0301",
    "\u0301", "\u0301" * 30, "ﬁ", "İ", "ß", "ẞ", "ſ", "ŉ", "ΑΣ", "Å", "\u2126", "１２", "٣", "½",
    "\ufdfa", "שלום", "مرحبا", "สวัสดี", "नमस्ते", "你好", "こんにちは", "ﾊﾝｶｸ", "한국어",
    "\u1112\u1161\u11ab",
    "😀", "👩‍👩‍👧‍👦", "👍🏽", "🇳🇴", "1️⃣", "don’t", "rock'n'roll", "'", "''", "’", "“", "<s>", "</s>",
    "[UNK]", "<|endoftext|>", "%s", "{0}", "\\u0000", "https://a.b/c?d=e&f", "a@b.cd", "#1", "-",
    "x" * 300, "1e999", "NaN", "None",
)  # fmt: skip
_NO_SENTENCES: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: 5, lambda: 2.5, lambda: True, lambda: b"how", lambda: bytearray(b"how"),
    lambda: {"how": 1}, lambda: {"how"}, lambda: frozenset({"a"}), lambda: [None],
    lambda: ["how", None], lambda: ["how", 3], lambda: [["how"]], lambda: [b"how"],
    lambda: [("a",)],
    lambda: ["how", float("nan")], lambda: np.array([1.0, 2.0]), lambda: np.array([["how", "a"]]),
    lambda: np.array(5), lambda: np.array([b"how"]), lambda: np.array(["how", None], object),
    lambda: np.zeros((0, 3)), lambda: np.array(["2020-01-01"], "datetime64[D]"), lambda: range(3),
    lambda: pl.Series(["how", None]), lambda: pl.Series([1, 2]), lambda: pl.Series([["how"]]),
    lambda: pl.DataFrame({"a": ["how"]}),
    lambda: pl.Series([b"how"]), lambda: pl.Series([None, None]),
    lambda: pl.LazyFrame({"a": ["b"]}),
    lambda: object, lambda: str, lambda: iter([3]), lambda: memoryview(b"how"), lambda: 1j,
    lambda: pl.col("a"), lambda: pl.Series([], dtype=pl.Int64),
)  # fmt: skip
_BATCH_SIZES = (0, -1, 1.0, None, "5", True, float("nan"), 2**70, np.int64(0), [1])


class _Word(str):
    """A string of a subclass."""


def text(random: Random) -> str:
    """A string, of pieces that break naive code; rarely a very long one."""
    draw = random.random()
    if draw < 0.05:
        return ""
    if draw < 0.055:
        return random.choice(_PIECES) * random.choice((1_000, 5_000))
    if draw < 0.5:
        return " ".join(random.choices(_PIECES, k=random.randint(1, 12)))
    if draw < 0.8:
        return "".join(random.choices(_PIECES, k=random.randint(1, 8)))
    high = random.choice((0x80, 0x800, 0x3000, 0x10000, 0x110000))
    return "".join(chr(random.randrange(high)) for _ in range(random.randint(1, 30)))


def sentences(random: Random) -> tuple[Any, list[str] | None]:
    """What to encode, and its strings; none: it should be refused, or is of no sentences."""
    if random.random() < 0.1:
        return random.choice(_NO_SENTENCES)(), None
    texts = [text(random) for _ in range(random.choice((0, 1, 1, 2, 3, 5, 9)))]
    if texts and random.random() < 0.2:
        texts.append(random.choice(texts))
    whole = not any("\ud800" <= sign <= "\udfff" for one in texts for sign in one)
    match random.randrange(8):
        case 0 if texts:
            return texts[0], texts[:1]
        case 1:
            return tuple(texts), texts
        case 2:
            return iter(texts), texts
        case 3 if whole:
            kind = pl.Categorical if random.random() < 0.2 else pl.String
            return pl.Series(texts, dtype=kind), texts
        case 4:
            return np.array(texts, object), texts
        case 5 if texts:
            array = np.array(texts)
            return array, array.tolist()  # NumPy drops NULs at the end
        case 6:
            return [_Word(one) for one in texts], texts
    return texts, texts


def check(encoder: SentenceEncoder, random: Random, tolerance: float) -> bool:
    """Encode what was drawn; true: it was encoded, alone as in its batch."""
    given, texts = sentences(random)
    response = random.random() < 0.2
    encode = encoder.encode_response if response else encoder.encode
    normalize = random.random() < 0.8
    size: Any = random.choice((1, 2, 3, 1_000))
    if wrong := random.random() < 0.02:
        size = random.choice(_BATCH_SIZES)
    single = isinstance(given, str)
    try:
        rows = encode(given, batch_size=size, normalize=normalize)
    except RejoinderError as error:
        assert texts is None or wrong, f"{texts!r} were refused: {error}"  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017 -- one sentence
        return False
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    count = len(rows) if texts is None else len(texts)
    assert rows.shape == ((encoder.dim,) if single else (count, encoder.dim)), rows.shape
    if texts is None:
        assert count == 0, "something else than sentences was encoded"
        return True
    rows = np.atleast_2d(rows)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    if normalize:
        assert ((np.abs(lengths - 1) < 1e-5) | (lengths == 0)).all(), lengths
    if texts:
        place = random.randrange(len(texts))
        alone, row = encode(texts[place], normalize=normalize), rows[place]
        assert np.abs(alone - row).max() <= tolerance * max(1.0, float(np.abs(row).max()))
    return True


def checker(folder: Path) -> Callable[[Random], bool]:
    """What encodes one draw with one of several tiny models."""
    dans = (
        SentenceEncoder(dan_model(), threads=1),
        SentenceEncoder(dan_model(buckets=0, combiner="mean"), threads=1),
        SentenceEncoder(dan_model(unknown_buckets=4, dtype=np.float16), threads=1),
    )
    others = tuple(SentenceEncoder(m, threads=1) for m in (bilstm_model(), transformer_model()))

    def checked(random: Random) -> bool:
        if random.random() < 0.02:
            return check(random.choice(others), random, 1e-5)
        return check(random.choice(dans), random, 1e-6)

    return checked
