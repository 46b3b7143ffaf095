"""The text rules and a vocabulary as a tokenizer of the Hugging Face library `tokenizers`."""

import json
from collections.abc import Sequence
from unicodedata import normalize

from rejoinder.errors import InputError
from rejoinder.text.normalize import PATTERN, QUOTES

UNKNOWN = "[UNK]"
"""The token that stands for every unknown word. Its id follows those of all words. No word is
called so, because the text rules make three tokens of it."""

_CASED = r"[\p{Cased}&&[^\p{Case_Ignorable}]]"
_FINAL_SIGMA = rf"(?<={_CASED}\p{{Case_Ignorable}}{{0,30}})Σ(?!\p{{Case_Ignorable}}*{_CASED})"
"""A capital sigma at the end of a word, whose lower case is another letter than elsewhere."""
_NEWER = tuple(
    chr(code)
    for codes in (
        (0x32FF, 0xAB69, 0x1F16C),
        range(0xA7F2, 0xA7F5),
        range(0x10781, 0x107BB),
        range(0x1FBF0, 0x1FBFA),
    )
    for code in codes
    if normalize("NFKC", chr(code)) != chr(code)
)
"""Characters that NFKC changes by Unicode 14, but not by Unicode 9, which the library follows."""


def tokenizer_json(words: Sequence[str]) -> str:
    """Returns `tokenizer.json` for a vocabulary: the tokens of text rules 1, and the ids of words.

    Of two kinds of text the tokens differ from ours: half a surrogate pair is refused by the
    library, and marks that Unicode got after version 9 may be ordered differently after a letter.

    Raises:
        InputError: a word has the name of the token for unknown words.
    """
    if UNKNOWN in words:
        raise InputError(f"the vocabulary lists {UNKNOWN!r}, which no sentence can contain.")
    vocabulary = {word: number for number, word in enumerate((*words, UNKNOWN))}
    tree: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(words)},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": PATTERN},
            "behavior": "Removed",
            "invert": True,
        },
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


def _normalizers(words: Sequence[str]) -> list[dict[str, object]]:
    """Returns the steps of normalisation, in order."""
    return [
        *(_replace({"String": old}, normalize("NFKC", old)) for old in _relevant(words)),
        {"type": "NFKC"},
        *(_replace({"String": old}, new) for old, new in QUOTES.items()),
        _replace({"Regex": _FINAL_SIGMA}, "ς"),
        {"type": "Lowercase"},
    ]


def _relevant(words: Sequence[str]) -> list[str]:
    """Returns the newer characters that can be part of a word that is known.

    Each step takes time for every sentence. Most are letters, and become letters of which no word
    is made: a word with one of them is unknown in both forms.
    """
    letters = set(normalize("NFKD", "".join(words)))
    return [
        character
        for character in _NEWER
        if not character.isalpha() or letters.issuperset(normalize("NFKD", character).lower())
    ]


def _replace(pattern: dict[str, str], content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": pattern, "content": content}
