"""Records of suggested replies, and of how far they can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.inference.suggestions import Confidence, Outcome, outcome
from rejoinder.measures import Floats

_LEVELS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class Suggestion:
    """A reply to a message."""

    reply: str
    confidence: float | None
    """The chance, from 0 to 1, that it says nearly the same as the true reply would; None if no
    past replies were there to fit it on."""
    score: float
    """What suggestions are ordered by (`inference.suggestions`)."""
    alike: int
    """How many replies to similar messages say nearly the same, this one included."""
    answered: str | None
    """The past message that it answered; None for an answer of a file."""
    similarity: float | None
    """Cosine of the message and that past message."""
    id: str
    """That of the reply."""
    about: Mapping[str, Any]
    """What is known about the reply, such as its `author`."""

    def to_dict(self) -> dict[str, Any]:
        """Returns a row of plain values; what is known about the reply has its own columns."""
        own = {name: value for name, value in vars(self).items() if name != "about"}
        return {**own, **self.about}


@dataclass(frozen=True)
class Suggested:
    """The replies that are suggested to a message."""

    message: str
    suggestions: list[Suggestion]
    """The best first."""
    threshold: float | None
    """The least confidence of a good answer; None if confidences could not be fitted."""
    is_good: bool | None
    """Whether the best suggestion has that confidence; None if there are no confidences."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns a row for each suggestion, such as pandas and Polars take."""
        return [
            {"message": self.message, "rank": rank, "is_good": self.is_good, **one.to_dict()}
            for rank, one in enumerate(self.suggestions, 1)
        ]


@dataclass(frozen=True)
class Fitted:
    """What confidences are worth: they were fitted on held-out threads, and tried on others."""

    confidence: Confidence
    """Tells them by scores."""
    fitted_on: int
    """Number of messages that they were fitted on."""
    threshold: float
    """The least confidence of a good answer."""
    outcome: Outcome
    """What good answers were worth on the other threads."""
    same_words: int
    """Of the `outcome.right`, those that say it in the same words."""
    at: Mapping[float, Outcome]
    """What suggestions of at least other confidences were worth on them."""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values."""
        told = self.outcome
        return {
            "fitted_on": self.fitted_on,
            "tried_on": told.messages,
            "threshold": self.threshold,
            "coverage": told.coverage,
            "precision": told.precision,
            "same_words": self.same_words / told.answered if told.answered else None,
            "at": [
                {"threshold": least, "coverage": one.coverage, "precision": one.precision}
                for least, one in self.at.items()
            ],
        }


@dataclass(frozen=True)
class Tried:
    """Confidences that were fitted on held-out threads, and how they did on N other messages."""

    confidence: Confidence
    fitted_on: int
    """Number of messages that they were fitted on."""
    chances: Floats
    """(N,) float64, the confidences of the best suggestions to the other messages."""
    right: NDArray[np.bool_]
    """(N,) bool: whether those say nearly the same as a true reply."""
    same_words: NDArray[np.bool_]
    """(N,) bool: whether they also say it in the same words."""

    def fitted(self, threshold: float) -> Fitted:
        """Returns what suggestions of at least a confidence are worth."""
        return Fitted(
            self.confidence, self.fitted_on, threshold,
            outcome(self.chances, self.right, threshold),
            int((self.same_words & (self.chances >= threshold)).sum()),
            {level: outcome(self.chances, self.right, level) for level in _LEVELS},
        )  # fmt: skip
