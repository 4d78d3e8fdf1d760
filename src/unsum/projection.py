"""The nearest nonnegative series that meet their readings and further measures, by the dual.

    minimise sum (v - x)^2 / d   subject to   v >= 0, the readings, and F v = f

The readings are met whatever the prices of the measures; the prices are found by Newton's method
on the concave dual, with conjugate gradients. Each round stays near the prices of the last
(Rockafellar's proximal method of multipliers): where the measures can be met, prices settle and
gaps go to zero; where they cannot, prices grow along a direction that proves it, and gaps go to
those whose sum of squares is least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.curvature import Blocks, solve
from unsum.measures import Measures
from unsum.readings import Readings

TOLERANCE = 1e-10  # of a total, for its gap
ROUNDING = 1e-14  # of the largest value
STALLED = 1e-6  # of the gaps: how little they change from round to round when they stay
MOST_ROUNDS, MOST_STEPS, MOST_PRODUCTS, MOST_POLISHES = 40, 30, 300, 5
INEXACT = 1e-3  # of the gaps that a round leaves: how nearly it is done
SHORTEST = 1e-9  # of a step of Newton's method
EARLY = 1e-2  # how exactly a step is found while gaps are large
NEARNESS, NEAREST = 1e-2, 1e-5  # of the usual curvature: how strongly rounds stay near the last


@dataclass(frozen=True)
class Projected:
    """The values, by how much they miss each total, and whether they meet all of them.

    `direction` are prices that prove that totals cannot be met, where they are not.
    """

    values: np.ndarray
    gaps: np.ndarray
    met: bool
    direction: np.ndarray


def project(readings: Readings, measures: Measures, x: np.ndarray, d: np.ndarray) -> Projected:
    """The series nearest to x (n_series, n_periods) in the metric `1 / d`.

    Where d is zero, values are zero, or as even as their reading makes them.
    """
    if not len(measures):
        return Projected(x, np.empty(0), met=True, direction=np.empty(0))
    unit = float(max(x.max(initial=0.0), readings.total.max(initial=0.0))) or 1.0
    zero = _certain_zeros(readings, measures)
    x, d = np.where(zero, 0.0, x), np.where(zero, 0.0, d)
    dual = _Dual(readings, measures, x / unit, d / max(float(d.max(initial=0.0)), 1e-300), unit)
    prices = np.zeros(len(measures))
    before = np.full(len(measures), np.inf)
    for _ in range(MOST_ROUNDS):
        following = dual.climb(prices)
        step, prices = following - prices, following
        gaps = dual.gaps(prices)
        if dual.met(gaps):
            break
        stalled = np.linalg.norm(gaps - before) <= STALLED * np.linalg.norm(gaps)
        if stalled and dual.proves(step):
            break
        if stalled or dual.nearness > dual.nearest:
            dual.nearness /= 10
        before = gaps
    values, gaps = dual.polish(dual.values(prices), gaps)
    return Projected(values * unit, gaps * unit, dual.met(gaps), step)


def _certain_zeros(readings: Readings, measures: Measures) -> np.ndarray:
    """What a total of zero makes zero, unless a positive reading has nothing else."""
    from unsum.kernels.totals import sum_readings

    zero = measures.adjoint((measures.total == 0).astype(float)) > 0
    if not zero.any():
        return np.asarray(zero)
    left = sum_readings(readings.indptr, readings.start, readings.stop, (~zero).astype(float))
    series = readings.series_of_readings()
    for r in np.flatnonzero((left == 0) & (readings.total > 0)):
        zero[series[r], readings.start[r] : readings.stop[r]] = False
    return np.asarray(zero)


class _Dual:
    """The dual of the projection, in units of the largest value."""

    def __init__(
        self, readings: Readings, measures: Measures, x: np.ndarray, d: np.ndarray, unit: float
    ) -> None:
        self.measures, self.x, self.d = measures, x, d
        self.readings = (readings.indptr, readings.start, readings.stop, readings.total / unit)
        self.total = measures.total / unit
        self.blocks = Blocks(measures)
        curvature = measures.squared().forward(d)  # of each price alone
        self.curvature = np.maximum(curvature, max(1e-12 * curvature.max(), 1e-300))
        usual = float(np.median(self.curvature))
        self.nearness, self.nearest = NEARNESS * usual, 1.001 * NEAREST * usual

    def values(self, prices: np.ndarray) -> np.ndarray:
        from unsum.kernels.filling import fill_towards

        values = np.empty(self.x.shape)
        fill_towards(*self.readings, self.x, self.d, self.measures.adjoint(prices), values)
        return values

    def gaps(self, prices: np.ndarray) -> np.ndarray:
        return np.asarray(self.total - self.measures.forward(self.values(prices)))

    def met(self, gaps: np.ndarray) -> bool:
        return bool(np.all(np.abs(gaps) <= TOLERANCE * self.total + ROUNDING))

    def climb(self, anchor: np.ndarray) -> np.ndarray:
        """The prices where the gaps balance the pull back to the anchor, by Newton's method."""
        prices, values = anchor, self.values(anchor)
        for _ in range(MOST_STEPS):
            slope = self._slope(prices, anchor, values)
            pull = self.nearness * float(np.linalg.norm(prices - anchor))
            if float(np.linalg.norm(slope)) <= INEXACT * pull or np.all(
                np.abs(slope) <= TOLERANCE / 10 * self.total + ROUNDING / 10
            ):
                break
            move, height = self._newton(values, slope), self._height(prices, anchor, values)
            gain, length = float(slope @ move), 1.0
            slack = 1e-14 * abs(height)  # what rounding hides
            while length > SHORTEST:
                following = prices + length * move
                found = self.values(following)
                reached = self._height(following, anchor, found)
                if reached >= height + 1e-4 * length * gain - slack:
                    break
                length /= 2
            else:  # heights are told apart no longer; slopes may be
                following = prices + move
                found = self.values(following)
                flatter = np.linalg.norm(self._slope(following, anchor, found))
                if not flatter < np.linalg.norm(slope) / 2:
                    break
            prices, values = following, found
        return prices

    def polish(self, values: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Close small gaps by moving the values themselves, which large prices round."""
        for _ in range(MOST_POLISHES):
            if self.met(gaps):
                break
            moves = self._follow(values, self.measures.adjoint(self._newton(values, gaps)))
            nearer = np.maximum(values + moves, 0.0)
            left = self.total - self.measures.forward(nearer)
            if not np.linalg.norm(left) < np.linalg.norm(gaps):
                break
            values, gaps = nearer, left
        return values, gaps

    def _follow(self, values: np.ndarray, z: np.ndarray) -> np.ndarray:
        from unsum.kernels.filling import follow

        indptr, start, stop, _ = self.readings
        moves = np.empty(values.shape)
        follow(indptr, start, stop, self.d, values, z, moves)
        return moves

    def proves(self, prices: np.ndarray) -> bool:
        """Whether no series at all that meet the readings reach the totals at these prices."""
        from unsum.kernels.filling import dearest

        z = np.where(self.d > 0, self.measures.adjoint(prices), 0.0)
        most = dearest(*self.readings, z, 1e-9 * float(np.abs(z).max(initial=0.0)))
        worth = float(prices @ self.total)
        return bool(worth > most + 1e-9 * abs(worth))

    def _slope(self, prices: np.ndarray, anchor: np.ndarray, values: np.ndarray) -> np.ndarray:
        pull = self.nearness * (prices - anchor)
        return np.asarray(self.total - self.measures.forward(values) - pull)

    def _height(self, prices: np.ndarray, anchor: np.ndarray, values: np.ndarray) -> float:
        moved = np.where(self.d > 0, values - self.x, 0.0)
        cost = float(np.sum(moved**2 / np.where(self.d > 0, self.d, 1.0))) / 2
        away = prices - anchor
        gaps = self.total - self.measures.forward(values)
        return cost + float(prices @ gaps) - self.nearness / 2 * float(away @ away)

    def _newton(self, values: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Solve the linear system of the values that are not at zero, by conjugate gradients."""
        from scipy.sparse.linalg import LinearOperator, cg

        def product(prices: np.ndarray) -> np.ndarray:
            moves = self._follow(values, self.measures.adjoint(prices))
            return np.asarray(self.measures.forward(moves) + self.nearness * prices)

        n, size = len(slope), float(np.linalg.norm(self.total)) or 1.0
        rtol = float(np.clip(np.linalg.norm(slope) / size, 1e-10, EARLY))
        least = self.nearness + 1e-12 * self.curvature
        scale = 1 / (self.curvature + self.nearness)
        blocks = self.blocks.factor(self.readings, self.d, values, least)
        solution, _ = cg(
            LinearOperator((n, n), product, dtype=float), slope, rtol=rtol, atol=0.0,
            maxiter=MOST_PRODUCTS,
            M=LinearOperator((n, n), lambda gaps: solve(blocks, scale, gaps), dtype=float),
        )  # fmt: skip
        return np.asarray(solution)
