"""What a run is: frozen dataclasses, one a table of its TOML file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rejoinder.encoders.bilstm import BilstmConfig
from rejoinder.encoders.dan import DanConfig
from rejoinder.encoders.transformer import TransformerConfig
from rejoinder.objectives.entailment import EntailmentConfig


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
    unknown_buckets: int = 0
    """Rows for words that are not kept, by a hash of their spelling; 0 leaves them out."""
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
    """Ranking over the batch."""

    scale: float = 1.0
    """What a dot product is multiplied by before the softmax, at the start."""
    learn_scale: bool = False
    max_scale: float = 100.0
    mask_duplicates: bool = False
    """Leave out of the softmax what is known to answer the same input."""
    symmetric: bool = False
    """Also pick the right input for each response."""
    word_dropout: float = 0.0
    """Share of ids left out of a sentence, at random, in training."""


@dataclass(frozen=True)
class TaskData:
    """A file of labelled sentences."""

    path: str
    """Below the folder that `--data` names."""
    premise: str = "sentence1"
    """Field of the premise; a list of premises is read as one text."""
    hypothesis: str = "sentence2"
    label: str = "gold_label"
    labels: Mapping[str, str] = field(default_factory=dict)
    """The file's labels as entailment, neutral or contradiction; "" leaves their rows out."""
    share: float = 1.0
    """Of its rows that are used, drawn at random: less than all of them shows what they bring."""


@dataclass(frozen=True)
class TaskConfig:
    """One of several tasks of a run."""

    objective: Literal["responses", "entailment", "entailment-ranking", "paraphrase"]
    share: float
    """Of the steps; the shares of a run's tasks add up to 1."""
    name: str = ""
    """Tells apart tasks of one objective, each with its own scale; empty: the objective's."""
    data: tuple[TaskData, ...] = ()
    """None for `responses`, which reads the pairs."""
    batch_size: int | None = None
    """None: the phase's."""
    word_dropout: float | None = None
    """None: the objective's."""
    power: float = 1.0
    """A file of n rows gets a part of the share that goes with n to this power."""
    hard_negatives: bool = True
    """In `entailment-ranking`, contradictions of a premise are candidates too."""
    symmetric: bool = True
    """In `entailment-ranking`, also pick the right premise for each entailed hypothesis."""

    @property
    def label(self) -> str:
        """What the task is called."""
        return self.name or self.objective


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
    rank_init: float = 0.0
    """Length that the row of the word of rank r starts with, in ln(r + e); 0: all start with 1."""
    init_from: str = ""
    """A model folder whose words, encoder and response head training starts from."""


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
    entailment: EntailmentConfig = field(default_factory=EntailmentConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    tasks: tuple[TaskConfig, ...] = ()
    """None: response selection alone."""
    phases: tuple[Phase, ...] = ()

    @property
    def mixture(self) -> tuple[TaskConfig, ...]:
        """The tasks; response selection alone where none is named."""
        return self.tasks or (TaskConfig("responses", 1.0),)

    @property
    def objectives(self) -> frozenset[str]:
        """What the tasks learn."""
        return frozenset(task.objective for task in self.mixture)

    @property
    def steps(self) -> int:
        """Optimiser steps of all phases."""
        return sum(phase.steps for phase in self.phases)
