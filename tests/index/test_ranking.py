"""What is known of a message and of those around it moves it up or down."""

import re
from collections import defaultdict

import numpy as np
import pytest

from rejoinder import Index
from rejoinder.corpus.texts import Entry, entries_of
from rejoinder.datasets.semeval import read_cqa
from rejoinder.index.ranking import Date, date_in

DAY = 86_400.0


def message(name, text, author="", time=0.0, **about):
    return Entry(name, text, {"author": author, "time": time, "source": "talk", **about})


def talk(folder, *messages):
    filler = [
        message(f"f{n}", f"Something about the weather, number {n}.", "Zoe", 90 * DAY + n)
        for n in range(30)
    ]
    return Index.create(folder / "index", [*messages, *filler], "rejoinder-small")


def found(index, query, **settings):
    return [hit.id for hit in index.search(query, 5, mode="hybrid", **settings)[0]]


def test_an_answer_is_found_by_the_question_before_it(tmp_path):
    index = talk(
        tmp_path,
        message("q", "Where did you spend the vacation?", "Ann", 1.0),
        message("a", "In a small village near Talkeetna with my brother.", "Ben", 2.0),
        message("o", "The kettle is on.", "Ann", 3.0),
    )
    assert found(index, "Where was the vacation spent?")[:2] in (["a", "q"], ["q", "a"])


def test_what_is_said_again_counts_once(tmp_path):
    again = [message(f"a{n}", "No problem at all.", "Ann", 5 * DAY + n) for n in range(3)]
    index = talk(tmp_path, *again, message("c", "Big problem with my computer.", "Ben", 0.0))
    hits = index.search("problem at all", 4, mode="hybrid")[0]
    scores = {hit.id: hit.score for hit in hits}
    alone = talk(tmp_path / "alone", again[0], message("c", "Big problem with my computer.", "Ben"))
    [first] = [hit for hit in alone.search("problem at all", 4, mode="hybrid")[0] if hit.id == "a0"]
    assert scores["a1"] == pytest.approx(first.score, abs=0.15)


def test_the_author_who_is_named_comes_first(tmp_path):
    texts = ("I adopted a puppy yesterday.", "I adopted a kitten yesterday.")
    index = talk(
        tmp_path,
        message("1", texts[0], "Carla", 0.0),
        message("2", texts[1], "Dmitri", 5 * DAY),
    )
    assert found(index, "What did Carla adopt?")[0] == "1"
    assert found(index, "What did Dmitri adopt?")[0] == "2"
    assert found(index, "What was dmitri's adopted animal?")[0] == "2"


def test_a_message_of_few_words_comes_after_one_that_says_something(tmp_path):
    index = talk(
        tmp_path,
        message("short", "!mp3", "Ann", 0.0),
        message("shorter", "mp3 please", "Eve", 5 * DAY),
        message("long", "Totem plays mp3 files once the codecs are there.", "Ben", 9 * DAY),
    )
    assert found(index, "play mp3")[0] == "long"
    assert {*found(index, "mp3")[:3]} == {"short", "shorter", "long"}


def test_a_word_that_more_texts_have_than_its_author_wrote_is_no_name(tmp_path):
    texts = [message(str(n), f"My linux box, part {n}", "Ann", n * DAY) for n in range(5)]
    index = talk(tmp_path, *texts, message("x", "No idea what you mean.", "linux", 50 * DAY))
    assert "x" not in found(index, "linux box")


def test_a_date_moves_messages_of_it_up(tmp_path):
    may, june = 1_683_504_000.0, 1_686_182_400.0  # 2023-05-08 and 2023-06-08
    index = talk(
        tmp_path,
        message("may", "We went to the museum of art.", "Ann", may),
        message("june", "We went to the museum of glass.", "Ann", june),
    )
    assert found(index, "museum in June 2023")[0] == "june"
    assert found(index, "museum on 8 May")[0] == "may"


def test_messages_of_another_conversation_are_not_around(tmp_path):
    index = talk(
        tmp_path,
        message("q", "Where did you spend the vacation?", "Ann", 1.0, thread="1"),
        message("other", "The kettle is on.", "Ben", 2.0, thread="2"),
        message("late", "A cup of tea, then.", "Ben", 3.0, thread="1"),
    )
    hits = found(index, "vacation spent")
    assert hits.index("late") < (hits.index("other") if "other" in hits else 9)


def test_deleted_and_filtered_messages_are_not_found_beside_others(tmp_path):
    index = talk(
        tmp_path,
        message("q", "Where did you spend the vacation?", "Ann", 1.0),
        message("a", "In a small village near Talkeetna.", "Ben", 2.0),
    )
    assert "a" not in found(index, "vacation", where={"author": "Ann"})
    index.delete("a")
    assert "a" not in found(index, "vacation")


