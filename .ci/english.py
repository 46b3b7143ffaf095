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
LEFT_OUT = ("src/rejoinder/data/models/", "models/", "docs/reproduction/", ".ci/english.py")
"""Written by commands, or about the patterns."""
EXEMPT = {"examples/intents.toml": r"^replies = "}
"""Files whose sample texts need a phrase, with a pattern of the lines that may have it."""

PATTERNS = {
    r"(?<!there )\b(is|are|was|were) no (?!longer|more|less|fewer|later|earlier)": "is not a …",
    r"\b(no|not|nothing|nobody) .{0,40}\bany more\b": "no longer …",
    r"\bat hand\b": "available, here",
    r"\bof (its|their|our|your|his|her) own\b": "its own …, separate",
    r"\b(by|for) (itself|themselves)\b": "alone, automatically",
    r"\bbeside\b": "next to, besides, compared with",
    r"\bbehind\b": "after, backed by, at",
    r"\b(has|had|have|with) \.\d": "scores …, reaches …",
    r"\b(a|the) (look|way back|reading) (at|of)\b": "a verb: check, read",
    r"\bthe other one\b": "name the thing again",
    r"\bin (the )?place of\b": "instead of, written directly",
    r"\bnothing but\b": "only",
    r"\bof the (module|run|package|class|file)'s\b": "the module's …, defined in this module",
    r"\bfor good\b": "permanently",
    r"\bgive (the )?word\b": "say",
    r"\bnobody (waits|is told|knows)\b": "name who",
    r"\bhold(s|ing)? (it|them|this) (against|to)\b": "compare with",
}


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
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if exempt and re.search(exempt, line):
            continue
        for pattern, instead in PATTERNS.items():
            found = re.search(pattern, line, re.IGNORECASE)
            if found:
                yield f"{name}:{number}: {found[0]!r}; write: {instead}"


def main(names: list[str]) -> int:
    """Returns the exit status."""
    found = [each for file in files(names) for each in finds(file)]
    sys.stdout.writelines(f"{each}\n" for each in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
