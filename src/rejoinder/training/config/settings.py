"""The settings of a run: a frozen class per table of its TOML file, with bounds and defaults."""

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from rejoinder.encoders import ENCODERS, settings
from rejoinder.training.objectives import OBJECTIVES, Head, ResponsesTask, Task

_Name = Annotated[str, Field(min_length=1, max_length=200), settings.Printable]
_Sources = Annotated[tuple[settings.FilledText, ...], Field(max_length=100_000), settings.AsTuple]
_Every = 1_000_000_000
_Rate = Annotated[float, Field(ge=0, le=1_000)]


class WordsConfig(settings.Settings):
    """Text as ids of words, and optionally of bigrams of neighbouring words."""

    kind: Literal["words"] = "words"
    max_words: int = Field(default=200_000, ge=1, le=5_000_000)
    """Size of the vocabulary: the most frequent words."""
    min_count: int = Field(default=5, ge=1, le=1_000_000_000)
    """Less frequent words are left out of the vocabulary."""
    bigram_buckets: int = Field(default=0, ge=0, le=50_000_000)
    """Hash buckets for bigrams of words; 0 means no bigrams."""
    unknown_buckets: int = Field(default=0, ge=0, le=50_000_000)
    """Hash buckets for words outside the vocabulary; 0 ignores such words. Similar spellings get
    unrelated buckets: a misspelt word is as far from the correct one as any other, unless you run
    `rejoinder export --spelling`."""
    fold_marks: bool = False
    """Remove marks from letters (accents, vowel signs, hamza), so that `café` is read as `cafe`."""


class SubwordsConfig(settings.Settings):
    """Text as ids of subwords: byte-level byte-pair encoding."""

    kind: Literal["subwords"] = "subwords"
    max_words: int = Field(default=200_000, ge=256, le=1_000_000)
    """Size of the vocabulary of subwords, including the 256 bytes."""
    min_count: int = Field(default=5, ge=1, le=1_000_000_000)
    """Less frequent pairs of subwords are not merged."""
    max_tokens: int = Field(default=128, ge=1, le=8_192)
    """Maximum number of subwords per sentence; the rest is cut off."""


if TYPE_CHECKING:
    TextConfig = WordsConfig | SubwordsConfig
else:  # type checkers can't follow a union made from a tuple
    TextConfig: Any = settings.tagged((WordsConfig, SubwordsConfig), "kind", default="words")


class HeadConfig(settings.Settings):
    """The response head: dense layers on the response side."""

    layers: settings.Layers = (500, 500)
    """Units per layer; the last equals the embedding dimension. Empty means no head."""
    activation: settings.Activation = "tanh"
    """Activation between layers; there is none after the last."""
    residual: bool = False
    """Add the embedding to the output of the head."""


class EntailmentConfig(settings.Settings):
    """The classifier of pairs. Defaults are the paper's (§2.2 and §4.1)."""

    hidden: settings.Units = 512
    """Units of the hidden layer."""
    activation: settings.Activation = "tanh"
    """Activation of the hidden layer."""


class ObjectiveConfig(settings.Settings):
    """Settings of all objectives that rank the candidates in a batch."""

    scale: float = Field(default=1.0, gt=0, le=10_000)
    """Initial logit scale: factor of dot products in the softmax (1/temperature)."""
    learn_scale: bool = False
    """Learn the scale during training."""
    max_scale: float = Field(default=100.0, gt=0, le=10_000)
    """Upper bound of a learned scale."""
    mask_duplicates: bool = False
    """Leave out of the softmax the candidates that are known to fit the same input."""
    word_dropout: settings.Probability = 0.0
    """Fraction of ids dropped from each sentence at random during training."""

    @model_validator(mode="after")
    def _scale_is_within_its_bound(self) -> Self:
        if self.scale > self.max_scale:
            raise ValueError(
                f"scale is {self.scale:g}; allowed: up to objective.max_scale = {self.max_scale:g}"
            )
        return self


