"""What texts say, and what is distinctive of topics."""

from pathlib import Path

import numpy as np

from rejoinder import SentenceEncoder
from rejoinder.conversations.topic_words import distinctive_words, words_of

BREAD, ROUTER = "The bread dough is still rising", "My router lost the network"


def test_words_that_a_topic_has_and_others_lack_come_first():
    texts = [f"{BREAD} {number}" for number in range(9)] + [f"{ROUTER} {n}" for n in range(9)]
    labels = np.repeat([0, 1], 9)
    bread, router = distinctive_words(words_of(texts), labels, 2)
    assert {*bread} == {"bread", "dough", "rising"}
    assert {*router} == {"router", "lost", "network"}
    assert min(*bread.values(), *router.values()) > 0.6


def test_texts_with_the_same_words_count_once():
    texts = [
        *["Buy cheap pills!", "buy cheap pills"] * 50,
        "bread dough",
        "more bread dough",
        BREAD,
    ]
    labels = np.zeros(len(texts) + 9, np.int64)
    labels[len(texts) :] = 1
    texts += [f"{ROUTER} {number}" for number in range(9)]
    words, _ = distinctive_words(words_of(texts), labels, 2)
    assert words["bread"] > 2 * words["pills"]


def test_a_topic_that_words_do_not_tell_from_others_has_low_scores():
    texts = [f"{BREAD} {number}" for number in range(20)]
    same = distinctive_words(words_of(texts), np.arange(20) % 2, 2)
    assert all(abs(score) < 1e-9 for words in same for score in words.values())


def test_other_alphabets_have_words():
    found = words_of(["Где мой роутер?", "где мой роутер", "!!!", ""])
    assert found.firsts.tolist() == [0, 0, 2, 2]
    assert found.says.tolist() == [True, True, False, False]


def test_nothing_has_no_words():
    found = words_of([])
    assert distinctive_words(found, np.empty(0, np.int64), 0) == []
    assert distinctive_words(words_of(["ok"]), np.array([-1]), 0) == []


def test_names_of_authors_do_not_tell_what_a_text_is_about():
    texts = ["lordcirth: yes", "is lordcirth here?", "the linux kernel", *["linux crashes"] * 20]
    authors = ["ann", "ann", "linux", *["lordcirth"] * 20]
    found = words_of(texts, authors)
    assert found.says.tolist() == [False, False, *[True] * 21]
    assert found.telling[found.words.index("linux")]
    assert words_of(texts).says.tolist() == [True] * 23


def test_everyday_words_of_other_languages_say_nothing():
    [model] = (Path(__file__).parents[2] / "models/rejoinder-multi").glob("src/*/rejoinder-multi")
    texts = [
        "Das Paket ist noch nicht da, und ich warte immer noch auf die Rechnung.",
        "Wo ist mein Drucker? Ich habe schon wieder nichts gedruckt.",
        "Guten Tag, das ist doch nicht wahr: immer noch kein Paket und keine Rechnung!",
    ]
    found = words_of(texts, encode=SentenceEncoder.load(model).encode)
    told = {word for word, telling in zip(found.words, found.telling, strict=True) if telling}
    assert {"paket", "rechnung", "drucker", "gedruckt"} <= told
    assert not told & {"das", "ist", "noch", "nicht", "immer", "und", "ich", "wieder", "mein"}
    often = ["Le avez vous ? Nous avons une imprimante, et vous avez la facture."] * 5
    found = words_of(often, encode=SentenceEncoder.load(model).encode)
    told = {word for word, telling in zip(found.words, found.telling, strict=True) if telling}
    assert told == {"imprimante", "facture"}
