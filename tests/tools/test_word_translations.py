"""Words and their translations from made-up packages of npm."""

import json

from word_translations import LANGUAGES, emoji_pairs, map_pairs, write


def save(path, tree):
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(tree), "utf-8")


def test_names_and_keywords_of_emoji_are_paired_by_their_sign(tmp_path):
    for language in ("en", *LANGUAGES):
        signs = {"🐈": {"tts": [f"{language} cat"], "default": [f"{language} pet", "x"]}}
        if language == "en":
            signs["🐕"] = {"tts": ["dog"]}  # which the others lack
        folder = tmp_path / "cldr/annotations" / language
        save(folder / "annotations.json", {"annotations": {"annotations": signs}})
    found = list(emoji_pairs(tmp_path))
    assert len(found) == 2 * len(LANGUAGES)
    assert ("en cat", "tr cat", "tr") in found
    assert ("en pet, x", "ar pet, x", "ar") in found


def test_names_of_things_are_paired_with_names_and_other_words(tmp_path):
    for language in ("en", *LANGUAGES):
        bench = {"name": f"{language} bench", "terms": f"{language} seat, <not this>"}
        pool = {} if language == "tr" else {"name": "pool"}
        colour = {"label": "colour", "options": {"red": {"title": f"{language} red"}}}
        tree = {"presets": {"bench": bench, "pool": pool}, "fields": {"colour": colour}}
        path = tmp_path / "dist/translations"
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{language}.json").write_text(json.dumps({language: {"presets": tree}}), "utf-8")
    found = list(map_pairs(tmp_path))
    assert {("en bench", "es bench", "es"), ("en bench", "es seat", "es")} <= {*found}
    assert ("en red", "tr red", "tr") in found
    write(tmp_path / "osm.jsonl", iter(found))
    rows = [json.loads(line) for line in (tmp_path / "osm.jsonl").read_text("utf-8").splitlines()]
    assert {"sentence1": "en bench", "sentence2": "ar bench", "lang": "en-ar"} in rows
    assert not any(row["sentence1"] == row["sentence2"] or not row["sentence2"] for row in rows)
