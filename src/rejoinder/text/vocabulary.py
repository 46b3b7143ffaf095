"""The words that a model knows, saved as a word per line."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rejoinder.errors import ModelError
from rejoinder.io.files.atomic import write_text

FILE = "vocabulary.txt"


@dataclass(frozen=True)
class Vocabulary:
    """Words by id, most frequent first.

    >>> Vocabulary(("how", "are", "you")).index["you"]
    2
    """

    words: tuple[str, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each word."""
        return {word: index for index, word in enumerate(self.words)}

    @cached_property
    def text(self) -> str:
        """The words as lines, each with a line feed: the content of `vocabulary.txt`."""
        return "".join(f"{word}\n" for word in self.words)

    def __len__(self) -> int:
        return len(self.words)

    def save(self, folder: Path) -> str:
        """Writes `vocabulary.txt` into `folder` and returns the name of the file."""
        write_text(folder / FILE, self.text)
        return FILE

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """Loads the file that `save` wrote.

        Raises:
            ModelError: the file is missing, damaged, or names a word twice.
        """
        path = folder / FILE
        try:
            words = path.read_text("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{path} can't be read: {error}; the folder is damaged.") from None
        if words.pop() != "" or "" in words:
            raise ModelError(f"{path} is cut short or has empty lines; the file is damaged.")
        if len(set(words)) != len(words):
            raise ModelError(f"{path} names a word twice; the file is damaged.")
        return cls(tuple(words))
