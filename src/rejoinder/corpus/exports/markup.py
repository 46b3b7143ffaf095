"""Text as people read it, from HTML and Markdown.

`selectolax` parses HTML as browsers do, and `markdown-it-py`, which Rich brings, Markdown.
"""

import re
from functools import cache
from typing import Any

from rejoinder.errors import require

_BLOCKS = "p, div, br, li, tr, h1, h2, h3, h4, h5, h6, pre, blockquote, ul, ol, table, hr"
_UNREAD = ("script", "style", "head", "template")
_MARKS = re.compile(r"[*_`\[\]~<>\\|#&]|^[^\S\n]*(?:[-+]|[0-9]+[.)])\s", re.MULTILINE)
"""Matches whatever could be a mark of Markdown."""
_QUOTE_ENDS = re.compile(r"^( {0,3}>.*)\n(?! {0,3}>)", re.MULTILINE)
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")


def plain_text(html: str, without: str = "") -> str:
    r"""Returns the text of HTML, each block on a separate line.

    `without` are CSS selectors of elements to leave out, such as quotes.

    >>> plain_text("<p>R&amp;D <a href='/x'>here</a>:</p><ul><li>one<li>two</ul>")
    'R&D here:\none\ntwo'
    """
    if "<" not in html and "&" not in html:
        return _tidy(html)
    require("extract", "selectolax")
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    if tree.body is None:
        return ""
    tree.strip_tags(list(_UNREAD), recursive=True)
    if without:
        for node in tree.css(without):
            node.decompose()
    for node in tree.css(_BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    return _tidy(tree.body.text())


def markdown_text(text: str, *, html: bool = False) -> str:
    r"""Returns the text of Markdown without its marks and quotes, each block on a separate line.

    A quote ends with its marks: people answer on the next line. To Markdown that line belongs to
    the quote. `html` says whether tags are marks, too.

    >>> markdown_text("> You asked\nSee **the** [manual](https://example.org):\n\n- one")
    'See the manual:\none'
    """
    if not _MARKS.search(text):  # nearly all messages of chats: the parser takes a millisecond
        return _tidy(text)
    text = _QUOTE_ENDS.sub(r"\1\n\n", text)
    return plain_text(_markdown(html).render(text), without="blockquote")


@cache
def _markdown(html: bool) -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": html, "breaks": True})
    return parser.enable(["table", "strikethrough"])


def _tidy(text: str) -> str:
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
