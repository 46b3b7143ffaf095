"""Suggestions from each kind of past: pairs, exports, indexes, canned answers."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from export_samples import slack, write
from rejoinder import Index, SentenceEncoder, Suggestions
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.replies import CHECK, FILE, FIT, HISTORY, past_replies, read_kept
from rejoinder.conversations.suggest import Suggester
from rejoinder.corpus.extract import extract
from rejoinder.corpus.texts import Entry
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError
from rejoinder.index.where import conditions_of

DESK = Path(__file__).parents[2] / "examples/support_desk.py"
ASKED = "my parcel is not here"


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder("rejoinder-small", threads=1)


@pytest.fixture(scope="module")
def desk():
    """Questions and answers of a made-up support desk."""
    spec = importlib.util.spec_from_file_location("support_desk", DESK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.rows()


@pytest.fixture(scope="module")
def messages(desk):
    """The same as messages of customers and of two people who answer."""
    found = []
    for number, (question, answer) in enumerate(desk[:600]):
        asked, desk_of = f"q{number}", ("ann", "bob")[number % 2]
        about = {"author": f"customer {number}", "thread": asked}
        found += [
            Entry(asked, question, about),
            Entry(f"a{number}", answer, {"author": desk_of, "answers": asked, "thread": asked}),
        ]
    return found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory, desk):
    folder = tmp_path_factory.mktemp("pairs")
    lines = [json.dumps({"question": one, "answer": other}) for one, other in desk]
    (folder / "desk.jsonl").write_text("\n".join(lines))
    columns = "message=question,reply=answer"
    extract(folder / "desk.jsonl", folder / "pairs", columns=columns, split=(80, 10, 10))
    return folder / "pairs"


@pytest.fixture(scope="module")
def of_pairs(pairs, encoder):
    return Suggestions.open(pairs, encoder)


def test_suggestions_are_replies_with_the_messages_that_they_answered(of_pairs, pairs):
    known = {
        (reply, text, message)
        for split in ("train", "dev", "test")
        for reply, text, message in open_pairs(pairs)
        .frame(split, ["response_id", "response", "input"])
        .iter_rows()
    }
    found = of_pairs.suggest("the order and the payment, please", 5)
    assert 2 <= len(found.suggestions) <= 5
    for one in found.suggestions:
        assert (one.id, one.reply, one.answered) in known
        assert 1 <= one.alike <= 200
        assert -1 <= one.similarity <= 1.001
    scores = [one.score for one in found.suggestions]
    chances = [one.confidence for one in found.suggestions]
    assert scores == sorted(scores, reverse=True)
    assert chances == sorted(chances, reverse=True)
    assert 0 < chances[-1] <= chances[0] < 1
    assert found.is_good == (chances[0] >= found.threshold)


def test_the_right_answer_is_first(of_pairs):
    for message, word in {
        ASKED: "parcel", "the money was taken twice": "euros", "opening hours?": "nine",
    }.items():  # fmt: skip
        found = of_pairs.suggest(message)
        assert word in found.suggestions[0].reply
        assert found.is_good
        assert found.suggestions[0].alike > 20
    assert not of_pairs.suggest("The committee meets in Geneva about nuclear treaties.").is_good


def test_what_is_held_out_is_told(of_pairs):
    told = of_pairs.fitted
    assert told.threshold == 0.3
    assert told.fitted_on > 40
    assert told.outcome.messages > 40
    assert 0 <= told.same_words <= told.outcome.right <= told.outcome.answered
    assert told.outcome.answered <= told.outcome.messages
    assert told.to_dict()["coverage"] == told.outcome.coverage


def test_the_least_confidence_of_a_good_answer(pairs, encoder, of_pairs):
    for least, expected in ((1.0, False), (0.0, True)):
        opened = Suggestions.open(pairs, encoder, confidence=least)
        assert opened.fitted.outcome.coverage == expected
        found = opened.suggest(ASKED)
        assert found.is_good is expected
        assert found.suggestions == of_pairs.suggest(ASKED).suggestions
    told = of_pairs.fitted.at
    coverages = [told[level].coverage for level in sorted(told)]
    assert coverages == sorted(coverages, reverse=True)


def test_a_thread_is_held_out_as_a_whole(pairs, messages, encoder):
    for source in (pairs, messages):
        made = open_collection(source, encoder)
        past = past_replies(made)
        threads = np.array(made.column("thread"))[past.replied]
        seen = [{*threads[past.parts == part]} for part in (HISTORY, FIT, CHECK)]
        assert all(seen)
        assert not seen[0] & seen[1]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]
    held = {*open_pairs(pairs).frame("dev", ["thread_id"])["thread_id"]}
    past = past_replies(made := open_collection(pairs, encoder))
    assert {*np.array(made.column("thread"))[past.replied[past.parts == FIT]]} == held


def test_no_message_is_in_two_parts(messages, encoder):
    """In Stack Exchange's dumps, replies to one message are of different threads."""
    more = []
    for number in range(0, 300, 3):
        about = {"author": "cy", "answers": f"q{number}", "thread": f"other {number}"}
        more.append(Entry(f"c{number}", "Is that right?", about))
    past = past_replies(open_collection([*messages, *more], encoder))
    parts = {}
    for message, part in zip(past.asked.tolist(), past.parts.tolist(), strict=True):
        assert parts.setdefault(message, part) == part
    assert {*parts.values()} == {HISTORY, FIT, CHECK}


