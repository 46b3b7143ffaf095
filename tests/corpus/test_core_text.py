"""Greetings, sign-offs and signatures are cut from what is encoded, and nothing else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rejoinder import SentenceEncoder
from rejoinder.corpus import core_text as module
from rejoinder.corpus.core_text import Repeated, core_of, cores_of, without_habits

SAID = "the printer on floor 3 is jammed again."


@pytest.mark.parametrize("above", [
    "Hello team,\n", "Hi @anna! ", "Hi Anna, ", "Hi, Anna, ", "Hey folks - ",
    "Dear Dr. Anna Smith,\n", "Good morning everyone.\n", "Greetings!\n\n", "Hello there :)\n",
    "Dear Sir or Madam,\nI hope you are well. ", "@anna ", "@Anna S.: ", "@anna @ben, ",
    "Anna,\n", "Hi all,\n\n", "> is it broken?\n> ask Ben\n\n", "hi, ",
])  # fmt: skip
@pytest.mark.parametrize("below", [
    "", " Thanks!", "\nThanks!", "\nThank you so much for your help.\nAnna",
    "\nBest regards,\nAnna Smith\nSupport", "\nBest regards, Anna",
    "\n\nCheers\nAnna\n+49 30 1234567\nanna@example.org", "\nSent from my iPhone",
    " Many thanks in advance, Ben", "\nThanks,\nAnna\nSent from my Galaxy",
    "\n-- \nAnna\nthe best printers in town",
    "\nLooking forward to hearing from you. Kind regards", "\nAnna", "\n~~ Anna",
    "\nHope this helps! Anna",
])  # fmt: skip
def test_what_most_messages_say_is_cut(above, below):
    assert core_of(f"{above}{SAID}{below}", "Anna Smith") == SAID


@pytest.mark.parametrize("text", [
    "Hello World is the first program that you write", "Hi there's a problem",
    "Good question, I don't know", "Thanks for the patch that you sent",
    "Thank you for the tutorial. Where is part two?", "It is regarded as fun",
    "Which one is best?\nUbuntu", "Regards means respects in German", "Is it you, Thanks?",
    "Well, I think so", "Dear diary is a song", "Firefox: use 44", "Who is there?\nAnna and Ben",
    ">>> print(1)\n1", "Note:\nuse the key", "make all\n> Task failed\nmake clean", "The best",
    "I forward all mail to support", "Sent from my desk to yours",
])  # fmt: skip
def test_what_is_said_stays(text):
    assert core_of(text, "Carl") == text


@pytest.mark.parametrize(
    "text", ["Hi @anna!", "Thanks!", "Hello team,\nThanks!\nAnna", "Hi,\nyes", "", " ", "Anna,\n"]
)
def test_no_text_is_cut_whole(text):
    assert core_of(text, "Anna") == text


def test_a_title_stays_above():
    assert core_of(f"Printer\nHello team,\n{SAID}\nThanks") == f"Printer\n{SAID}"


_PARTS = st.sampled_from([
    "Hi", "Hello", "Dear", "all", "team", "Anna", "@anna", "Thanks", "thank", "you", "Cheers",
    "Best", "regards", ",", ".", "!", "?", ":", "\n", "\n\n", " ", "  ", " - ", "--", ">",
    "Sent from my iPhone", "the printer", "in advance", "I hope you are well", ":)", "\t",
    "\u2028", "é", "\0",
])  # fmt: skip


@given(
    st.lists(_PARTS | st.text(max_size=8), max_size=30).map("".join),
    st.sampled_from(["", "Anna", "a b", "?"]),
)
@example("Hi\n" * 3, "")
def test_the_core_of_any_text_is_a_part_of_it_and_has_itself_as_core(text, author):
    core = core_of(text, author)
    letters = iter(text)
    assert all(letter in letters for letter in core)
    assert core_of(core, author) == core
    assert core.strip() or not text.strip()


def test_long_texts_take_no_longer_for_each_character():
    for filling in (
        "@a ",
        "Hi, ",
        "a, ",
        "Thanks. ",
        " ",
        "> \n",
        "Anna\n",
        "Thanks\n",
        "A" * 50,
        "...",
        "-",
    ):
        core_of(filling * 20_000, "Anna")


def test_two_requests_are_as_alike_with_a_greeting_as_without():
    encoder = SentenceEncoder.load("rejoinder-small")
    plain = "where do I find the holiday calendar for next year?"
    polite = f"Hello team,\n{plain}\nThanks!\nAnna"
    query = "is there a list of bank holidays?"
    asked, found, raw, core = encoder.encode([query, plain, polite, core_of(polite)])
    assert asked @ raw < asked @ found - 0.05
    assert asked @ core == pytest.approx(asked @ found, abs=1e-6)


PARTS = [
    "Hi", "hello", "Dear", "Good", "morning", "Ann", "@bob", "I hope you are well", "the printer",
    "is", "jammed", "again", "Thanks", "thank you", "ty", "Best", "regards", "Have a nice day",
    "hope this helps", "party", "--", "Sent from my phone", "> quoted", ".", ",",
    "!", "\n", "\n\n", " – ",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), max_size=9).map(" ".join))
def test_a_look_ahead_changes_no_core(text):
    found = core_of(text, "Ann")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_may_be_cut", lambda _text: True)
        assert core_of(text, "Ann") == found


def test_lines_that_many_messages_have_are_left_out():
    below = "\n-- \nUniversity of Nowhere, Room 12\nThis mail may be secret"
    mails = [f"Where is file number {number}?{below}" for number in range(7)]
    assert cores_of(mails, [None] * 7) == [f"Where is file number {n}?" for n in range(7)]
    assert "secret" in Repeated().seen(mails[0]).cut(mails[0])


def test_a_message_that_many_send_stays():
    assert (
        cores_of(["Please restart it\nand try again"] * 9, [None] * 9)
        == ["Please restart it\nand try again"] * 9
    )
    assert cores_of(["ok"] * 9, [None] * 9) == ["ok"] * 9


@given(st.lists(st.text("ab \n"), max_size=20))
def test_what_stays_of_messages_are_lines_of_theirs_in_order(texts):
    repeated = Repeated(most=1)
    for text in texts:
        lines = iter(text.split("\n"))
        assert all(line in lines for line in repeated.seen(text).cut(text).split("\n"))


def test_what_many_messages_of_another_language_begin_or_end_with_is_a_habit():
    greetings = "¡Hola a todos! ", "Buenos días, ", ""
    endings = " ¡Muchas gracias!", " Gracias y un saludo", ""
    asked = [f"¿Por qué no es {n} una de las respuestas que hay?" for n in range(90)]
    said = [f"{greetings[n % 3]}{one}{endings[n // 3 % 3]}" for n, one in enumerate(asked)]
    rare = ["Oye Juan, no es la una.", "¡Hola a todos!", "Hola, sí."]
    assert without_habits([*said, *rare]) == [*asked, *rare]
    english = [f"Well then. What is the use of {n}? You know it." for n in range(90)]
    assert without_habits(english) == english
