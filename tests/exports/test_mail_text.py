"""What is left of a mail: its author's own words."""

import pytest

from rejoinder.exports.mail import written_text

ATTRIBUTIONS = [
    "On Mon, May 1, 2006 at 10:00 AM, Ann <ann@example.org> wrote:",
    "On 1 May 2006, at 10:00,\nAnn <ann@example.org> wrote:",
    "Ann wrote:",
    "Am Montag, den 01.05.2006, 12:00 +0200 schrieb Ann:",
    "Ann schrieb am 01.05.2006 um 12:00:",
    "Le lun. 1 mai 2006 à 10:00, Ann <ann@example.org> a écrit :",
    "El lun, 1 may 2006 a las 10:00, Ann (<ann@example.org>) escribió:",
    "Il giorno lun 1 mag 2006 alle ore 10:00 Ann\n<ann@example.org> ha scritto:",
    "Em seg., 1 de mai. de 2006 às 10:00, Ann <ann@example.org> escreveu:",
    "Op ma 1 mei 2006 om 10:00 schreef Ann <ann@example.org>:",
    "Den mån 1 maj 2006 kl 10:00 skrev Ann <ann@example.org>:",
    "pon., 1 maj 2006 o 10:00 Ann <ann@example.org> napisał(a):",
    "пн, 1 мая 2006 г. в 10:00, Ann <ann@example.org>:",
    "1 мая 2006, 10:00, Ann написал:",
    "Ann <ann@example.org>, 1 May 2006 Pzt, 10:00 tarihinde şunu yazdı:",
    "2006年5月1日(月) 10:00 Ann <ann@example.org>:",
    "Ann 于2006年5月1日 10:00写道：",
    "Quoting Ann <ann@example.org>:",
    "* Ann <ann@example.org> [2006-05-01 10:00]:",
]
REST = [
    "-- \nBob\nAcme",
    "-----Original Message-----\nFrom: Ann\nOld",
    "-------- Ursprüngliche Nachricht --------\nVon: Ann\nAlt",
    "________________________________\nFrom: Ann <ann@example.org>\nSent: Monday\nTo: Bob\n\nOld",
    "De : Ann\nEnvoyé : lundi\nÀ : Bob\n\nOld",
    "*From:* Ann\n*Sent:* Monday\nOld",
    "Begin forwarded message:\n\nOld",
    "---------------------- Forwarded by Ann A/Acme on 01/15/2001 09:50 AM\n-----------\n\nOld",
    "Sent from my iPhone",
    "______________________\nBuy now\n-------------- next part --------------\n" + "Name: x\n" * 20,
    "Von meinem iPhone gesendet",
    "Gesendet von Mail für Windows",
    "_______________________________________________\ndev mailing list\ndev@example.org",
    "On Mon, May 1, 2006, Ann <ann@example.org> wrote:\n\nOld words without marks.",
    "-----BEGIN PGP SIGNATURE-----\nabc=",
    "An HTML attachment was scrubbed...\nURL: <https://lists.example.org/a.html>",
    "A non-text attachment was scrubbed...\nName: not available\nType: x/y\nSize: 1 bytes\nUrl : x",
]


@pytest.mark.parametrize("attribution", ATTRIBUTIONS)
def test_attributions_go_with_their_quotes(attribution):
    quote = "> Does it work?\n>> Really?\n>\n"
    assert written_text(f"Hi,\n\n{attribution}\n{quote}\nYes.") == "Hi,\nYes."
    assert written_text(f"Yes.\n\n{attribution}\n\n{quote}") == "Yes."


@pytest.mark.parametrize("rest", REST)
def test_what_comes_after_the_text_goes(rest):
    assert written_text(f"It works.\n\n{rest}\n") == "It works."


@pytest.mark.parametrize(
    "text",
    [
        "On Monday I wrote a letter: it was long.\nIt took 3 days.",
        "The docs say:\nuse port 8000",
        "From: here\nit went on",
        "The deck was scrubbed...\nName: Ann",
        "SQL> select 1",
        "Sent via the office on Monday, and it has not come yet, so I ask you to look for it.",
        "Two hyphens --\nwithin a text",
        "Sent from my own server to yours, without a reply: I do not know why that is so.",
    ],
)
def test_words_that_look_like_it_stay(text):
    assert written_text(text) == text


def test_an_attribution_may_be_above_other_words():
    assert written_text("On 4 July, Ann wrote:\n\nHi Ann,\n\n> Works?\n\nYes") == "Hi Ann,\nYes"


def test_a_line_before_a_quote_that_names_nobody_stays():
    assert written_text("See the docs:\n> Use port 8000\n\nDone.") == "See the docs:\nDone."
