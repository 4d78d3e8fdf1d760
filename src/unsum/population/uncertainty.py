"""How sure the population is of what it recovers: conditional variances."""

from __future__ import annotations

import numpy as np

from unsum.population.model import Population
from unsum.readings import Readings


class Conditional:
    """Some series given their readings: means and variances of scaled values and of their sums.

    `scaled` are the readings' totals divided by the level of their series.
    """

    def __init__(self, population: Population, part: Readings, scaled: np.ndarray) -> None:
        from unsum.kernels.gaussian import explain_rows

        self.population, self.part = population, part
        self.means = np.empty((part.n_series, part.n_periods))
        self.explained = np.empty((part.n_readings, part.n_periods))
        explain_rows(
            part.indptr, part.start, part.stop, scaled, *population.sums, self.means,
            self.explained,
        )  # fmt: skip

    def variances(self) -> np.ndarray:
        """The variance of every value (n_series, n_periods)."""
        explained = np.add.reduceat(self.explained**2, self.part.indptr[:-1], axis=0)
        prior = np.diag(self.population.covariance)
        return np.asarray(np.maximum(prior - explained, 0.0))

    def variances_of_sums(
        self, series: np.ndarray, start: np.ndarray, stop: np.ndarray
    ) -> np.ndarray:
        """The variance of the sum of a series over the periods from start to stop."""
        both = self.population.both_sums
        prior = both[stop, stop] - both[start, stop] - both[stop, start] + both[start, start]
        sums = np.cumsum(self.explained, axis=1)
        sums = np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)
        found = np.empty(len(series))
        for i, n in enumerate(series):
            rows = slice(self.part.indptr[n], self.part.indptr[n + 1])
            found[i] = np.sum((sums[rows, stop[i]] - sums[rows, start[i]]) ** 2)
        return np.asarray(np.maximum(prior - found, 0.0))