def test_segments_are_searched_together(tmp_path):
    index = talk(tmp_path, message("1", "I adopted a puppy.", "Carla", 0.0))
    index.add([message("2", "I adopted a kitten.", "Dmitri", DAY)])
    assert {*found(index, "adopted")[:2]} == {"1", "2"}


def test_texts_that_are_no_messages_are_searched_by_words_and_meaning(tmp_path):
    index = Index.create(tmp_path / "index", ["The cat sat.", "A dog ran.", "Feline naps."])
    hits = index.search("cats", 3, mode="hybrid")[0]
    assert hits[0].text == "The cat sat."
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_nothing_is_found_where_nothing_is_close(tmp_path):
    index = talk(tmp_path, message("1", "I adopted a puppy.", "Carla", DAY))
    assert found(index, "как установить драйвер") == []
    assert found(index, "getting a small dog")[0] == "1"
    assert found(index, "что сказала Carla")[0] == "1"
    assert index.search("как установить драйвер", 1)[0]
    assert index.search("как установить драйвер", 1, mode="hybrid", weight=1.0)[0]


@pytest.mark.parametrize(
    ("query", "date"),
    [
        ("on 2023-05-08", Date(2023, 5, 8)),
        ("since 2023-05", Date(2023, 5)),
        ("the 8th of May 2023", Date(2023, 5, 8)),
        ("March 3, 2021", Date(2021, 3, 3)),
        ("last September", Date(0, 9)),
        ("on Christmas Eve", Date(0, 12, 24)),
        ("what happened at New Year's 2021", Date(2021, 1, 1)),
        ("in 2022", Date(2022)),
        ("you may march on", Date()),
        ("version 2022", Date()),
        ("was war im März 2023?", Date(2023, 3)),
        ("am 3. Mai", Date(0, 5, 3)),
        ("la fête du 14 juillet", Date(0, 7, 14)),
        ("el 8 de mayo de 2023", Date(2023, 5, 8)),
        ("nel dicembre 2020", Date(2020, 12)),
        ("5 Mart 2022", Date(2022, 3, 5)),
    ],
)
def test_dates_are_read(query, date):
    assert date_in(query)[1] == date


def test_it_is_told_which_date_is_read(tmp_path):
    index = talk(tmp_path, message("1", "I adopted a puppy.", "Carla", 400 * DAY))
    told = index.read_as(["What did Carla adopt last February?", "the puppy"])
    assert told == [{"last february": "February 1971"}, {}]


def test_parts_of_a_date_are_counted():
    times = np.array([1_683_504_000.0, 1_686_182_400.0, np.nan])
    assert Date(2023, 5, 8).matches(times).tolist() == [3, 2, 0]
    assert Date().matches(times).tolist() == [0, 0, 0]


def subjects(shared_data):
    """Mails, and for subjects the mails that have them, of which one is to be found."""
    mails = list(entries_of(shared_data / "exports/mbox/r-sig-gui.mbox.zst"))
    having = defaultdict(set)
    for mail in mails:
        having[" ".join(re.findall(r"\w+", mail.about.get("title", "").lower()))].add(mail.id)
    asked = [(subject, ids) for subject, ids in having.items() if subject and len(ids) > 1]
    return mails, asked[:200]


def bodies(shared_data):
    mails, asked = subjects(shared_data)
    return [(mail.id, mail.text) for mail in mails], asked


def questions(shared_data):
    """Related questions, and for original ones those that were judged relevant, all to be found."""
    queries = read_cqa(shared_data, "2016", "dev").queries
    texts = {one.id: one.text() for query in queries for one in query.related}
    asked = [
        (query.original.text(), {one.id for one, good in pairs if good})
        for query in queries
        for pairs in [list(zip(query.related, query.relevant, strict=True))]
    ]
    return list(texts.items()), [one for one in asked if one[1]]


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("read", [subjects, bodies, questions])
def test_both_find_what_the_better_of_the_two_finds(read, shared_data, tmp_path):
    texts, asked = read(shared_data)
    index = Index.create(tmp_path / "index", texts, "rejoinder-base")
    shares = {}
    for mode in ("semantic", "words", "hybrid"):
        found = index.search([query for query, _ in asked], 10, mode=mode)
        shares[mode] = np.mean(
            [
                len(good & {hit.id for hit in hits}) / min(len(good), 10)
                if read is questions
                else not good.isdisjoint(hit.id for hit in hits)
                for hits, (_, good) in zip(found, asked, strict=True)
            ]
        )
    assert shares["hybrid"] >= max(shares["semantic"], shares["words"]) - 0.005, shares
