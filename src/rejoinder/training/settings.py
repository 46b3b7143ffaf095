"""What a run is: frozen tables, one a table of its TOML file, with the bounds of every value."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from rejoinder.encoders.settings import Activation, DanConfig, Encoder
from rejoinder.errors import nearest
from rejoinder.objectives.settings import EntailmentConfig
from rejoinder.schema.base import AsTuple, Layers, Printable, Probability, Settings, Text, tagged
from rejoinder.schema.faults import several
from rejoinder.training.contradictions import contradictions
from rejoinder.training.task_settings import ResponsesTask
from rejoinder.training.task_settings import TaskConfig as TaskConfig
from rejoinder.training.task_settings import TaskData as TaskData

_LEAK_SETS = ("stsb-dev", "stsb-test")


def _leak_set(name: str) -> str:
    if name not in _LEAK_SETS:
        from rejoinder.leaks import shipped  # for the few that name others

        known = shipped()
        if name not in known:
            raise ValueError(f'is "{name}"; {nearest(name, known)}')
    return name


_Beta = Annotated[float, Field(ge=0, lt=1)]
_Name = Annotated[str, Field(min_length=1, max_length=200), Printable]
_LeakSets = Annotated[
    tuple[Annotated[Text, AfterValidator(_leak_set)], ...],
    Field(min_length=1, max_length=1_000),
    AsTuple,
]
_Every = 1_000_000_000
_Rate = Annotated[float, Field(ge=0, le=1_000)]


class WordsConfig(Settings):
    """Strings become the ids of words, and of bigrams of neighbouring ones."""

    kind: Literal["words"] = "words"
    max_words: int = Field(
        default=200_000, ge=1, le=5_000_000, description="Words kept, the most frequent ones."
    )
    min_count: int = Field(
        default=5, ge=1, le=1_000_000_000, description="Words seen less often are not kept."
    )
    bigram_buckets: int = Field(
        default=0,
        ge=0,
        le=50_000_000,
        description="Rows for hashed bigrams of words; 0 for none.",
    )
    unknown_buckets: int = Field(
        default=0,
        ge=0,
        le=50_000_000,
        description="Rows for words that are not kept, by a hash of their spelling; 0 leaves them "
        "out.",
    )


class SubwordsConfig(Settings):
    """Strings become the ids of subwords: byte-level byte-pair encoding."""

    kind: Literal["subwords"] = "subwords"
    max_words: int = Field(
        default=200_000,
        ge=256,
        le=1_000_000,
        description="Subwords kept, the most frequent ones; the 256 bytes are among them.",
    )
    min_count: int = Field(
        default=5,
        ge=1,
        le=1_000_000_000,
        description="Pairs of subwords seen less often are not merged.",
    )
    max_tokens: int = Field(
        default=128,
        ge=1,
        le=8_192,
        description="Subwords of a sentence that are read; what is beyond is cut.",
    )


if TYPE_CHECKING:
    TextConfig = WordsConfig | SubwordsConfig
else:
    TextConfig: Any = tagged((WordsConfig, SubwordsConfig), "kind", default="words")


class HeadConfig(Settings):
    """The feed-forward network on the response side."""

    layers: Layers = Field(
        default=(500, 500),
        description="Units of its layers; the last is as wide as the embedding. Empty: no head.",
    )
    activation: Activation = Field(
        default="tanh", description="Between layers; none after the last."
    )
    residual: bool = Field(default=False, description="Add the embedding to the output.")


class ObjectiveConfig(Settings):
    """Ranking over the batch."""

    scale: float = Field(
        default=1.0,
        gt=0,
        le=10_000,
        description="What a dot product is multiplied by before the softmax, at the start.",
    )
    learn_scale: bool = Field(default=False, description="Learn the scale from there on.")
    max_scale: float = Field(
        default=100.0, gt=0, le=10_000, description="What a learned scale can't exceed."
    )
    mask_duplicates: bool = Field(
        default=False,
        description="Leave out of the softmax what is known to answer the same input.",
    )
    symmetric: bool = Field(
        default=False, description="In `responses`, also pick the right input for each response."
    )
    word_dropout: Probability = Field(
        default=0.0, description="Share of ids left out of a sentence, at random, in training."
    )

    @model_validator(mode="after")
    def _scale_is_within_its_bound(self) -> Self:
        if self.scale > self.max_scale:
            raise ValueError(
                f"scale is {self.scale:g}; allowed: up to objective.max_scale = {self.max_scale:g}"
            )
        return self


class OptimizerConfig(Settings):
    """Which rule moves the parameters: of the dense layers, and of the rows of large tables."""

    dense: Literal["sgd", "adam"] = Field(default="sgd", description="Of the dense layers.")
    table: Literal["sgd", "adagrad"] = Field(
        default="sgd",
        description="Of the rows of words and bigrams; `adagrad`: one accumulator a row (the mean "
        "square of its gradient).",
    )
    adam_betas: Annotated[tuple[_Beta, _Beta], AsTuple] = Field(
        default=(0.9, 0.99), description="Adam's decay of the gradient's mean and of its square's."
    )


class Phase(Settings):
    """A stretch of steps with one batch size and one learning rate."""

    steps: int = Field(ge=1, le=1_000_000_000_000, description="Optimiser steps, one batch each.")
    batch_size: int = Field(
        default=128,
        ge=2,
        le=1_048_576,
        description="Pairs; each has the other responses of the batch as negatives.",
    )
    learning_rate: _Rate = Field(default=0.01, description="Of the dense layers.")
    table_learning_rate: _Rate | None = Field(
        default=None, description="Of the rows of words and bigrams; absent: the learning rate."
    )
    warmup_steps: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000_000,
        description="Steps of linear rise from 0, of those of the phase.",
    )
    decay: Literal["none", "linear"] = Field(
        default="none", description="`linear`: down to 0 at the end of the phase."
    )


class TrainingConfig(Settings):
    """The loop around the steps."""

    seed: int = Field(
        default=0,
        ge=0,
        le=4_294_967_295,
        description="What all draws follow from: weights, order, dropout.",
    )
    precision: Literal["fp32", "bf16"] = Field(
        default="fp32",
        description="`bf16`: matrix products in bfloat16; sums, losses and parameters stay in "
        "float32.",
    )
    window_pairs: int = Field(
        default=524_288,
        ge=2,
        le=1_000_000_000,
        description="Pairs shuffled at a time: the bound on the memory that data takes.",
    )
    log_every: int = Field(
        default=100, ge=1, le=_Every, description="Steps between lines of metrics."
    )
    evaluate_every: int = Field(
        default=0,
        ge=0,
        le=_Every,
        description="Steps between evaluations on the dev split; 0: at the end only.",
    )
    evaluate_pairs: int = Field(
        default=10_000,
        ge=1,
        le=_Every,
        description="Inputs of the dev split that an evaluation during training ranks.",
    )
    checkpoint_every: int = Field(
        default=0, ge=0, le=_Every, description="Steps between checkpoints; 0: at the end only."
    )
    keep_checkpoints: int = Field(
        default=2, ge=1, le=1_000_000, description="Checkpoints kept, the latest ones."
    )
    exclude_leaks: bool = Field(
        default=False,
        description="Drop pairs with a sentence of the evaluation sets named by `leak_sets`.",
    )
    leak_sets: _LeakSets = Field(
        default=_LEAK_SETS,
        description="Names of evaluation sets whose sentences' hashes are shipped.",
    )
    rank_init: float = Field(
        default=0.0,
        ge=0,
        le=1_000,
        description="Length that the row of the word of rank r starts with, in ln(r + e); 0: all "
        "start with 1.",
    )
    init_from: Text = Field(
        default="",
        description="A model folder whose words, encoder and response head training starts from.",
    )


class ExportConfig(Settings):
    """What becomes the model."""

    weights: Literal["last", "best", "average"] = Field(
        default="last",
        description="`best`: by P@1 on dev; `average`: over the evaluations of the second half.",
    )
    dtype: Literal["float16", "float32"] = Field(
        default="float16", description="Of the table; everything else is kept in float32."
    )


class RunConfig(Settings):
    """A whole run."""

    name: _Name = Field(default="rejoinder", description="What the model is called.")
    text: TextConfig = Field(default_factory=WordsConfig)
    encoder: Encoder = Field(default_factory=DanConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    objective: ObjectiveConfig = Field(default_factory=ObjectiveConfig)
    entailment: EntailmentConfig = Field(default_factory=EntailmentConfig)
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    export: ExportConfig = Field(default_factory=ExportConfig)
    tasks: Annotated[tuple[TaskConfig, ...], Field(max_length=1_000), AsTuple] = ()
    """None: response selection alone."""
    phases: Annotated[tuple[Phase, ...], Field(max_length=1_000), AsTuple] = ()
    """At least one."""

    @model_validator(mode="after")
    def _contradicts_itself_nowhere(self, info: ValidationInfo) -> Self:
        lines = contradictions(self, (info.context or {}).get("faulty", frozenset()))
        if lines:
            raise several(lines)
        return self

    @property
    def mixture(self) -> tuple[TaskConfig, ...]:
        """The tasks; response selection alone where none is named."""
        return self.tasks or (ResponsesTask(objective="responses", share=1.0),)

    @property
    def objectives(self) -> frozenset[str]:
        """What the tasks learn."""
        return frozenset(task.objective for task in self.mixture)

    @property
    def steps(self) -> int:
        """Optimiser steps of all phases."""
        return sum(phase.steps for phase in self.phases)
