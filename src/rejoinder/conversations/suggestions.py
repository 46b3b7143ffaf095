"""Ranks the replies to similar past messages by how many of them say the same.

The reply to the nearest past message is often one of many given to such messages. So the replies
to the `NEIGHBOURS` nearest messages vote. Each has a weight, exp(SIMILARITY * nearness), where
nearness is the mean of two cosines: with its message, and with the centre of all messages that got
nearly the same reply. A reply's share is the weight of all replies that say nearly the same, itself
included, divided by the weight of all and of as many with a nearness of `FLOOR`, so that unfamiliar
messages get low shares. Its score is share * sqrt(number of equal replies). Replies that say nearly
the same are one suggestion. As templates may be nearly the same, it shows the reply with the
greatest product of its score and the weight of its equals.

Constants were chosen on dev threads of four corpora and on help-desk templates. Adding BM25 of the
messages, or the response score of the reply, did not improve results (notebook/explore.md).

Also defines the records of suggested replies and of their measured reliability.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures import Floats, Indices
from rejoinder.protocols import Embeddings

NEIGHBOURS = 200
SIMILARITY, FLOOR = 20.0, 0.5
SAME = 0.8
"""Least cosine of two replies, without names and numbers, that say nearly the same."""
EQUAL = 0.9
"""The same for two replies made from one template."""
_NAME = re.compile(
    r"(?<=[\w,;:] )(?!I\b)[A-ZÀ-ÖØ-ÞΆ-ΫЀ-Я][\w'’.-]*+(?:\S*?\d\S*)?|(?<!\S)\S*?\d\S*"
)
"""Matches capitalised words within a sentence, which are names in most languages but German; and
numbers."""
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"\w+")
_DENIES = re.compile(
    r"\b(?:no|not|nope|never|none|nothing|cannot|unfortunately|sorry|\w+n['’]t)\b", re.IGNORECASE
)
_LEAST_WORDS = 2
_STEPS = 25
_RIDGE = 1.0
_TINY = 1e-9


def without_names(text: str) -> str:
    """Returns a text without names and numbers, unless fewer than two words would be left.

    >>> without_names("Yes, your table at Blue Gingko is booked for 7 pm.")
    'Yes, your table at   is booked for  pm.'
    """
    if text[1:].islower() and not _DIGIT.search(text):
        return text
    left = _NAME.sub("", text)
    return left if len(_WORD.findall(left)) >= _LEAST_WORDS else text


def denies(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Returns (N,) bool: which English texts deny something or refuse it.

    Embeddings of a sentence and of its negation are close.

    >>> denies(["Yes, please.", "No, thanks.", "I don't know."]).tolist()
    [False, True, True]
    """
    return np.fromiter((bool(_DENIES.search(text)) for text in texts), np.bool_, len(texts))


@dataclass(frozen=True)
class Replies:
    """N replies in the form in which they are compared."""

    rows: Embeddings
    """(N, D) float32, unit rows of the replies without names and numbers."""
    denies: NDArray[np.bool_]
    """(N,) bool, see `denies`."""

    def at(self, places: Indices) -> "Replies":
        """Returns the replies at some positions."""
        return Replies(self.rows[places], self.denies[places])

    def alike(self, others: "Replies") -> Embeddings:
        """Returns (N, M) float32: cosines with `others`; -1 where only one of the two denies.

        A reply is like itself, even if it has no known word.
        """
        cosines = np.where(self.denies[:, None] == others.denies, self.rows @ others.rows.T, -1)
        if others is self:
            np.fill_diagonal(cosines, 1)
        return np.asarray(cosines, np.float32)

    def same(self, others: "Replies") -> NDArray[np.bool_]:
        """Returns (N, M) bool: which of `others` say nearly the same as each of these."""
        return self.alike(others) >= SAME


