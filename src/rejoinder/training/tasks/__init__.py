"""Objective kinds: one module each, looked up by name.

A new objective is one module with its record and one line in `OBJECTIVES`
(docs/extend/objective.md), or a call of `register_objective` from outside the package.
"""

from rejoinder.kinds.registry import Registry
from rejoinder.training.tasks.base import ObjectiveKind as ObjectiveKind

OBJECTIVES: Registry[ObjectiveKind] = Registry(
    "objective",
    {
        "responses": "rejoinder.training.tasks.responses:RESPONSES",
        "entailment": "rejoinder.training.tasks.entailment:ENTAILMENT",
        "entailment-ranking": "rejoinder.training.tasks.entailment_ranking:ENTAILMENT_RANKING",
        "paraphrase": "rejoinder.training.tasks.paraphrase:PARAPHRASE",
        "crops": "rejoinder.training.tasks.crops:CROPS",
    },
)
"""Every objective kind: its name, and where its record is. Heads are drawn in this order."""


def register_objective(kind: ObjectiveKind) -> None:
    """Adds an objective kind defined outside rejoinder.

    Raises:
        InputError: another kind has that name.
    """
    OBJECTIVES.register(kind.name, kind)
