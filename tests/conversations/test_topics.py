"""Topics of made-up messages of known subjects."""

import json
import subprocess
import sys

import numpy as np
import pytest

import rejoinder
from rejoinder import InputError
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.topics import Topics
from rejoinder.corpus.texts import Entry

SUBJECTS = {
    "printer": (
        "The printer on floor {} is jammed", "My printer {} has no toner left",
        "How do I install printer {} on my laptop?", "Printer {} prints blank pages",
    ),
    "bread": (
        "My bread dough does not rise after {} hours", "Do I bake bread at {} degrees?",
        "The bread needs {} grams of flour", "Bread dough with {} grams of yeast is sour",
    ),
    "football": (
        "Did you see the football match at {}?", "We lost the football game by {} goals",
        "The football team has {} new players", "Football training begins at {} on Monday",
    ),
    "train": (
        "The train to the airport leaves at {}", "My train was {} minutes late again",
        "Which platform does train {} leave from?", "A train ticket costs {} euros now",
    ),
}  # fmt: skip
CHATTER = ["Thanks!", "ok", "Yes, I think so.", "lol", "Good morning!"]
JANUARY, MARCH = 1_704_067_200.0, 1_709_251_200.0


@pytest.fixture(scope="module")
def entries():
    """A hundred messages, of which two subjects come in January and two in March, and chatter."""
    made = []
    for number in range(6):
        for place, (subject, texts) in enumerate(SUBJECTS.items()):
            time = JANUARY if place < 2 else MARCH
            for at, text in enumerate(texts):
                name = f"{subject}-{number}-{at}"
                made.append(
                    Entry(name, text.format(number * 7 + 2), {"author": "ann", "time": time})
                )
    return [*made, *(Entry(f"chatter-{at}", text) for at, text in enumerate(CHATTER * 3))]


@pytest.fixture(scope="module")
def found(entries):
    return rejoinder.cluster(entries, topics=4, least=6)


def test_subjects_are_topics_with_names(entries, found):
    for topic in found.topics:
        subjects = {found.ids[row].partition("-")[0] for row in found.members(topic)}
        assert len(subjects) == 1
        assert subjects <= {*topic.words}
        assert topic.name == ", ".join(topic.words[:3])
        assert topic.size == len(found.members(topic))
        assert [found.texts[found.ids.index(one)] for one in topic.typical_ids] == [*topic.typical]
    assert len(found) == 4
    assert [*found.topics] == sorted(found.topics, key=lambda topic: -topic.size)


def test_topics_are_shown_by_name_and_size(found):
    title, _, *rows = repr(found).splitlines()
    assert title.startswith(f"4 topics of {len(found.texts)} messages")
    assert [found.topics[at].name in row for at, row in enumerate(rows)] == [True] * 4
    assert found._repr_html_().count("<tr>") == 5


def test_everyday_words_have_no_topic(found):
    chatter = np.array([name.startswith("chatter") for name in found.ids])
    assert (found.labels[chatter] == -1).all()
    assert (found.labels[~chatter] >= 0).mean() > 0.9


def test_topics_change_over_time(found):
    assert [*found.months] == ["2024-01", "2024-03"]
    for topic in found.topics:
        early = topic.words[0] in ("printer", "bread")
        assert [*topic.months] == ["2024-01" if early else "2024-03"]
        assert found.shares(topic)["2024-03" if early else "2024-01"] == 0
    assert sum(topic.months.get("2024-01", 0) for topic in found.topics) <= found.months["2024-01"]


def test_the_same_texts_give_the_same_bytes(entries, found, tmp_path):
    found.save(tmp_path / "first")
    rejoinder.cluster(entries, topics=4, least=6, threads=2).save(tmp_path / "again")
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_what_is_saved_is_loaded(found, tmp_path):
    found.save(tmp_path / "topics")
    loaded = Topics.load(tmp_path / "topics")
    assert (loaded.topics, loaded.wider, loaded.model) == (found.topics, found.wider, found.model)
    assert loaded.labels.tolist() == found.labels.tolist()
    assert loaded.to_dicts() == found.to_dicts()
    assert np.isfinite(loaded.coordinates).all()
    with pytest.raises(InputError, match="not empty"):
        found.save(tmp_path / "topics")


