"""Computes the outputs of a model for texts: embeddings and entailment, in batches and threads.

A matrix product on all cores is three times slower as soon as anything else runs on the machine,
such as the text processing of the next batch, because its threads wait for each other. Batches
therefore run in a few threads that compute on one core each.

An encoder kind may name a runtime without torch (`EncoderKind.runtime`). Other kinds run through
their torch module, which is imported only then; models exported to ONNX run on ONNX Runtime
(docs/extend/runtime.md).

Texts in a language that the model does not know cause one warning per process.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rejoinder.encoders.layers import Array, Layers, dequantized, finite, unit_rows
from rejoinder.errors import ForeignTextWarning, InputError, ModelError, require
from rejoinder.io.files.system import default_workers
from rejoinder.models.card import LANGUAGE_NAMES, languages_of
from rejoinder.models.config import ENTAILMENT, RESPONSES, read_config
from rejoinder.models.find import shipped_models
from rejoinder.models.folder import ModelContents
from rejoinder.protocols import Embeddings
from rejoinder.registry import resolve, way
from rejoinder.text.features import WordFeatures
from rejoinder.text.ragged import Ragged, offsets_of, padded_groups

BATCH_SIZE = 4_096
"""Default number of sentences per batch. Larger batches do not fit the CPU caches."""
_POSITIONS = 8_192
"""Padded tokens per pass of ONNX Runtime; bounds the memory for attention."""
_OVERHEAD = 16
"""Fixed cost of a pass, in sentences."""


class Runtime(Protocol):
    """The extension point for runtimes: token ids to embeddings."""

    library: ClassVar[str]
    """The library that does the computation."""

    @property
    def workers(self) -> int:
        """Number of threads that may call it at a time; 1 if one call uses all cores."""

    def __call__(self, batch: Ragged) -> Embeddings:
        """(N, D) float32, not normalised; zero rows for sentences without known tokens."""


class OnnxRuntime:
    """Converts token ids to embeddings with ONNX Runtime, on the CPU.

    The graph maps `ids` (G, T) int64 and `present` (G, T) bool to `embeddings` (G, D) float32.
    """

    library: ClassVar[str] = "onnxruntime"
    workers = 1
    """ONNX Runtime uses all cores for a call."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """Loads a model with a graph, to run on `threads` threads, by default one per core.

        Raises:
            MissingExtraError: ONNX Runtime is not installed.
            ModelError: ONNX Runtime does not accept the graph.
        """
        require("onnx", "onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or default_workers()
        options.log_severity_level = 3  # errors only; they are also raised
        try:
            self._session = onnxruntime.InferenceSession(
                model.graph, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the library has no base class for its errors
            raise ModelError(f"the graph of {model.name} can't be read: {error}") from None
        self._dim = model.dim
        self._most = model.encoder.get("max_tokens")

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for empty sentences."""
        if self._most is not None:
            batch = batch.first(self._most)
        out = np.zeros((len(batch), self._dim), np.float32)
        for group in padded_groups(batch, _POSITIONS, _OVERHEAD):
            feeds = {"ids": group.ids, "present": group.present}
            out[group.sentences] = self._session.run(["embeddings"], feeds)[0]
        return out


