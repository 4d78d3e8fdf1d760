"""What further measures tell about series: totals of groups, registers, readings that interleave.

Series are `level (mean + e)` with e from the population, and the mean itself is somewhat open.
Given the readings of each series, the gaps between measures and what is recovered say how to shift
the mean of each series before its readings are met: by a curve that all share, and by one for each
set that it belongs to, times its level. That is the conditional mean given everything together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unsum.measures import Measures
from unsum.population.learn import USUAL
from unsum.population.model import DOUBT
from unsum.population.solving import SetSolver
from unsum.population.uncertainty import Asked, Doubtful
from unsum.readings import Readings

TRUST = 10.0  # readings that say that a series is as wild as others
NOISE = 1e-4  # of its variance: what a measure that binds may miss here; values meet it later
LOSSES = 0.05  # of its totals, for a group, as they usually are
DOUBTS = np.geomspace(0.01, 3.0, 60)  # that are tried
PRECISION, MOST_PRODUCTS = 1e-11, 300  # of conjugate gradients


@dataclass(frozen=True)
class Informed:
    """How the means of series are shifted: by `shared`, and by the curves of their sets."""

    shared: np.ndarray
    curves: np.ndarray  # (n_sets, n_periods)
    size: np.ndarray  # what the curves are multiplied with, for each series
    measures: Measures
    doubt: float  # the relative error of estimates among the measures

    def shifts(self, first: int, n_series: int) -> np.ndarray:
        """The shifts of series from `first` on, in units of their levels."""
        own = slice(first, first + n_series)
        curves = self.measures.members[:, own].T @ self.curves
        return np.asarray(self.shared + self.size[own, None] * curves)


def inform(
    readings: Readings,
    measures: Measures,
    doubtful: Doubtful,
    levels: np.ndarray,
    values: np.ndarray,
) -> Informed:
    """What measures add to values that were recovered from the readings alone."""
    from scipy.sparse.linalg import LinearOperator, cg

    unit = max(float(levels.max()), np.finfo(float).tiny)
    given = _Given(readings, doubtful, levels / unit)
    found = measures.forward(values) / unit
    doubt = _learn_doubt(readings, measures, doubtful, levels, found * unit)
    variance = _square(measures, given.size) * given.usual
    variance = np.maximum(variance, max(1e-12 * variance.max(), 1e-300))
    noise = np.where(measures.estimated, (doubt * found) ** 2, NOISE * variance)

    losses = _losses(measures, found)

    def product(prices: np.ndarray) -> np.ndarray:
        shared, curves = given.respond(measures, prices)
        moved = measures.forward(given.move(measures, shared, curves))
        return np.asarray(moved + noise * prices + losses.T @ (losses @ prices))

    n = len(measures)
    solver = SetSolver(
        readings, measures, doubtful.population, doubtful.covariance_of_mean, given.level,
        given.size, noise, losses, variance + noise,
    )  # fmt: skip
    prices, _ = cg(
        LinearOperator((n, n), product, dtype=float), measures.total / unit - found,
        rtol=PRECISION, atol=0.0, maxiter=MOST_PRODUCTS,
        M=LinearOperator((n, n), solver.solve, dtype=float),
    )  # fmt: skip
    shared, curves = given.respond(measures, prices)
    return Informed(shared, curves, given.level * given.spread, measures, doubt)


class _Given:
    """All series given their readings: how they move with prices on measures."""

    def __init__(self, readings: Readings, doubtful: Doubtful, level: np.ndarray) -> None:
        population = doubtful.population
        self.readings, self.population = readings, population
        self.covariance_of_mean, self.level = doubtful.covariance_of_mean, level
        self.noises = population.noises(readings)
        self.series = readings.series_of_readings()
        self.usual = max(float(np.trace(population.covariance)) / population.n_periods, 1e-12)
        sums = population.mean_sums[readings.stop] - population.mean_sums[readings.start]
        beyond = population.scale(readings, population.levels(readings)) - sums
        surprise = np.bincount(self.series, beyond * self._solve(beyond), readings.n_series)
        self.spread = (TRUST + surprise) / (TRUST + np.diff(readings.indptr))
        self.size = level**2 * self.spread

    def respond(self, measures: Measures, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shared curve and those of sets that prices on measures make."""
        spent = measures.prices(prices)
        curves = spent @ self.population.covariance
        answer = self.level[self.series] * self._solve(self._sum(measures.members.T @ curves))
        n = self.readings.n_periods + 1
        steps = np.bincount(self.readings.start, answer, n)
        steps -= np.bincount(self.readings.stop, answer, n)
        pull = (measures.members @ self.level) @ spent - np.cumsum(steps)[:-1]
        return self.covariance_of_mean @ pull, curves

    def move(self, measures: Measures, shared: np.ndarray, curves: np.ndarray) -> np.ndarray:
        """How values move when means are shifted and readings are still met."""
        from unsum.kernels.gaussian import condition_rows

        readings, population = self.readings, self.population
        shifts = (self.level * self.spread)[:, None] * (measures.members.T @ curves) + shared
        moves = np.empty(shifts.shape)
        nothing = np.zeros(population.n_periods + 1)
        condition_rows(
            readings.indptr, readings.start, readings.stop, -self._sum(shifts), self.noises,
            nothing[:-1], nothing, population.row_sums, population.both_sums, moves,
        )  # fmt: skip
        return np.asarray(self.level[:, None] * (moves + shifts))

    def _sum(self, values: np.ndarray) -> np.ndarray:
        from unsum.kernels.totals import sum_readings

        readings = self.readings
        found: np.ndarray = sum_readings(readings.indptr, readings.start, readings.stop, values)
        return found

    def _solve(self, sums: np.ndarray) -> np.ndarray:
        """The inverse of the covariance of each series' readings, times sums over them."""
        from unsum.kernels.gaussian import solve_rows

        readings, solution = self.readings, np.empty(len(sums))
        solve_rows(
            readings.indptr, readings.start, readings.stop, sums, self.noises,
            self.population.both_sums, solution,
        )  # fmt: skip
        return solution


