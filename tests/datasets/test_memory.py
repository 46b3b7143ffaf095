"""LoCoMo and REALTALK: small files as their authors publish them."""

import json

import pytest

from rejoinder.datasets.memory import parse_conversations, read_conversations
from rejoinder.errors import DataMissingError, InputError


def locomo(*evidence):
    """A conversation with a question for each value of `evidence`."""
    said = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Hi!"},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Look:", "blip_caption": "a photo of a dog",
         "img_url": ["https://localhost/a.jpg"], "query": "dog"},
    ]  # fmt: skip
    last = [{"speaker": "Ann", "dia_id": "D10:1", "text": "Bye."}]
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Ben",
            "session_10_date_time": "12:09 am on 13 September, 2023", "session_10": last,
            "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": said,
            "session_2_date_time": "1:56 pm on 9 May, 2023",
        },
        "qa": [{"question": f"Q{row}?", "answer": 2022, "evidence": ids, "category": 1 + row % 2}
               for row, ids in enumerate(evidence)],
        "event_summary": {},
    }  # fmt: skip


REALTALK = {
    "name": {"speaker_1": "Emi", "speaker_2": "Elise"},
    "session_1": [
        {"clean_text": "Off for a run", "speaker": "Emi", "date_time": "29.12.2023, 00:51:12",
         "img_file": [], "img_url": [], "dia_id": "D1:1"},
        {"clean_text": "", "speaker": "Elise", "date_time": "30.12.2023, 23:59:59",
         "img_file": ["a.jpg"], "img_url": [], "dia_id": "D1:3", "blip_caption": "a stream"},
    ],
    "session_1_date_time": "29.12.2023, 00:51:12",
    "qa": [{"question": "When?", "answer": "29.12.2023", "evidence": ["D1:1"], "category": 2}],
}  # fmt: skip


def parsed(tree, path):
    [talk] = parse_conversations(json.dumps(tree).encode(), path)
    return talk


def test_turns_are_in_the_order_of_sessions_with_dates_and_captions(tmp_path):
    talk = parsed(locomo(["D1:1"]), tmp_path)
    assert [turn.dated for turn in talk.turns] == [
        "08 May 2023 Ann: Hi!",
        "08 May 2023 Ben: Look: a photo of a dog",
        "13 September 2023 Ann: Bye.",
    ]
    assert talk.turns[1].time - talk.turns[0].time == 1
    assert [turn.dated for turn in parsed(REALTALK, tmp_path).turns] == [
        "29 December 2023 Emi: Off for a run",
        "31 December 2023 Elise: a stream",  # a second after its time, because it comes second
    ]


@pytest.mark.parametrize(
    ("evidence", "answers"),
    [
        (["D1:1", "D10:1"], {"D1:1", "D10:1"}),
        ("D1:2", {"D1:2"}),
        (["D1:1; D10:1"], {"D1:1", "D10:1"}),
        ("D1:1, D10:1", {"D1:1", "D10:1"}),
        (["D1:1 D1:2"], {"D1:1", "D1:2"}),
        ([" D1: 02 ", "D 010:01"], {"D1:2", "D10:1"}),
        (["D1:2", "D1:99", "D", "D:11:26"], {"D1:2"}),
        (["D1:99"], None),
        ([], None),
        ("", None),
        (None, None),
    ],
)
def test_evidence_has_many_forms(evidence, answers, tmp_path):
    found = [question.answers for question in parsed(locomo(evidence), tmp_path).questions]
    assert found == ([] if answers is None else [answers])


def test_a_question_without_evidence_is_left_out(tmp_path):
    tree = locomo("D1:1")
    del tree["qa"][0]["evidence"]
    assert parsed(tree, tmp_path).questions == []


def test_a_file_of_all_conversations_and_a_file_for_each_are_the_same(tmp_path):
    talks = [locomo(["D1:1"]), locomo(["D1:2"], "D10:1")]
    for folder, files in (("a/memory", [talks]), ("b", talks)):
        (tmp_path / folder / "locomo").mkdir(parents=True)
        for number, tree in enumerate(files):
            path = tmp_path / folder / "locomo" / f"{number}.json"
            path.write_text(json.dumps(tree))
    whole, apart = (read_conversations(tmp_path / name, "locomo") for name in "ab")
    assert whole.all == apart.all
    assert [len(talk.questions) for talk in whole.all] == [1, 2]
    assert whole.sha256 != apart.sha256


def test_missing_data_says_where_to_get_it(tmp_path):
    with pytest.raises(DataMissingError, match=r"snap-research/locomo there \(CC BY-NC 4.0\)"):
        read_conversations(tmp_path, "locomo")
    with pytest.raises(DataMissingError, match="danny911kr/REALTALK there"):
        read_conversations(tmp_path, "realtalk")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"session_1_date_time": "yesterday"}, "'yesterday' is not a time"),
        ({"session_1_date_time": None}, "'None' is not a time"),
        ({"session_1": [{"speaker": "Ann", "text": "Hi!"}]}, "dia_id"),
        ({"session_1": None}, "Expected `array`"),
    ],
)
def test_a_damaged_file_is_refused(change, said, tmp_path):
    tree = locomo(["D1:1"])
    tree["conversation"] |= change
    with pytest.raises(InputError, match=said):
        parsed(tree, tmp_path / "a.json")


def test_files_without_questions_are_refused(tmp_path):
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo/a.json").write_text(json.dumps(locomo(["D7:7"])))
    with pytest.raises(InputError, match="no question whose turn exists"):
        read_conversations(tmp_path, "locomo")