class TorchRuntime:
    """Converts token ids to float32 embeddings with the torch module of any encoder kind."""

    library: ClassVar[str] = "torch"
    workers = 1
    """Torch uses all cores for a call."""

    def __init__(self, model: ModelContents, threads: int | None) -> None:
        """Loads a model of any kind; `threads` sets torch's number of threads, process-wide.

        Raises:
            MissingExtraError: torch or Pydantic is not installed.
            ModelError: the sizes in the model's `config.json` are not valid for its kind.
        """
        require("train", "torch", "pydantic")
        from rejoinder.encoders.nn.layers import encoder_config

        config = encoder_config(model.kind, model.encoder, f"the encoder of {model.name}")
        import torch  # after `encoders.nn`, which sets how torch's threads wait

        encoder = model.kind.module_class(model.features.rows, config, torch.Generator())
        state = encoder.state_dict()
        for name, tensor in dequantized(model.tensors).items():
            if name.startswith("encoder."):
                state[name.removeprefix("encoder.")] = torch.from_numpy(tensor.astype(np.float32))
        encoder.load_state_dict(state)
        self.encoder = encoder.eval()
        if threads is not None:
            torch.set_num_threads(threads)

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for empty sentences."""
        import torch

        with torch.inference_mode():
            collated = self.encoder.collate(batch)
            embeddings: Array = self.encoder(collated, normalize=False).numpy()
        return embeddings


def computed_by(model: ModelContents) -> dict[str, str]:
    """Returns what would compute the embeddings of a model on this machine, without loading it.

    `library` does the matrix products. For models of words, `words` says how word ids are found
    (`text.features`); for a DAN, `sums` says how rows are added (`encoders.layers`).
    """
    found = {"library": str(runtime_of(model).library)}
    if isinstance(model.features, WordFeatures):
        found["words"] = model.features.word_ids.way
    if model.kind.name == "dan" and model.graph is None:
        found["sums"] = way("encoders.dan._sums")
    return found


def runtime_of(model: ModelContents) -> Any:
    """Returns the runtime class for a model."""
    if model.graph is not None:
        return OnnxRuntime
    return resolve(model.kind.runtime or TorchRuntime)


OnTooLong = Literal["error", "truncate", "split"]
"""What to do with a text of more than `max_tokens` tokens: refuse it, read its first tokens, or
encode all of it in windows of `max_tokens` tokens and average these."""

_MIN_SLICE = 512
"""Fewest sentences that are worth another thread."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def checked_way(value: Any) -> OnTooLong:
    """Returns `value`, which must be one of `OnTooLong`.

    Raises:
        InputError: it is anything else.
    """
    if value not in get_args(OnTooLong):
        raise InputError(f"on_too_long must be error, truncate or split; got {value!r}.")
    way: OnTooLong = value
    return way


