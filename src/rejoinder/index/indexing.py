"""`Index`: an index with the model that encodes its texts and queries."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rejoinder.corpus.texts import Entry
from rejoinder.encoders.layers import unit_rows
from rejoinder.errors import InputError
from rejoinder.index.files import WEIGHT, IndexModel, Manifest
from rejoinder.index.folder import MODEL, TextIndex, create_index
from rejoinder.index.hits import IndexHit
from rejoinder.index.segment import DTYPES, EncodedTexts
from rejoinder.index.state import Mode
from rejoinder.index.where import Where
from rejoinder.index.words import in_own_words
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import Sentences, as_texts
from rejoinder.inference.outputs import OnTooLong
from rejoinder.inference.sentence_stream import EncodingProgress, GivenText, Source
from rejoinder.io.files.claims import refuse_inputs, refuse_occupied
from rejoinder.models.find import find_model, shipped_models
from rejoinder.protocols import Describes, Embeddings, Encodes, EncodesResponses, Prepares
from rejoinder.text.languages import language_to_stem


class Index(TextIndex):
    """A folder of texts that you can search by meaning and by words."""

    def __init__(
        self,
        folder: str | Path,
        encoder: Encodes | str | Path | None = None,
        *,
        on_too_long: OnTooLong = "truncate",
    ) -> None:
        """Opens an index and the model that it was made with.

        Args:
            folder: The index.
            encoder: The encoder of the index, or the name or folder of its model. Default: the
                model inside the index, or the model at its path when the index was made.
            on_too_long: What the model does with long queries; see `SentenceEncoder`.

        Raises:
            InputError: the folder is not an index, is damaged, or was made with another encoder.
            ModelError: the model is no longer there.
        """
        super().__init__(Path(folder))
        place = place_of_model(self) if encoder is None else encoder
        self.encoder, _ = _loaded(place, on_too_long)
        refuse_other_model(self, _description(self.encoder))
        self.left_out: Mapping[str, int] = {}
        """Number of messages that the last `create` or `add` left out of an export, by reason:
        `private`, `bot`, `system`, `empty`, `malformed`."""

    @classmethod
    def create(
        cls,
        folder: str | Path,
        texts: str | Path | Iterable[GivenText | Entry],
        encoder: Encodes | str | Path | None = None,
        *,
        columns: str | None = None,
        response: bool = False,
        recall: float = 0.98,
        dtype: Literal["float32", "float16"] = "float32",
        copy_model: bool = False,
        overwrite: bool = False,
        progress: EncodingProgress = lambda _done, _read, _all: None,
    ) -> "Index":
        """Encodes texts and writes them to an index; if it fails, it writes nothing.

        Args:
            folder: Where to write the index.
            texts: Path of a file of texts, of an export of conversations, or of a folder of pairs
                whose replies are indexed (see `corpus.texts`); or strings, tuples of an id and a
                text, or entries. A text without an id gets the next number, from 1.
            encoder: The model, or its name or folder. Default: `rejoinder-base`, or the only
                installed model for the language of the texts. The index stores its name or folder.
                Or any object whose `encode` returns (N, D) rows for N strings, such as those of
                `load_encoder`; rows are scaled to length 1. Pass it again to open the index, which
                recognises it by the `sha256` in its description, or by its rows for a few sentences
                (`evaluation.encoding.identity`).
            columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
                Default: `text`, and `id` if it exists. Also metadata that `where` and a hybrid
                search use: `author`, `time` (a date, or seconds since 1970), `source`, `thread`,
                `title`, `answers` and `link`, and your own fields, such as `product=COLUMN`.
            response: Encode the texts with `encode_response`, so that a search finds texts that
                answer a query, not texts that resemble it.
            recall: Share of the ten nearest texts that approximate search should find. With FAISS
                (extra `index`), search is approximate from 200,000 texts up. 1 makes search exact.
                It also applies to texts added later.
            dtype: Type of the embeddings on disk. `float16` takes half the space and changes
                cosines by about 0.0001.
            copy_model: Copy the model into the index, so that you can move both.
            overwrite: Replace the content of `folder`.
            progress: Called with the progress of the work.

        Raises:
            InputError: an id is given twice, a text is not a string, a line can't be read,
                `folder` is occupied, an argument is not valid, or an encoder returns rows that
                can't be used.
            ModelError: the model can't be loaded, was never saved, or has no response side.
            BusyError: another command is writing the index.
            StorageError: it can't be written.
        """
        _check_settings(recall, dtype)
        refuse_inputs(Path(folder), [texts, encoder])  # before the first texts are read
        refuse_occupied(Path(folder), overwrite=overwrite)
        given = Source(texts, columns)
        loaded, source = _loaded(given.model() if encoder is None else encoder)
        model = _model_of(_description(loaded), None if copy_model else source)
        weight = WEIGHT
        if isinstance(loaded, SentenceEncoder):
            weight = loaded.describe()["training"].get("search_weight", WEIGHT)
        elif copy_model:
            raise InputError("copy_model: only a rejoinder model can be copied into an index.")
        dim = _dim_of(loaded, response=response)
        encoded = _encoded(loaded, dim, given, progress, response=response)
        first = next(encoded, None)
        language = "english" if first is None else language_to_stem(first.texts)
        manifest = Manifest(
            model, dim, recall=float(recall), dtype=dtype, response=response, weight=weight,
            language=language,
        )  # fmt: skip
        create_index(
            Path(folder),
            manifest,
            encoded if first is None else chain([first], encoded),
            copy_model=loaded.save if isinstance(loaded, SentenceEncoder) and copy_model else None,
            overwrite=overwrite,
            inputs=[texts, encoder],
        )
        made = cls(folder, loaded)
        made.left_out = given.left_out
        return made

    @classmethod
    def open(
        cls,
        folder: str | Path,
        encoder: Encodes | str | Path | None = None,
        *,
        on_too_long: OnTooLong = "truncate",
    ) -> "Index":
        """Opens an index, as `Index(folder, encoder)` does."""
        return cls(folder, encoder, on_too_long=on_too_long)

    def search(
        self,
        queries: Sentences,
        top_k: int = 10,
        *,
        mode: Mode = "semantic",
        weight: float | None = None,
        exact: bool = False,
        where: Where | None = None,
        context: int = 0,
    ) -> list[list[IndexHit]]:
        """Returns for each query the `top_k` best texts, best first.

        A single string is one query. Texts with equal scores come in the order in which they were
        added.

        Args:
            queries: What to search for.
            top_k: Number of hits per query, at least 1.
            mode: `semantic`: the nearest texts by cosine. `words`: the texts with the highest BM25
                that share a word with the query. `hybrid`: by both and by metadata of messages
                (`index.ranking`); returns no text if none is close and there is no `where`.
            weight: Weight of meaning in a hybrid search, from 0 to 1. Default: the weight that
                `finetune` found for the model, else 0.25.
            exact: Compare queries with all embeddings of a large index, which is otherwise searched
                approximately (`create`). Search by words is always exact.
            where: Find only texts that meet all of these conditions: `source` (the channel),
                `author`, `thread` or one of your fields equals a string, or one of several,
                ignoring case; `since` and `until` a date in UTC, such as `"2024-01-31"`. `until` is
                the first day that is left out. The search is then exact.
            context: Number of messages to return before and after each hit, from its thread or, if
                it has none, its channel without thread replies.

        Raises:
            InputError: a query is not a string, an argument is not valid, or no text of the index
                has a field or value in `where`.
            MissingExtraError: the index is searched approximately, and FAISS is not installed.
        """
        texts, _ = self.in_own_words(as_texts(queries)[0])
        dim = self.manifest.dim
        embeddings = None if mode == "words" else rows_of(self.encoder, texts, dim)
        return self.best(
            texts, embeddings, top_k, mode=mode, weight=weight, exact=exact, where=where,
            context=context, features=getattr(self.encoder, "features", None),
        )  # fmt: skip

    def read_as(self, queries: Sentences) -> list[dict[str, str]]:
        """Returns, for each query, the words that `search` reads differently, with their reading.

        Likely misspellings are read as words of the index, or else as the model reads them. Words
        that name a date are read as a date, which counts in a hybrid search.

        Raises:
            InputError: a query is not a string, or the index is damaged.
        """
        given = as_texts(queries)[0]
        texts, own = self.in_own_words(given)
        read, dates = [dict[str, str]() for _ in texts], self.dates(given)
        if isinstance(self.encoder, SentenceEncoder):
            read = self.encoder.read_as(texts)
        return [{**one, **words, **date} for one, words, date in zip(read, own, dates, strict=True)]

    def in_own_words(self, queries: list[str]) -> tuple[list[str], list[dict[str, str]]]:
        """Returns queries with misspelt words replaced by words of the index, and the replacements.

        Raises:
            InputError: the index is damaged.
        """
        own = self.own_words(queries, getattr(self.encoder, "features", None))
        return [in_own_words(*one) for one in zip(queries, own, strict=True)], own

    def add(
        self,
        texts: str | Path | Iterable[GivenText | Entry],
        *,
        columns: str | None = None,
        update: bool = False,
        progress: EncodingProgress = lambda _done, _read, _all: None,
    ) -> int:
        """Adds texts, and returns their number.

        Args:
            texts: As in `create`.
            columns: Likewise.
            update: Replace texts that have the same ids.
            progress: Called with how far the work is.

        Raises:
            InputError: as in `create`; also if an id is already in the index and `update` is False.
            BusyError: another command is changing the index.
            StorageError: it can't be written.
        """
        given = Source(texts, columns)
        about = self.manifest
        encoded = _encoded(self.encoder, about.dim, given, progress, response=about.response)
        added = self.add_encoded(encoded, update=update)
        self.left_out = given.left_out
        return added


def _encoded(
    encoder: Encodes, dim: int, source: Source, progress: EncodingProgress, *, response: bool
) -> Iterator[EncodedTexts]:
    """Yields a stream of texts with ids and embeddings."""

    def encode(chunk: list[Entry], _before: int) -> Embeddings:
        return rows_of(encoder, [_with_title(one) for one in chunk], dim, response=response)

    for chunk, rows in source.encoded(encode, progress):
        names, contents, about, _ = (list(column) for column in zip(*chunk, strict=True))
        yield EncodedTexts(names, contents, rows, about)


def _with_title(entry: Entry) -> str:
    """Returns the text to encode for an entry, with its title: a mail needs its subject."""
    title = entry.about.get("title")
    return f"{title}. {entry.encoded}" if title else entry.encoded


def rows_of(
    encoder: Encodes, texts: list[str], dim: int | None = None, *, response: bool = False
) -> Embeddings:
    """Returns the (N, D) float32 embeddings of texts, unit or zero rows.

    Raises:
        InputError: another library's encoder returns rows that can't be used or do not have
            dimension `dim`, or can't encode responses.
    """
    if isinstance(encoder, SentenceEncoder):
        return encoder.encode_response(texts) if response else encoder.encode(texts)
    from rejoinder.evaluation.encoding import encode_checked

    if not texts:
        return np.empty((0, dim or 0), np.float32)
    name, encode, method = type(encoder).__name__, encoder.encode, "encode"
    if response:
        if not isinstance(encoder, EncodesResponses):
            raise InputError(f"response: the encoder {name} has no encode_response.")
        encode, method = encoder.encode_response, "encode_response"
    who = f"{method} of the encoder {name}"
    found, _ = encode_checked(encode, texts, who)
    if dim not in (None, found.shape[1]):
        raise InputError(
            f"{who} returned vectors of {found.shape[1]} numbers; the index has {dim}."
        )
    return unit_rows(found)


def _dim_of(encoder: Encodes, *, response: bool) -> int:
    if isinstance(encoder, SentenceEncoder):
        return encoder.dim
    dim = encoder.describe().get("dim") if isinstance(encoder, Describes) else None
    return dim if isinstance(dim, int) else rows_of(encoder, ["?"], response=response).shape[1]


def _check_settings(recall: float, dtype: str) -> None:
    if isinstance(recall, bool) or not isinstance(recall, int | float) or not 0 < recall <= 1:
        raise InputError(f"recall must be a number above 0 and at most 1; got {recall!r}.")
    if dtype not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)}; got {dtype!r}.")


def _loaded(
    encoder: Encodes | str | Path, on_too_long: OnTooLong = "truncate"
) -> tuple[Encodes, str | None]:
    """Returns an encoder, and the name or path that it was loaded from (None: an object).

    Raises:
        InputError: it can't encode texts one by one.
        ModelError: the model can't be loaded.
    """
    if not isinstance(encoder, str | Path):
        if not isinstance(encoder, Encodes) or isinstance(encoder, Prepares):
            why = "needs all texts at once" if isinstance(encoder, Encodes) else "has no encode"
            raise InputError(
                f"encoder: a {type(encoder).__name__} {why}; give an object with encode(list of "
                "strings), or the name or folder of a model."
            )
        return encoder, None
    # the index stores the name of a shipped model: its path changes with the installation
    path = find_model(encoder).absolute()
    names = {folder: name for name, folder in shipped_models().items()}
    return SentenceEncoder.load(path, on_too_long=on_too_long), names.get(path, str(path))


def place_of_model(opened: TextIndex) -> Path:
    """Returns the folder of the model that an index was made with.

    Raises:
        InputError: the index does not record it.
        ModelError: it is no longer there.
    """
    source = opened.manifest.model.source
    if source is not None:
        return find_model(source)
    if (opened.folder / MODEL).is_dir():
        return opened.folder / MODEL
    raise InputError(
        f"{opened.folder} does not record the path of its model {opened.manifest.model.name}: it "
        "was made with an encoder object. Pass the encoder, or the model (`model`)."
    )


def _description(encoder: Encodes) -> Mapping[str, Any]:
    """Returns the description that identifies an encoder.

    Raises:
        InputError: it can't encode, or its description is not valid JSON.
    """
    if isinstance(encoder, SentenceEncoder):
        return encoder.describe()
    from rejoinder.evaluation.encoding import identity

    return identity(encoder)


def _model_of(about: Mapping[str, Any], source: str | None) -> IndexModel:
    adaptation = about.get("adaptation")
    sha256 = about.get("sha256", about.get("probe_sha256"))
    if not sha256:
        raise InputError(
            "the encoder was never saved, so the index could not recognise it later. Save it, and "
            "load it."
        )
    return IndexModel(
        about["name"],
        str(sha256),
        str(adaptation["sha256"]) if isinstance(adaptation, Mapping) else None,
        source,
    )


def refuse_other_model(folder: TextIndex, about: Mapping[str, Any]) -> None:
    """Checks that an index was made with a model; `about` is the model's description.

    Raises:
        InputError: it was made with another model.
    """
    expected, given = folder.manifest.model, _model_of(about, None)
    if not given.is_same(expected):
        raise InputError(
            f"{folder.folder} was made with {expected.name} (SHA-256 {expected.sha256[:12]}…), not "
            f"with {given.name} ({given.sha256[:12]}…). Use the first model, or build the index "
            "again with the second."
        )
