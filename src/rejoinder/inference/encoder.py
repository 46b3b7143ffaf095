"""`SentenceEncoder`: encodes, compares, ranks and searches sentences with a model folder."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.inference import inputs
from rejoinder.inference.outputs import BATCH_SIZE, ModelOutputs, OnTooLong, checked_way
from rejoinder.inference.search import Comparisons
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.config import ENTAILMENT
from rejoinder.models.find import Progress, find_model, shipped_model
from rejoinder.models.folder import ModelContents, read_model, write_model
from rejoinder.protocols import Embeddings
from rejoinder.registry import resolve
from rejoinder.text.features import TextFeatures, read_tokens
from rejoinder.text.normalize import same_words


class SentenceEncoder(Comparisons):
    """Encodes sentences as vectors of length 1.

    A sentence without any word of the vocabulary (see `unknown`) gets the zero vector, whose
    similarity with anything is 0, unless unknown words have buckets. Results do not depend on
    order or batch size, up to 1e-6 for a DAN and 1e-5 for a Transformer or BiLSTM. An adapted
    model (see `describe()["adaptation"]`) encodes W u, but ranks responses as before.
    """

    def __init__(
        self,
        model: str | Path | ModelContents | None = None,
        *,
        threads: int | None = None,
        on_too_long: OnTooLong = "truncate",
    ) -> None:
        """Creates an encoder from a model on this machine.

        Args:
            model: Name of a model that comes with the package (`rejoinder models` lists them), a
                model folder, or the result of `rejoinder.models.folder.read_model`. Default:
                `rejoinder-base`. `load` also takes an address.
            threads: Number of CPU cores, by default all that the process may use. PyTorch, which
                runs Transformers and BiLSTMs, has one such setting per process.
            on_too_long: What every method does with a sentence of more tokens than the model reads
                (`describe()["max_tokens"]`; None means all): `error` refuses it, `truncate` reads
                its first tokens, `split` encodes it in windows of that many tokens and averages
                their unit vectors, weighted by token count. `too_long` finds such sentences.

        Raises:
            InputError: `threads` is not a whole number from 1 to 1,024, `on_too_long` has another
                value, or `model` is not a model.
            ModelError: there is no such model, or it is damaged.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        if model is None:
            model = shipped_model()
        if not isinstance(model, ModelContents):
            model = read_model(find_model(model))
        if threads is not None:
            threads = inputs.whole_number("threads", threads, 1_024)
        self._model, self._threads = model, threads
        self._on_too_long = checked_way(on_too_long)
        self.dim = model.dim
        self._outputs = ModelOutputs(model, threads, self._on_too_long)
        self.encoded = self._outputs.embed
        """Computes embeddings of messages or responses, and counts texts that are too long."""

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        sha256: str | None = None,
        verify: bool = True,
        threads: int | None = None,
        on_too_long: OnTooLong = "truncate",
        progress: Progress | None = None,
    ) -> "SentenceEncoder":
        """Loads a model by name, by folder, or from an https address.

        Args:
            model: Name of a model that comes with the package (`rejoinder models` lists them), a
                model folder such as `RUN/model`, or the https address of an archive of a model
                folder: a zip, or a tar in any compression. An archive is downloaded once, to the
                user's cache folder or to the folder in `REJOINDER_CACHE`.
            sha256: SHA-256 of the archive in hexadecimal. Required for an address, refused for
                any other model.
            verify: Whether to compare the files with their hashes and check that weights are
                finite. If False, a large model is ready at once and its files are read on use.
            threads: See the constructor.
            on_too_long: See the constructor.
            progress: Called during a download with the address, the number of bytes received, and
                the total number of bytes or None.

        Raises:
            InputError: an argument is not valid, the address can't be reached, its response does
                not match `sha256` or is not a model archive.
            ModelError: the folder is missing, not a model, or damaged.
            MissingExtraError: a package that the encoder or a download needs is not installed.
            BusyError: another process has been downloading the same archive for ten minutes.
            StorageError: the cache can't be written.
        """
        contents = read_model(
            find_model(model, sha256, progress), verify=inputs.flag("verify", verify)
        )
        return cls(contents, threads=threads, on_too_long=on_too_long)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes the model to a folder. The same model gives the same bytes.

        Raises:
            InputError: the folder is occupied, and `overwrite` is False.
            StorageError: the folder can't be written.
        """
        write_model(Path(folder), self._model, overwrite=overwrite)

    from_pretrained = load
    save_pretrained = save

    def with_adaptation(self, adaptation: Adaptation) -> "SentenceEncoder":
        """Returns an encoder with embeddings u* = W u; this replaces any earlier adaptation.

        Raises:
            ModelError: the adaptation has another dimension.
        """
        adaptation.check_dim(self.dim, f"{self!r}: ")
        return SentenceEncoder(
            replace(self._model, adaptation=adaptation),
            threads=self._threads,
            on_too_long=self._on_too_long,
        )

    def get_embedding_dimension(self) -> int:
        """Returns `dim`, under the name that sentence-transformers uses."""
        return self.dim

    get_sentence_embedding_dimension = get_embedding_dimension

    @property
    def features(self) -> TextFeatures:
        """The text processing that turns texts into token ids for the model."""
        return self._model.features

    @property
    def on_too_long(self) -> OnTooLong:
        """How sentences with more tokens than the model reads are handled; see the constructor."""
        return self._on_too_long

    def __reduce__(self) -> tuple[Any, ...]:
        """Supports pickling: another process rebuilds the encoder from its model and settings."""
        build = partial(type(self), threads=self._threads, on_too_long=self._on_too_long)
        return build, (self._model,)

    def __deepcopy__(self, _memo: object) -> "SentenceEncoder":
        return self  # immutable

    def __repr__(self) -> str:
        kind = self._model.encoder["kind"]
        adaptation = self._model.adaptation
        adapted = f", adapted on {adaptation.source}" if adaptation else ""
        return f"SentenceEncoder({self._model.name!r}, {kind}, {self.dim} dimensions{adapted})"

    def describe(self) -> dict[str, Any]:
        """Returns JSON values: name, kind, dim, SHA-256 of the weights, training, adaptation."""
        return self._model.describe()

    def _fitted_pairs(self) -> NDArray[np.uint64]:
        """Returns (M,) uint64 keys of the graded pairs that the model was adapted on.

        Evaluation uses them to report test pairs that the model was fitted on
        (`protocols.TellsFittedPairs`). The array is empty if the model is not adapted.
        """
        adaptation = self._model.adaptation
        return np.empty(0, np.uint64) if adaptation is None else adaptation.fitted_pairs

    @overload
    def encode(
        self, sentences: inputs.Sentences, **arguments: Unpack[inputs.FloatArguments]
    ) -> Embeddings: ...
    @overload
    def encode(self, sentences: inputs.Sentences, **arguments: Unpack[inputs.Arguments]) -> Any: ...
    def encode(
        self,
        sentences: inputs.Sentences,
        *,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool | None = False,
        normalize: bool | None = None,
        on_too_long: OnTooLong | None = None,
        **arguments: Any,
    ) -> Any:
        """Computes the embeddings u of sentences.

        Args:
            sentences: A string, or an ordered collection of strings: a list, any iterable, a
                column of Polars, pandas or Arrow, a NumPy array.
            batch_size: Sentences per batch. It affects memory and speed, not results.
            show_progress_bar: Whether to draw a progress bar on standard error.
            normalize: Whether rows have length 1, as in training and by default. If False, rows
                are the output of the last layer, except that split sentences keep length 1.
            on_too_long: See the constructor, whose setting is the default.
            **arguments: Arguments of `SentenceTransformer.encode`: `normalize_embeddings` (another
                name for `normalize`), `truncate_dim` (the first dimensions, scaled to length 1),
                `precision` (float32, int8, uint8, binary, ubinary), `convert_to_tensor`, and
                `convert_to_numpy` (False gives a list of tensors). Arguments that the models can't
                support, such as `prompt`, are refused.

        Returns:
            (N, D) float32 in the order given, or (D,) for a single string.

        Raises:
            InputError: an element is not a string or is too long (the message names its index),
                `batch_size` is not a whole number of at least 1, or another argument is unknown or
                not one of its values.
            ModelError: the weights are so large that an embedding is not finite.
            MissingExtraError: tensors are asked for, and torch is not installed.
        """
        form = None
        if arguments:
            normalize, form = inputs.output_form(arguments, normalize, self.dim)
        found = self._side(
            sentences, batch_size, show_progress_bar, normalize is None or normalize, on_too_long
        )
        return found if form is None else form(found)

    def encode_query(self, sentences: inputs.Sentences, **arguments: Any) -> Any:
        """Computes the embeddings of queries; the same as `encode`, as there is no query encoder.

        To compare a message with answers, use `encode` and `encode_response`.
        """
        return self.encode(sentences, **arguments)

    encode_document = encode_query

    def encode_response(
        self,
        sentences: inputs.Sentences,
        *,
        batch_size: int = BATCH_SIZE,
        show_progress_bar: bool | None = False,
        normalize: bool = True,
        on_too_long: OnTooLong | None = None,
    ) -> Embeddings:
        """Computes the embeddings v' of responses, to compare with `encode` of messages.

        Arguments, result and errors are the same as for `encode`. Rows of an adapted model do not
        have length 1 (see `Adaptation.apply_responses`), so that responses rank as before.
        """
        return self._side(
            sentences, batch_size, show_progress_bar, normalize, on_too_long, response=True
        )

    def _side(
        self,
        sentences: inputs.Sentences,
        batch_size: int,
        show: bool | None,
        normalize: bool,
        on_too_long: OnTooLong | None,
        *,
        response: bool = False,
    ) -> Embeddings:
        """Checks arguments of `encode` and `encode_response`, and computes the embeddings."""
        texts, single = inputs.as_texts(sentences)
        rows, _ = self.encoded(
            texts,
            inputs.whole_number("batch_size", batch_size),
            show=show is not None and inputs.flag("show_progress_bar", show),
            normalize=inputs.flag("normalize", normalize),
            on_too_long=on_too_long,
            response=response,
        )
        return rows[0] if single else rows

    def as_responses(self, embeddings: Embeddings) -> Embeddings:
        """Converts (N, D) embeddings u of texts to the (N, D) v' that `encode_response` gives.

        If the model has no response side or is adapted, the embeddings come back unchanged.
        """
        return self._outputs.as_responses(embeddings)

    def too_long(self, sentences: inputs.Sentences) -> NDArray[np.bool_]:
        """Returns which sentences have more tokens than the model reads, (N,) bool.

        Raises:
            InputError: an element is not a string. The message names its index.
        """
        most, features = self._model.max_tokens, self._model.features
        if most is None:
            return np.zeros(len(inputs.as_texts(sentences)[0]), np.bool_)
        return _by_batch(sentences, lambda texts: features.whole(texts).lengths > most)

    def unknown(self, sentences: inputs.Sentences) -> NDArray[np.bool_]:
        """Returns which sentences have no token of the vocabulary, (N,) bool.

        A word outside the vocabulary counts as unknown even if it has a bucket. With subwords, no
        word is unknown.

        Raises:
            InputError: an element is not a string. The message names its index.
        """
        features = self._model.features
        return _by_batch(sentences, lambda texts: features.known(texts).lengths == 0)

    def unknown_share(self, sentences: inputs.Sentences) -> NDArray[np.float64]:
        """Returns the share of each sentence's words not in the vocabulary, (N,) from 0 to 1.

        It is 0 for a sentence without words. Misspelt words that the model reads as known words
        count as known. A share above a half suggests a language that the model was not trained on;
        similarities then mean little.

        Raises:
            InputError: an element is not a string. The message names its index.
        """
        return _by_batch(sentences, self._model.features.unknown_share)

    def read_as(self, sentences: inputs.Sentences) -> list[dict[str, str]]:
        """Returns, for each sentence, the words that the model reads as other words.

        It reads a misspelt word as the likely known word, and words that old corpora split as one
        word. It reads names and other unknown words by their letters.

        >>> SentenceEncoder().read_as("Where is my pasword, Loach?")
        [{'pasword': 'password'}]

        Raises:
            InputError: an element is not a string. The message names its index.
        """
        texts, _ = inputs.as_texts(sentences)
        return [
            {token.text: token.read_as for token in tokens if token.read_as is not None}
            for tokens in read_tokens(self._model.features, texts)
        ]

    def confuses(self, first: str, second: str) -> bool:
        """Returns whether two sentences differ only in word order and have the same embedding.

        Models that add up words, such as a DAN without bigrams, can't tell such sentences apart.
        """
        kind = self._model.kind
        reads_order = kind.name != "dan" or bool(self._model.features.config()["bigram_buckets"])
        return not reads_order and same_words(first, second)

    def score(self, first: inputs.Sentences, second: inputs.Sentences) -> Any:
        """Returns how similar texts are, from 0 (unrelated) to 5 (same meaning).

        Uses the `Scorer` of the package, which also compares words one by one. See `Scorer` for
        arguments, result and errors.

        >>> encoder = SentenceEncoder()
        >>> encoder.score("Two dogs run.", "2 dogs are running.") > 4
        True

        Raises:
            ModelError: the scorer of the package is for another model.
        """
        return self._scorer.score(first, second)

    @cached_property
    def _scorer(self) -> Any:  # imported on first use, from a package above this one
        return resolve("rejoinder.scoring.scorer:Scorer")(None, self, threads=self._threads)

    @property
    def entails(self) -> bool:
        """Whether the model has the classifier that `entail` uses."""
        return ENTAILMENT in self._model.heads

    def entail(
        self, premises: inputs.Sentences, hypotheses: inputs.Sentences
    ) -> NDArray[np.float32]:
        """Classifies whether each hypothesis follows from its premise.

        Returns:
            (N, 3) float32 probabilities of contradiction, neutral and entailment, in this order.

        Raises:
            ModelError: the model has no such classifier (see `entails`).
            InputError: premises and hypotheses differ in number, or an element is not a string.
        """
        left, right = (inputs.as_texts(side)[0] for side in (premises, hypotheses))
        if len(left) != len(right):
            raise InputError(
                f"got {len(left)} premises and {len(right)} hypotheses; give as many of each."
            )
        return self._outputs.entailment(left, right)


def _by_batch(
    sentences: inputs.Sentences, work: Callable[[list[str]], NDArray[Any]]
) -> NDArray[Any]:
    """Calls `work` for `BATCH_SIZE` sentences at a time, and returns all results."""
    texts, _ = inputs.as_texts(sentences)
    starts = range(0, max(len(texts), 1), BATCH_SIZE)
    return np.concatenate([work(texts[low : low + BATCH_SIZE]) for low in starts])
