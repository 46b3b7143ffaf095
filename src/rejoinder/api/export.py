"""Exports a smaller model and measures what it loses; adapts an encoder to the STS Benchmark."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rejoinder.api.evaluation import load_encoder, places_of
from rejoinder.datasets.semeval import read_stsb
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output
from rejoinder.models.adaptation import FILE, Adapted, FitSettings, fit_adaptation
from rejoinder.models.config import RESPONSES
from rejoinder.models.find import find_model
from rejoinder.models.folder import ModelContents, folder_bytes, read_model, write_model
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.protocols import Encodes

_MOST_INPUTS = 10_000
"""Number of inputs whose responses are ranked."""
Scores = Callable[[ModelContents], Mapping[str, float]]
"""Scores a model on dev, by name."""


@dataclass(frozen=True)
class ModelSize:
    """The size of a model on disk, and its scores."""

    bytes: int
    """Size of all files of the folder."""
    rows: int
    """Rows of the embedding table (words, buckets of unknown words, bigrams); 0 if it has none."""
    dim: int
    """Embedding dimension."""
    dtype: str
    """Type of the encoder's weights: `float32`, `float16` or `int8`."""
    scores: Mapping[str, float]
    """Dev scores by name, for the data given: `STS-B Pearson` (angular), and `P@1` of 100."""


@dataclass(frozen=True)
class Exported:
    """A smaller model, with the sizes and scores before and after."""

    encoder: SentenceEncoder
    """The smaller model."""
    before: ModelSize
    """Size and scores of the model that it was made from."""
    after: ModelSize
    """Size and scores of the smaller model."""
    dropped: tuple[str, ...]
    """Heads that were left out because they need removed dimensions: `responses`, `entailment`."""

    @property
    def changes(self) -> Mapping[str, float]:
        """Score after minus score before, for the scores that both models have."""
        after, before = self.after.scores, self.before.scores
        return {name: after[name] - before[name] for name in before if name in after}


def export(
    model: str | Path,
    out: str | Path,
    *,
    dtype: str | None = None,
    dim: int | None = None,
    max_words: int | None = None,
    unknown_buckets: int | None = None,
    letter_buckets: int | None = None,
    spelling: bool | None = None,
    saturation: float | None = None,
    any_dim: bool = False,
    name: str | None = None,
    data: str | Path | None = None,
    pairs: str | Path | None = None,
    overwrite: bool = False,
) -> Exported:
    """Writes a smaller model folder from another. The same options give the same bytes.

    Args:
        model: the model folder to start from. It is not changed.
        out: the folder to write.
        dtype: type of the weights: `float32`, `float16` or `int8`. With `int8`, each row of the
            embedding table is stored as integers from -31 to 31 and a scale, and other matrices as
            float16. None keeps the types.
        dim: keep the first `dim` dimensions, for a DAN without dense layers. None keeps all. Heads
            that need more are left out.
        max_words: number of words to keep, the most frequent ones. The others become unknown to the
            model. None keeps all.
        unknown_buckets: number of buckets of unknown words to keep; 0 leaves unknown words out.
            None keeps all. With a divisor of the model's number, more words keep their row.
        letter_buckets: number of buckets of letter sequences, used to read unknown words:
            sequences of 3 to 6 letters get rows fitted to those of known words, and rows of rare
            words turn towards them. 0 removes existing buckets.
        spelling: read words that are probably misspelt as the intended known words. For English.
            False turns this off. None keeps the setting.
        saturation: K above 0 shortens long rows, which belong to rare words: a row n times as long
            as the median becomes (1 + K) n / (n + K) times as long. The larger K, the smaller the
            change. For a DAN without dense layers. None keeps the rows.
        any_dim: cut to `dim` even if the model was not trained with nested dimensions.
        name: name of the new model. None keeps the name.
        data: folder of data sets. If it holds the STS Benchmark, both models are scored on dev.
        pairs: folder of `rejoinder extract`. Both models rank the responses of its dev split, for
            at most 10,000 inputs.
        overwrite: replace what `out` holds.

    Returns:
        The smaller model, with the sizes and scores before and after.

    Raises:
        InputError: an option changes nothing or does not fit the model, or `out` is occupied.
        ModelError: the model is damaged, or a weight is out of range for float16.
        DataMissingError: `data` does not hold the STS Benchmark.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
        MissingExtraError: scores need a package that is not installed.
    """
    options = ExportOptions(
        dtype=dtype,
        dim=dim,
        max_words=max_words,
        unknown_buckets=unknown_buckets,
        letter_buckets=letter_buckets,
        spelling=spelling,
        saturation=saturation,
    )
    folder, path = find_model(model), Path(out)
    with claim_output(path, overwrite=overwrite, inputs=[folder, data, pairs]):
        contents = read_model(folder)
        made = smaller(contents, options, any_dim=any_dim)
        scores = scores_of(data, pairs)
        before = size_of(folder, contents, scores)
        write_model(path, replace(made, name=name or made.name), overwrite=overwrite)
        written = read_model(path)
        after = size_of(path, written, scores)
    dropped = tuple(sorted(contents.heads.keys() - written.heads.keys()))
    return Exported(SentenceEncoder(written), before, after, dropped)


