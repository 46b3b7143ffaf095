"""Converts HTML and Markdown to the text that people see.

`selectolax` parses HTML as browsers do; `markdown-it-py`, a dependency of Rich, parses Markdown.
"""

import re
from collections import Counter
from functools import cache
from typing import Any

from rejoinder.errors import require

_BLOCKS = "p, div, br, li, tr, h1, h2, h3, h4, h5, h6, pre, blockquote, ul, ol, table, hr"
_UNREAD = ("script", "style", "head", "template")
_TAG = re.compile(r"<(/?)([A-Za-z][^\s/<>]*)")
_EMPTY = "img"
_NOT_DEEP = frozenset({
    "area", "base", "body", "br", "caption", "col", "colgroup", "dd", "dt", "embed", "head",
    "hr", "html", "img", "input", "li", "link", "meta", "option", "p", "param", "source",
    "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
})  # fmt: skip
"""Elements without content, or that end where the next such element begins."""
_STYLES = frozenset({
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt",
    "u",
})  # fmt: skip
"""Elements that a parser reopens in each block until they end."""
_FEW, _DEEPEST, _MOST_STYLES = 1_000, 200, 8
_MARKS = re.compile(r"[*_`\[\]~<>\\|#&]|^[^\S\n]*(?:[-+]|[0-9]+[.)])\s", re.MULTILINE)
"""Matches anything that could be Markdown markup."""
_QUOTE_ENDS = re.compile(r"^( {0,3}>.*)\n(?! {0,3}>)", re.MULTILINE)
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")


def plain_text(html: str, without: str = "", after: str = "") -> str:
    r"""Returns the text of HTML, each block on a separate line.

    `without` has CSS selectors of elements to leave out, such as quotes; `after` has selectors of
    elements after which the rest of the parent is left out.

    >>> plain_text("<p>R&amp;D <a href='/x'>here</a>:</p><ul><li>one<li>two</ul>")
    'R&D here:\none\ntwo'
    """
    if "<" not in html and "&" not in html:
        return tidy(html)
    tree = parsed(html)
    if tree.body is None:
        return ""
    tree.strip_tags(list(_UNREAD), recursive=True)
    if without:
        for node in tree.css(without):
            node.decompose()
    if after and (node := tree.css_first(after)) is not None:
        while (following := node.next) is not None:
            following.remove()
    for node in tree.css(_BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    return tidy(tree.body.text())


def parsed(html: str) -> Any:
    """Parses HTML as browsers do, in time linear in its size.

    Elements nested 200 deep, and styles nested eight deep, are emptied; their text moves next to
    them.
    """
    require("extract", "selectolax")
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(_flat(html) if html.count("<") > _FEW else html)


def _flat(html: str) -> str:
    """Renames elements that are nested too deep to an element without content."""
    pieces, end = list[str](), 0
    within, styles, renamed = list[str](), list[str](), Counter[str]()
    for tag in _TAG.finditer(html):
        name = tag[2].lower()
        if name in _NOT_DEEP:
            continue
        around, most = (styles, _MOST_STYLES) if name in _STYLES else (within, _DEEPEST)
        if not tag[1] and len(around) < most:
            around.append(name)
        elif tag[1] and not renamed[name]:
            if name in around:
                while around.pop() != name:
                    pass
        else:
            renamed[name] += -1 if tag[1] else 1
            pieces.append(f"{html[end : tag.start()]}<{tag[1]}{_EMPTY}")
            end = tag.end()
    return "".join([*pieces, html[end:]])


def markdown_text(text: str, *, html: bool = False) -> str:
    r"""Returns the text of Markdown without its marks and quotes, each block on a separate line.

    A quote ends at its last `>` line, because people answer on the next line; in Markdown that
    line would belong to the quote. `html` says whether tags are markup, too.

    >>> markdown_text("> You asked\nSee **the** [manual](https://example.org):\n\n- one")
    'See the manual:\none'
    """
    if not _MARKS.search(text):  # as in nearly all chat messages: the parser takes a millisecond
        return tidy(text)
    text = _QUOTE_ENDS.sub(r"\1\n\n", text)
    return plain_text(_markdown(html).render(text), without="blockquote")


@cache
def _markdown(html: bool) -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": html, "breaks": True})
    return parser.enable(["table", "strikethrough"])


def tidy(text: str) -> str:
    """Returns the non-blank lines of a text, with single spaces."""
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