class ModelOutputs:
    """Computes the embeddings of both sides of a model, and the probabilities of its classifier."""

    def __init__(
        self, model: ModelContents, threads: int | None, on_too_long: OnTooLong = "truncate"
    ) -> None:
        """Prepares a model for `threads` CPU cores, by default all that the process may use.

        `on_too_long` says what to do with texts of more tokens than the encoder reads.

        Raises:
            ModelError: the encoder kind is unknown, or its runtime can't read the model.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        self._model, self._dim, self._most = model, model.dim, model.max_tokens
        self._runtime: Runtime = runtime_of(model)(model, threads)
        self._calls = 0
        heads = {
            name: Layers(f"heads.{name}", table, model.tensors)
            for name, table in model.heads.items()
        }
        self._head, self._classifier = heads.get(RESPONSES), heads.get(ENTAILMENT)
        self._on_too_long = on_too_long

    def embed(
        self,
        texts: Sequence[str],
        batch_size: int = BATCH_SIZE,
        *,
        response: bool = False,
        adapted: bool = True,
        normalize: bool = True,
        show: bool = False,
        on_too_long: OnTooLong | None = None,
        place: Callable[[int], str] = "sentence {}".format,
    ) -> tuple[Embeddings, int]:
        """Computes (N, D) float32 embeddings u of texts, or v' with `response`.

        If `adapted`, the adaptation is applied; for v' (`Adaptation.apply_responses`) in a way that
        keeps the ranks of responses. Rows have length 1 if `normalize`, except adapted v'. `show`
        draws a progress bar on standard error. `on_too_long` defaults to the constructor's.
        `place` returns the name of a text, given its index, for messages.

        Returns:
            The embeddings, and how many texts have more tokens than the encoder reads.

        Raises:
            InputError: a text is too long, and `on_too_long` is `error`.
            ModelError: an embedding is not finite, or the model has no response side.
        """
        if response and self._head is None:
            raise self._lacks("response side")
        adaptation = self._model.adaptation if adapted else None
        self._calls += 1
        if self._calls & (self._calls - 1) == 0:  # calls 1, 2, 4, 8 ...: costs a loop nothing
            warn_if_foreign(self._model, texts)
        out = np.empty((len(texts), self._dim), np.float32)
        way = self._on_too_long if on_too_long is None else checked_way(on_too_long)
        counts = list[int]()

        def work(part: slice) -> None:
            batch = self._model.features.whole(texts[part])
            with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
                rows, long = self._rows(batch, way, lambda index: place(part.start + index))
                if response and self._head is not None:
                    rows = self._head(unit_rows(rows)) * (batch.lengths > 0)[:, None]
                if adaptation is not None and not response:
                    rows = adaptation.project(rows)
                rows = unit_rows(rows) if normalize else finite(rows)
            out[part] = rows
            counts.append(long)

        each_batch(len(texts), batch_size, self._runtime.workers, work, show=show)
        if adaptation is not None and response:
            out = adaptation.apply_responses(out)
        return out, sum(counts)

    def as_responses(self, embeddings: Embeddings) -> Embeddings:
        """Converts (N, D) u to v'; returns u if the model has no response side or is adapted."""
        if self._head is None or self._model.adaptation is not None:
            return embeddings
        with one_core_each():
            known = np.asarray(embeddings.any(axis=1))
            return unit_rows(self._head(embeddings)) * known[:, None]

    def _rows(
        self, batch: Ragged, way: OnTooLong, place: Callable[[int], str]
    ) -> tuple[Array, int]:
        """Returns (N, D) rows from the runtime, and the number of texts that are too long.

        The row of a split text has length 1; other rows are as the runtime returns them.
        """
        most = self._most
        if most is None or not (long := batch.lengths > most).any():
            return self._runtime(batch), 0
        count = int(long.sum())
        if way == "error":
            index = int(np.argmax(long))
            raise InputError(
                f"{place(index)} has {batch.lengths[index]:,} tokens, and the model reads "
                f"{most:,}. Use `on_too_long='truncate'` to drop the rest, or 'split' to "
                "encode the text in pieces."
            )
        if way == "truncate":
            return self._runtime(batch.first(most)), count
        cut, windows_of = windows(batch, most)
        rows = self._runtime(cut)
        firsts = offsets_of(windows_of)[:-1]
        units = unit_rows(rows) * cut.lengths[:, None].astype(np.float32)
        means = unit_rows(np.add.reduceat(units, firsts, axis=0))
        return np.where((windows_of > 1)[:, None], means, rows[firsts]), count

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float32]:
        """Returns (N, 3) float32 probabilities of contradiction, neutral and entailment.

        Raises:
            ModelError: the model has no classifier.
        """
        if self._classifier is None:
            export = self._model.export
            if export is not None and ENTAILMENT in export["dropped"]:
                raise self._lacks("classifier")
            raise ModelError(
                f"{self._model.name} was not trained on inference; train a model with an "
                "entailment task, such as the shipped config dan-multitask-modern."
            )
        u1, u2 = np.split(self.embed([*premises, *hypotheses], adapted=False)[0], 2)
        features = np.concatenate([u1, u2, np.abs(u1 - u2), u1 * u2], axis=1)
        scores = self._classifier(features * np.float32(self._dim**0.5))
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float32] = shares / shares.sum(axis=1, keepdims=True)
        return probabilities

    def _lacks(self, head: str) -> ModelError:
        """Returns the error about a head that an exported model does not have."""
        return ModelError(
            f"{self._model.name} has no {head}: `rejoinder export` kept {self._dim} dimensions and "
            "dropped heads that need more. Use the model that it was exported from."
        )