class OptimizerConfig(settings.Settings):
    """The optimisers of dense layers and of embedding tables."""

    dense: Literal["sgd", "adam"] = "sgd"
    """Optimiser of the dense layers."""
    table: Literal["sgd", "adagrad"] = "sgd"
    """Optimiser of the embedding table; `adagrad` keeps one accumulator per row (the mean square
    of its gradient)."""


class Phase(settings.Settings):
    """A part of the training, with one batch size and one learning rate schedule."""

    steps: int = Field(ge=1, le=1_000_000_000_000)
    """Number of optimiser steps, one batch each."""
    batch_size: int = Field(default=128, ge=2, le=524_288)
    """Pairs per batch; each has the other responses of the batch as negatives."""
    learning_rate: _Rate = 0.01
    """Learning rate of the dense layers."""
    table_learning_rate: _Rate | None = None
    """Learning rate of the embedding table; by default `learning_rate`."""
    warmup_steps: int = Field(default=0, ge=0, le=1_000_000_000_000)
    """Steps at the beginning of the phase in which the rate increases linearly from 0."""
    decay: Literal["none", "linear"] = "none"
    """`linear` decreases the rate to 0 at the end of the phase."""
    sif: float = Field(default=0.0, ge=0, le=1)
    """At the beginning of the phase, the row of a word of frequency p (by its rank) is multiplied
    by a / (a + p), where a is this number (smooth inverse frequency, Arora et al. 2017); 0 leaves
    rows as they are. For a DAN without layers."""
    whitening: float = Field(default=0.0, ge=0, le=1)
    """At the beginning of the phase, rows are whitened: their covariance C, weighted by frequency,
    is multiplied by C to the power of minus this number (Yokoi et al. 2024). 1 makes it the
    identity, 0 leaves it as it is. For a DAN without layers."""

    @property
    def whitens(self) -> bool:
        """Whether the phase changes the rows of words at its beginning."""
        return bool(self.sif or self.whitening)


class TrainingConfig(settings.Settings):
    """Settings of the training loop."""

    seed: int = Field(default=0, ge=0, le=4_294_967_295)
    """Seed of all random draws: weights, order, dropout."""
    precision: Literal["auto", "fp32", "bf16"] = "fp32"
    """`bf16` computes matrix products in bfloat16; sums, losses and parameters stay in float32.
    `auto` is `bf16` on devices where that is faster, else `fp32`."""
    mini_batch_size: int = Field(default=0, ge=0, le=1_048_576)
    """Number of rows to encode at a time, with gradients cached (Gao et al. 2021): a step then
    needs memory for this many rows only, but encodes each row twice. 0 encodes a batch at once."""
    compile: bool = False
    """Compile a Transformer's blocks with `torch.compile`: steps are faster after a start of up to
    a minute. On the CPU this needs a C++ compiler."""
    id_cache_gb: float = Field(default=8.0, ge=0, le=1_000_000)
    """Disk space, in GB, for the token ids of the pairs, so that each text is tokenised only once.
    They stay in the run's folder until training is done. 0 stores none."""
    log_every: int = Field(default=100, ge=1, le=_Every)
    """Steps between lines of metrics."""
    evaluate_every: int = Field(default=0, ge=0, le=_Every)
    """Steps between evaluations on at most 10,000 inputs of the dev split; 0 means only at the
    end."""
    checkpoint_every: int = Field(default=0, ge=0, le=_Every)
    """Steps between checkpoints; the last two are kept. 0 means only at the end."""
    exclude_leaks: bool = False
    """Drop pairs that contain a sentence of an evaluation set. The package has hashes of these
    sentences, for all sets but `stsb-train`."""
    sources: _Sources = ()
    """Sources of pairs to train on, such as subreddits; empty means all. Evaluations during
    training rank pairs of the same sources."""
    rank_init: float = Field(default=0.0, ge=0, le=1_000)
    """Initial length of the row of the word with rank r, in units of ln(r + e); 0 gives all rows
    length 1."""
    row_init: Literal["random", "cooccurrence"] = "random"
    """Initial directions of the rows of words or subwords: random, or vectors learned from the
    training text before the first step, by factorising counts of words that are near each other."""
    nested_dims: Annotated[tuple[settings.Units, ...], Field(max_length=20), settings.AsTuple] = ()
    """Numbers of dimensions that embeddings can be cut to. Ranking objectives also train the first
    entries of each of these lengths, so that `rejoinder export --dim` loses little."""
    init_from: settings.Text = ""
    """Model folder to start from: training takes over its vocabulary, encoder and heads."""

    @property
    def excluded_sets(self) -> tuple[str, ...]:
        """Names of the evaluation sets whose sentences are left out."""
        if not self.exclude_leaks:
            return ()
        from rejoinder.datasets.leaks import shipped  # other runs need no hashes

        return tuple(sorted(shipped().keys() - {"stsb-train"}))


