"""Calls any encoder: identifies it, encodes each text once, checks the returned values.

Errors and wrong results of foreign code are reported in one sentence. A `Meter` adds up the cost
of the calls: time, processor time, memory and energy.
"""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, RejoinderError
from rejoinder.evaluation.vector_cache import VectorCache
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.files.system import joules, peak_memory
from rejoinder.measures import Floats, Indices, cosines
from rejoinder.protocols import (
    Describes,
    Embeddings,
    Encodes,
    EncodesResponses,
    Prepares,
    ScoresPairs,
)

_CALLERS = (Path(__file__), Path(__file__).with_name("adapters.py"))
TRACEBACK = "REJOINDER_TRACEBACK"
"""Environment variable that keeps exceptions of encoders from being turned into messages."""
LARGEST_NUMBER = 1e15
"""Largest entry of an embedding: products of larger ones overflow float32 in classifiers."""
_BLOCK = 4_096
"""Number of rows checked at once."""
_LONGEST = 300
"""Number of quoted characters of an exception's message."""


def call(method: Callable[..., Any], *arguments: Any, who: str) -> Any:
    """Returns `method(*arguments)`. An exception is reported with the line that raised it.

    The message begins with `who`: the task, the encoder and the method.

    Raises:
        InputError: the method raised an exception. Errors of rejoinder are raised unchanged, and so
            are all exceptions if REJOINDER_TRACEBACK is set in the environment.
    """
    try:
        return method(*arguments)
    except RejoinderError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise InputError(f"{who} {raised(error)}") from error


def raised(error: Exception) -> str:
    """Returns the type, message and origin of an exception, as the end of a sentence."""
    message = " ".join(str(error).split())[:_LONGEST]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"raised {what} ({error.filename}:{error.lineno})."
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or Path(frames[-1].filename) in _CALLERS:
        return f"can't be called: {what}."
    last = frames[-1]
    return (
        f"raised {what} ({last.filename}:{last.lineno} in {last.name}). {TRACEBACK}=1 in the "
        "environment shows the whole traceback."
    )


def matrix_of(value: Any, count: int, who: str) -> NDArray[Any]:
    """Returns an encoder's result for `count` texts as a (count, D) array, D > 0.

    Raises:
        InputError: it has another shape, or is not an array of numbers: see `numbers_of`.
    """
    array = numbers_of(value, (count, None), who, "(N, D) numbers, one row per sentence, are")
    if not array.shape[1]:
        raise InputError(f"{who} returned vectors of 0 numbers; D of 1 or more is needed.")
    return array


def embeddings_of(value: Any, texts: Sequence[str], who: str) -> tuple[Embeddings, str]:
    """Returns an encoder's result for N texts as (N, D) float32, and its original dtype.

    Error messages begin with `who`.

    Raises:
        InputError: see `matrix_of`; or a value is not finite. The message names the text.
    """
    returned = matrix_of(value, len(texts), who)
    with np.errstate(over="ignore"):  # values that overflow float32 are reported below
        embeddings = np.asarray(returned, np.float32)
    for start in range(0, len(texts), _BLOCK):
        usable = (np.abs(embeddings[start : start + _BLOCK]) <= LARGEST_NUMBER).all(axis=1)
        if not usable.all():
            wrong = start + int(np.argmin(usable))
            raise InputError(
                f"{who} returned an embedding of sentence {wrong} ({texts[wrong][:60]!r}) with a "
                f"number that is not finite or beyond {LARGEST_NUMBER:.0e}."
            )
    return embeddings, str(returned.dtype)


def similarities_of(value: Any, count: int, who: str) -> Floats:
    """Returns a function's result for `count` pairs of texts as (count,) float64.

    Raises:
        InputError: it has another shape, or a value is not a finite number.
    """
    numbers = numbers_of(value, (count,), who, "(N,) numbers, one per pair, are")
    values = np.asarray(numbers, np.float64)
    if not np.isfinite(values).all():
        wrong = int(np.argmin(np.isfinite(values)))
        raise InputError(f"{who} returned a similarity of pair {wrong} that is not finite.")
    return values


