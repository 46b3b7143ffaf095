"""Reads Jira issues and comments, from pages of its API or from XML and CSV exports.

Texts are trees of Atlassian's document format, or the older wiki markup.

The CSV export has a row per issue, with a column per comment. A comment is one cell: time, author
and text, separated by semicolons. It does not say whether a comment is restricted, and times are in
the time zone of the person who exported it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.mail import date_seconds
from rejoinder.exports.markup import plain_text, tidy

_ISSUES = rows.Layout(
    ("", "item", "issues.item", rows.AIRBYTE),
    ({"key", "fields.summary"}, {"key", "fields.comment"}),
    "issue",
)
_COMMENTS = rows.Layout(
    ("", "item", "comments.item", "values.item", rows.AIRBYTE),
    (
        {"id", "self", "body", "updateAuthor"},
        {"id", "self", "body", "jsdPublic"},
        {"id", "body", "author", "created", "updated", "jsdPublic"},
        {"id", "body", "author", "created", "updated", "issueId"},
    ),
    "issue",
    unless=[_ISSUES],
)
_NAMES = ("displayName", "name", "key", "accountId")
_COLUMNS = {"Issue key", "Summary"}
"""Those of a table of issues."""
_XML = b"<rss"
_OF_ISSUE = re.compile(r"/issue/([^/]+)/comment/")


def _exports(files: Files) -> list[str]:
    names = rows.xml_files(files, _XML)
    return [name for name in names if re.search(rb"<build-info>|<key id=", files.head(name))]


def _read(files: Files) -> Iterator[Item]:
    projects: dict[str, str] = {}
    yield from _ISSUES.items(files, _issue, projects)
    yield from _COMMENTS.messages(files, _comment, None, projects)
    for name in _exports(files):
        for number, item in rows.xml_items(files, name, "item"):
            yield from rows.items_of(name, number, _issue(_as_json(item), projects))
    for name, number, row in _issues_of_tables(files):
        yield from rows.items_of(name, number, _issue(row, projects))


def _as_json(item: Element) -> dict[str, Any]:
    """Returns an issue of the XML export in the form of the API."""
    key, project, reporter = item.find("key"), item.find("project"), item.find("reporter")
    names = {
        person.get("username") or person.get("accountid"): person.text
        for person in item
        if person.tag in ("reporter", "assignee")
    }
    comments = [
        {
            "id": comment.get("id"),
            "author": {"name": names.get(comment.get("author")) or comment.get("author")},
            "created": date_seconds(comment.get("created") or ""),
            "body": "",
            "renderedBody": comment.text,
            "visibility": comment.get("grouplevel") or comment.get("rolelevel") or None,
        }
        for comment in item.iterfind("comments/comment")
    ]
    return {
        "id": None if key is None else key.get("id"),
        "key": item.findtext("key"),
        "renderedFields": {"description": item.findtext("description")},
        "fields": {
            "summary": item.findtext("summary") or item.findtext("title"),
            "reporter": None if reporter is None else {"name": reporter.text},
            "created": date_seconds(item.findtext("created") or ""),
            "project": {} if project is None else {"key": project.get("key")},
            "comment": comments,
            "security": item.findtext("security"),
        },
    }


def _issue(row: Any, projects: dict[str, str]) -> Iterator[rows.Part]:
    issue, fields = rows.id_of(row), row["fields"]
    rendered = row.get("renderedFields") or {}
    project = fields.get("project") or {}
    source = projects[issue] = str(project.get("key") or str(row["key"]).rpartition("-")[0])
    text = atlassian_text(fields.get("description"), rendered.get("description"))
    comments = fields.get("comment") or {}
    comments = rows.list_of(comments.get("comments") if isinstance(comments, dict) else comments)
    author = fields.get("reporter") or fields.get("creator")
    yield Message(
        id=issue,
        thread=issue,
        author=rows.first_of(author, *_NAMES),
        time=rows.seconds(fields.get("created")),
        text="\n".join(filter(None, (str(fields.get("summary") or "").strip(), text))),
        source=source,
        is_bot=_is_bot(author),
        is_private=fields.get("security") is not None,
    )
    for comment in comments:
        yield partial(_comment, comment, issue, projects)


def _comment(row: Any, issue: str | None, projects: Mapping[str, str]) -> Message:
    of_issue = _OF_ISSUE.search(row.get("self") or "")
    issue = issue or (of_issue[1] if of_issue else rows.id_of(row, "issueId"))
    author = row.get("author")
    return Message(
        id=f"{issue}/{rows.id_of(row)}",
        thread=issue,
        author=rows.first_of(author, *_NAMES),
        time=rows.seconds(row.get("created")),
        text=atlassian_text(row["body"], row.get("renderedBody")),
        source=projects.get(issue, "jira"),
        is_bot=_is_bot(author),
        is_private=row.get("jsdPublic") is False or row.get("visibility") is not None,
        edited=row.get("updated") not in (None, row.get("created")),
    )


def _is_bot(author: Any) -> bool:
    return (author or {}).get("accountType") == "app"


# https://developer.atlassian.com/cloud/jira/platform/rest/v2/api-group-issue-comments/
JIRA = ExportFormat(
    "jira",
    "Jira (issues and comments: XML, CSV, JSON of its interface)",
    lambda files: (
        rows.recognises(files, _ISSUES, _COMMENTS)
        or bool(_exports(files) or rows.tables(files, _COLUMNS))
    ),
    _read,
)


_DEEPEST = 100
_BLOCKS = {
    "paragraph", "heading", "listItem", "codeBlock", "rule", "tableRow", "taskItem",
    "decisionItem", "panel", "expand", "nestedExpand", "blockCard", "mediaSingle",
}  # fmt: skip
_NAMED = {"mention": "text", "emoji": "text", "status": "text", "inlineCard": "url"}
"""The attribute that has the text of a node, where it has no content."""
_WITH_CONTENT = re.compile(r"\{(code|noformat)(?::[^{}]*)?\}")
_MARKS = [
    (re.compile(r"\{quote\}.*?(?:\{quote\}|\Z)", re.DOTALL), ""),
    (re.compile(r"^bq\. .*$", re.MULTILINE), ""),
    (re.compile(r"\[~(?:accountid:)?([^\[\]\n]+)\]"), r"@\1"),
    (re.compile(r"\[([^\[\]|\n]+)\|[^\[\]\n]+\]"), r"\1"),
    (re.compile(r"\[((?:https?|mailto):[^\[\]\n]+)\]"), r"\1"),
    (re.compile(r"(?<!\S)![^!\n|]+\.\w{2,5}(?:\|[^!\n]*)?!"), ""),
    (re.compile(r"\{(?:color|panel|anchor|section|column)(?::[^{}\n]*)?\}"), ""),
    (re.compile(r"^h[1-6]\. ", re.MULTILINE), ""),
    (re.compile(r"^[*#-]+ (?=\S)", re.MULTILINE), ""),
    (re.compile(r"^\|{1,2}|\|{1,2}[ \t\r]*$", re.MULTILINE), ""),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), r"\1"),
    (re.compile(r"\{\{((?:[^{}\n]|\{(?!\{))+)\}\}"), r"\1"),
]
"""Wiki markup, and the text that replaces it."""


def document_text(tree: Any) -> str:
    r"""Returns the text of a tree of Atlassian's document format, without quotes.

    >>> words = [{"type": "text", "text": "Hi "}, {"type": "mention", "attrs": {"text": "@Ann"}}]
    >>> document_text({"type": "doc", "content": [{"type": "paragraph", "content": words}]})
    'Hi @Ann'
    """
    return tidy("".join(_pieces(tree, 0)))


def _pieces(node: Any, depth: int) -> Iterator[str]:
    if not isinstance(node, dict) or depth > _DEEPEST:
        return
    kind, attributes = node.get("type"), node.get("attrs")
    if kind == "text":
        yield str(node.get("text") or "")
    elif kind == "hardBreak":
        yield "\n"
    elif kind in _NAMED and isinstance(attributes, dict):
        yield str(attributes.get(_NAMED[kind]) or attributes.get("shortName") or "")
    elif kind != "blockquote":
        content = node.get("content")
        for child in content if isinstance(content, list) else ():
            yield from _pieces(child, depth + 1)
            if kind == "tableRow":
                yield " "
        if kind in _BLOCKS:
            yield "\n"


def wiki_text(text: str) -> str:
    r"""Returns the text of wiki markup without its marks and quotes.

    >>> wiki_text("{quote}So?{quote}\nh1. Yes\n* see [the *page*|https://example.org], [~ann]")
    'Yes\nsee the page, @ann'
    """
    text, kept = _without_content(text.replace("\0", "").replace("\r\n", "\n"))
    for mark, stays in _MARKS:
        text = mark.sub(stays, text)
    return tidy(re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text))


def _without_content(text: str) -> tuple[str, list[str]]:
    """Replaces verbatim parts of a text by numbers between NULs; returns the text and the parts."""
    pieces, kept, end = list[str](), list[str](), 0
    last = {mark: text.rfind(mark) for mark in ("{code}", "{noformat}")}
    for begin in _WITH_CONTENT.finditer(text):
        mark = f"{{{begin[1]}}}"
        if begin.start() >= end and begin.end() <= last[mark]:
            pieces += text[end : begin.start()], f"\0{len(kept)}\0"
            end = text.index(mark, begin.end())
            kept.append(text[begin.end() : end])
            end += len(mark)
    return "".join([*pieces, text[end:]]), kept


def atlassian_text(body: Any, html: Any = None) -> str:
    """Returns the text of a body: a tree, or else rendered HTML, or else wiki markup."""
    if isinstance(body, dict):
        return document_text(body)
    if html:
        return plain_text(html, without="blockquote, .preformattedHeader, .codeHeader")
    return wiki_text(body or "")


_PEOPLE = ("Reporter", "Assignee", "Creator", "Watchers")
_TABLE_COMMENT = re.compile(r"\s*(\d[^;\n]{5,30});([^;\n]*);(.*)", re.DOTALL)
_TIMES = ("%d/%b/%y %I:%M %p", "%d/%b/%y %H:%M", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M %p")


def _issues_of_tables(files: Files) -> Iterator[tuple[str, int, Any]]:
    """Yields issues in the form of the API, with the names of their tables and their lines."""
    names: dict[str, str] = {}
    for table in rows.tables(files, _COLUMNS):
        for _, row in rows.table_rows_of(files, table):
            names.update(_people(row))
    for table in rows.tables(files, _COLUMNS):
        for number, row in rows.table_rows_of(files, table):
            yield table, number, _table_issue(row, names)


def _people(row: rows.Row) -> Iterator[tuple[str, str]]:
    """Yields the ids of accounts with their names; comments have only ids."""
    for column in _PEOPLE:
        people, ids = row.get(column, ()), row.get(f"{column} Id", ())
        if len(people) == len(ids):
            yield from ((id_, name) for id_, name in zip(ids, people, strict=True) if id_ and name)


def _table_issue(row: rows.Row, names: dict[str, str]) -> dict[str, Any]:
    def first(column: str) -> str | None:
        return next(filter(None, row.get(column, ())), None)

    author = first("Reporter") or first("Creator")
    cells = [cell for cell in row.get("Comment", ()) if cell.strip()]
    return {
        "id": first("Issue id") or first("Issue key"),
        "key": first("Issue key"),
        "fields": {
            "summary": first("Summary"),
            "description": first("Description"),
            "reporter": {"name": author} if author else None,
            "created": _table_time(first("Created")),
            "project": {"key": first("Project key")},
            "security": first("Security Level"),
            "comment": [_table_comment(place, cell, names) for place, cell in enumerate(cells, 1)],
        },
    }


def _table_comment(place: int, cell: str, names: dict[str, str]) -> dict[str, Any]:
    parts = _TABLE_COMMENT.fullmatch(cell)
    time, author, body = parts.groups() if parts else (None, "", cell)
    return {
        "id": f"comment-{place}",
        "author": {"name": names.get(author, author)},
        "created": _table_time(time),
        "body": body,
    }


def _table_time(text: str | None) -> float | None:
    """Parses a time in the usual forms; None for others, such as months in other languages.

    >>> _table_time("01/Mar/24 8:00 AM"), _table_time("01/Mär/24 8:00 AM")
    (1709280000.0, None)
    """
    for form in _TIMES:
        with suppress(ValueError):
            return rows.seconds(datetime.strptime((text or "").strip(), form).isoformat())
    with suppress(ValueError, OverflowError):
        return rows.seconds(text)
    return None
