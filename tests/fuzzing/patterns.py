"""Texts on which a regular expression goes back and forth, for every one in the package.

A text is a beginning, a piece that is repeated, and an end. All come from what the pattern matches.
"""

import ast
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import rejoinder
from rejoinder.text import normalize

PIECES = (
    " ", "\n", "a", "0", "a ", ".", "A", "a\n", " \n", "\r", "\t", "\u202e", "\u4e00", "(", "[",
    "{", "<", '"', "'", "`", "-", "_", "*", ">", ">\n", "--\n", "@", "a@", "a.", "a-", ":", "://",
    "0.", "0 ", "&", "=?", "\\", "|", "~", "[a|", "{code:", "```quote\n", '<emoji alt="" ',
    '<aside class="quote ', "<div>", "<p>", "<b><p>", "[quote]", "eyJ0000000-",
    "On 1 May, a wrote:\n", "=?a?q?b?= ",
)  # fmt: skip
"""What is repeated for every pattern and reader."""
_SOURCE = Path(rejoinder.__file__).parent
_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_ONCE = 3
"""The first of them look for one match."""
_ENDS = ("", "\0", " \0", "\n\0")
_CHARACTERS = "a0 \n.-A(:<>[]\"'*`_,@#&{}|/~=!?\u202e\xa0\xe9\u4e00\t\r\0"
_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
_CUT = {"rejoinder.text.languages._NOT_WORDS": 300}
"""Characters of the texts that a pattern is given."""
_LATER = {
    "rejoinder.api.scorer", "rejoinder.conversations.pseudonyms", "rejoinder.evaluation.metrics",
    "rejoinder.models.config", "rejoinder.text.normalize",
}  # fmt: skip
"""Modules with patterns that are arguments, or made in a function."""
_SIZES = (250, 2_000, 16_000)
_SECONDS_A_CHARACTER = 4e-7
"""No quadratic pattern is as fast for 2,000 characters."""
_LONG = 0.2
_FEW, _MANY = 8, 2_000
_ONE = ("IN", "NOT_LITERAL", "ANY", "LITERAL")
MORE = 24
"""Of eight times the size a linear pattern takes 8 times as long, and a quadratic one 64 times."""