def scores_of(data: str | Path | None, pairs: str | Path | None) -> Scores:
    """Returns a function for the scores that the data allow; P@1 needs a response side.

    Without data, no extra is needed.
    """
    if data is None and pairs is None:
        return lambda _: {}
    from rejoinder.api.pairs import DevScores

    folders = (None if place is None else Path(place) for place in (pairs, data))
    dev = DevScores(*folders, max_inputs=_MOST_INPUTS, needed=True)

    def scores(model: ModelContents) -> Mapping[str, float]:
        encoder = SentenceEncoder(model)
        ranked = dev.responses(encoder) if RESPONSES in model.heads else {}
        return {**dev.similarity(encoder), **dict(list(ranked.items())[:1])}

    return scores


def size_of(folder: Path, contents: ModelContents, scores: Scores) -> ModelSize:
    """Returns the size of the model in `folder`, and its scores."""
    rows = len(contents.tensors.get(f"encoder.{contents.kind.table}", ()))
    size = folder_bytes(folder)
    return ModelSize(size, rows, contents.dim, contents.weight_type, scores(contents))


def adapt(
    encoder: Encodes | str | Path,
    sts: str | Path,
    *,
    out: str | Path | None = None,
    form: str | None = None,
    settings: FitSettings | None = None,
    overwrite: bool = False,
) -> SentenceEncoder | Adapted:
    """Fits u* = W u on the training pairs of the STS Benchmark, and selects W on its dev pairs.

    Args:
        encoder: anything with `encode(list of strings)`, or a name that `load_encoder` opens,
            such as a model folder.
        sts: the folder of sts-train.csv and sts-dev.csv, or a folder of data sets.
        out: a folder for the adapted model if the encoder is a `SentenceEncoder`, else for
            `adaptation.safetensors` only. None writes nothing.
        form: `official` or `senteval`, the form of the STS files. None means either.
        settings: how W is fitted. None means the defaults of `FitSettings`.
        overwrite: replace what `out` holds.

    Returns:
        The adapted encoder: a `SentenceEncoder` if `encoder` is one. `describe()["adaptation"]`
        has the correlations on dev before and after.

    Raises:
        InputError: the STS files or the encoder can't be used, or `out` is not empty.
        ModelError: the encoder can't be adapted, or there is no model of that name.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    path = None if out is None else Path(out)
    with ExitStack() as stack:
        if path is not None:
            inputs = [*places_of(encoder), sts]
            stack.enter_context(claim_output(path, overwrite=overwrite, inputs=inputs))
        train, dev = (read_stsb(Path(sts), split, form) for split in ("train", "dev"))
        opened = load_encoder(encoder) if isinstance(encoder, str | Path) else encoder
        adaptation = fit_adaptation(opened, train, dev, settings)
        if isinstance(opened, SentenceEncoder):
            model = opened.with_adaptation(adaptation)
            if path is not None:
                model.save(path, overwrite=overwrite)
            return model
        if path is not None:
            with new_folder(path, overwrite=overwrite) as folder:
                adaptation.write(folder / FILE)
        return Adapted(opened, adaptation)
