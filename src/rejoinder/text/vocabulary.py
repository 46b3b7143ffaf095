"""The words or subwords that a model knows, and the ids of words that it does not know.

Known words are saved one per line. Unknown words, and bigrams of known words, get buckets by CRC-32
and splitmix64. Models (text rules 1) and the shipped lists of leaks depend on the buckets: they
must never change.

An unknown word can also be read as its letter sequences, whose rows are fitted to the rows of known
words. A form of a word that is not in the training text then has a vector near its other forms. In
Arabic and Turkish, a fifth of the words of new text are such forms. Zhao et al. 2018, "Generalizing
word embeddings using bag of subwords".

Subwords are for the Transformer: a byte-level BPE learned from the pairs, with `tokenizers`. With
bytes, no text is unknown and no alphabet has to be chosen. BPE only counts, so the same text gives
the same vocabulary, without the iterations of Unigram.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError, require
from rejoinder.io.files.atomic import write_text
from rejoinder.text.normalize import RULES, UNICODE, as_strings, normalize_text
from rejoinder.text.ragged import Ragged, offsets_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
        words = _content(path).split("\n")
        if words.pop() != "" or "" in words:
            raise ModelError(f"{path} is cut short or has empty lines; the file is damaged.")
        if len(set(words)) != len(words):
            raise ModelError(f"{path} names a word twice; the file is damaged.")
        return cls(tuple(words))


def _content(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} can't be read: {error}; the folder is damaged.") from None


_SHORTEST, _LONGEST = 3, 6
_KEPT = 20_000
"""Number of words whose buckets are cached: texts repeat the same unknown words."""


def letter_sequences(word: str) -> list[str]:
    """Returns the sequences of 3 to 6 characters of a word, with marks for its start and end.

    >>> letter_sequences("ate")
    ['<at', 'ate', 'te>', '<ate', 'ate>', '<ate>']
    """
    edged = f"<{word}>"
    return [
        edged[start : start + length]
        for length in range(_SHORTEST, _LONGEST + 1)
        for start in range(len(edged) - length + 1)
    ]


def is_arabic(word: str) -> bool:
    """Returns whether a word begins with a character of the Arabic block.

    >>> is_arabic("\u0643\u062a\u0627\u0628"), is_arabic("kitab")
    (True, False)
    """
    return "\u0600" <= word[0] < "\u0700"


def letter_buckets(word: str, buckets: int, arabic: int = 0) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each sequence: CRC-32 of its UTF-8, modulo `buckets`.

    Arabic words have `arabic` separate buckets, if given, after the `buckets` of all others.

    >>> letter_buckets("a", 1000).tolist()
    [515]
    """
    first, size = (buckets, arabic) if arabic and is_arabic(word) else (0, buckets)
    found = [first + crc32(part.encode()) % size for part in letter_sequences(word)]
    return np.array(found, np.int32)


@lru_cache(_KEPT)
def _packed(word: str, buckets: int, arabic: int) -> bytes:
    return letter_buckets(word, buckets, arabic).tobytes()


def with_letters(
    batch: Ragged, words: Sequence[str], first: int, buckets: int, arabic: int = 0
) -> Ragged:
    """Returns a batch with ids of letters, from `first` on, for each id below 0.

    `words` are the words with such ids, in order. A word with the id -2 - k may be the known word
    k, whose id comes before its letters. Other arguments are as for `letter_buckets`.
    """
    if not words:
        return batch
    found = [_packed(word, buckets, arabic) for word in words]
    unknown = batch.ids < 0
    either = batch.ids < -1
    counts = np.ones(len(batch.ids), np.int64)
    counts[unknown] = np.fromiter(map(len, found), np.int64, len(found)) // 4
    counts += either
    flat = np.repeat(batch.ids, counts)
    flat[(np.cumsum(counts) - counts)[either]] = -2 - batch.ids[either]
    flat[flat < 0] = np.frombuffer(b"".join(found), np.int32) + np.int32(first)
    return Ragged(flat, offsets_of(counts)[batch.offsets])


GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""The odd 64-bit integer nearest to 2**64 over the golden ratio: the increment of splitmix64."""


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns (N,) uint64: each value mixed by the finaliser of splitmix64, a bijection.

    Steele et al. 2014.

    >>> [hex(value) for value in mix64(np.array([0, 1, GOLDEN_GAMMA], np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5', '0xe220a8397b1dcdaf']
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def bigram_buckets(
    left: NDArray[np.int32], right: NDArray[np.int32], buckets: int
) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each pair of adjacent words, given as (N,) ids >= 0.

    It is splitmix64 of `left * 2**32 + right`, modulo `buckets`.

    >>> bigram_buckets(np.array([0, 1, 2], np.int32), np.array([1, 0, 3], np.int32), 1000).tolist()
    [465, 56, 455]
    """
    pairs = (left.astype(np.uint64) << np.uint64(32)) | right.astype(np.uint64)
    mixed = mix64(pairs + np.uint64(GOLDEN_GAMMA))
    return (mixed % np.uint64(buckets)).astype(np.int32)


def word_buckets(words: Sequence[str], buckets: int) -> NDArray[np.int32]:
    """Returns (N,) int32, the bucket of each word: CRC-32 of its UTF-8, modulo `buckets`.

    >>> word_buckets(["kerrville", "Ulaanbaatar"], 1000).tolist()
    [294, 390]
    """
    checksums = (crc32(word.encode()) for word in words)
    return (np.fromiter(checksums, np.uint32, len(words)) % np.uint32(buckets)).astype(np.int32)


_REMEMBERED = 100_000
"""Number of words whose values are cached."""
_LONGEST_KEPT = 40
"""Most characters of a word whose value is cached."""
Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """Caches values of words; looks up many words at once."""

    def __init__(self, find: Callable[[list[str]], list[Value]]) -> None:
        """`find` returns the values of distinct words."""
        self._find = find
        self._kept: dict[str, Value] = {}

    def __call__(self, words: Sequence[str]) -> list[Value]:
        """Returns the value of each word."""
        if len(self._kept) > _REMEMBERED:
            self._kept = {}
        kept = self._kept
        new = [word for word in dict.fromkeys(words) if word not in kept]
        if not new:
            return [kept[word] for word in words]
        made = dict(zip(new, self._find(new), strict=True))
        kept.update((word, value) for word, value in made.items() if len(word) <= _LONGEST_KEPT)
        return [made[word] if word in made else kept[word] for word in words]


SUBWORDS = "subwords.json"
_CHUNK = 10_000


_ABSENT = ("added_tokens", "truncation", "padding", "normalizer", "post_processor")
_ABSENT_IN_MODEL = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
"""Keys that are empty in a plain byte-level BPE from `learn_subwords`; the library runs others."""


