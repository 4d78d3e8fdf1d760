"""Learning the population by expectation and maximisation (EM).

Given the population, what readings say about a series is a conditional mean and covariance; given
those of all series, the population's mean and covariance are averages. The covariance is shrunk
towards one that is the same after every season, or at all dates: part is what series have in common
at given dates, part what they have at given lags. That is what many series and few readings can
bear, and what carries a weekly rhythm over dates. Series that are wilder than usual count for less,
so that a few of them do not speak for all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from unsum.engine import count_threads, one_blas_thread
from unsum.indicators import Indicators
from unsum.population.dates import average_dates
from unsum.population.model import DOUBT, Population, add_up
from unsum.population.start import first_guess, guess_again
from unsum.readings import Readings
from unsum.traits import Traits

SHRINKAGE = 0.5
STEPS = 20
FIRST_STEPS = 10  # before the beginning is guessed again
MAX_KEPT = 4  # beginnings
SEASONAL = 0.8  # of the shrinkage goes towards the season, where there is one
RIDGE = 5.0  # series that say that traits do not matter
USUAL = 10  # estimated readings that stand for the usual error
LEVEL = 0.1  # variance of a level, over its square, around what the totals of a series say
LEAST = 1e-6  # of the largest, for the mean at any period
GROUP_READINGS = 4096  # of the series that are handled together

_kept: dict[bytes, Population] = {}


@dataclass
class Learned:
    """The population, and the log-likelihood of the readings by step."""

    population: Population
    likelihood: list[float] = field(default_factory=list)

    def improve(self, readings: Readings, aim: Aim, pool: ThreadPoolExecutor) -> Learned:
        """One step further."""
        population, likelihood = _step(readings, self.population, aim, pool)
        return Learned(population, [*self.likelihood, likelihood])


def learn_population(
    readings: Readings,
    *,
    shrinkage: float = SHRINKAGE,
    steps: int = STEPS,
    season: int = 1,
    indicators: Indicators | None = None,
    traits: Traits | None = None,
    doubt: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Learned:
    """Learn from series none of which is zero throughout.

    The beginning is guessed, improved by a few steps, and guessed again from the mean of that. It
    does not depend on the shrinkage, and is kept for those that are compared on the same readings.
    """
    directions = None if indicators is None else indicators.directions
    key = _digest(readings, indicators, traits, readings.n_periods, season, doubt, seed)
    start = _kept.get(key)
    with one_blas_thread(), ThreadPoolExecutor(count_threads(threads)) as pool:
        if start is None:
            guess = first_guess(readings, seed, indicators, season)
            guess = replace(guess, traits=traits, level=LEVEL)
            if doubt is not None:
                guess = replace(guess, doubt=doubt, doubt_known=True)
            learned = Learned(guess)
            for _ in range(FIRST_STEPS):
                learned = learned.improve(readings, Aim(SHRINKAGE, season, directions), pool)
            start = guess_again(readings, learned.population, seed, indicators, season)
            for oldest in list(_kept)[: len(_kept) + 1 - MAX_KEPT]:
                _kept.pop(oldest, None)
            _kept[key] = start
        learned = Learned(start)
        for _ in range(steps):
            learned = learned.improve(readings, Aim(shrinkage, season, directions), pool)
            if progress is not None:
                progress(1)
    found = learned.population
    return replace(learned, population=replace(found, wander=found.usual))


def _digest(
    readings: Readings, indicators: Indicators | None, traits: Traits | None, *settings: Any
) -> bytes:
    """What a beginning depends on."""
    arrays = [*readings.arrays, readings.active, readings.estimated]
    arrays.append(None if indicators is None else indicators.scaled)
    arrays.append(None if traits is None else traits.rows(readings.names))
    question = blake2b(repr((settings, readings.names.to_pylist())).encode())
    for array in arrays:
        question.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return question.digest()


@dataclass(frozen=True)
class Aim:
    """Where the covariance is moved to, part of the way.

    What lies in the given directions (of indicators) is kept; the rest becomes stationary, or the
    same after every season.
    """

    shrinkage: float
    season: int = 1
    directions: np.ndarray | None = None

    def shrink(self, covariance: np.ndarray) -> np.ndarray:
        target, rest = 0.0, covariance
        if self.directions is not None:
            along = self.directions.T @ covariance
            inside = along @ self.directions
            target = self.directions @ inside @ self.directions.T
            crossing = self.directions @ along
            rest = covariance - crossing - crossing.T + target
        averaged = average_dates(rest, self.season, SEASONAL)
        return (1 - self.shrinkage) * covariance + self.shrinkage * (target + averaged)


def _step(
    readings: Readings, population: Population, aim: Aim, pool: ThreadPoolExecutor
) -> tuple[Population, float]:
    complete = readings.complete()  # known, whatever the population
    known = readings.take(np.flatnonzero(complete))
    rest = readings.take(np.flatnonzero(~complete))
    parts, steps = [], np.zeros((readings.n_periods + 1,) * 2)
    for part, precision in pool.map(lambda part: _explain(part, population), _groups(rest)):
        parts.append(part)
        steps += precision  # as large as the covariance, so that few of them are kept
    told = population.covariance @ add_up(steps) @ population.covariance
    left_open = sum(float(part.weights.sum()) for part in parts) * population.covariance - told
    values = population.scale(known, population.levels(known)).reshape(-1, readings.n_periods)
    means = np.concatenate([*(part.values for part in parts), values])
    weights = np.concatenate([*(part.weights for part in parts), weigh(values, population)])
    total = weights.sum()
    mean, response = _average(means, weights, [*_groups(rest), known], population)
    mean = np.maximum(mean, LEAST * mean.max())
    covariance = (means.T @ (means * weights[:, None]) + left_open) / total
    covariance = aim.shrink((covariance + covariance.T) / 2)
    doubt = _doubt(rest, population, np.concatenate([np.empty(0), *(p.errors for p in parts)]))
    learned = replace(population, mean=mean, covariance=covariance, doubt=doubt, response=response)
    return learned, sum(part.likelihood for part in parts)


def _average(
    values: np.ndarray, weights: np.ndarray, groups: list[Readings], population: Population
) -> tuple[np.ndarray, np.ndarray | None]:
    """The mean, and the response to traits; what is left of the values stays in their place.

    The response is a regression with a ridge of a few series, so that few cannot say much.
    """
    if population.traits is None:
        mean = weights @ values / weights.sum()
        values -= mean
        return mean, None
    traits = np.concatenate([population.traits.rows(group.names) for group in groups])
    if population.response is not None:
        values += traits @ population.response
    mean = weights @ values / weights.sum()
    values -= mean
    centred = traits - weights @ traits / weights.sum()
    weighted = centred * weights[:, None]
    inner = weighted.T @ centred + RIDGE * np.eye(traits.shape[1])
    response = np.linalg.solve(inner, weighted.T @ values)
    values -= centred @ response
    middle = weights @ traits / weights.sum()
    return mean - middle @ response, response


@dataclass(frozen=True)
class _Part:
    """Some series given their readings: conditional means, and how much each counts."""

    values: np.ndarray
    weights: np.ndarray
    errors: np.ndarray
    likelihood: float


def _explain(part: Readings, population: Population) -> tuple[_Part, np.ndarray]:
    """Series given their readings, and what all of these say, as half of a precision.

    It is about how series move, whatever their level is: readings may be off by that, series are
    not.
    """
    from unsum.kernels.gaussian import explain_rows

    n = part.n_periods
    pulls, precision = np.zeros((part.n_series, n + 1)), np.zeros((n + 1, n + 1))
    weights, errors = np.empty(part.n_series), np.empty(part.n_readings)
    likelihood = explain_rows(
        part.indptr, part.start, part.stop, population.scale(part, population.levels(part)),
        population.noises(part), population.mean_sums, population.free_sums,
        population.squared_sums, usual_squares(population), pulls, precision, weights, errors,
    )  # fmt: skip
    values = population.mean + np.cumsum(pulls, axis=1)[:, :-1] @ population.covariance
    return _Part(values, weights, errors, likelihood), precision


def usual_squares(population: Population) -> float:
    """The squared distance of a series from the mean that is to be expected."""
    return max(float(np.trace(population.covariance)), 1e-300)


def weigh(values: np.ndarray, population: Population) -> np.ndarray:
    """How much each series that is known counts, as `explain_rows` has it for others."""
    squares = np.sum((values - population.mean) ** 2, axis=1)
    return np.asarray(2.0 / (1.0 + squares / usual_squares(population)))


def _doubt(readings: Readings, population: Population, errors: np.ndarray) -> float:
    """The relative error of estimated readings, with a few at the usual error beside them."""
    if readings.estimated is None or not readings.estimated.any() or population.doubt_known:
        return population.doubt
    soft = readings.estimated
    sums = population.mean_sums
    expected = np.maximum(sums[readings.stop] - sums[readings.start], 1e-12)[soft]
    squares = float(np.sum(errors[soft] / expected**2)) + USUAL * DOUBT**2
    return float(np.sqrt(squares / (int(soft.sum()) + USUAL)))


def _groups(readings: Readings) -> list[Readings]:
    """Ranges of series with about as many readings each; they depend on the readings alone."""
    n_groups = max(1, -(-readings.n_readings // GROUP_READINGS))
    targets = np.linspace(0, readings.n_readings, n_groups + 1)
    cuts = np.unique(np.searchsorted(readings.indptr, targets)).tolist()
    return [readings[low:high] for low, high in itertools.pairwise(cuts)]