@dataclass(frozen=True)
class Voted:
    """C candidates with their scores."""

    scores: Floats
    """(C,) float64, 0 and more."""
    ties: Floats
    """(C,) float64: of equal scores, the candidate with the higher number here comes first."""
    alike: Indices
    """(C,) int64: how many replies to similar messages say nearly the same."""
    same: NDArray[np.bool_]
    """(C, C) bool: which candidates say nearly the same."""
    equals: Floats
    """(C,) float64: the weight of the replies that say the same as each candidate."""

    def folded(self, top_k: int) -> list[Indices]:
        """Returns the `top_k` best suggestions: candidates that say the same, by index, best first.

        Each begins with the highest-scoring candidate that is not in an earlier suggestion.
        """
        order = np.lexsort((-self.ties, -self.scores))
        left = np.ones(len(order), np.bool_)
        found: list[Indices] = []
        for place in order.tolist():
            if len(found) == top_k:
                break
            if left[place]:
                left[place] = False
                others = order[(self.same[place] & left)[order]]
                found.append(np.concatenate([[place], others]))
                left[others] = False
        return found

    def shown(self, group: Indices) -> int:
        """Returns the candidate that stands for those that say the same."""
        return int(group[(self.scores * self.equals)[group].argmax()])


def nearness(query: Embeddings, asked: Embeddings, same: NDArray[np.bool_]) -> Floats:
    """Returns how near a message is to K past ones, and to others with the same replies.

    Args:
        query: (D,) float32, the message.
        asked: (K, D) float32, unit or zero rows of the past messages.
        same: (K, K) bool, see `Replies.same`.

    Returns:
        (K,) float64, means of two cosines.
    """
    middles = same.astype(np.float32) @ asked
    lengths = np.linalg.norm(middles, axis=1)
    both = asked @ query + middles @ query / np.maximum(lengths, _TINY)
    return np.asarray(both / 2, np.float64)


def weights_of(near: Floats) -> Floats:
    """Returns the weights of K replies, by their (K,) `nearness`; their sum is below 1."""
    weights = np.exp(SIMILARITY * (near - FLOOR))
    return np.asarray(weights / (weights.sum() + len(weights)))


def vote(alike: Embeddings, weights: Floats, ties: Floats, same: NDArray[np.bool_]) -> Voted:
    """Returns the scores of C candidates, by how many replies to similar messages say the same.

    Args:
        alike: (C, K) float32, see `Replies.alike`.
        weights: (K,) float64, see `weights_of`.
        ties: (C,) float64, see `Voted`.
        same: (C, C) bool, see `Voted`.
    """
    votes = alike >= SAME
    count, equals = votes.sum(axis=1), (alike >= EQUAL) @ weights
    return Voted(votes @ weights * np.sqrt(count), ties, count, same, equals)


def by_response(answers: Replies, fits: Floats) -> Voted:
    """Returns scores of answers if no past reply is known: their (C,) response scores."""
    none = np.zeros(len(fits), np.int64)
    return Voted(np.maximum(fits, 0.0), fits, none, answers.same(answers), fits)


@dataclass(frozen=True)
class Confidence:
    """The chance that a suggestion is right: 1 / (1 + exp(-slope * log(score) - intercept))."""

    slope: float
    intercept: float

    def __call__(self, scores: Floats) -> Floats:
        """Returns (N,) float64 from 0 to 1."""
        logits = self.slope * np.log(np.maximum(scores, _TINY)) + self.intercept
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -50, 50))))


def fit_confidence(scores: Floats, right: NDArray[np.bool_]) -> Confidence:
    """Fits a logistic regression of `right`, (N,) bool, on the logarithms of (N,) scores.

    The slope is pulled a little towards 1, and is never negative.

    >>> right = np.array([False, False, True, True])
    >>> confidence = fit_confidence(np.array([.1, .2, .4, .8]), right)
    >>> confidence(np.array([.1, .8])).round(2).tolist()
    [0.16, 0.84]
    """
    x = np.column_stack([np.log(np.maximum(scores, _TINY)), np.ones(len(scores))])
    beta, pull = np.array([1.0, 0.0]), np.array([_RIDGE, 1e-3])
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-np.clip(x @ beta, -50, 50)))
        gradient = x.T @ (right - chances) - pull * (beta - [1.0, 0.0])
        curve = (x * (chances * (1 - chances))[:, None]).T @ x + np.diag(pull)
        beta = beta + np.linalg.solve(curve, gradient)
    return Confidence(max(float(beta[0]), 0.0), float(beta[1]))


