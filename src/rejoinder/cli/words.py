"""Words of the command line: lists joined by commas."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from typer.core import TyperCommand

from rejoinder.errors import InputError


def split_list(text: str) -> list[str]:
    """Splits comma-joined values. The path of an existing file may hold commas.

    >>> split_list("stsb, snli")
    ['stsb', 'snli']
    """
    values = [value for value in map(str.strip, text.split(",")) if value]
    # unlike Path's method, this is false where a name is too long
    return [text] if len(values) > 1 and os.path.exists(text) else values  # noqa: PTH110


def one_list(command: str, words: Sequence[str]) -> list[str]:
    """Splits the only word of an argument of `command` (such as `data fetch`) that takes a list.

    Raises:
        InputError: there are several words.
    """
    if len(words) > 1:
        _refuse([*command.split(), ",".join(words)])
    return split_list(words[0]) if words else []


class ListCommand(TyperCommand):
    """A command whose `lists` options take comma-joined values, and no repeats of the option."""

    lists: ClassVar[tuple[str, ...]] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words, and refuses a list option that is repeated or has several words."""
        values: dict[str, list[str]] = {}
        corrected: list[str] = []
        option = ""
        for word in args:
            name, _, value = word.partition("=")
            if name in self.lists:
                if name not in values:
                    corrected.append(name)
                option = name
                values.setdefault(name, []).extend([value] if value else [])
            elif option and not word.startswith("-"):
                values[option].append(word)
            else:
                option = ""
                corrected.append(word)
        if any(len(given) > 1 for given in values.values()):
            lists = {name: ",".join(given) for name, given in values.items()}
            pairs = ((word, lists[word]) if word in lists else (word,) for word in corrected)
            _refuse([*ctx.command_path.split()[1:], *(word for pair in pairs for word in pair)])
        return super().parse_args(ctx, args)


def _refuse(words: Sequence[str]) -> None:
    raise InputError(f"Join the values of a list with commas: rejoinder {shlex.join(words)}")


def is_file(path: Path) -> bool:
    """Returns whether there is a file at `path`. Text that cannot be a path is no error."""
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False
