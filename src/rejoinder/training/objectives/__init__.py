"""Objective kinds: one record each, looked up by name.

A new objective is a module with its record and one line in `OBJECTIVES`
(docs/extend/objective.md), or a call of `register_objective` from outside the package.
"""

from rejoinder.registry import Registry
from rejoinder.training.objectives.base import ObjectiveKind as ObjectiveKind

OBJECTIVES: Registry[ObjectiveKind] = Registry(
    "objective",
    {
        "responses": "rejoinder.training.objectives.responses:RESPONSES",
        "entailment": "rejoinder.training.objectives.inference:ENTAILMENT_KIND",
        "entailment-ranking": "rejoinder.training.objectives.inference:RANKING_KIND",
        "paraphrase": "rejoinder.training.objectives.paraphrase:PARAPHRASE",
    },
)
"""Every objective kind: its name, and where its record is. Heads are drawn in this order."""


def register_objective(kind: ObjectiveKind) -> None:
    """Adds an objective kind defined outside rejoinder.

    Raises:
        InputError: another kind has that name.
    """
    OBJECTIVES.register(kind.name, kind)
