"""Finds phrases that read like a translation, in code, messages, help and pages.

    python .ci/english.py           # the whole checkout; exit status 1 if it finds one
    python .ci/english.py docs/use.md src/rejoinder/cli

Each pattern comes with what to write instead. Sample texts that need such a phrase are listed in
`EXEMPT`, with the file.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENDINGS = (".py", ".c", ".h", ".md", ".html", ".js", ".toml", ".j2")
LEFT_OUT = (
    "src/rejoinder/data/models/",
    "models/",
    "notebook/reproduction/tables.md",
    ".ci/english.py",
)
"""Written by commands, or about the patterns."""
EXEMPT = {"examples/intents.toml": r"^replies = "}
"""Files whose sample texts need a phrase, with a pattern of the lines that may have it."""

PATTERNS = {
    r"(?<!there )(is|are|was|were) no (?!longer|more|less|fewer|later|earlier)": "is not a …",
    r"(no|not|nothing|nobody) .{0,40}\bany more\b": "no longer …",
    r"at hand\b": "available, here",
    r"of (its|their|our|your|his|her) own\b": "its own …, separate",
    r"(by|for) (itself|themselves)\b": "alone, automatically",
    r"beside\b": "next to, besides, compared with",
    r"behind\b": "after, backed by, at",
    r"(has|had|have|with) \.\d": "scores …, reaches …",
    r"(a|the) (look|way back|reading) (at|of)\b": "a verb: check, read",
    r"the other one\b": "name the thing again",
    r"in (the )?place of\b": "instead of, written directly",
    r"nothing but\b": "only",
    r"of the (module|run|package|class|file)'s\b": "the module's …, defined in this module",
    r"for good\b": "permanently",
    r"give (the )?word\b": "say",
    r"nobody (waits|is told|knows)\b": "name who",
    r"hold(s|ing)? (it|them|this) (against|to)\b": "compare with",
}
"""Each begins at the beginning of a word."""
ANY = re.compile(rf"\b(?:{'|'.join(PATTERNS)})", re.IGNORECASE)


def files(names: list[str]) -> Iterator[Path]:
    """Yields the files to read."""
    command = ["git", "ls-files", "--", *names]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    for name in listed.stdout.splitlines():
        if name.endswith(ENDINGS) and not name.startswith(LEFT_OUT) and (ROOT / name).exists():
            yield ROOT / name


def finds(file: Path) -> Iterator[str]:
    """Yields a line for each phrase that a file has."""
    name = file.relative_to(ROOT).as_posix()
    exempt = EXEMPT.get(name)
    text = file.read_text("utf-8")
    # one search of a whole file takes a fifth of the time
    for number, line in enumerate(text.splitlines() if ANY.search(text) else (), 1):
        if exempt and re.search(exempt, line):
            continue
        for pattern, instead in PATTERNS.items():
            found = re.search(rf"\b{pattern}", line, re.IGNORECASE)
            if found:
                yield f"{name}:{number}: {found[0]!r}; write: {instead}"


def main(names: list[str]) -> int:
    """Returns the exit status."""
    found = [each for file in files(names) for each in finds(file)]
    sys.stdout.writelines(f"{each}\n" for each in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