class Text(NamedTuple):
    """A text of any size."""

    before: str
    piece: str
    end: str

    def of(self, size: int) -> str:
        """The text with so many characters, or a few more."""
        return self.before + self.piece * (size // len(self.piece)) + self.end


class Used(NamedTuple):
    """A pattern, and whether all of its matches are looked for."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def search(self, text: str) -> None:
        """Does with a text what the package does."""
        text = text[: _CUT.get(self.place)]
        given = text if isinstance(self.pattern.pattern, str) else text.encode()
        if self.method in _METHODS[:_ONCE]:
            getattr(self.pattern, self.method)(given)
        else:
            for _ in self.pattern.finditer(given):
                pass

    def texts(self) -> list[Text]:
        """Texts that may take it long, without those that are surely alike."""
        return list(dict.fromkeys(_Pieces(self.pattern).texts()))


def growth(work: Callable[[str], Any], text: Text) -> float:
    """How many times as long `work` takes for eight times the size; 0 where that is short."""
    small, middle, large = _SIZES
    seconds = least_seconds(work, text.of(middle))
    if seconds < middle * _SECONDS_A_CHARACTER:
        return 0.0
    if seconds > _LONG:
        return seconds / least_seconds(work, text.of(small))
    return least_seconds(work, text.of(large)) / seconds


def least_seconds(work: Callable[[str], Any], text: str, trials: int = 3) -> float:
    """Seconds of the processor that `work` takes: others use the machine, too."""
    least = float("inf")
    for _ in range(trials):
        begun = time.thread_time()
        work(text)
        least = min(least, time.thread_time() - begun)
        if least < len(text) * _SECONDS_A_CHARACTER:
            break
    return least


@cache
def used_patterns() -> list[Used]:
    """Every pattern of the package, with the method of it that does most.

    Raises:
        NameError: one is made in a function of a module that is not among `_LATER`.
    """
    found: dict[tuple[str, int], Used] = {}
    trees = {file: ast.parse(file.read_text("utf-8")) for file in sorted(_SOURCE.rglob("*.py"))}
    for file, tree in trees.items():
        parts = file.relative_to(_SOURCE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        calls = [node for node in ast.walk(tree) if _is_of_re(node)]
        if not calls:
            continue
        scope = vars(import_module(name))
        methods = _methods(tree)
        local = set().union(*(methods[one] for one in methods if one != "re" and one not in scope))
        for variable, value in scope.items():
            used = methods.get(variable) or local - {"split"} or {"match"}  # strings split, too
            for pattern in _patterns_in(value):
                one = Used(f"{name}.{variable}", pattern, max(used, key=_METHODS.index))
                found.setdefault((pattern.pattern, pattern.flags), one)
        for call in calls:
            try:
                words = [eval(ast.unparse(each), scope) for each in call.args[:1]]  # noqa: S307
            except NameError:
                if name not in _LATER:
                    raise
                continue
            if call.func.attr in _METHODS:
                pattern = re.compile(words[0])
                place = f"{name}:{call.lineno}"
                found[pattern.pattern, pattern.flags] = Used(place, pattern, call.func.attr)
    for pattern in (normalize._unicode(), normalize._marks()):
        found[pattern.pattern, pattern.flags] = Used("rejoinder.text", pattern, "finditer")
    return list(found.values())


def _is_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in {*_METHODS, "compile"}
    )


def _methods(tree: ast.AST) -> dict[str, set[str]]:
    """The methods that are called of each name."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _METHODS:
            found.setdefault(ast.unparse(node.value), set()).add(node.attr)
    return found


def _patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _patterns_in(each)


class _Pieces:
    """What a pattern matches, in pieces."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        flags = pattern.flags
        if isinstance(pattern.pattern, bytes):
            flags &= ~re.UNICODE
        self._groups: dict[int, str] = {}
        self._beginnings: dict[str, None] = {}
        self._repeated: dict[tuple[str, str], None] = {}
        self._is_short = len(pattern.pattern) < _MANY  # else it has sets of many characters
        if self._is_short:
            self._walk(_parser.parse(pattern.pattern, flags), "")

    def texts(self) -> Iterator[Text]:
        """What a pattern may begin to match, again and again; and what it may match more of."""
        for piece in PIECES[: None if self._is_short else 4]:
            yield Text("", piece, "\0")
        for piece in filter(None, self._beginnings):
            yield from (Text("", piece, end) for end in _ENDS)
            yield Text("", f"{piece} ", "\0")
        for before, piece in self._repeated:
            yield from (Text(before, piece, end) for end in _ENDS[1:])

    def _walk(self, tree: Any, before: str) -> str:
        """Returns what a part of a pattern may match after something."""
        text = ""
        for operator, value in tree:
            now = before + text
            match str(operator):
                case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                    text += self._repeat(now, *value)
                case "SUBPATTERN":
                    self._groups[value[0]] = inner = self._walk(value[-1], now)
                    text += inner
                case "ATOMIC_GROUP":
                    text += self._walk(value, now)
                case "BRANCH":
                    text += next(iter([self._walk(branch, now) for branch in value[1]]))
                case "ASSERT" | "ASSERT_NOT":
                    inner = self._walk(value[1], now if value[0] > 0 else "")
                    if str(operator) == "ASSERT" and value[0] < 0 and not now.endswith(inner):
                        text += inner
                case "GROUPREF":
                    text += self._groups.get(value, "")
                case "AT":
                    if "BEGINNING" in str(value) and now and now[-1] != "\n":
                        text += "\n"
                case _:
                    found = _characters(operator, value)
                    self._beginnings |= dict.fromkeys(now + one for one in found[:3])
                    text += found[0]
        self._beginnings[before + text] = None
        return text

    def _repeat(self, before: str, least: int, most: int, body: Any) -> str:
        samples = self._samples(body)
        for one in samples:
            if most > _FEW:
                self._repeated |= {(before, one): None, (before + one, one): None}
            self._beginnings[before + one * max(least, 1)] = None
        self._walk(body, before)
        return samples[0] * max(least, 1)

    def _samples(self, body: Any) -> list[str]:
        first = _Sample(self._groups).of(body)
        found = [first]
        if len(body) == 1:
            [(operator, value)] = body
            if str(operator) == "SUBPATTERN" and len(value[-1]) == 1:
                [(operator, value)] = value[-1]
            if str(operator) == "BRANCH":
                found += [_Sample(self._groups).of(branch) for branch in value[1][:6]]
            elif str(operator) in _ONE:
                found += _characters(operator, value)[:5]
        for operator, value in body:
            if "REPEAT" in str(operator):
                found += [first * 2, first + _Sample(self._groups).of(value[-1]) * 5]
        return [one for one in dict.fromkeys(found) if one] or ["a"]


class _Sample(_Pieces):
    """A part of a pattern alone."""

    def __init__(self, groups: dict[int, str]) -> None:
        self._groups, self._beginnings, self._repeated = {**groups}, {}, {}

    def of(self, body: Any) -> str:
        """Returns what it matches."""
        return self._walk(body, "")


def _characters(operator: Any, value: Any) -> list[str]:
    """Some characters that one element matches."""
    match str(operator):
        case "LITERAL":
            return [chr(value)]
        case "NOT_LITERAL":
            return [one for one in _CHARACTERS if ord(one) != value]
        case "ANY":
            return [one for one in _CHARACTERS if one != "\n"]
        case "IN":
            found = [one for one in _CHARACTERS if _is_in(one, value)]
            return found or [
                chr(each[0] if isinstance(each, tuple) else each)
                for kind, each in value
                if str(kind) in ("LITERAL", "RANGE")
            ]
        case other:
            raise AssertionError(f"the parser of patterns has {other}, which is new here")


def _is_in(one: str, items: Any) -> bool:
    is_among = is_other = False
    for kind, value in items:
        match str(kind):
            case "NEGATE":
                is_other = True
            case "LITERAL":
                is_among |= ord(one) == value
            case "RANGE":
                is_among |= value[0] <= ord(one) <= value[1]
            case _:
                name = str(value).removeprefix("CATEGORY_")
                found = re.match(_CATEGORIES[name.removeprefix("NOT_")], one) is not None
                is_among |= found != name.startswith("NOT_")
    return is_among != is_other


def checker(folder: Path) -> Callable[[Random], bool]:
    """What tries one text on one pattern; true: it took no longer than its size says."""

    def checked(random: Random) -> bool:
        used = random.choice(used_patterns())
        text = random.choice(used.texts())
        ends = [text, *random.choices(used.texts(), k=2)]
        mixed = Text(
            text.before,
            "".join(one.piece for one in ends[: random.randint(1, 3)]),
            random.choice(_ENDS),
        )
        grown = growth(used.search, mixed)
        assert grown <= MORE, f"{used.place} takes {grown:.0f} times as long for 8 times {mixed}"
        return True

    return checked
