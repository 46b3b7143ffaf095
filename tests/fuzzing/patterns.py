"""Texts that are slow for a regular expression, made from its own pieces, for all of `src/`."""

import ast
import re
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from random import Random
from re import _constants as _code  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import rejoinder

_SOURCE = Path(rejoinder.__file__).parent
_METHODS = {"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_CHARACTERS = "a0 \n.-A(:<>[]\"'*`_,@#&{}|/~=!?\u202e\xa0\xe9\u4e00\t\r\0"
_ANYTIME = (
    " ", "\n", "a", "0", "a ", ".", "A", "a\n", " \n", "\n ", "\r", "\u202e", "\u4e00", "(", "[", "{", "<",
    '"', "'", "`", "-", "_", "*", ">", "> ", ">\n", "@", "a@", "a.", "a-", ":", "a:", "://", "0.", "0 ", "a, ",
    "&", "=", "=?", "\\", "|", "~", "\t", "[a|", "a?", "\0", "aA0 ", "A a ", "a a.",
)  # fmt: skip
"""Pieces that are repeated for every pattern."""
_ENDS = ("", "\0", "\n\0", "a", "!")
_MOST_PIECES = 40


class Used(NamedTuple):
    """A pattern, and how it is used."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def search(self, text: str) -> None:
        """Does with a text what the package does, as often as it matches."""
        given = text if isinstance(self.pattern.pattern, str) else text.encode()
        if self.method in ("match", "fullmatch", "search"):
            getattr(self.pattern, self.method)(given)
        else:
            for _ in self.pattern.finditer(given):
                pass


@cache
def used_patterns() -> list[Used]:
    """Every pattern of the package, once for each method that it is used with."""
    found = {(one.place, one.method): one for file in sorted(_SOURCE.rglob("*.py")) for one in _used(file)}
    return list(found.values())


def _used(file: Path) -> Iterator[Used]:
    text = file.read_text("utf-8")
    if "import re\n" not in text:
        return
    tree = ast.parse(text)
    name = ".".join(("rejoinder", *file.relative_to(_SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    module = import_module(name)
    scope = vars(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            if node.func.value.id == "re" and node.func.attr in _METHODS | {"compile"}:
                try:
                    arguments = [eval(ast.unparse(one), scope) for one in [node.args[0], *(node.args[1:] if node.func.attr == "compile" else [])]]
                    flags = [eval(ast.unparse(k.value), scope) for k in node.keywords if k.arg == "flags"]
                except NameError as e:
                    print("UNRESOLVED", name, ast.unparse(node))
                    continue
                if node.func.attr == "compile":
                    pattern = re.compile(*arguments)
                    continue_ = True
                else:
                    pattern = re.compile(arguments[0], *flags)
                    yield Used(f"{name}:{node.lineno}", pattern, node.func.attr)
    methods = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _METHODS and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
    others = set().union(*(m for v, m in methods.items() if v != "re" and not isinstance(scope.get(v), re.Pattern)), set()) & _METHODS
    for variable, value in list(scope.items()):
        for n, pattern in enumerate(_patterns(value)):
            ms = methods.get(variable) or others or {"finditer"}
            for m in ms:
                yield Used(f"{name}.{variable}" + (f"[{n}]" if not isinstance(value, re.Pattern) else ""), pattern, m)


def _patterns(value):
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _patterns(x)
    elif isinstance(value, dict):
        for x in value.values():
            yield from _patterns(x)


def texts_for(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Pieces of hostile texts: what is written once, what is repeated, and an end."""
    flags = pattern.flags
    tree = _parser.parse(pattern.pattern, flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else flags)
    prefixes: dict[str, None] = {}
    nodes: dict[str, None] = {}
    pairs: dict[tuple[str, str], None] = {}
    _walk(tree, "", prefixes, nodes, pairs, flags)
    for piece in _ANYTIME:
        for end in ("", "\0"):
            yield "", piece, end
    for piece in [*prefixes]:
        for end in ("", "\0", " \0", "\n\0"):
            yield "", piece, end
        yield "", piece + " ", "\0"
    for before, piece in pairs:
        for end in ("\0", " \0", "\n\0"):
            yield before, piece, end


def _walk(tree, before, prefixes, nodes, pairs, flags, groups=None):
    """Collects samples; returns what `tree` may match."""
    groups = {} if groups is None else groups
    text = ""
    for op, value in tree:
        now = before + text
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = value
            bodies = samples(body, flags, groups)
            for one in bodies:
                if high == _code.MAXREPEAT or high > 8:
                    pairs[(now, one)] = None
                    pairs[(now + one, one)] = None
                prefixes[now + one * max(low, 1)] = None
            _walk(body, now, prefixes, nodes, pairs, flags, groups)
            text += (bodies[0] if bodies else "") * max(low, 1 if name != "x" else 0)
        elif name == "SUBPATTERN":
            number, _, _, body = value
            inner = _walk(body, now, prefixes, nodes, pairs, flags, groups)
            groups[number] = inner
            text += inner
        elif name == "ATOMIC_GROUP":
            text += _walk(value, now, prefixes, nodes, pairs, flags, groups)
        elif name == "BRANCH":
            first = None
            for branch in value[1]:
                inner = _walk(branch, now, prefixes, nodes, pairs, flags, groups)
                first = inner if first is None else first
            text += first or ""
        elif name in ("ASSERT", "ASSERT_NOT"):
            direction, body = value
            inner = _walk(body, now if direction > 0 else "", prefixes, nodes, pairs, flags, groups)
            if name == "ASSERT" and direction < 0 and not now.endswith(inner):
                text += inner
        elif name == "GROUPREF":
            text += groups.get(value, "")
        elif name == "AT":
            if str(value) in ("AT_BEGINNING", "AT_BEGINNING_LINE") and now and not now.endswith("\n"):
                text += "\n"
        else:
            chars = characters(op, value, flags)
            for one in chars[:3]:
                prefixes[now + one] = None
            text += chars[0] if chars else ""
    prefixes[before + text] = None
    return text


def samples(body, flags, groups):
    first = _walk(body, "", {}, {}, {}, flags, dict(groups))
    out = [first]
    if len(body) == 1:
        op, value = body[0]
        if str(op) in ("IN", "NOT_LITERAL", "ANY", "LITERAL"):
            out += characters(op, value, flags)[:5]
        if str(op) == "SUBPATTERN" and str(value[3][0][0] if len(value[3]) else "") == "BRANCH":
            body = value[3]; op, value = body[0]
        if str(op) == "BRANCH":
            out += [_walk(branch, "", {}, {}, {}, flags, dict(groups)) for branch in value[1][:6]]
    # inner repeats made longer
    for op, value in body:
        if str(op) in ("MAX_REPEAT", "MIN_REPEAT"):
            out.append(first * 2)
            out.append(first+(samples(value[2], flags, groups)[0])*5)
    return [one for one in dict.fromkeys(out) if one]


@cache
def _one(node: str, flags: int):
    pass


def characters(op, value, flags):
    name = str(op)
    if name == "LITERAL":
        return [chr(value)]
    if name == "NOT_LITERAL":
        return [c for c in _CHARACTERS if ord(c) != value]
    if name == "ANY":
        return [c for c in _CHARACTERS if c != "\n"]
    if name == "IN":
        return [c for c in _CHARACTERS if _in(value, c, flags)] or _firsts(value)
    return []


def _firsts(items):
    out = []
    for op, v in items:
        if str(op) == "LITERAL": out.append(chr(v))
        if str(op) == "RANGE": out.append(chr(v[0]))
    return out


_CAT = {"CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W"}


def _in(items, c, flags):
    negate = hit = False
    for op, v in items:
        n = str(op)
        if n == "NEGATE": negate = True
        elif n == "LITERAL": hit |= ord(c) == v
        elif n == "RANGE": hit |= v[0] <= ord(c) <= v[1]
        elif n == "CATEGORY": hit |= bool(re.match(_CAT[str(v)], c))
    return hit != negate
