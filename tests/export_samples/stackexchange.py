"""A site with a question, answers, comments, a deleted user, and a description of a tag."""

from rejoinder.exports.base import Message

_POSTS = """\
\ufeff<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" CreationDate="2024-03-01T10:00:00.000" OwnerUserId="7" Title="R&amp;D: which port?" Body="&lt;p&gt;Which &lt;b&gt;port&lt;/b&gt; does it take?&lt;/p&gt;" AcceptedAnswerId="2" />
  <row Id="2" PostTypeId="2" ParentId="1" CreationDate="2024-03-01T12:00:00.500" OwnerUserId="8" LastEditDate="2024-03-02T10:00:00.000" Body="&lt;blockquote&gt;Which port&lt;/blockquote&gt;&lt;p&gt;Port &lt;code&gt;8000&lt;/code&gt;&lt;/p&gt;" />
  <row Id="3" PostTypeId="2" ParentId="1" CreationDate="2024-03-01T13:00:00.000" OwnerDisplayName="user9" Body="" />
  <row Id="4" PostTypeId="5" CreationDate="2024-03-01T14:00:00.000" OwnerUserId="-1" Body="About ports." />
</posts>
"""  # noqa: E501
FILES = {
    "ports.example.org/Posts.xml": _POSTS,
    "ports.example.org/Comments.xml": """\
<comments>
  <row Id="1" PostId="1" Text="Did you read [the manual](https://example.org)?" CreationDate="2024-03-01T11:00:00.000" UserId="8" />
  <row Id="2" PostId="2" Text="Thanks &amp; bye" CreationDate="2024-03-01T15:00:00.000" UserDisplayName="gone" />
</comments>
""",  # noqa: E501
    "ports.example.org/Users.xml": '<users>\n  <row Id="7" DisplayName="Ann" />\n</users>\n',
    "ports.example.org/Tags.xml": "<tags />",
}
_SITE = "ports.example.org"
_TEN = 1709287200.0
"""1 March 2024, 10:00 UTC."""
MESSAGES = [
    Message(
        id=f"{_SITE}/1",
        text="R&D: which port?\nWhich port does it take?",
        thread=f"{_SITE}/1",
        author="Ann",
        time=_TEN,
        source=_SITE,
        link=f"https://{_SITE}/q/1",
    ),
    Message(
        id=f"{_SITE}/comment/1",
        text="Did you read the manual?",
        parent=f"{_SITE}/1",
        thread=f"{_SITE}/1",
        author="8",
        time=_TEN + 3600,
        source=_SITE,
    ),
    Message(
        id=f"{_SITE}/2",
        text="Port 8000",
        parent=f"{_SITE}/1",
        thread=f"{_SITE}/1",
        author="8",
        time=_TEN + 7200.5,
        source=_SITE,
        link=f"https://{_SITE}/q/2",
        edited=True,
    ),
    Message(
        id=f"{_SITE}/3",
        text="",
        parent=f"{_SITE}/1",
        thread=f"{_SITE}/1",
        author="user9",
        time=_TEN + 10_800,
        source=_SITE,
        link=f"https://{_SITE}/q/3",
    ),
    Message(
        id=f"{_SITE}/4",
        text="About ports.",
        thread=f"{_SITE}/4",
        author="-1",
        time=_TEN + 14_400,
        source=_SITE,
        link=f"https://{_SITE}/q/4",
        is_bot=True,
        is_system=True,
    ),
    Message(
        id=f"{_SITE}/comment/2",
        text="Thanks & bye",
        parent=f"{_SITE}/2",
        thread=f"{_SITE}/1",
        author="gone",
        time=_TEN + 18_000,
        source=_SITE,
    ),
]
BROKEN = {
    f"{_SITE}/Posts.xml": _POSTS.replace(
        "</posts>", '<row PostTypeId="1" Body="no id" /><row Id="9" PostTypeId="2" /></posts>'
    )
}
EMPTY = {"Posts.xml": "<posts>\n</posts>"}
REAL = {
    "stackexchange": (3_894, 8, 22, 3_419),
    "stackexchange_api/stackexchange_question.json": (3, 0, 0, 2),
    "stackexchange_api/stackexchange_question_page.json": (5, 0, 0, 4),
}
