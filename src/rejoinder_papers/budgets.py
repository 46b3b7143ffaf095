"""Budgets of a reproduction: its data, steps and points of a curve, and configs of its runs.

Sizes and tasks are as in the paper. The paper's optimiser with 40 million steps would take weeks
here, so the optimiser and learning rates are the best of `results.md` and `recipes.md` (notebook),
with buckets for unknown words and rows weighted by rank. The paper's mixture of 95 to 5 gives
inference 2 million steps; of the few hundred here it would get 10 for a point of figure 8. So
inference has half of the steps, on smaller batches, in all budgets but `full`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import InputError, nearest

ALL_CONVERSATIONS = ("conversations/*.jsonl.zst",)
NLI = ("nli/snli_1.0_train.jsonl", "nli/snli_1.0_train_subset18k.jsonl.zst")
"""Paths of SNLI's train split in the data folder: the official file, or a part of it."""


@dataclass(frozen=True)
class Budget:
    """How much work a reproduction does."""

    name: str
    dumps: tuple[str, ...]
    """Patterns of files in the data folder."""
    steps: int
    """Number of steps of the response model."""
    more_steps: int
    """Number of steps of the multitask model, which starts from the response model."""
    curve_steps: int
    """Number of steps of each point of figure 8."""
    curve: tuple[float, ...]
    """Shares of the NLI data for the points of figure 8."""
    batch_size: int
    min_count: int = 5
    minutes: float | None = None
    """Time limit for the response model. The multitask model may take half of it, and a point
    of figure 8 an eighth. None means no limit."""
    inference: float = 0.5
    """Share of inference in the steps of the multitask model and of the points of figure 8."""


_RATE_DIVISORS = {"learning_rate": 3, "table_learning_rate": 10}
"""Divisors of the response model's learning rates for the multitask model. Without them, the
classifier pulls similar words apart: STS-B dev of the DAN fell from .773 to .680, captions most."""
_INFERENCE_BATCH = 512
"""Rows in an inference batch, of the 18,000 available."""
_CURVE = tuple(tenths / 10 for tenths in range(1, 10))
BUDGETS = {
    budget.name: budget
    for budget in (
        Budget("smoke", ("conversations/reddit_other.jsonl.zst",), 12, 8, 4, (0.1, 0.9), 256, 2),
        Budget("quick", ALL_CONVERSATIONS, 250, 120, 20, (0.1, 0.3, 0.5, 0.9), 4_096, 5, 2.5),
        Budget("standard", ALL_CONVERSATIONS, 1_000, 1_200, 400, _CURVE, 4_096, 5, 40.0),
        Budget("full", ALL_CONVERSATIONS, 20_000, 10_000, 2_000, _CURVE, 4_096, inference=0.05),
    )
}


def budget_of(name: str) -> Budget:
    """Returns the budget with this name.

    Raises:
        InputError: there is no such budget.
    """
    if name not in BUDGETS:
        raise InputError(f"`budget` {name!r}: {nearest(name, BUDGETS)}.")
    return BUDGETS[name]


_ENCODERS: dict[str, dict[str, Any]] = {
    "dan": {
        "text": {"kind": "words", "max_words": 200_000, "unknown_buckets": 16_384},
        "encoder": {"kind": "dan", "width": 512, "layers": []},
        "head": {"layers": [512, 512], "residual": True},
    },
    "transformer": {
        "text": {"kind": "subwords", "max_words": 16_000, "max_tokens": 64},
        "encoder": {"kind": "transformer", "dim": 512, "dropout": 0.1},
        "head": {"layers": [512, 512], "residual": True},
    },
}
ENCODERS = tuple(_ENCODERS)


def response_config(encoder: str, budget: Budget, seed: int) -> dict[str, Any]:
    """Returns the config of the response model ("Reddit" in the paper) as plain values.

    Raises:
        InputError: there is no such encoder.
    """
    if encoder not in _ENCODERS:
        raise InputError(f"`encoder` {encoder!r}: {nearest(encoder, ENCODERS)}.")
    tree = {name: dict(table) for name, table in _ENCODERS[encoder].items()}
    tree["text"]["min_count"] = budget.min_count
    small = encoder == "transformer"
    return {
        "name": f"{encoder}-responses",
        **tree,
        "objective": {"scale": 20.0, "learn_scale": True, "mask_duplicates": True},
        "optimizer": {"dense": "adam"} if small else {"dense": "adam", "table": "adagrad"},
        "training": {
            "seed": seed,
            "precision": "auto",
            **({} if small else {"rank_init": 0.3}),
            "exclude_leaks": True,
            "log_every": 20,
            "checkpoint_every": 100,
        },
        "phases": [
            {
                "steps": budget.steps,
                "batch_size": min(budget.batch_size, 512) if small else budget.batch_size,
                "learning_rate": 0.0003 if small else 0.003,
                **({} if small else {"table_learning_rate": 0.2}),
                "warmup_steps": budget.steps // 10,
                "decay": "linear",
            }
        ],
    }


def multitask_config(
    tree: Mapping[str, Any], budget: Budget, model: str, nli: str, share: float = 1.0
) -> dict[str, Any]:
    """Returns the config of the multitask model ("Reddit+SNLI" in the paper) as plain values.

    It starts from the response model in the folder `model`, with the config `tree`, and is also
    trained on NLI: on a `share` of the rows of the file `nli`. Below 1 it is a point of figure 8.
    """
    curve = share < 1
    steps = budget.curve_steps if curve else budget.more_steps
    [phase] = tree["phases"]
    rates = {name: phase[name] / by for name, by in _RATE_DIVISORS.items() if name in phase}
    # the embedding table begins as the model's, not weighted by rank
    training = {name: value for name, value in tree["training"].items() if name != "rank_init"}
    return {
        **tree,
        "name": tree["name"].replace("responses", "multitask"),
        "training": {**training, "init_from": model},
        "tasks": [
            {"objective": "responses", "share": 1 - budget.inference},
            {
                "objective": "entailment",
                "share": budget.inference,
                "batch_size": min(_INFERENCE_BATCH, phase["batch_size"]),
                "data": [{"path": nli, "share": share}],
            },
        ],
        "phases": [{**phase, **rates, "steps": steps, "warmup_steps": steps // 10}],
    }