def test_an_index_of_an_export_suggests_what_the_export_does(encoder, tmp_path):
    export = write(slack.FILES, tmp_path / "export")
    Index.create(tmp_path / "index", export, encoder)
    one, other = (
        Suggestions.open(source, encoder).suggest("Does it work?", 5)
        for source in (export, tmp_path / "index")
    )
    assert {a.reply for a in one.suggestions} == {"Yes, since today"}
    assert [a.id for a in one.suggestions] == [b.id for b in other.suggestions]
    assert one.to_dicts()[0]["author"]
    Index.create(tmp_path / "responses", export, encoder, response=True)
    with pytest.raises(InputError, match="index of responses"):
        Suggestions.open(tmp_path / "responses", encoder)


def test_replies_of_an_author(messages, encoder):
    some = Suggestions.open(messages, encoder, where={"author": "ANN"})
    for message in (ASKED, "opening hours?"):
        assert {one.about["author"] for one in some.suggest(message, 5).suggestions} == {"ann"}
    with pytest.raises(InputError, match="author=nobody"):
        Suggestions.open(messages, encoder, where={"author": "nobody"})


def test_what_was_kept_suggests_the_same(messages, encoder, tmp_path):
    folder = Index.create(tmp_path / "index", messages, "rejoinder-small").folder
    first = Suggestions.open(folder, encoder)
    past, tried = read_kept(folder, encoder)
    np.testing.assert_array_equal(past.asked, past_replies(open_collection(folder)).asked)
    again, suggester = Suggestions.open(folder, encoder, confidence=0.5), Suggester(folder, 1)
    assert again.fitted == first.tried.fitted(0.5) == tried.fitted(0.5) != first.fitted
    read = past_replies(open_collection(folder))
    of_ann = read.only(read.collection.meeting(conditions_of({"author": "ann"})))
    for message in (ASKED, "opening hours?"):
        found = first.suggest(message, 5)
        assert suggester(message, 5, None) == found == Suggestions(read, None).suggest(message, 5)
        assert again.suggest(message, 5).suggestions == found.suggestions
        assert suggester(message, 5, "Ann") == Suggestions(of_ann, None).suggest(message, 5)
    with pytest.raises(InputError, match="nobody"):
        suggester(ASKED, 5, "nobody")
    with pytest.raises(InputError, match="made with"):
        Suggestions.open(folder, "rejoinder-base")


def test_what_was_kept_of_another_state_is_not_used(messages, encoder, tmp_path):
    made = Index.create(tmp_path / "index", messages, "rejoinder-small")
    assert read_kept(made.folder) is None
    Suggestions.open(made.folder, encoder)
    content = (made.folder / FILE).read_bytes()
    for damaged in (b"", content[:-9], content[:-9] + b"?" + content[-8:]):
        (made.folder / FILE).write_bytes(damaged)
        assert read_kept(made.folder) is None
    (made.folder / FILE).write_bytes(content)
    assert read_kept(made.folder) is not None
    made.delete("q0")
    assert read_kept(made.folder) is None
    assert "a0" not in {
        one.id for one in Suggestions.open(made.folder).suggest(ASKED, 9).suggestions
    }
    past, _ = read_kept(made.folder)
    assert len(past) == 599


def test_an_index_that_can_not_be_written_suggests(messages, encoder, tmp_path):
    made = Index.create(tmp_path / "index", messages, "rejoinder-small")
    (made.folder / FILE).mkdir()
    assert Suggestions.open(made.folder, encoder).suggest(ASKED).suggestions


def test_without_links_the_message_before_is_answered(encoder):
    past = [
        Entry("1", "Where is it?", {"author": "a", "time": 0.0}),
        Entry("2", "Over there.", {"author": "b", "time": 60.0}),
    ]
    [one] = Suggestions.open(past, encoder).suggest("Where is it?").suggestions
    assert one.reply == "Over there."


def test_nobody_answers_themselves(encoder):
    past = [
        Entry("1", "Where is it?", {"author": "a"}),
        Entry("2", "Hello?", {"author": "a", "answers": "1"}),
        Entry("3", "Over there.", {"author": "b", "answers": "1"}),
    ]
    [one] = Suggestions.open(past, encoder).suggest("Where is it?").suggestions
    assert one.reply == "Over there."