def numbers_of(value: Any, shape: tuple[int | None, ...], who: str, needed: str) -> NDArray[Any]:
    """Returns a function's result as an array of real numbers.

    None in the `shape` allows any size. The message begins with `who` and says what is `needed`,
    including the verb.

    Raises:
        InputError: it has another shape, or is not an array of real numbers: ragged rows, strings,
            complex numbers, None.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        why = _ragged_rows(value) or f"{type(value).__name__} that is not an array ({error})"
        raise InputError(f"{who} returned {why}; {needed} needed.") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{who} returned {_type_text(array)}; {needed} needed.")
    sizes = zip(array.shape, shape, strict=False)
    if array.ndim != len(shape) or any(given not in (size, None) for size, given in sizes):
        found = f"an array of shape {array.shape} for {shape[0]} inputs"
        raise InputError(f"{who} returned {found}; {needed} needed.")
    return array


def _ragged_rows(value: Any) -> str:
    """Returns the row lengths of a value if they differ, otherwise an empty string."""
    try:
        lengths = {len(row) for row in value}
    except TypeError:
        return ""
    if len(lengths) < 2:
        return ""
    return f"rows of different lengths, of {min(lengths)} to {max(lengths)} numbers"


def _type_text(array: NDArray[Any]) -> str:
    if array.dtype != object:
        names = {"c": "complex numbers", "U": "strings", "S": "strings"}
        return names.get(array.dtype.kind, f"values of dtype {array.dtype}")
    inside = next((entry for entry in array.flat if not isinstance(entry, int | float)), None)
    return "None" if inside is None else f"objects of type {type(inside).__name__}"


_CACHED_VALUES = 250_000_000
"""Number of values kept for later tasks: 1 GB of float32. Further texts are encoded again."""


def encode_checked(
    encode: Callable[[Sequence[str]], Embeddings], sentences: Sequence[str], who: str
) -> tuple[Embeddings, str]:
    """Returns (N, D) float32 embeddings of `sentences`, and the encoder's original dtype.

    `encode` is a method of an encoder. Error messages begin with `who`.

    Raises:
        InputError: the encoder raises, returns another shape or type, or a value that is not
            finite. The message names the sentence.
    """
    return embeddings_of(call(encode, sentences, who=who), sentences, who)


@dataclass
class Meter:
    """Adds up the cost of calls of an encoder."""

    sentences: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """Processor time of all threads of this process."""
    joules: float = 0.0
    """Energy of the whole machine; 0 if the system does not allow reading it."""
    dimensions: int = 0

    @contextmanager
    def running(self, sentences: int) -> Iterator[None]:
        """Measures the cost of the block, which encodes `sentences` sentences."""
        wall, processor, energy = time.perf_counter(), time.process_time(), joules()
        yield
        self.joules += max(joules() - energy, 0.0)  # the counter restarts from time to time
        self.processor_seconds += time.process_time() - processor
        self.seconds += time.perf_counter() - wall
        self.sentences += sentences

    def cost(self) -> dict[str, float]:
        """Returns the measured cost in seconds, joules and bytes; empty if nothing was encoded.

        `peak_bytes` is the peak memory of this process so far.
        """
        if not self.sentences:
            return {}
        whole = {**vars(self), "peak_bytes": peak_memory()}
        return {key: round(value, 4) for key, value in whole.items() if value}


def speed(costs: Iterable[Mapping[str, float]]) -> float | None:
    """Returns sentences per second over all `costs`, None if nothing was encoded."""
    known = [cost for cost in costs if cost.get("seconds")]
    seconds = sum(cost["seconds"] for cost in known)
    return sum(cost["sentences"] for cost in known) / seconds if seconds else None


class Embedder:
    """The encoder as tasks see it. It keeps embeddings, so that each text is encoded once.

    An encoder that prepares for a task may give other vectors for each task, so its embeddings are
    kept only within a task.
    """

    def __init__(
        self, encoder: Encodes, name: str | None = None, cache: VectorCache | None = None
    ) -> None:
        """Wraps an encoder. `cache` keeps its embeddings on disk."""
        self.encoder = encoder
        self.name = name or type(encoder).__name__
        self._cache = None if isinstance(encoder, Prepares) else cache
        self._index: dict[str, int] = {}  # row of each text, counted through the arrays of `_kept`
        self._kept: list[Embeddings] = []
        self._prepared: tuple[str, Sequence[str]] = "", ()
        self.meter = Meter()
        """Adds up the cost of the encoder's calls."""
        self.dtype: str | None = None
        """dtype that the encoder returned; tasks compute in float32. None before the first call."""

    def prepare(self, task: str, sentences: Sequence[str]) -> None:
        """Shows the encoder all sentences of a task. A task calls this before it embeds any.

        Repeating the last call does nothing, as several tasks may share their sentences.
        """
        if isinstance(self.encoder, Prepares) and (task, sentences) != self._prepared:
            self._prepared = task, sentences
            call(self.encoder.prepare, task, sentences, who=self.who(task, "prepare"))
            self._index, self._kept = {}, []

    def who(self, task: str, method: str) -> str:
        """Returns the beginning of messages about a method of the encoder in a task."""
        return f"{task}: {method} of the encoder {self.name}"

    def embed(self, sentences: Sequence[str], task: str) -> Embeddings:
        """Returns (N, D) float32 embeddings of `sentences`.

        Raises:
            InputError: see `encode_checked`; or D differs from earlier sentences.
        """
        return _gathered(*self._arrays(sentences, task, keep=True))

    def embed_distinct(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Indices]:
        """Returns embeddings of distinct texts, and (N,) the row of each of the `sentences`.

        Every vector is stored once, where `embed` has a copy for each sentence.

        Raises:
            InputError: see `embed`.
        """
        # the encoder is prepared again before the next task, so nothing is kept
        arrays, rows = self._arrays(sentences, task, keep=not isinstance(self.encoder, Prepares))
        if len(arrays) == 1:
            return arrays[0], rows
        distinct, rows = np.unique(rows, return_inverse=True)
        return _gathered(arrays, distinct), rows

    def embed_responses(self, sentences: Sequence[str], task: str) -> tuple[Embeddings, Indices]:
        """Like `embed_distinct`, with `encode_response` if the encoder has it."""
        encoder = self.encoder
        if not isinstance(encoder, EncodesResponses):
            return self.embed_distinct(sentences, task)
        distinct = list(dict.fromkeys(sentences))
        who = self.who(task, "encode_response")
        embeddings, _ = encode_checked(encoder.encode_response, distinct, who)
        index = {text: row for row, text in enumerate(distinct)}
        return embeddings, np.array([index[text] for text in sentences], np.int64)

    def _arrays(
        self, sentences: Sequence[str], task: str, *, keep: bool
    ) -> tuple[list[Embeddings], Indices]:
        """Returns arrays of embeddings, and (N,) rows numbered through them, one per sentence."""
        if not sentences:
            raise InputError("nothing to encode: the task has no sentences.")
        arrays, index = self._kept, self._index
        if new := [text for text in dict.fromkeys(sentences) if text not in index]:
            embeddings = self._encode(new, task)
            rows = dict(zip(new, range(len(index), len(index) + len(new)), strict=True))
            if keep and (len(index) + len(new)) * embeddings.shape[1] <= _CACHED_VALUES:
                arrays.append(embeddings.copy())  # an encoder may reuse its memory
                index.update(rows)
            else:
                arrays, index = [*arrays, embeddings], index | rows
        return arrays, np.array([index[text] for text in sentences], np.int64)

    def _encode(self, sentences: Sequence[str], task: str) -> Embeddings:
        """Returns embeddings of texts, from the cache or the encoder."""
        who = self.who(task, "encode")

        def encode(texts: Sequence[str]) -> list[Embeddings]:
            with self.meter.running(len(texts)):
                embeddings, self.dtype = encode_checked(self.encoder.encode, texts, who)
            self.meter.dimensions = embeddings.shape[1]
            return [embeddings]

        if self._cache is None:
            [embeddings] = encode(sentences)
        else:
            embeddings = self._cache.completed(sentences, encode)
        if self._kept and embeddings.shape[1] != self._kept[0].shape[1]:
            widths = f"of {embeddings.shape[1]} numbers, and earlier of {self._kept[0].shape[1]}"
            raise InputError(f"{who} returned vectors {widths}; one width is needed.")
        return embeddings

    def similarity(
        self, first: Sequence[str], second: Sequence[str], task: str
    ) -> tuple[Floats, list[str]]:
        """Returns (N,) float64 similarities of pairs of texts, and notes on them for the result.

        The similarity is the encoder's own (`similarity_pairs`) if it has one, else the cosine.

        Raises:
            InputError: a similarity or an embedding is not usable.
        """
        if isinstance(self.encoder, ScoresPairs):
            who = self.who(task, "similarity_pairs")
            with self.meter.running(2 * len(first)):
                returned = call(self.encoder.similarity_pairs, first, second, who=who)
            note = "the similarity is the encoder's own, similarity_pairs"
            return similarities_of(returned, len(first), who), [note]
        both = self.embed([*first, *second], task)
        cosine, zeros = cosines(both[: len(first)], both[len(first) :])
        notes = [f"{zeros} pairs hold a zero vector; their cosine is 0"] if zeros else []
        return cosine, notes


