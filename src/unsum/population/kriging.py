"""The mean of a population given readings, and what they leave open about it.

The mean is taken as a stationary curve around a centre. Its covariance is a sum of simple ones with
weights that make the readings of all series together most likely. Where dates differ from series to
series, the mean is seen at every period, though no series is: so that is a good guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.population.dates import average_diagonals
from unsum.population.lags import memory_lengths, raise_weights, rhythms, simple_covariances
from unsum.population.model import Population, add_up
from unsum.readings import Readings

STEPS = 12  # few, as one curve is all that is seen
USUAL = 16.0  # readings that say that a series is as wild as others
MAX_SEEN = 700  # periods that say how the mean moves; it is taken as known at others
SUREST = 1e9  # the variance of the mean over its error, at most, so that systems stay solvable


@dataclass(frozen=True)
class Kriged:
    """A mean, its covariance given readings, and what its movement around its centre is made of.

    `weights` are those of the simple covariances, then of rhythms where there is a season.
    """

    mean: np.ndarray
    covariance: np.ndarray
    weights: np.ndarray

    def movement(self) -> np.ndarray:
        """The covariance by lag of the curve itself, with a variance of one."""
        curve = self.mean - self.mean.mean()
        row = average_diagonals(np.outer(curve, curve) + self.covariance)[0]
        return np.asarray(row / max(float(row[0]), 1e-300))


def krige_mean(
    sample: Readings,
    population: Population,
    season: int,
    centre: np.ndarray | None = None,
    rhythm: float = 0.0,
) -> Kriged:
    """The mean of a population from readings; the centre is flat if it is not told.

    `rhythm` is the deviation, over the mean, that rhythms begin with at least: it stays as far as
    readings do not tell.
    """
    from scipy.linalg import toeplitz

    precision, pull = _say_of_mean(sample, population)
    n = population.n_periods
    if centre is None:
        centre = np.full(n, float(population.mean.mean()))
    away = population.mean - centre
    variance = max(float(np.mean(away**2)), 1e-12)
    surest = SUREST / (variance * max(float(np.max(np.diag(precision))), 1e-300))
    precision, pull = min(surest, 1.0) * precision, min(surest, 1.0) * pull
    rows = simple_covariances(n)
    plain = len(rows)
    if 1 < season <= memory_lengths(n)[-1]:
        rows = np.vstack([rows, rhythms(n, season)])
    weights = np.full(len(rows), variance / len(rows))
    least = (rhythm * float(population.mean.mean())) ** 2 / max(len(rows) - plain, 1)
    weights[plain:] = np.maximum(weights[plain:], least)
    first = max(0, (n - MAX_SEEN) // 2)
    seen = slice(first, first + MAX_SEEN)
    within = precision[seen, seen]
    weights = _likely_weights(
        within, pull[seen] + within @ away[seen], rows[:, : len(within)], weights
    )
    prior = toeplitz(weights @ rows)
    covariance = np.linalg.solve(np.eye(n) + prior @ precision, prior)
    covariance = (covariance + covariance.T) / 2
    return Kriged(centre + covariance @ (pull + precision @ away), covariance, weights)


def _say_of_mean(sample: Readings, population: Population) -> tuple[np.ndarray, np.ndarray]:
    """The precision with which readings tell the mean, and what pulls on it, by period.

    Series differ in how wild they are, and wild ones say less.
    """
    from unsum.kernels.gaussian import inform_mean

    n = population.n_periods
    complete = sample.complete()
    rest = sample.take(np.flatnonzero(~complete))
    steps, pulls = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    inform_mean(
        rest.indptr, rest.start, rest.stop, population.scale(rest, population.levels(rest)),
        population.noises(rest), population.mean_sums, population.both_sums, USUAL, steps, pulls,
    )  # fmt: skip
    precision = add_up(steps)
    pull = np.cumsum(pulls)[:n]
    if complete.any():  # each as good as a draw from the population
        known = sample.take(np.flatnonzero(complete))
        scaled = population.scale(known, population.levels(known))
        inverse = np.linalg.inv(population.covariance + population.noise * np.eye(n))
        gaps = scaled.reshape(-1, n) - population.mean
        drawn = gaps @ inverse
        weights = (USUAL + n) / (USUAL + np.sum(gaps * drawn, axis=1))
        precision = precision + weights.sum() * inverse
        pull = pull + weights @ drawn
    return precision, pull


def _likely_weights(
    precision: np.ndarray, pull: np.ndarray, rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """How much of each covariance by lag there is in the movement of the mean around its centre.

    Multiplicative steps that raise the likelihood of what pulls.
    """
    from scipy.linalg import toeplitz

    n = len(pull)
    periods = np.arange(n)
    lags = np.abs(np.subtract.outer(periods, periods)).ravel()
    for _ in range(STEPS):
        left = np.linalg.inv(np.eye(n) + precision @ toeplitz(weights @ rows))
        curve = left @ pull
        fitted = 2 * np.correlate(curve, curve, "full")[n - 1 :]
        fitted[0] /= 2
        expected = np.bincount(lags, (left @ precision).ravel(), n)
        weights = raise_weights(weights, rows @ fitted, rows @ expected)
    return weights