@dataclass(frozen=True)
class Outcome:
    """Results of suggestions from some confidence on, for held-out messages."""

    messages: int
    """Number of messages."""
    answered: int
    """Number of messages with a suggestion."""
    right: int
    """Number of these whose first suggestion says nearly the same as the true reply."""

    @property
    def coverage(self) -> float:
        """The share of messages with a suggestion."""
        return self.answered / self.messages if self.messages else 0.0

    @property
    def precision(self) -> float | None:
        """The share of suggestions that are right; None if there are none."""
        return self.right / self.answered if self.answered else None


def outcome(confidences: Floats, right: NDArray[np.bool_], least: float) -> Outcome:
    """Returns the results of suggestions with at least some confidence.

    >>> outcome(np.array([.9, .5, .2]), np.array([True, False, False]), .5)
    Outcome(messages=3, answered=2, right=1)
    """
    given = confidences >= least
    return Outcome(len(given), int(given.sum()), int(right[given].sum()))


_LEVELS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class Suggestion:
    """A reply to a message."""

    reply: str
    confidence: float | None
    """The chance, from 0 to 1, that it says nearly the same as the true reply would; None if
    there were no past replies to fit it on."""
    score: float
    """The score by which suggestions are ordered (see above)."""
    alike: int
    """How many replies to similar messages say nearly the same, this one included."""
    answered: str | None
    """The past message that it answered; None for an answer from a file."""
    similarity: float | None
    """Cosine of the message and that past message."""
    id: str
    """Id of the reply."""
    about: Mapping[str, Any]
    """What is known about the reply, such as its `author`."""

    def to_dict(self) -> dict[str, Any]:
        """Returns a row of plain values; each known fact about the reply has its own column."""
        own = {name: value for name, value in vars(self).items() if name != "about"}
        return {**own, **self.about}


@dataclass(frozen=True)
class Suggested:
    """The suggested replies to a message."""

    message: str
    suggestions: list[Suggestion]
    """The best first."""
    threshold: float | None
    """The least confidence of a good answer; None if confidences could not be fitted."""
    is_good: bool | None
    """Whether the best suggestion reaches that confidence; None if there are no confidences."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns a row for each suggestion, ready for pandas or Polars."""
        return [
            {"message": self.message, "rank": rank, "is_good": self.is_good, **one.to_dict()}
            for rank, one in enumerate(self.suggestions, 1)
        ]


@dataclass(frozen=True)
class Fitted:
    """How reliable confidences are: fitted on held-out threads, and tested on others."""

    confidence: Confidence
    """Computes confidences from scores."""
    fitted_on: int
    """Number of messages they were fitted on."""
    threshold: float
    """The least confidence of a good answer."""
    outcome: Outcome
    """Results of good answers on the other threads."""
    same_words: int
    """Number of `outcome.right` that use the same words."""
    at: Mapping[float, Outcome]
    """Results of suggestions on them from other confidences on."""

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
    """Confidences fitted on held-out threads, and their results on N other messages."""

    confidence: Confidence
    fitted_on: int
    """Number of messages they were fitted on."""
    chances: Floats
    """(N,) float64, the confidences of the best suggestions to the other messages."""
    right: NDArray[np.bool_]
    """(N,) bool: whether the suggestions say nearly the same as a true reply."""
    same_words: NDArray[np.bool_]
    """(N,) bool: whether they also say it in the same words."""

    def fitted(self, threshold: float) -> Fitted:
        """Returns the results of suggestions of at least a confidence."""
        return Fitted(
            self.confidence, self.fitted_on, threshold,
            outcome(self.chances, self.right, threshold),
            int((self.same_words & (self.chances >= threshold)).sum()),
            {level: outcome(self.chances, self.right, level) for level in _LEVELS},
        )  # fmt: skip
