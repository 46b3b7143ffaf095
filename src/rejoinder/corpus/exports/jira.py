"""Jira: issues and comments, as pages of its interface or as its exports of XML and CSV."""

import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from xml.etree.ElementTree import Element

from rejoinder.corpus.exports.atlassian import atlassian_text
from rejoinder.corpus.exports.base import ExportFormat, Item, Message
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.jira_tables import issue_tables, issues_of_tables
from rejoinder.corpus.exports.rows import (
    AIRBYTE,
    FAULTS,
    Shape,
    documents,
    first_shapes,
    id_of,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)
from rejoinder.corpus.exports.xml_items import xml_files, xml_items

_ISSUES = ("", "item", "issues.item", AIRBYTE)
_COMMENTS = ("", "item", "comments.item", "values.item", AIRBYTE)
_COMMENT = (
    {"id", "self", "body", "updateAuthor"},
    {"id", "self", "body", "jsdPublic"},
    {"id", "body", "author", "created", "updated", "jsdPublic"},
    {"id", "body", "author", "created", "updated", "issueId"},
)
_XML = b"<rss"
_OF_ISSUE = re.compile(r"/issue/([^/]+)/comment/")


def _recognises(files: Files) -> bool:
    return (
        bool(_exports(files))
        or any(_paths(keys) != (None, None) for keys in first_shapes(files, "issue"))
        or bool(issue_tables(files))
    )


def _exports(files: Files) -> list[str]:
    names = xml_files(files, _XML)
    return [name for name in names if re.search(rb"<build-info>|<key id=", files.head(name))]


def _paths(keys: Shape) -> tuple[str | None, str | None]:
    """Returns where the issues of a file are, and the comments that are in no issue."""
    for path in _ISSUES:
        inner = keys.get(f"{path}.fields".lstrip("."), set())
        if {"key", "fields"} <= keys.get(path, set()) and inner & {"summary", "comment"}:
            return path, None
    return None, path_of(keys, _COMMENTS, *_COMMENT)


def _read(files: Files) -> Iterator[Item]:
    paths = {name: _paths(shape(files, name)) for name in documents(files)}
    projects: dict[str, str] = {}
    for name, (issues, _) in paths.items():
        for number, row in rows(files, name, issues) if issues is not None else ():
            yield from _issue(name, number, row, projects)
    for name, (_, comments) in paths.items():
        for number, row in rows(files, name, comments) if comments is not None else ():
            yield _comment(name, number, row, None, projects)
    for name in _exports(files):
        for number, item in xml_items(files, name, "item"):
            yield from _issue(name, number, _as_json(item), projects)
    for name, number, row in issues_of_tables(files):
        yield from _issue(name, number, row, projects)


def _as_json(item: Element) -> dict[str, Any]:
    """Returns an issue of the XML export as the interface has it."""
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
            "created": _when(comment.get("created")),
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
            "created": _when(item.findtext("created")),
            "project": {} if project is None else {"key": project.get("key")},
            "comment": comments,
            "security": item.findtext("security"),
        },
    }


def _when(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def _issue(name: str, number: int, row: Any, projects: dict[str, str]) -> Iterator[Item]:
    try:
        issue, fields = id_of(row), row["fields"]
        rendered = row.get("renderedFields") or {}
        project = fields.get("project") or {}
        source = str(project.get("key") or str(row["key"]).rpartition("-")[0])
        projects[issue] = source
        text = atlassian_text(fields.get("description"), rendered.get("description"))
        comments = fields.get("comment") or {}
        comments = list_of(comments.get("comments") if isinstance(comments, dict) else comments)
        author = fields.get("reporter") or fields.get("creator")
        yield Message(
            id=issue,
            thread=issue,
            author=_name_of(author),
            time=seconds(fields.get("created")),
            text="\n".join(filter(None, (str(fields.get("summary") or "").strip(), text))),
            source=source,
            is_bot=_is_bot(author),
            is_private=fields.get("security") is not None,
        )
    except FAULTS as error:
        yield no_message(name, number, "Jira", error)
        return
    for comment in comments:
        yield _comment(name, number, comment, issue, projects)


def _comment(
    name: str, number: int, row: Any, issue: str | None, projects: Mapping[str, str]
) -> Item:
    try:
        of_issue = _OF_ISSUE.search(row.get("self") or "")
        issue = issue or (of_issue[1] if of_issue else id_of(row, "issueId"))
        author = row.get("author")
        return Message(
            id=f"{issue}/{id_of(row)}",
            thread=issue,
            author=_name_of(author),
            time=seconds(row.get("created")),
            text=atlassian_text(row["body"], row.get("renderedBody")),
            source=projects.get(issue, "jira"),
            is_bot=_is_bot(author),
            is_private=row.get("jsdPublic") is False or row.get("visibility") is not None,
            edited=row.get("updated") not in (None, row.get("created")),
        )
    except FAULTS as error:
        return no_message(name, number, "Jira", error)


def _name_of(author: Any) -> str:
    author = author or {}
    keys = ("displayName", "name", "key", "accountId")
    return next((str(author[key]) for key in keys if author.get(key)), "")


def _is_bot(author: Any) -> bool:
    return (author or {}).get("accountType") == "app"


JIRA = ExportFormat(
    "jira",
    "Jira (issues and comments: XML, CSV, JSON of its interface)",
    "https://developer.atlassian.com/cloud/jira/platform/rest/v2/api-group-issue-comments/",
    _recognises,
    _read,
)
