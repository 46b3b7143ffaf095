"""Sentences with their translations: the devtest of FLORES-200 (NLLB Team 2022)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.files import find_folder, read_bytes
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.json_lines import json_rows

FILE = "heldout_flores200_devtest.jsonl"
_FOLDERS = ("parallel", "")


@dataclass(frozen=True)
class Translations:
    """Sentences by language; row i of each language is the same sentence."""

    texts: dict[str, list[str]]
    sha256: str


def read_translations(
    data: Path, languages: Sequence[str], most: int | None = None
) -> Translations:
    """Reads the first `most` sentences in some languages, such as `en` and `tr`.

    Raises:
        InputError: the file is missing, a language is missing in a row, or a sentence is blank.
    """
    path = find_folder(data, _FOLDERS, FILE, "the devtest of FLORES-200") / FILE
    content = read_bytes(path)
    rows = json_rows(content, path, dict.fromkeys(languages, "text")).head(most or 2**31)
    texts = {language: rows[language].str.strip_chars().to_list() for language in languages}
    for language, column in texts.items():
        if "" in column:
            raise InputError(
                f"{path} row {column.index('') + 1}: the sentence in {language!r} is blank. Get "
                "the file again."
            )
    return Translations(texts, sha256_of(content))
