"""Texts that tokenizers disagree about: other scripts, marks, quotes, white space, sigmas."""

import sys
import unicodedata
from random import Random

WORDS = (  # noqa: SIM905 -- a sentence is easier to read
    "How old are you? What is your age? I'm 20 years old, aren't I? Don't panic! IT'S the "
    "rock'n'roll naïve CAFÉ ﬁne ＦＵＬＬ Straße İstanbul ΟΔΥΣΣΕΥΣ Σ. Σ Σίσυφος ΑΣ'Β très 42nd "
    "e.g. U.S.A. 3.14 ½ ² ① Ⅷ x² ㎏ ㋿ ꟲat 10\N{NO-BREAK SPACE}000 “quoted” ‘so’ o’clock ʼtis "
    "مرحبا 你好 안녕 नमस्ते สวัสดี 😀 👩‍👩‍👧 🇳🇴 \u200b \ufeff \u0301 a\u0301\u0323 A\u030a Å"
).split(" ")
_SPACES = (" ", " ", " ", "", "\t", "\n", "\u2003", "\u3000", "\x85", "\u2028", "\x00", "\x1f")
_EXTREMES = (
    "",
    " ",
    "\n\t ",
    "?!",
    "😀" * 300,
    "how " * 2_000,
    "Σ" * 50,
    "a" + "\u0301" * 40,
    "'" * 9,
    "a''b 'c' d'",
    "ΌΣΟΣ" + "\u0301" * 12 + "Σ",
    "\N{GREEK CAPITAL LETTER SIGMA}",
)


def characters() -> list[str]:
    """Characters of Unicode 14, which the text rules are defined for: all but ideographs and such.

    Of letters without case every hundredth is enough, and marks are those of Unicode 3.2: what is
    newer may be put into another order by a tokenizer that follows an older Unicode.
    """
    return [
        character
        for code, character in enumerate(map(chr, range(sys.maxunicode + 1)))
        if (kind := unicodedata.category(character)) not in ("Cn", "Co", "Cs")
        and (kind != "Lo" or code % 100 == 0 or unicodedata.decomposition(character))
        and (kind[0] != "M" or unicodedata.ucd_3_2_0.category(character) != "Cn")
    ]


def awkward_texts(count: int = 1_000, seed: int = 0) -> list[str]:
    """`count` texts; the same seed gives the same ones with the same version of Python."""
    draw, inserted = Random(seed), characters()
    texts = list(_EXTREMES)
    while len(texts) < count:
        parts = []
        for _ in range(draw.randint(1, 12)):
            part = draw.choice(WORDS)
            if draw.random() < 0.2:
                part = draw.choice((part.upper, part.title, part.swapcase))()
            if draw.random() < 0.15:
                at = draw.randint(0, len(part))
                part = part[:at] + draw.choice(inserted) + part[at:]
            parts += [part, draw.choice(_SPACES)]
        texts.append("".join(parts))
    return texts[:count]
