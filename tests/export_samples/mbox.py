"""Two months of a list as its archive gives them, and a folder of a mail program."""

from rejoinder.exports.base import Message

_ARCHIVE = """\
From ann at example.org  Mon May  1 10:00:00 2006
From: ann at example.org (Ann A.)
Date: Mon, 1 May 2006 12:00:00 +0200
Subject: [dev] Which port?
Message-ID: <1@example.org>

Which port does it take?

From here on I only guess: 8000?
--\x20
Ann, Acme Inc.
_______________________________________________
dev mailing list
dev at lists.example.org

From bob at example.org  Mon May  1 11:00:00 2006
From: bob at example.org (=?ISO-8859-1?Q?B=F6b?=)
Date: Mon, 1 May 2006 11:00:00 +0000
Subject: [dev] Which port?
In-Reply-To: <1@example.org>
References: <1@example.org>
Message-ID: <2@example.org>

Am Montag, den 01.05.2006, 12:00 +0200 schrieb
Ann A.:
> Which port does it take?

Yes, 8000.

> From here on I only guess: 8000?

>From the manual.
-------------- next part --------------
An HTML attachment was scrubbed...
"""
_JUNE = """\
From ann at example.org  Thu Jun  1 10:00:00 2006
From: ann at example.org (Ann A.)
Subject: [dev] Which port?
In-Reply-To: Your message of Monday <2@example.org>
References: <1@example.org> <2@example.org>
Message-ID: <3@example.org>

Thanks!

On 5/1/06, Bob <bob at example.org> wrote:
> Yes, 8000.
"""
_FOLDER = """\
From - Mon Mar 04 10:00:00 2024
X-Mozilla-Status: 0001
From: =?utf-8?b?QW5uIA==?= =?utf-8?b?w4Q=?= via Help <help@lists.example.org>
To: help@lists.example.org
List-Id: Help <help.lists.example.org>
Archived-At: <https://lists.example.org/4>
Date: Mon, 04 Mar 2024 10:00:00 +0000
Subject: Re: [Help] Printing
Message-ID: <4@example.org>
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain


--c
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<p>Does it print <b>caf=C3=A9</b>?</p><blockquote>Old</blockquote>
--c--
--b
Content-Type: text/plain; name=log.txt
Content-Disposition: attachment

a log
--b--

From - Mon Mar 04 11:00:00 2024
From: "Help desk" <no-reply@example.org>
Date: Mon, 04 Mar 2024 11:00:00 +0000
Message-ID: <5@example.org>
In-Reply-To: <4@example.org>
Auto-Submitted: auto-replied

We are away.

From - Mon Mar 04 12:00:00 2024
From: MAILER-DAEMON@example.org
Date: Mon, 04 Mar 2024 12:00:00 +0000
Subject: Undelivered

Sorry.

From - Mon Mar 04 13:00:00 2024
From: bob@example.org
Date: Mon, 04 Mar 2024 13:00:00 +0000
Subject: Re: [Help] No words

"""
_LATIN = (
    b"From - Mon Mar 04 14:00:00 2024\nFrom: bob@example.org\nMessage-ID: <6@example.org>\n"
    b"Content-Type: text/plain; charset=us-ascii\n\nTr\xe8s bien\n"
)
FILES = {
    "dev/2006-May.txt": _ARCHIVE,
    "dev/2006-June.txt": _JUNE,
    "Inbox": _FOLDER.encode() + _LATIN,
}
_MAY, _MARCH = 1146477600.0, 1709546400.0
"""1 May 2006 and 4 March 2024, 10:00 UTC."""
MESSAGES = [
    Message(
        id="4@example.org",
        text="Does it print café?",
        thread="4@example.org",
        title="Printing",
        author="Ann Ä",
        time=_MARCH,
        source="help",
        link="https://lists.example.org/4",
    ),
    Message(
        id="5@example.org",
        text="We are away.",
        parent="4@example.org",
        thread="4@example.org",
        author="Help desk",
        time=_MARCH + 3600,
        source="Inbox",
        is_bot=True,
    ),
    Message(
        id="Inbox/3",
        text="Sorry.",
        thread="Inbox/3",
        title="Undelivered",
        author="MAILER-DAEMON@example.org",
        time=_MARCH + 7200,
        source="Inbox",
        is_system=True,
    ),
    Message(
        id="Inbox/4",
        text="No words",
        thread="Inbox/4",
        author="bob@example.org",
        time=_MARCH + 10800,
        source="Inbox",
    ),
    Message(
        id="6@example.org",
        text="Très bien",
        thread="6@example.org",
        author="bob@example.org",
        time=_MARCH + 14400,
        source="Inbox",
    ),
    Message(
        id="1@example.org",
        text="Which port does it take?\nFrom here on I only guess: 8000?",
        thread="1@example.org",
        title="Which port?",
        author="Ann A.",
        time=_MAY,
        source="dev",
    ),
    Message(
        id="2@example.org",
        text="Yes, 8000.\nFrom the manual.",
        parent="1@example.org",
        thread="1@example.org",
        title="Which port?",
        author="Böb",
        time=_MAY + 3600,
        source="dev",
    ),
    Message(
        id="3@example.org",
        text="Thanks!",
        parent="2@example.org",
        thread="1@example.org",
        title="Which port?",
        author="Ann A.",
        time=_MAY + 31 * 86400,
        source="dev",
    ),
]
BROKEN = {"dev/2006-May.txt": _ARCHIVE + "\nFrom x  Mon May  1 12:00:00 2006\nX: y\n\nNo mail.\n"}
EMPTY = {"Inbox": ""}
REAL = {
    "mbox": (5_438, 0, 0, 3_514),
    "mbox/perceval_mbox_multipart.mbox": (2, 0, 0, 0),
    "mbox/perceval_mbox_no_fields.mbox": (4, 0, 0, 0),
    "mbox/perceval_pipermail_2015_november.mbox": (4, 0, 0, 3),
}
