"""Writes words and their translations as pairs, from two packages of npm.

    npm pack cldr-annotations-full cldr-annotations-derived-full @openstreetmap/id-tagging-schema
    python tools/word_translations.py FOLDER_OF_UNPACKED_PACKAGES data/lexical

Names and keywords of emoji are those of Unicode CLDR (`cldr.jsonl`), names of things on maps and
words for them those of OpenStreetMap's editor (`osm.jsonl`). `rejoinder-multi` trains on both: they
name animals, food, sports and buildings, which parallel text of programs and news lacks.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LANGUAGES = ("es", "ar", "tr", "de", "fr", "it")
_MOST_WORDS = 8
"""Most words for a thing on a map."""
Pair = tuple[str, str, str]
"""English, its translation, and the language."""


def emoji_pairs(folder: Path) -> Iterator[Pair]:
    """Yields names of emoji with their translations, and all their keywords as one text."""
    english = _emoji(folder, "en")
    for language in LANGUAGES:
        translated = _emoji(folder, language)
        for sign, (name, keywords) in english.items():
            other, words = translated.get(sign, ("", []))
            if name and other:
                yield name, other, language
                if keywords and words:
                    yield ", ".join(keywords), ", ".join(words), language


def _emoji(folder: Path, language: str) -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for path in sorted(folder.glob(f"**/annotations*/{language}/annotations.json")):
        tree = json.loads(path.read_text("utf-8"))
        signs = (tree.get("annotations") or tree["annotationsDerived"])["annotations"]
        found |= {
            sign: (facts.get("tts", [""])[0], facts.get("default", []))
            for sign, facts in signs.items()
        }
    return found


def map_pairs(folder: Path) -> Iterator[Pair]:
    """Yields names of things on maps with their translations, and other words for them."""
    english = _presets(folder, "en")
    for language in LANGUAGES:
        translated = _presets(folder, language)
        for kind, facts in english["presets"].items():
            other = translated["presets"].get(kind) or {}
            if name := facts.get("name"):
                terms = other.get("terms", "").replace("\n", ",").split(",")
                words = [term.strip() for term in terms if not term.startswith("<")]
                for word in (other.get("name"), *words[:_MOST_WORDS]):
                    yield name, word or "", language
        for key, facts in english["fields"].items():
            other = translated["fields"].get(key) or {}
            yield facts.get("label") or "", other.get("label") or "", language
            options, others = (each.get("options") or {} for each in (facts, other))
            for option, title in options.items():
                yield _title(title), _title(others.get(option)), language


def _presets(folder: Path, language: str) -> dict[str, Any]:
    [path] = folder.glob(f"**/dist/translations/{language}.json")
    presets: dict[str, Any] = json.loads(path.read_text("utf-8"))[language]["presets"]
    return presets


def _title(option: Any) -> str:
    return str((option.get("title") if isinstance(option, dict) else option) or "")


def write(path: Path, pairs: Iterator[Pair]) -> None:
    """Writes different pairs as JSON lines, without those that are the same in both languages."""
    rows = [pair for pair in dict.fromkeys(pairs) if pair[0] and pair[1] and pair[0] != pair[1]]
    lines = (
        json.dumps(
            {"sentence1": english, "sentence2": other, "lang": f"en-{language}"},
            ensure_ascii=False,
        )
        for english, other, language in rows
    )
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    source, out = map(Path, sys.argv[1:])
    write(out / "cldr.jsonl", emoji_pairs(source))
    write(out / "osm.jsonl", map_pairs(source))
