"""The population: the mean and the covariance of scaled series over periods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unsum.readings import Readings

NOISE = 1e-6  # of the mean variance: what a reading may miss, so that systems stay solvable
DOUBT = 0.2  # the relative error of an estimated reading, where nothing better is known


@dataclass(frozen=True)
class Population:
    """Series divided by their level are `mean + a Gaussian with this covariance`.

    `doubt` is the usual error of an estimated reading, relative to what the mean has there.
    """

    mean: np.ndarray
    covariance: np.ndarray
    doubt: float = DOUBT

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
        n = len(self.mean)
        return np.concatenate([np.zeros((n + 1, 1)), np.cumsum(self.row_sums, axis=1)], axis=1)

    @property
    def sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the kernels take."""
        return self.mean, self.mean_sums, self.row_sums, self.both_sums

    @property
    def noise(self) -> float:
        """The variance that a binding reading may miss, for each of its periods."""
        return NOISE * max(float(np.trace(self.covariance)) / len(self.mean), 1e-12)

    def noises(self, readings: Readings) -> np.ndarray:
        """The variance of each reading's own error, in scaled units."""
        noises: np.ndarray = self.noise * (readings.stop - readings.start)
        if readings.estimated is not None:
            expected = self.mean_sums[readings.stop] - self.mean_sums[readings.start]
            noises = noises + np.where(readings.estimated, (self.doubt * expected) ** 2, 0.0)
        return noises

    def levels(self, readings: Readings) -> np.ndarray:
        """The level of each series: its total over that of the mean at the same periods.

        Estimated readings count only where a series has no other.
        """
        series = readings.series_of_readings()
        expected = self.mean_sums[readings.stop] - self.mean_sums[readings.start]
        if readings.estimated is not None:
            soft = readings.estimated & (np.bincount(series, ~readings.estimated) > 0)[series]
            expected = np.where(soft, 0.0, expected)
        largest = np.maximum.reduceat(readings.total, readings.indptr[:-1])
        unit = np.where(largest > 0, largest, 1.0)
        share = np.where(expected > 0, readings.total / unit[series], 0.0)
        total = np.bincount(series, share, readings.n_series)
        size = np.bincount(series, expected, readings.n_series)
        level = np.divide(total, size, out=np.zeros(readings.n_series), where=size > 0)
        levels: np.ndarray = level * largest
        return levels

    def scale(self, readings: Readings, levels: np.ndarray) -> np.ndarray:
        """Totals divided by the level of their series, where it has one."""
        usable = np.where(levels > 0, levels, 1.0)
        scaled: np.ndarray = readings.total / np.repeat(usable, np.diff(readings.indptr))
        return scaled


def average_diagonals(covariance: np.ndarray, season: int = 1) -> np.ndarray:
    """The covariance nearest in shape that is the same after every season (stationary for 1).

    Sums over the places of a diagonal that are whole seasons apart are divided by the number of
    seasons in the window, which keeps the result positive semidefinite.
    """
    n = len(covariance)
    periods = np.arange(n)
    phase = periods % season
    averaged = np.empty_like(covariance)
    for lag in range(n):
        here, there = periods[: n - lag], periods[lag:]
        sums = np.bincount(phase[: n - lag], covariance[here, there], season) * (season / n)
        averaged[here, there] = averaged[there, here] = sums[phase[: n - lag]]
    return averaged