class ExportConfig(settings.Settings):
    """Settings of the exported model."""

    dtype: Literal["float16", "float32"] = "float16"
    """Type of embedding tables (and a Transformer's matrices); the rest is float32."""


class RunConfig(settings.Settings):
    """The config of a run. `config_class` adds the kinds of encoders and tasks."""

    name: _Name = "rejoinder"
    """Name of the model."""
    text: TextConfig = Field(default_factory=WordsConfig)
    encoder: settings.EncoderSettings
    """A table of a kind in `ENCODERS`."""
    head: HeadConfig = Field(default_factory=HeadConfig)
    objective: ObjectiveConfig = Field(default_factory=ObjectiveConfig)
    entailment: EntailmentConfig = Field(default_factory=EntailmentConfig)
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    export: ExportConfig = Field(default_factory=ExportConfig)
    tasks: tuple[Task, ...] = ()
    """Tables of the kinds in `OBJECTIVES`. Empty means response selection only."""
    phases: Annotated[tuple[Phase, ...], Field(max_length=1_000), settings.AsTuple] = ()
    """At least one is required."""

    @property
    def mixture(self) -> tuple[Task, ...]:
        """The tasks; only response selection if the config has none."""
        return self.tasks or (ResponsesTask(objective="responses", share=1.0),)

    @property
    def objectives(self) -> frozenset[str]:
        """Names of the objectives of all tasks."""
        return frozenset(task.objective for task in self.mixture)

    @property
    def reads_pairs(self) -> bool:
        """Whether a task reads the pairs given by `--pairs`."""
        return any(OBJECTIVES[name].read is None for name in self.objectives)

    @property
    def heads(self) -> dict[str, Head]:
        """The heads of the run by objective, always including `responses`."""
        return {
            kind.name: kind.head(self)
            for kind in OBJECTIVES.values()
            if kind.head is not None and kind.name in self.objectives | {"responses"}
        }

    @property
    def steps(self) -> int:
        """Number of optimiser steps of all phases."""
        return sum(phase.steps for phase in self.phases)


def config_class() -> type[RunConfig]:
    """Returns `RunConfig` with the tables of all encoder and objective kinds registered so far."""
    return _config_class(
        tuple(kind.config_class for kind in ENCODERS.values()),
        tuple(kind.task for kind in OBJECTIVES.values()),
    )


@cache
def _config_class(
    encoders: tuple[type[settings.EncoderSettings], ...], tasks: tuple[type[Task], ...]
) -> type[RunConfig]:
    encoder: Any = settings.tagged(encoders, "kind", default="dan")
    task: Any = settings.tagged(tasks, "objective")
    many: Any = Annotated[tuple[task, ...], Field(max_length=1_000), settings.AsTuple]
    return create_model(
        "RunConfig",
        __base__=RunConfig,
        __doc__=RunConfig.__doc__,
        encoder=(encoder, Field(default_factory=settings.DanConfig)),
        tasks=(many, ()),
    )