def test_damage_is_found(found, tmp_path):
    found.save(tmp_path / "topics")
    messages = tmp_path / "topics/messages.jsonl"
    messages.write_bytes(messages.read_bytes().replace(b"jammed", b"mended"))
    with pytest.raises(InputError, match=r"messages\.jsonl"):
        Topics.load(tmp_path / "topics")
    with pytest.raises(InputError, match="has no topics"):
        Topics.load(tmp_path)


def test_new_texts_go_to_topics_that_are_there(entries, found):
    more = [
        Entry("new-1", "Bread dough with 3 grams of yeast does not rise", {"time": MARCH}),
        Entry("new-2", "thanks a lot"),
        Entry("printer-0-0", "The train to the airport leaves at 9"),
    ]
    added = rejoinder.cluster([*entries[1:9], *more], keep=found)
    names = {one: place for place, one in enumerate(added.ids)}
    topic_of = {one["id"]: one["name"] for one in added.to_dicts()}
    assert "bread" in topic_of["new-1"]
    assert topic_of["new-2"] == ""
    assert "train" in topic_of["printer-0-0"]
    assert len(names) == len(added.ids) == len(found.ids) + 2
    kept = [one for one in found.ids if one != "printer-0-0"]
    before = dict(zip(found.ids, found.labels.tolist(), strict=True))
    assert [added.labels[names[one]] for one in kept] == [before[one] for one in kept]
    assert sum(topic.size for topic in added.topics) == (added.labels >= 0).sum()
    assert [topic.name for topic in added.topics] == [topic.name for topic in found.topics]
    bread = next(topic for topic in added.topics if "bread" in topic.name)
    assert bread.months["2024-03"] == 1


def test_lines_of_another_file_replace_nothing(entries):
    texts = [entry.text for entry in entries]
    found = rejoinder.cluster(texts, topics=4, least=6)
    grown = rejoinder.cluster([*texts, "The bread needs 9 grams of flour"], keep=found)
    assert grown.ids == [str(number) for number in range(1, len(texts) + 2)]
    other = rejoinder.cluster(["My printer 3 has no toner left", texts[1]], keep=found)
    assert other.ids == [*found.ids, str(len(texts) + 1)]
    assert other.texts == [*found.texts, "My printer 3 has no toner left"]


def test_topics_of_another_model_are_not_added_to(entries, found):
    with pytest.raises(InputError, match="rejoinder-small"):
        rejoinder.cluster(entries, "rejoinder-small", keep=found)


@pytest.mark.parametrize("texts", [["hello"], ["ok", "thanks"], ["a printer"] * 5])
def test_too_little_has_no_topics(texts, tmp_path):
    found = rejoinder.cluster(texts)
    assert (len(found), found.labels.tolist()) == (0, [-1] * len(texts))
    found.save(tmp_path / "topics")
    assert len(Topics.load(tmp_path / "topics")) == 0


def test_settings_without_effect_are_refused(entries, found):
    with pytest.raises(InputError, match="keep"):
        rejoinder.cluster(entries, keep=found, topics=3)
    with pytest.raises(InputError, match="opened"):
        rejoinder.cluster(open_collection(entries), "rejoinder-small")


@pytest.mark.parametrize("wrong", [{"topics": 0}, {"least": 1.5}, {"topics": True}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(InputError, match="must be"):
        rejoinder.cluster(["a printer"], **wrong)


def test_rows_are_json_values(found):
    rows = json.loads(json.dumps([*found.to_dicts(), *found.topic_dicts()]))
    assert {*rows[0]} == {"id", "topic", "name", "x", "y", "time", "text"}


def test_the_record_needs_no_package_of_the_extra():
    code = "import sys, rejoinder; rejoinder.Topics; sys.exit(any(n in sys.modules for n in "
    code += "('faiss', 'sklearn', 'scipy', 'graspologic_native', 'polars', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
