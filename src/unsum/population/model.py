"""The population: the mean and the covariance of scaled series over periods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unsum.population.counts import count_in
from unsum.population.wandering import by_wandering
from unsum.readings import Readings
from unsum.traits import Traits

AT_ONCE = 1 << 17  # series, to hold no large temporaries
NOISE = 1e-6  # of the mean variance: what a reading may miss, so that systems stay solvable
LEAST = 1e-3  # of the mean, for that of any series over a reading
LOWEST = 0.02  # of the usual mean, for what is expected of a reading when a level is judged by it
FREEST = 4.0  # times the variance of series around their mean is what that of a level may be
DOUBT = 0.2  # the relative error of an estimated reading, where nothing better is known


@dataclass(frozen=True, eq=False)
class Population:
    """Series divided by their level are `mean + a Gaussian with this covariance`.

    `doubt` is the usual error of an estimated reading, relative to what the mean has there. With
    traits, the mean of a series has the `response` to its traits on top. Series whose totals are
    multiples of `quantum` count something, and have noise of their own at every period; `counting`
    is its variance beside that of Poisson counts. The levels of some series wander; `wander` is the
    unit of the variance of that, over the squared level. What totals say of any level may be wrong:
    `level` is the variance of that, over the squared level, at most.
    """

    mean: np.ndarray
    covariance: np.ndarray
    doubt: float = DOUBT
    doubt_known: bool = False  # told, not learned
    quantum: float = 0.0
    counting: float = 1.0
    wander: float = 0.0
    level: float = 0.0
    traits: Traits | None = None
    response: np.ndarray | None = None  # (n_traits, n_periods): what each trait adds to the mean

    @property
    def n_periods(self) -> int:
        return len(self.mean)

    @cached_property
    def mean_sums(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.mean)])

    @cached_property
    def row_sums(self) -> np.ndarray:
        n = len(self.mean)
        return np.concatenate([np.zeros((1, n)), np.cumsum(self.covariance, axis=0)])

    @cached_property
    def both_sums(self) -> np.ndarray:
        return sum_both_ways(self.covariance)

    @cached_property
    def squared_sums(self) -> np.ndarray:
        """Running sums of the square of the covariance, over rows and columns."""
        return sum_both_ways(self.covariance @ self.covariance)

    @property
    def usual(self) -> float:
        """The variance of series around the mean, over its square."""
        return float(np.trace(self.covariance)) / max(float(self.mean @ self.mean), 1e-300)

    @property
    def freedom(self) -> float:
        """The variance of a level over its square: as told, but not far beyond that of series."""
        return min(self.level, FREEST * self.usual)

    @cached_property
    def free_rows(self) -> np.ndarray:
        """Running sums of the covariance over rows, with that of a level which is not known."""
        if self.level == 0:
            return self.row_sums
        return self.row_sums + self.freedom * np.outer(self.mean_sums, self.mean)

    @cached_property
    def free_sums(self) -> np.ndarray:
        """The same over rows and columns."""
        if self.level == 0:
            return self.both_sums
        return self.both_sums + self.freedom * np.outer(self.mean_sums, self.mean_sums)

    @property
    def sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What kernels take that recover series, level and all."""
        return self.mean, self.mean_sums, self.free_rows, self.free_sums

    @property
    def noise(self) -> float:
        """The variance that a binding reading may miss, for each of its periods."""
        return NOISE * max(float(np.trace(self.covariance)) / len(self.mean), 1e-12)

    def noises(self, readings: Readings) -> np.ndarray:
        """The variance of each reading's own error, in scaled units."""
        noises: np.ndarray = self.noise * (readings.stop - readings.start)
        expected = self.mean_sums[readings.stop] - self.mean_sums[readings.start]
        if self.quantum > 0:
            noises += self.count(readings)[readings.series_of_readings()] * expected
        if readings.estimated is not None:
            noises += np.where(readings.estimated, (self.doubt * expected) ** 2, 0.0)
        return noises

    def count(self, readings: Readings) -> np.ndarray:
        """The variance of the noise of counting in each series, over what the mean has there."""
        if self.quantum == 0:
            return np.zeros(readings.n_series)
        levels = self.levels(readings)
        counts = count_in(readings, self.quantum) & (levels > 0)
        size = self.counting * self.quantum
        return np.asarray(np.divide(size, levels, out=np.zeros(len(levels)), where=counts))

    def levels(self, readings: Readings) -> np.ndarray:
        """The level of each series: its total over that of the mean at the same periods.

        Estimated readings count only where a series has no other that is positive.
        """
        if readings.n_series > AT_ONCE:
            return np.concatenate([self.levels(part) for part in readings.parts(AT_ONCE)])
        series = readings.series_of_readings()
        expected = self.mean_sums[readings.stop] - self.mean_sums[readings.start]
        expected = np.maximum(expected + self.shift_sums(readings), LEAST * np.abs(expected))
        usual = float(self.mean.mean()) * (readings.stop - readings.start)
        expected = np.maximum(expected, LOWEST * usual)
        if readings.estimated is not None:
            firm = np.where(readings.estimated, 0.0, readings.total)
            firm = np.maximum.reduceat(firm, readings.indptr[:-1]) > 0
            expected = np.where(readings.estimated & firm[series], 0.0, expected)
        largest = np.maximum.reduceat(readings.total, readings.indptr[:-1])
        unit = np.where(largest > 0, largest, 1.0)
        share = np.where(expected > 0, readings.total / unit[series], 0.0)
        total = np.bincount(series, share, readings.n_series)
        size = np.bincount(series, expected, readings.n_series)
        level = np.divide(total, size, out=np.zeros(readings.n_series), where=size > 0)
        levels: np.ndarray = level * largest
        return levels

    def scale(self, readings: Readings, levels: np.ndarray) -> np.ndarray:
        """Totals over the level of their series, where it has one, less the response to traits."""
        usable = np.where(levels > 0, levels, 1.0)
        scaled: np.ndarray = readings.total / np.repeat(usable, np.diff(readings.indptr))
        return scaled - self.shift_sums(readings)

    def condition(
        self,
        part: Readings,
        levels: np.ndarray,
        values: np.ndarray,
        more: np.ndarray | None = None,
    ) -> None:
        """Write the means of series given their readings into the rows of `values`.

        `more` shifts the means of series before that, in units of their levels.
        """
        from unsum.kernels.gaussian import condition_rows
        from unsum.kernels.totals import sum_readings

        total, shifts = self.scale(part, levels), self.shift(part.names)
        if more is not None:
            total -= sum_readings(part.indptr, part.start, part.stop, more)
            shifts = shifts + more
        scaled = part.with_totals(total)
        for places, kind in by_wandering(part, self, total):
            every = len(places) == part.n_series
            found = values if every else np.empty((len(places), self.n_periods))
            noises = kind.noises(part.take(places))
            condition_rows(*scaled.take(places).arrays, noises, *kind.sums, found)
            if not every:
                values[places] = found
        values += shifts
        values *= levels[:, None]

    def forget(self) -> Population:
        """The same without the traits of any series."""
        if self.traits is None:
            return self
        return self.knowing(self.traits.forget())

    def knowing(self, traits: Traits | None) -> Population:
        """The same with the traits of other series."""
        return self if traits is None else replace(self, traits=traits)

    def shift(self, names: Any) -> np.ndarray | float:
        """What their traits add to the means of series (n_series, n_periods), or zero."""
        if self.traits is None or self.response is None:
            return 0.0
        return np.asarray(self.traits.rows(names) @ self.response)

    def shift_sums(self, readings: Readings) -> np.ndarray | float:
        """The same over readings."""
        shift = self.shift(readings.names)
        if isinstance(shift, float):
            return 0.0
        sums = np.concatenate([np.zeros((len(shift), 1)), np.cumsum(shift, axis=1)], axis=1)
        series = readings.series_of_readings()
        return np.asarray(sums[series, readings.stop] - sums[series, readings.start])


def sum_both_ways(covariance: np.ndarray) -> np.ndarray:
    """Running sums over rows and columns, before every edge."""
    return np.pad(np.cumsum(np.cumsum(covariance, axis=0), axis=1), ((1, 0), (1, 0)))


def add_up(steps: np.ndarray) -> np.ndarray:
    """A symmetric matrix over periods from half of it, as differences at edges both ways."""
    half = np.cumsum(np.cumsum(steps, axis=0), axis=1)[:-1, :-1]
    return np.asarray(half + half.T)
