"""Text of Atlassian's programs: trees of its document format, and the wiki markup before them."""

import re
from collections.abc import Iterator
from typing import Any

from rejoinder.corpus.exports.markup import plain_text

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
"""Marks of the wiki, and what stays of them."""


def document_text(tree: Any) -> str:
    r"""Returns the text of a tree of Atlassian's document format, without quotes.

    >>> words = [{"type": "text", "text": "Hi "}, {"type": "mention", "attrs": {"text": "@Ann"}}]
    >>> document_text({"type": "doc", "content": [{"type": "paragraph", "content": words}]})
    'Hi @Ann'
    """
    return _tidy("".join(_pieces(tree, 0)))


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
    return _tidy(re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text))


def _without_content(text: str) -> tuple[str, list[str]]:
    """Returns a text with numbers between NULs for what is kept as it is, and that."""
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
    """Returns the text of a body: a tree, or else as it was rendered, or else wiki markup."""
    if isinstance(body, dict):
        return document_text(body)
    if html:
        return plain_text(html, without="blockquote, .preformattedHeader, .codeHeader")
    return wiki_text(body or "")


def _tidy(text: str) -> str:
    lines = (re.sub(r"[ \t\xa0]+", " ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