def test_whoever_began_a_thread_answers_nothing_in_it(encoder):
    said = [
        ("cy", "Where is it?"),
        ("ann", "Over there."),
        ("cy", "Thanks!"),
        ("bob", "Over there."),
    ]
    for thread in ("1", None):
        past = [
            Entry(str(at), text, {"author": author, "thread": thread, "answers": str(at - 1)})
            for at, (author, text) in enumerate(said)
        ]
        found = Suggestions.open(past, encoder).suggest("Over there.", 9)
        assert ("Thanks!" in {one.reply for one in found.suggestions}) is (thread is None)


def test_only_canned_answers(pairs, encoder):
    canned = [
        "We open from nine to six and are closed on Sundays.",
        "Your parcel arrives tomorrow.",
    ]
    canned.append("You get a present.")
    opened = Suggestions.open(pairs, encoder, answers=canned)
    found = opened.suggest("opening hours?", 3)
    assert found.suggestions[0].reply == canned[0]
    assert found.suggestions[0].alike > 20
    assert found.suggestions[0].answered is None
    assert {one.reply for one in found.suggestions} == {*canned}
    assert opened.fitted is not None


def test_canned_answers_alone_are_ranked_by_response_score(encoder):
    canned = ["We open at nine.", "Parcels take three days.", "we open at 9!"]
    opened = Suggestions.open(canned, encoder)
    found = opened.suggest("When does the shop open?", 3)
    ranked = encoder.rank("When does the shop open?", canned)
    assert found.suggestions[0].reply == ranked[0].text
    assert found.suggestions[0].score == pytest.approx(max(ranked[0].score, 0), abs=1e-5)
    assert (found.is_good, found.threshold, opened.fitted) == (None, None, None)
    assert found.suggestions[0].confidence is None


def test_answers_that_differ_in_names_are_one_suggestion(encoder):
    past = []
    for number, name in enumerate(("Ann", "Tom", "Zoe", "Ben")):
        asked = f"Hello, my parcel number {number} is late"
        past += [
            Entry(f"q{number}", asked, {"author": name}),
            Entry(
                f"a{number}",
                f"Sorry to hear that, {name}. Your parcel {number} comes tomorrow.",
                {"author": "desk", "answers": f"q{number}"},
            ),
        ]
    opened = Suggestions.open(past, encoder)
    [one] = opened.suggest("my parcel is late", 3).suggestions
    assert one.alike == 4
    assert opened.fitted is None


@pytest.mark.parametrize("reversed_", [False, True])
def test_a_message_is_answered_in_its_language(encoder, reversed_):
    said = [
        ("Wo ist das Paket zu FX12?", "Es ist auf dem Weg und das dauert nicht lang."),
        ("Where is it that FX12 is?", "It is on the way, and that is all of it."),
    ]
    past = [
        one
        for number, (question, answer) in enumerate(said[::-1] if reversed_ else said)
        for one in (
            Entry(f"q{number}", question, {"author": "ann"}),
            Entry(f"a{number}", answer, {"author": "desk", "answers": f"q{number}"}),
        )
    ]
    opened = Suggestions.open(past, encoder)
    for question, answer in (
        ("FX12, das ist es und nicht Y", said[0][1]),
        ("Is it FX12 and that", said[1][1]),
    ):
        assert opened.suggest(question).suggestions[0].reply == answer
    assert opened.suggest("FX12").suggestions[0].score > 0.1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"where": {"author": "ann"}}, "no authors"),
        ({"answers": ["Yes."]}, "no replies"),
    ],
)
def test_what_can_not_be_opened(encoder, arguments, match):
    with pytest.raises(InputError, match=match):
        Suggestions.open(["Yes.", "No."], encoder, **arguments)


def test_messages_without_links_are_not_taken_for_answers(encoder):
    past = [
        Entry("1", "The sun is shining.", {"author": "a"}),
        Entry("2", "Is the bus late?", {"author": "b"}),
    ]
    with pytest.raises(InputError, match="`pair='adjacent'`"):
        Suggestions.open(past, encoder)


def test_what_is_no_message(of_pairs):
    for message in (None, ["Hello"]):
        with pytest.raises(InputError, match="message must be a string"):
            of_pairs.suggest(message)
    with pytest.raises(InputError, match="top_k"):
        of_pairs.suggest("Hello", 0)
    assert of_pairs.suggest("").suggestions
    assert of_pairs.suggest("\ud800 zzzqqq").suggestions


def test_the_same_past_gives_the_same_suggestions(of_pairs, pairs, encoder):
    again = Suggestions.open(pairs, encoder)
    assert again.fitted == of_pairs.fitted
    assert again.suggest(ASKED, 5) == of_pairs.suggest(ASKED, 5)
