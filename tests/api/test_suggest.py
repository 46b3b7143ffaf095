"""Suggestions from each kind of past: pairs, exports, indexes, canned answers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from rejoinder import Index, SentenceEncoder, Suggestions
from rejoinder.api.collection import open_collection
from rejoinder.api.past_replies import CHECK, FIT, HISTORY, past_replies
from rejoinder.corpus.extract import extract
from rejoinder.corpus.shards import open_pairs
from rejoinder.corpus.texts import Entry
from rejoinder.errors import InputError
from rejoinder.index.where import conditions_of

EXAMPLES = Path(__file__).parents[2] / "examples"
ASKED = "Do you have a good recipe for bread?"


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder("rejoinder-small", threads=1)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "pairs"
    extract(EXAMPLES / "small.jsonl", folder, split=(80, 10, 10))
    return folder


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("slack_export", EXAMPLES / "slack_export.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path_factory.mktemp("export") / "slack-export.zip"
    module.write_export(path)
    return path


@pytest.fixture(scope="module")
def of_pairs(pairs, encoder):
    return Suggestions.open(pairs, encoder, precision=0.2)


@pytest.fixture(scope="module")
def of_export(export, encoder):
    return Suggestions.open(export, encoder, precision=0.2)


def test_suggestions_are_replies_with_the_messages_that_they_answered(of_pairs, pairs):
    known = {
        (reply, text, message)
        for split in ("train", "dev", "test")
        for reply, text, message in open_pairs(pairs)
        .frame(split, ["response_id", "response", "input"])
        .iter_rows()
    }
    found = of_pairs.suggest(ASKED, 5)
    assert len(found.suggestions) == 5
    for one in found.suggestions:
        assert (one.id, one.reply, one.answered) in known
        assert 1 <= one.alike <= 200
        assert -1 <= one.similarity <= 1.001
    scores = [one.score for one in found.suggestions]
    chances = [one.confidence for one in found.suggestions]
    assert scores == sorted(scores, reverse=True)
    assert chances == sorted(chances, reverse=True)
    assert 0 < chances[-1] <= chances[0] < 1
    assert len({one.reply.casefold() for one in found.suggestions}) == 5
    assert found.is_good == (chances[0] >= found.threshold)


def test_most_suggestions_to_a_past_message_are_among_its_replies(of_pairs, pairs):
    frame = open_pairs(pairs).frame("train", ["input", "response"])
    topics = dict.fromkeys(frame["input"].to_list())
    asked = list(topics)[:20]
    found = [of_pairs.suggest(one, 1).suggestions[0].similarity for one in asked]
    assert np.mean(np.array(found) > 0.7) > 0.8


def test_what_is_held_out_is_told(of_pairs):
    told = of_pairs.fitted
    assert told.wanted == 0.2
    assert told.fitted_on > 100
    assert told.outcome.messages > 100
    assert 0 <= told.same_words <= told.outcome.right <= told.outcome.answered
    assert told.outcome.answered <= told.outcome.messages
    assert told.to_dict()["coverage"] == told.outcome.coverage


def test_a_precision_that_is_not_reached_leaves_no_good_answer(pairs, encoder):
    opened = Suggestions.open(pairs, encoder, precision=1.0)
    if opened.fitted.threshold is None:
        assert opened.fitted.outcome.answered == 0
        assert opened.suggest(ASKED).is_good is False
    lower = Suggestions.open(pairs, encoder, precision=0.01)
    assert lower.fitted.outcome.coverage > 0.9
    assert lower.suggest(ASKED).is_good is True


def test_a_thread_is_held_out_as_a_whole(pairs, export, encoder):
    for source in (pairs, export):
        made = open_collection(source, encoder)
        past = past_replies(made, conditions_of({}))
        threads = np.array(made.column("thread"))[past.replied]
        seen = [{*threads[past.parts == part]} for part in (HISTORY, FIT, CHECK)]
        assert all(seen)
        assert not seen[0] & seen[1]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]
    held = {*open_pairs(pairs).frame("dev", ["thread_id"])["thread_id"]}
    past = past_replies(made := open_collection(pairs, encoder), conditions_of({}))
    assert {*np.array(made.column("thread"))[past.replied[past.parts == FIT]]} == held


def test_an_index_of_an_export_suggests_what_the_export_does(of_export, export, encoder, tmp_path):
    Index.create(tmp_path / "index", export, encoder)
    of_index = Suggestions.open(tmp_path / "index", encoder, precision=0.2)
    one, other = (opened.suggest(ASKED, 5) for opened in (of_export, of_index))
    assert [a.id for a in one.suggestions] == [b.id for b in other.suggestions]
    assert one.to_dicts()[0]["author"]
    Index.create(tmp_path / "responses", export, encoder, response=True)
    with pytest.raises(InputError, match="index of responses"):
        Suggestions.open(tmp_path / "responses", encoder)


def test_replies_of_an_author(export, encoder):
    some = Suggestions.open(export, encoder, where={"author": ["maple_tree", "old_map"]})
    for message in (ASKED, "My car broke down."):
        for one in some.suggest(message, 5).suggestions:
            assert one.about["author"] in ("maple_tree", "old_map")
    with pytest.raises(InputError, match="author=nobody"):
        Suggestions.open(export, encoder, where={"author": "nobody"})


def test_nobody_answers_themselves(export, encoder):
    made = open_collection(export, encoder)
    past = past_replies(made, conditions_of({}))
    authors = np.array(made.column("author"))
    assert (authors[past.asked] != authors[past.replied]).all()


def test_only_canned_answers(pairs, encoder):
    canned = ["Let it rest overnight.", "Check the oil first.", "Flour, water, salt and patience."]
    opened = Suggestions.open(pairs, encoder, answers=canned)
    found = opened.suggest(ASKED, 2)
    assert found.suggestions[0].reply in (canned[0], canned[2])
    assert found.suggestions[0].alike > 0
    assert found.suggestions[0].answered is None
    assert {one.reply for one in opened.suggest("My car broke down.", 1).suggestions} == {canned[1]}
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


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"precision": 0}, "precision"),
        ({"precision": True}, "precision"),
        ({"precision": "high"}, "precision"),
        ({"where": {"author": "ann"}}, "no authors"),
        ({"answers": ["Yes."]}, "without replies"),
    ],
)
def test_what_can_not_be_opened(encoder, arguments, match):
    with pytest.raises(InputError, match=match):
        Suggestions.open(["Yes.", "No."], encoder, **arguments)


def test_messages_without_links_are_not_taken_for_answers(encoder):
    past = [Entry("1", "How are you?", {"author": "a"}), Entry("2", "Fine.", {"author": "b"})]
    with pytest.raises(InputError, match="--pair adjacent"):
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
    again = Suggestions.open(pairs, encoder, precision=0.2)
    assert again.fitted == of_pairs.fitted
    assert again.suggest(ASKED, 5) == of_pairs.suggest(ASKED, 5)
