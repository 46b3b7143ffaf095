"""What a run is: frozen dataclasses, one a table of its TOML file."""

from dataclasses import dataclass, field
from typing import Literal

from rejoinder.encoders.bilstm import BilstmConfig
from rejoinder.encoders.dan import DanConfig
from rejoinder.encoders.transformer import TransformerConfig


@dataclass(frozen=True)
class TextConfig:
    """How strings become ids."""

    kind: Literal["words", "subwords"] = "words"
    max_words: int = 200_000
    """Words (or subwords) kept, the most frequent ones."""
    min_count: int = 5
    """Words seen less often are not kept."""
    bigram_buckets: int = 0
    """Rows for hashed bigrams of words; 0 for none."""
    max_tokens: int = 128
    """Subwords of a sentence that are read; what is beyond is cut."""


@dataclass(frozen=True)
class HeadConfig:
    """The feed-forward network on the response side."""

    layers: tuple[int, ...] = (500, 500)
    activation: str = "tanh"
    residual: bool = False


@dataclass(frozen=True)
class ObjectiveConfig:
    """Response selection over the batch."""

    scale: float = 1.0
    """What u·v' is multiplied by before the softmax, at the start."""
    learn_scale: bool = False
    max_scale: float = 100.0
    mask_duplicates: bool = False
    """Leave out of the softmax what is known to answer the same input."""
    symmetric: bool = False
    """Also pick the right input for each response."""
    word_dropout: float = 0.0
    """Share of ids left out of a sentence, at random, in training."""


@dataclass(frozen=True)
class OptimizerConfig:
    """Which rule moves the parameters: of the dense layers, and of the rows of large tables."""

    dense: Literal["sgd", "adam"] = "sgd"
    table: Literal["sgd", "adagrad"] = "sgd"
    """`adagrad`: one accumulator a row (the mean square of its gradient)."""
    adam_betas: tuple[float, float] = (0.9, 0.99)


@dataclass(frozen=True)
class Phase:
    """A stretch of steps with one batch size and one learning rate."""

    steps: int
    batch_size: int = 128
    """Pairs; each has the other responses of the batch as negatives."""
    learning_rate: float = 0.01
    table_learning_rate: float | None = None
    """Of the rows of tables; none: the learning rate."""
    warmup_steps: int = 0
    """Steps of linear rise from 0."""
    decay: Literal["none", "linear"] = "none"
    """`linear`: down to 0 at the end of the phase."""


@dataclass(frozen=True)
class TrainingConfig:
    """The loop around the steps."""

    seed: int = 0
    precision: Literal["fp32", "bf16"] = "fp32"
    """`bf16`: matrix products in bfloat16; sums, losses and parameters stay in float32."""
    window_pairs: int = 524_288
    """Pairs shuffled at a time: the bound on the memory that data takes."""
    log_every: int = 100
    """Steps between lines of metrics."""
    evaluate_every: int = 0
    """Steps between evaluations on the dev split; 0: at the end only."""
    evaluate_pairs: int = 10_000
    """Inputs of the dev split that an evaluation during training ranks."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0: at the end only."""
    keep_checkpoints: int = 2
    exclude_leaks: bool = False
    """Drop pairs with a sentence of the evaluation sets named by `leak_sets`."""
    leak_sets: tuple[str, ...] = ("stsb-dev", "stsb-test")


@dataclass(frozen=True)
class ExportConfig:
    """What becomes the model."""

    weights: Literal["last", "best", "average"] = "last"
    """`best`: by P@1 on dev; `average`: over the evaluations of the second half."""
    dtype: Literal["float16", "float32"] = "float16"
    """Of the table; everything else is kept in float32."""


@dataclass(frozen=True)
class RunConfig:
    """A whole run."""

    name: str = "rejoinder"
    text: TextConfig = field(default_factory=TextConfig)
    encoder: DanConfig | TransformerConfig | BilstmConfig = field(default_factory=DanConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    phases: tuple[Phase, ...] = ()

    @property
    def steps(self) -> int:
        """Optimiser steps of all phases."""
        return sum(phase.steps for phase in self.phases)


def contradictions(config: RunConfig) -> list[str]:
    """What each value alone allows and all together do not: one line a fault."""
    faults = []
    if not config.phases:
        faults.append("no [[phases]]: say for how many steps to train, as [[phases]] steps = 1000")
    for number, phase in enumerate(config.phases):
        if phase.steps < 1 or phase.batch_size < 2:
            faults.append(f"phases.{number}: steps must be >= 1 and batch_size >= 2")
        if not 0 <= phase.warmup_steps <= phase.steps:
            faults.append(f"phases.{number}: warmup_steps must be within its {phase.steps} steps")
        if phase.batch_size > config.training.window_pairs:
            faults.append(f"phases.{number}: batch_size is above training.window_pairs")
    if config.head.layers and config.head.layers[-1] != config.encoder.dim:
        faults.append(
            f"head.layers ends in {config.head.layers[-1]}, the encoder in {config.encoder.dim}: "
            "u·v' needs one width"
        )
    if (config.text.kind == "subwords") != (config.encoder.kind == "transformer"):
        faults.append(
            f"encoder.kind {config.encoder.kind!r} does not read text.kind {config.text.kind!r}: "
            "a dan and a bilstm read words, a transformer subwords"
        )
    if config.encoder.kind == "bilstm" and config.text.bigram_buckets:
        faults.append(
            f"text.bigram_buckets is {config.text.bigram_buckets}; a bilstm reads words in their "
            "order and no bigrams: set it to 0"
        )
    if not 0 <= config.objective.word_dropout < 1:
        faults.append("objective.word_dropout must be in [0, 1)")
    if config.objective.scale <= 0 or config.objective.scale > config.objective.max_scale:
        faults.append("objective.scale must be above 0 and at most objective.max_scale")
    if config.export.weights != "last" and not config.training.evaluate_every:
        faults.append(f"export.weights {config.export.weights!r} needs training.evaluate_every")
    return faults