def _losses(measures: Measures, found: np.ndarray) -> Any:
    """How losses of each group would show in its totals (n_sets, n_measures), as they usually are.

    Readings of single series come first: where these fix the level of a group, what its totals have
    beyond is losses, not load.
    """
    from scipy.sparse import csr_array

    shared = np.flatnonzero(np.diff(measures.set_ptr)[measures.piece_set] > 1)
    where = (measures.piece_set[shared], measures.measure[shared])
    amounts = LOSSES * found[measures.measure[shared]]
    return csr_array((amounts, where), shape=(measures.n_sets, len(measures)))


def _learn_doubt(
    readings: Readings, measures: Measures, doubtful: Doubtful, levels: np.ndarray,
    found: np.ndarray,
) -> float:  # fmt: skip
    """The relative error of estimates that measures are, from by how much they miss the rest.

    The most likely, with a few at the usual error beside them.
    """
    population = doubtful.population
    pieces = np.bincount(measures.measure, minlength=len(measures))
    alone = np.diff(measures.set_ptr)[measures.piece_set] == 1
    chosen = np.flatnonzero(
        alone & measures.estimated[measures.measure] & (pieces[measures.measure] == 1)
    )
    if population.doubt_known or not len(chosen):
        return population.doubt
    series = measures.set_series[measures.set_ptr[measures.piece_set[chosen]]]
    chosen, series = chosen[np.argsort(series, kind="stable")], np.sort(series)
    asked = Asked(
        np.searchsorted(series, np.arange(readings.n_series + 1)), measures.start[chosen],
        measures.stop[chosen],
    )  # fmt: skip
    rows = measures.measure[chosen]
    size = np.maximum(found[rows], 1e-300)
    unit = measures.weight[chosen] * levels[series] / size
    open_ = doubtful.ask(readings, levels, asked).variance * unit**2
    missed = (measures.total[rows] / size - 1) ** 2
    missed = np.concatenate([missed, np.full(USUAL, DOUBT**2)])
    open_ = np.concatenate([open_, np.zeros(USUAL)])

    def likelihood(doubt: float) -> float:
        variance = open_ + doubt**2
        return -float(np.sum(np.log(variance) + missed / variance))

    return float(max(DOUBTS, key=likelihood))


def _square(measures: Measures, size: np.ndarray) -> np.ndarray:
    """The variance of each measure if all periods were independent, of series of a given size."""
    shape = (measures.n_series, measures.n_periods)
    return measures.squared().forward(np.broadcast_to(size[:, None], shape))
