"""The nearest nonnegative series that meet their readings and further measures, by the dual.

    minimise sum (v - x)^2 / d   subject to   v >= 0, the readings, and F v = f

The readings are met whatever the prices of the measures; the prices are found by Newton's method
on the concave dual, with conjugate gradients. Each round stays near the prices of the last
(Rockafellar's proximal method of multipliers): where the measures can be met, prices settle and
gaps go to zero; where they cannot, prices grow along a direction that proves it, and gaps go to
those whose weighted sum of squares is least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.curvature import Blocks, solve
from unsum.measures import Measures
from unsum.readings import Readings

TOLERANCE = 1e-10  # of a total, for its gap
ROUNDING = 4e-16  # of the readings around
STALLED = 1e-5  # of the gaps: how little they change from round to round when they stay
MOST_ROUNDS, MOST_STEPS, MOST_PRODUCTS, MOST_POLISHES = 40, 20, 300, 5
INEXACT = 1e-3  # of the gaps that a round leaves: how nearly it is done
SHORTEST = 1e-9  # of a step of Newton's method
EARLY = 1e-2  # how exactly a step is found while gaps are large
NEARNESS, NEAREST = 1e-2, 1.1e-5  # of the curvature: how strongly rounds stay near the last


@dataclass(frozen=True)
class Projected:
    """The values, by how much they miss each total, and whether they meet all of them.

    `direction` are prices that prove that totals cannot be met together, where it is `proven`.
    """

    values: np.ndarray
    gaps: np.ndarray
    met: bool
    proven: bool
    direction: np.ndarray


def project(readings: Readings, measures: Measures, x: np.ndarray, d: np.ndarray) -> Projected:
    """The series nearest to x (n_series, n_periods) in the metric `1 / d`.

    Where d is zero, values are zero, or as even as their reading makes them. Of totals that cannot
    be met, squared gaps count in proportion to how little a total moves at the same price: about in
    inverse proportion to the total.
    """
    if not len(measures):
        return Projected(x, np.empty(0), met=True, proven=False, direction=np.empty(0))
    zero = _certain_zeros(readings, measures)
    x, d = np.where(zero, 0.0, x), np.where(zero, 0.0, d)
    unit, units = _units(readings, measures, x)
    dual = _Dual(readings, measures, x / unit[:, None], d / unit[:, None], unit, units)
    prices = np.zeros(len(measures))
    before = np.full(len(measures), np.inf)
    last, stalls, proven = prices, 0, False
    for _ in range(MOST_ROUNDS):
        following = dual.climb(prices)
        step, prices = following - prices, following
        gaps = dual.gaps(prices)
        if dual.met(gaps):
            break
        change, size = np.linalg.norm(gaps - before), np.linalg.norm(gaps)
        stalled = change <= (STALLED + 2 * dual.inexact) * size
        proven = bool(stalled) and (dual.proves(step) or dual.proves(step + last))
        if proven:
            break
        last = step
        if stalled:  # what is left may be a proof that is not exact enough
            stalls += 1
            dual.inexact = max(dual.inexact / 1000, 1e-12)
        if dual.nearness > NEAREST or (stalled and stalls % 3 == 0):
            dual.nearness /= 10
        before = gaps
    values, gaps = dual.polish(dual.values(prices), gaps)
    met = dual.met(gaps)
    return Projected(
        values * unit[:, None], gaps / dual.scale * units, met, proven and not met,
        step * dual.scale / units,
    )  # fmt: skip


def _units(readings: Readings, measures: Measures, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A unit for each series and each total: one for all that hang together.

    Series that no total connects are independent problems, of whatever size.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, m = measures.n_series, len(measures)
    of_sets = np.repeat(np.arange(measures.n_sets), np.diff(measures.set_ptr))
    one = np.concatenate([measures.set_series, n + measures.measure])
    other = n + m + np.concatenate([of_sets, measures.piece_set])
    size = n + m + measures.n_sets
    links = csr_array((np.ones(len(one)), (one, other)), shape=(size, size))
    count, label = connected_components(links, directed=False)
    largest = x.max(axis=1, initial=0.0)
    np.maximum.at(largest, readings.series_of_readings(), readings.total)
    unit = np.zeros(count)
    np.maximum.at(unit, label[:n], largest)
    np.maximum.at(unit, label[n : n + m], measures.total)
    unit = np.where(unit > 0, unit, 1.0)
    return unit[label[:n]], unit[label[n : n + m]]


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
        self,
        readings: Readings,
        measures: Measures,
        x: np.ndarray,
        d: np.ndarray,
        unit: np.ndarray,
        units: np.ndarray,
    ) -> None:
        from unsum.kernels.filling import reading_totals

        total = readings.total / np.repeat(unit, np.diff(readings.indptr))
        self.readings = (readings.indptr, readings.start, readings.stop, total)
        self.x, self.d = x, d
        curvature = measures.squared().forward(d)  # of each price alone
        self.scale = 1 / np.sqrt(np.maximum(curvature, max(1e-12 * curvature.max(), 1e-300)))
        self.measures = measures.scaled(self.scale)
        self.total = measures.total / units * self.scale
        self.blocks = Blocks(self.measures)
        self.nearness, self.inexact = NEARNESS, INEXACT
        largest = x.copy()
        reading_totals(*self.readings, largest)
        self.slack = TOLERANCE * self.total + ROUNDING * self.measures.forward(largest)

    def values(self, prices: np.ndarray) -> np.ndarray:
        from unsum.kernels.filling import fill_towards

        values = np.empty(self.x.shape)
        fill_towards(*self.readings, self.x, self.d, self.measures.adjoint(prices), values)
        return values

    def gaps(self, prices: np.ndarray) -> np.ndarray:
        return np.asarray(self.total - self.measures.forward(self.values(prices)))

    def met(self, gaps: np.ndarray) -> bool:
        return bool(np.all(np.abs(gaps) <= self.slack))

    def climb(self, anchor: np.ndarray) -> np.ndarray:
        """The prices where the gaps balance the pull back to the anchor, by Newton's method."""
        prices, values = anchor, self.values(anchor)
        for _ in range(MOST_STEPS):
            slope = self._slope(prices, anchor, values)
            pull = self.nearness * float(np.linalg.norm(prices - anchor))
            done = np.all(np.abs(slope) <= self.slack / 10)
            if done or float(np.linalg.norm(slope)) <= self.inexact * pull:
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
        most = dearest(*self.readings, z, 1e-7 * float(np.abs(z).max(initial=0.0)))
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
        least = np.full(n, self.nearness + 1e-12)
        blocks = self.blocks.factor(self.readings, self.d, values, least)
        solution, _ = cg(
            LinearOperator((n, n), product, dtype=float), slope, rtol=rtol, atol=0.0,
            maxiter=MOST_PRODUCTS,
            M=LinearOperator((n, n), lambda gaps: solve(blocks, gaps), dtype=float),
        )  # fmt: skip
        return np.asarray(solution)
