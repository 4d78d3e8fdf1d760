"""Learning the population by expectation and maximisation (EM).

Given the population, what readings say about a series is a conditional mean and covariance; given
those of all series, the population's mean and covariance are averages. The covariance is shrunk
towards a stationary one: half is what series have in common at given dates, half what they have at
given lags. That is what many series and few readings can bear, and what carries a weekly rhythm
over dates.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from unsum.engine import count_threads
from unsum.methods.denton import Denton
from unsum.population.model import Population, average_diagonals
from unsum.readings import Readings

SHRINKAGE = 0.5
STEPS = 20
MEMORY = 0.7  # autocorrelation, from period to period, of what the smooth start leaves out
LEAST = 1e-6  # of the largest, for the mean at any period
GROUP_READINGS = 4096  # of the series that are handled together


@dataclass
class Learned:
    """The population, and the log-likelihood of the readings by step."""

    population: Population
    likelihood: list[float] = field(default_factory=list)


def learn_population(
    readings: Readings,
    *,
    shrinkage: float = SHRINKAGE,
    steps: int = STEPS,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Learned:
    """Learn from series none of which is zero throughout."""
    learned = Learned(_first_guess(readings, shrinkage))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count_threads(threads)) as pool:
        for _ in range(steps):
            population, likelihood = _step(readings, learned.population, shrinkage, pool)
            learned = Learned(population, [*learned.likelihood, likelihood])
            if progress is not None:
                progress(1)
    return learned


def _first_guess(readings: Readings, shrinkage: float) -> Population:
    """The smoothest series, and as much variance again that does not last."""
    values = np.empty((readings.n_series, readings.n_periods))
    Denton().fit(readings).fill(0, readings, values)
    level = values.mean(axis=1)
    values = values[level > 0] / level[level > 0, None]
    mean = values.mean(axis=0)
    values -= mean
    covariance = shrink(values.T @ values / len(values), shrinkage)
    variance = max(float(np.trace(covariance)) / len(mean), 1e-6)
    return Population(mean, covariance + variance * _fading(len(mean)))


def _fading(n: int) -> np.ndarray:
    from scipy.linalg import toeplitz

    return np.asarray(toeplitz(MEMORY ** np.arange(n)))


def shrink(covariance: np.ndarray, shrinkage: float) -> np.ndarray:
    """Part of the way to a stationary covariance."""
    return (1 - shrinkage) * covariance + shrinkage * average_diagonals(covariance)


def _step(
    readings: Readings, population: Population, shrinkage: float, pool: ThreadPoolExecutor
) -> tuple[Population, float]:
    from unsum.kernels.gaussian import explain_rows

    def explain(part: Readings) -> tuple[np.ndarray, np.ndarray, float]:
        """Conditional means of some series, the sum of what is explained, the likelihood."""
        values = np.empty((part.n_series, part.n_periods))
        explained = np.empty((part.n_readings, part.n_periods))
        likelihood = explain_rows(
            part.indptr, part.start, part.stop, _scaled(part, population), *population.sums,
            values, explained,
        )  # fmt: skip
        return values, explained.T @ explained, likelihood

    complete = np.diff(readings.indptr) == readings.n_periods  # known, whatever the population
    known = readings.take(np.flatnonzero(complete))
    rest = readings.take(np.flatnonzero(~complete))
    values = [_scaled(known, population).reshape(-1, readings.n_periods)]
    total, likelihood = known.n_series * population.covariance, 0.0
    for found, explained, own in pool.map(explain, _groups(rest)):
        values.append(found)
        total += explained
        likelihood += own
    means = np.concatenate(values)
    mean = means.mean(axis=0)
    means -= mean
    mean = np.maximum(mean, LEAST * mean.max())
    covariance = population.covariance + (means.T @ means - total) / len(means)
    covariance = shrink((covariance + covariance.T) / 2, shrinkage)
    return Population(mean, covariance), likelihood


def _scaled(readings: Readings, population: Population) -> np.ndarray:
    """Totals divided by the level of their series, none of which is zero."""
    scaled: np.ndarray = readings.total / np.repeat(
        population.levels(readings), np.diff(readings.indptr)
    )
    return scaled


def _groups(readings: Readings) -> list[Readings]:
    """Ranges of series with about as many readings each; they depend on the readings alone."""
    n_groups = max(1, -(-readings.n_readings // GROUP_READINGS))
    targets = np.linspace(0, readings.n_readings, n_groups + 1)
    cuts = np.unique(np.searchsorted(readings.indptr, targets)).tolist()
    return [readings[low:high] for low, high in itertools.pairwise(cuts)]
