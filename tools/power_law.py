"""Power laws with an offset, which scores follow as data grow: fitted, and extrapolated."""

from dataclasses import dataclass

import numpy as np

from rejoinder.measures import Floats, ScoringError, checked

_EXPONENTS = np.geomspace(0.001, 2, 1_000)
"""The exponents that are tried. For each, limit and gain follow by least squares: this finds the
best law wherever it lies, which a descent from one starting point does not."""
_HIGHEST = 1.0
"""Largest limit: correlations and precisions end there."""


@dataclass(frozen=True)
class PowerLaw:
    """The law score(n) = limit - gain * (n / base) ** -exponent."""

    limit: float
    """The score of endless data, at most 1."""
    gain: float
    """What is missing to the limit at `base`, from 0 on."""
    exponent: float
    """From 0.001 to 2: when the data double, what is missing shrinks to 2 ** -exponent of it."""
    base: float
    """Size in whose units the law is fitted: the geometric mean of the sizes."""

    def __call__(self, sizes: Floats) -> Floats:
        """Returns the (N,) scores at (N,) sizes above 0."""
        scores: Floats = self.limit - self.gain * (sizes / self.base) ** -self.exponent
        return scores


@dataclass(frozen=True)
class Extrapolation:
    """What a power law says about sizes beyond those that were measured."""

    law: PowerLaw
    scores: Floats
    """(K,) scores of the law."""
    low: Floats
    """(K,) lower ends of the interval."""
    high: Floats
    """(K,) upper ends."""


def fit_power_law(sizes: Floats, scores: Floats) -> PowerLaw:
    """Returns the law with the least squared error over (N,) points; sizes may repeat.

    >>> law = fit_power_law(np.array([1e5, 1e6, 1e7]), np.array([0.4, 0.6, 0.7]))
    >>> round(law.limit, 2), round(law.exponent, 2)  # ten times the data halve what is missing
    (0.8, 0.3)

    Raises:
        ScoringError: a number is not finite, a size is not above 0, a score is not from -1 to 1, or
            there are fewer than three different sizes.
    """
    sizes, scores = _points(sizes, scores)
    [law] = _fit(sizes, scores[None])
    return law


def extrapolate(
    sizes: Floats,
    scores: Floats,
    at: Floats,
    *,
    level: float = 0.9,
    draws: int = 1_000,
    seed: int = 0,
) -> Extrapolation:
    """Returns the scores of the fitted law at (K,) sizes `at`, with a bootstrap interval.

    The residuals of the points are drawn again with replacement and added to the law, to which
    another law is fitted; the ends are quantiles of what these laws say. Residuals are enlarged by
    sqrt(N / (N - 3)), as three parameters were fitted to them. So the interval holds the spread
    between seeds and what the form of the law leaves over at the sizes measured. It can't hold how
    wrong that form may be beyond them.

    Args:
        sizes: (N,) sizes of the data, above 0.
        scores: (N,) scores, from -1 to 1.
        at: (K,) sizes to extrapolate to, above 0.
        level: share of the laws within the interval.
        draws: number of laws.
        seed: seed of the draws.

    Raises:
        ScoringError: see `fit_power_law`; or there are fewer than four points, which a law of three
            parameters meets exactly: they tell nothing about its error.
    """
    sizes, scores = _points(sizes, scores)
    if len(sizes) < 4:
        raise ScoringError(
            f"{len(sizes)} points leave no error to make an interval of; at least 4 are needed, "
            "such as two seeds of each size."
        )
    [law] = _fit(sizes, scores[None])
    met = law(sizes)
    residuals = (scores - met) * np.sqrt(len(sizes) / (len(sizes) - 3))
    generator = np.random.default_rng(seed)
    drawn = met + generator.choice(residuals, (draws, len(sizes)))
    found = np.array([other(at) for other in _fit(sizes, np.clip(drawn, -1, 1))])
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Extrapolation(law, law(at), low, high)


def _points(sizes: Floats, scores: Floats) -> tuple[Floats, Floats]:
    sizes, scores = checked(sizes), checked(scores)
    if (sizes <= 0).any() or (np.abs(scores) > 1).any():
        raise ScoringError("a power law needs sizes above 0 and scores from -1 to 1.")
    different = len(np.unique(sizes))
    if different < 3:
        raise ScoringError(
            f"a power law with an offset has three parameters and needs three different sizes; "
            f"got {different}."
        )
    return sizes, scores


def _fit(sizes: Floats, scores: Floats) -> list[PowerLaw]:
    """Returns a law for each row of (D, N) scores, of at most 1, at (N,) sizes."""
    base = float(np.exp(np.log(sizes).mean()))
    smallest = np.full(len(scores), np.inf)
    best = np.empty((len(scores), 3))
    mean = scores.mean(axis=1)
    for exponent in _EXPONENTS:
        powers = (sizes / base) ** -exponent
        spread = powers - powers.mean()
        gain = np.maximum(-(scores @ spread) / (spread @ spread), 0)
        limit = mean + gain * powers.mean()
        beyond = limit > _HIGHEST
        gain = np.where(beyond, (_HIGHEST - scores) @ powers / (powers @ powers), gain)
        limit = np.minimum(limit, _HIGHEST)
        error = ((scores - limit[:, None] + gain[:, None] * powers) ** 2).sum(axis=1)
        better = error < smallest
        smallest[better] = error[better]
        found = np.stack([limit, gain, np.full_like(gain, exponent)], axis=1)
        best[better] = found[better]
    return [PowerLaw(limit, gain, exponent, base) for limit, gain, exponent in best.tolist()]