def windows(tokens: Ragged, most: int) -> tuple[Ragged, NDArray[np.int64]]:
    """Cuts each text into windows of `most` tokens, the last one shorter.

    Returns:
        The windows of all texts in order, and (N,) the number of windows of each text, at least 1.

    >>> cut, counts = windows(Ragged(np.arange(7, dtype=np.int32), np.array([0, 5, 5, 7])), 2)
    >>> [cut[index].tolist() for index in range(len(cut))], counts.tolist()
    ([[0, 1], [2, 3], [4], [], [5, 6]], [3, 1, 1])
    """
    counts = np.maximum(-(-tokens.lengths // most), 1)
    before = np.arange(counts.sum()) - np.repeat(offsets_of(counts)[:-1], counts)
    starts = np.repeat(tokens.offsets[:-1], counts) + before * most
    return Ragged(tokens.ids, np.append(starts, tokens.offsets[-1])), counts


def each_batch(
    count: int,
    batch_size: int,
    workers: int,
    work: Callable[[slice], None],
    *,
    show: bool,
    what: str = "encoding",
) -> None:
    """Calls `work` for consecutive slices that cover `range(count)`, and waits for all calls.

    With several `workers`, that many threads call `work`, each on one core. With 1, the calling
    thread calls it, and it may use any number of cores. Errors of `work` are raised here.
    `show` draws a progress bar on standard error, labelled `what`.
    """
    if 0 < count <= min(batch_size, _MIN_SLICE) and not show:
        work(slice(0, count))
        return
    if workers > 1:
        batch_size = min(batch_size, max(-(-count // workers), _MIN_SLICE))
    slices = [slice(low, min(low + batch_size, count)) for low in range(0, count, batch_size)]
    for _ in with_bar(in_threads(work, slices, workers), what, len(slices), show=show):
        pass


def in_threads(
    work: Callable[[_Item], _Result], items: Sequence[_Item], workers: int
) -> Iterator[_Result]:
    """Calls `work` on items as `each_batch` does, and yields results in the order of the items."""
    if workers == 1 or len(items) < 2:
        yield from map(work, items)
        return
    with one_core_each(), ThreadPoolExecutor(workers, "rejoinder") as pool:
        yield from pool.map(work, items)


_lock = Lock()
_limits: list[Any] = []
"""The BLAS thread limit, once for each `each_batch` call in progress."""


@contextmanager
def one_core_each() -> Iterator[None]:
    """Limits matrix products to one core while any caller is inside; the last lifts the limit."""
    with _lock:
        # the first caller records the previous setting, and later callers share its limit
        _limits.append(_limits[-1] if _limits else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    """Returns the controller, created once because creating it scans all loaded libraries."""
    return ThreadpoolController()


def with_bar(items: Iterable[_Item], what: str, total: int, *, show: bool) -> Iterable[_Item]:
    """Returns the items, with a progress bar labelled `what` on standard error if `show`."""
    if not show:
        return items
    from rich.console import Console
    from rich.progress import track

    # plain lines in notebooks, too: Rich's widgets need ipywidgets, and Rich warns without it
    console = Console(stderr=True, force_jupyter=False)
    return track(items, what, total=total, console=console)


_SAMPLE = 32
_MOST_CHARS = 1_000
"""Most characters read from each text of the sample."""
_SHARE = 0.4
"""Share of unknown words that suggests another language. Samples of 32 English texts reach at most
.22, samples of six other languages .42 or more. Single sentences reach it in 0.3 % of cases for
English, 2.2 % for English about computing, 81 % for French."""
_FEWEST = 3
"""Fewest unknown words for a warning: fewer may be names."""

MULTILINGUAL = ("ar", "de", "es", "fr", "it", "tr")
"""Languages of `rejoinder-multi` besides English, for hints when it is not installed."""

_told = False
"""Whether this process has warned."""


def warn_if_foreign(model: ModelContents, texts: Sequence[str]) -> None:
    """Warns, once per process, if a model does not know most words in a sample of texts."""
    global _told
    if _told:
        return
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    joined = " ".join(text[:_MOST_CHARS] for text in sample)
    # a third of French words are one letter away from English ones
    share = float(model.features.unknown_share([joined], as_written=True)[0])
    if share >= _SHARE and share * len(joined.split()) >= _FEWEST:
        _told = True
        warnings.warn(
            f"many words of these texts are unknown to {_about(model, joined)}. "
            "Similarities mean little for a language that a model does not know.",
            ForeignTextWarning,
            stacklevel=_outside(),
        )


def _about(model: ModelContents, text: str) -> str:
    """Returns a model's name and languages, the text's language, and models that know it."""
    from rejoinder.text.languages import language_of  # rarely needed

    known, code = languages_of(model.training), language_of(text)
    said = f"{model.name}, which knows {_listed(known)}" if known else model.name
    if code is None or code in known:
        return said
    said += f"; they look like {_listed([code])}"
    able = models_knowing(code)
    if not able and code in MULTILINGUAL:
        return f"{said}, which the model of the package rejoinder-multi knows"
    return f"{said}: try {' or '.join(able)}" if able else said


def models_knowing(code: str) -> list[str]:
    """Returns the names of the installed models that know a language."""
    return [
        name
        for name, folder in shipped_models().items()
        if code in languages_of(read_config(folder).get("training") or {})
    ]


def _listed(codes: Sequence[str]) -> str:
    return ", ".join(LANGUAGE_NAMES.get(code, code) for code in codes)


def _outside() -> int:
    """Returns the stack level of the nearest caller outside this package, for a warning."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("rejoinder."):
        frame, level = frame.f_back, level + 1
    return level
