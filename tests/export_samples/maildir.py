"""Two mails of a mail server's folders, and two that were saved as files."""

from rejoinder.exports.base import Message

_QUESTION = """\
Return-Path: <ann@example.org>
Received: from mail.example.org
From: Ann <ann@example.org>
Subject: Invoice
Message-ID: <1@example.org>

Where is the invoice?

Sent from my iPhone
"""
_ANSWER = """\
From: bob@example.org
Date: Fri, 01 Mar 2024 12:00:00 +0000
Subject: Re: Invoice
Message-ID: <2@example.org>
In-Reply-To: <1@example.org>

It is attached.

-----Original Message-----
From: Ann
Where is the invoice?
"""
FILES = {
    "cur/1709287200.M1P2.host:2,S": _QUESTION,
    "new/1709290800.M3P4.host": "From: ann@example.org\nMessage-ID: <3@example.org>\n"
    "References: <1@example.org> <2@example.org>\n\nThanks!\n",
    ".Sent/cur/1709294400.M5P6.host:2,S": _ANSWER,
    "saved/note.eml": "From: Bob <bob@example.org>\nSubject: Note\n"
    "Content-Type: text/html\n\n<p>A note</p><div class=gmail_quote>On 1 March Ann wrote</div>\n",
    "dovecot.index": "no mail",
}
_TEN = 1709287200.0
"""1 March 2024, 10:00 UTC."""
MESSAGES = [
    Message(
        id="2@example.org",
        text="It is attached.",
        parent="1@example.org",
        thread="1@example.org",
        title="Invoice",
        author="bob@example.org",
        time=_TEN + 7200,
        source="Sent",
    ),
    Message(
        id="1@example.org",
        text="Where is the invoice?",
        thread="1@example.org",
        title="Invoice",
        author="Ann",
        time=_TEN,
        source="INBOX",
    ),
    Message(
        id="3@example.org",
        text="Thanks!",
        parent="2@example.org",
        thread="1@example.org",
        author="ann@example.org",
        time=_TEN + 3600,
        source="INBOX",
    ),
    Message(
        id="saved/note.eml/1",
        text="A note",
        thread="saved/note.eml/1",
        title="Note",
        author="Bob",
        source="saved",
    ),
]
BROKEN = {"new/1709290801.M3P4.host": "no: mail\n\nat all\n"}
EMPTY = {"cur/1709287200.M1P2.host:2,S": ""}
REAL = {"maildir/supertux-devel": (23, 0, 0, 17)}