def _gathered(arrays: Sequence[Embeddings], rows: Indices) -> Embeddings:
    """Returns (N, D) chosen rows, numbered through the arrays."""
    found = np.empty((len(rows), arrays[0].shape[1]), np.float32)
    start = 0
    for array in arrays:
        here = np.flatnonzero((rows >= start) & (rows < start + len(array)))
        found[here] = array[rows[here] - start]
        start += len(array)
    return found


_PROBE = (
    "How old are you?",
    "What is your age?",
    "The printer on the second floor is out of toner again.",
    "my order never arrived and nobody answers the phone",
    "A dog runs across the green field with a red ball in its mouth.",
    "Two men are playing guitar and singing on a small stage.",
    "He didn't like the film, did he?",
    "The company's shares fell 3.5% on Monday, to $41.20.",
    "I can't remember my password; could you send me a new one?",
    "Where is the nearest station, and when does the last train leave?",
    "This is the worst restaurant that we have ever been to.",
    "Thank you so much for your help!",
    "The committee will publish its report in March 2019.",
    "lol yeah same here",
    "A woman is slicing an onion in the kitchen.",
    "Why does bread go stale faster in the refrigerator?",
)
"""Sentences whose vectors identify an encoder. Changing them invalidates all stored results."""


def identity(encoder: Encodes) -> dict[str, Any]:
    """Returns an encoder's identity as plain JSON: its description of itself, and its content.

    The content is `sha256` if the encoder describes it, otherwise `probe_sha256`, the hash of its
    vectors of a few fixed sentences. An encoder whose vectors change from run to run, such as some
    on a GPU, counts as a new encoder each time, unless it describes a `sha256`.

    Raises:
        InputError: `describe` raises an exception, or returns a value that JSON can't hold; or the
            encoder can't encode.
    """
    class_name = type(encoder).__name__
    who = f"describe() of the encoder {class_name}"
    about = call(encoder.describe, who=who) if isinstance(encoder, Describes) else {}
    if not isinstance(about, Mapping):
        raise InputError(f"{who} returned a {type(about).__name__}; a dictionary is needed.")
    whole = {"name": class_name, "max_tokens": "not told", **about}
    for key, value in whole.items():
        try:
            json.dumps({key: value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise InputError(
                f"{who}: {short(key)} is {short(value)} ({type(value).__name__}), which JSON can't "
                "hold; strings, finite numbers, booleans, None, lists and dictionaries are needed."
            ) from None
    if not isinstance(whole["name"], str):
        raise InputError(f"{who}: 'name' is {short(whole['name'])}; a string is needed.")
    if "sha256" not in whole:
        whole["probe_sha256"] = _probe(encoder, whole["name"])
    plain: dict[str, Any] = json.loads(json.dumps(whole))
    return plain


def _probe(encoder: Encodes, name: str) -> str:
    """Returns the SHA-256 of the encoder's vectors of the probe sentences."""
    embedder, probe = Embedder(encoder, name), list(_PROBE)
    embedder.prepare("probe", probe)
    found: list[NDArray[Any]] = [embedder.embed(probe, "probe")]
    if isinstance(encoder, EncodesResponses):
        found.append(embedder.embed_responses(probe, "probe")[0])
    if isinstance(encoder, ScoresPairs):
        found.append(embedder.similarity(probe[::2], probe[1::2], "probe")[0])
    return sha256_of(*(part.tobytes() for part in found))
