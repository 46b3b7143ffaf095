"""A page of issues with comments in both forms of text, and a page of loose comments."""

from typing import Any

from rejoinder.corpus.exports.base import Message


def _person(name: str, kind: str = "atlassian") -> dict[str, Any]:
    return {"accountId": f"7:{name}", "displayName": name, "accountType": kind}


def _paragraph(*content: Any) -> dict[str, Any]:
    return {"type": "paragraph", "content": list(content)}


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "marks": [{"type": "strong"}]}


def _document(*content: Any) -> dict[str, Any]:
    return {"type": "doc", "version": 1, "content": list(content)}


def _comment(number: int, issue: int, author: Any, body: Any, **others: Any) -> dict[str, Any]:
    time = f"2024-03-01T10:{number:02}:00.000+0200"
    return {
        "self": f"https://team.example.org/rest/api/3/issue/{issue}/comment/{number}",
        "id": str(number),
        "author": author,
        "updateAuthor": author,
        "body": body,
        "created": time,
        "updated": time,
        **others,
    }


_QUOTE = {"type": "blockquote", "content": [_paragraph(_words("It fails"))]}
_MENTION = {"type": "mention", "attrs": {"id": "7", "text": "@Ann"}}
_CARD = {"type": "inlineCard", "attrs": {"url": "https://example.org"}}
_LIST = {"type": "bulletList", "content": [{"type": "listItem", "content": [_paragraph(_CARD)]}]}
_COMMENTS = [
    _comment(
        1, 500, _person("Bob"), _document(_QUOTE, _paragraph(_words("See, "), _MENTION), _LIST)
    ),
    _comment(2, 500, _person("Bob"), _document(), jsdPublic=False),
    _comment(3, 500, _person("Builds", "app"), "Build [12|https://example.org/12] *passed*"),
    _comment(4, 500, None, "x", renderedBody="<p>Thank <b>you</b></p>", updated="2024-03-02"),
]
_ISSUES = [
    {
        "id": "500",
        "key": "WEB-1",
        "fields": {
            "summary": "Sign-in fails",
            "description": "Since *today*:\r\n{code:java}a[0] = *b*;{code}",
            "reporter": _person("Ann"),
            "created": "2024-03-01T10:00:00.000+0200",
            "project": {"id": "10", "key": "WEB", "name": "Website"},
            "comment": {"comments": _COMMENTS, "total": 4},
        },
    },
    {
        "id": "501",
        "key": "WEB-2",
        "fields": {
            "summary": "Secret",
            "description": None,
            "creator": {"name": "ann"},
            "created": "2024-03-01T10:05:00.000+0200",
            "security": {"id": "1", "name": "Staff"},
        },
    },
]
FILES: dict[str, Any] = {
    "issues.json": {"startAt": 0, "maxResults": 50, "total": 2, "issues": _ISSUES},
    "comments.json": {
        "comments": [
            _comment(30, 501, _person("Bob"), "[~ann] Why?", jsdPublic=True),
            _comment(31, 501, _person("Ann"), "Ask", visibility={"type": "role", "value": "Staff"}),
        ],
        "total": 2,
    },
}
_EIGHT = 1709280000.0
"""Ten o'clock at UTC+2."""


def _message(key: str, text: str, author: str, minute: int, **others: Any) -> Message:
    return Message(
        id=key,
        text=text,
        thread=key.partition("/")[0],
        author=author,
        time=_EIGHT + 60 * minute,
        source="WEB",
        **others,
    )


MESSAGES = [
    _message("500", "Sign-in fails\nSince today:\na[0] = *b*;", "Ann", 0),
    _message("500/1", "See, @Ann\nhttps://example.org", "Bob", 1),
    _message("500/2", "", "Bob", 2, is_private=True),
    _message("500/3", "Build 12 passed", "Builds", 3, is_bot=True),
    _message("500/4", "Thank you", "", 4, edited=True),
    _message("501", "Secret", "ann", 5, is_private=True),
    _message("501/30", "@ann Why?", "Bob", 30),
    _message("501/31", "Ask", "Ann", 31, is_private=True),
]
BROKEN = {
    "issues.json": {"issues": [*_ISSUES, {"id": "502", "key": "WEB-3"}, "no issue"]},
    "comments.json": {"comments": [{"id": "1"}, *FILES["comments.json"]["comments"], None]},
}
EMPTY = {"issues.json": {"issues": [], "total": 0}}
REAL = {
    "jira/jira_issues_page_1.json": (2, 0, 0, 0),
    "jira/jira_comments_issue_page_1.json": (2, 0, 0, 0),
    "jira": (4, 0, 0, 0),
}
