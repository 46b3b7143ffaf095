"""The class of the commands that use a model, `rejoinder COMMAND --model NAME|FOLDER [TEXT]...`."""

import shlex
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from rejoinder.errors import InputError


class ModelCommand(TyperCommand):
    """A command that needs `--model`, and shows the corrected command where it is left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words after the name of the command.

        Raises:
            InputError: `--model` is left out, or a model folder is given without it.
        """
        end = args.index("--") if "--" in args else len(args)
        options = {word.partition("=")[0] for word in args[:end] if _is_option(word)}
        accepted = {name for param in self.params for name in param.opts}
        # --help and misspelt options are left to the parser
        if not ctx.resilient_parsing and options <= accepted - {"--model", "-m"}:
            raise InputError(f"a model is needed, given by --model: {self._corrected(args)}")
        return super().parse_args(ctx, args)

    def _corrected(self, args: list[str]) -> str:
        """Returns the command line with `--model`, and the folder that `args` may hold."""
        model = next((word for word in args if is_file(Path(word) / "config.json")), None)
        words = list(args)
        if model is not None:
            words.remove(model)
        if self.name == "encode":  # files were arguments, too
            for index, word in enumerate(words):
                if is_file(Path(word)) and not (index and _is_option(words[index - 1])):
                    words.insert(index, "--sentences")
                    break
        command = ["rejoinder", str(self.name), "--model", model or "RUN/model", *words]
        return shlex.join(command)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def is_file(path: Path) -> bool:
    """Returns whether there is a file at `path`. Text that cannot be a path is no error."""
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False