class SubwordFeatures:
    """Ids of the first `max_tokens` subwords of each sentence."""

    def __init__(self, definition: str, max_tokens: int) -> None:
        """Creates features from a tokenizer as JSON, such as `learn_subwords` makes.

        Raises:
            ModelError: the JSON is not such a tokenizer.
            MissingExtraError: `tokenizers` is not installed.
        """
        self.definition, self.max_tokens = definition, max_tokens
        ids = self.tokenizer.get_vocab()
        self.rows = len(ids)
        if sorted(ids.values()) != list(range(self.rows)):
            raise ModelError(
                f"{SUBWORDS}: ids do not count from 0 to {self.rows - 1}; it is damaged."
            )
        if not set(_library().pre_tokenizers.ByteLevel.alphabet()) <= ids.keys():
            raise ModelError(f"{SUBWORDS} does not have all 256 bytes; it is damaged.")

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The library's tokenizer, which does not truncate texts."""
        tokenizers = _library()
        try:
            tree = msgspec.json.decode(self.definition)
            model = tree["model"]
            kinds = (tree["pre_tokenizer"]["type"], model["type"])
            others = [*map(tree.get, _ABSENT), *map(model.get, _ABSENT_IN_MODEL)]
            if kinds != ("ByteLevel", "BPE") or any(others):
                raise ValueError("it is another tokenizer")
            tokenizer: Tokenizer = tokenizers.Tokenizer.from_str(self.definition)
        except Exception as error:  # the library raises plain Exception
            raise ModelError(
                f"{SUBWORDS} is not a byte-level BPE: {error}; it is damaged."
            ) from None
        return tokenizer

    def __call__(self, sentences: Iterable[str]) -> Ragged:
        """Returns the ids of each sentence's subwords, in order. An empty sentence has none."""
        return self._ids(sentences, self.max_tokens)

    def whole(self, sentences: Iterable[str]) -> Ragged:
        """Returns the ids of all subwords of each sentence, including those after `max_tokens`."""
        return self._ids(sentences, None)

    def known(self, sentences: Iterable[str]) -> Ragged:
        """Same as a call: every text consists of known subwords."""
        return self(sentences)

    def unknown_share(
        self,
        sentences: Iterable[str],
        *,
        as_written: bool = False,  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Returns zeros, (N,): no word is unknown."""
        return np.zeros(len(as_strings(sentences)))

    def _ids(self, sentences: Iterable[str], most: int | None) -> Ragged:
        texts = [normalize_text(text) for text in as_strings(sentences)]
        flat: list[int] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _CHUNK):
            for encoding in self.tokenizer.encode_batch_fast(
                texts[start : start + _CHUNK], add_special_tokens=False
            ):
                ids = encoding.ids[:most]
                flat.extend(ids)
                lengths.append(len(ids))
        return Ragged(np.array(flat, np.int32), np.cumsum([0, *lengths], dtype=np.int64))

    def config(self) -> dict[str, object]:
        """Returns the kind, the version of the text rules, their Unicode version, and sizes."""
        return {
            "kind": "subwords",
            "rules": RULES,
            "unicode": UNICODE,
            "subwords": self.rows,
            "max_tokens": self.max_tokens,
        }

    def save(self, folder: Path) -> list[str]:
        """Writes `subwords.json`."""
        write_text(folder / SUBWORDS, self.definition)
        return [SUBWORDS]

    @classmethod
    def load(cls, folder: Path, subwords: int, max_tokens: int) -> "SubwordFeatures":
        """Loads the file that `save` wrote.

        Raises:
            ModelError: the file is missing or damaged, or has another number of `subwords`.
        """
        features = cls(_content(folder / SUBWORDS), max_tokens)
        if features.rows != subwords:
            raise ModelError(
                f"{folder / SUBWORDS} has {features.rows} subwords, but the config says "
                f"{subwords}; the folder is damaged."
            )
        return features


def learn_subwords(
    texts: Iterable[Iterable[str]], *, size: int, min_count: int, max_tokens: int
) -> SubwordFeatures:
    """Learns at most `size` subwords, including the 256 bytes, in one pass over `texts`.

    Pairs of subwords seen less often than `min_count` are not merged. The features will read
    `max_tokens` subwords of each sentence.

    Raises:
        InputError: `size` is below 256 or `max_tokens` below 1.
        MissingExtraError: `tokenizers` is not installed.
    """
    if size < 256 or max_tokens < 1:
        raise InputError(f"{size} subwords, {max_tokens} per text: use at least 256 and 1.")
    tokenizers = _library()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_count,
        show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
    )

    def batches() -> Iterator[list[str]]:
        for column in texts:
            normalized = [normalize_text(text) for text in column]
            for start in range(0, len(normalized), _CHUNK):
                yield normalized[start : start + _CHUNK]

    tokenizer.train_from_iterator(batches(), trainer)
    return SubwordFeatures(tokenizer.to_str(), max_tokens)


def _library() -> Any:
    """Imports `tokenizers`, whose type stubs do not cover what is used here."""
    require("train", "tokenizers")
    import tokenizers.models
    import tokenizers.pre_tokenizers
    import tokenizers.trainers

    return tokenizers
