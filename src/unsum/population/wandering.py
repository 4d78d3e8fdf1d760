"""Series whose level wanders: a plant that shuts, a flat that changes hands.

What the population knows of such a series is its shape, not where its level will be next. So its
level may move like a random walk, and everything else with it: the shape of a day is the same when
a plant works and when it rests, times the level. Readings tell whether that makes them more likely,
and how much of it there is. That is for what is recovered; how sure it is follows from how wild a
series is beside others, wherever its level goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from unsum.population.model import Population
    from unsum.readings import Readings

SIZES = (0.0, 1.0, 10.0, 100.0)  # of the variance of the level, over that of usual series
USUAL = 16.0  # readings that say that a series is as wild as others
FIRM = 4.0  # times as likely as any other is a level that does not wander


def by_wandering(
    readings: Readings, population: Population, total: np.ndarray
) -> Iterator[tuple[np.ndarray, Population]]:
    """The places of series by how much their level wanders, and the population of such series.

    `total` are scaled totals.
    """
    from unsum.kernels.gaussian import judge_rows

    if population.wander == 0:
        yield np.arange(readings.n_series), population
        return
    kinds = _kinds(population)
    likelihood = np.empty((len(kinds), readings.n_series))
    for kind, own in zip(kinds, likelihood, strict=True):
        judge_rows(
            readings.indptr, readings.start, readings.stop, total, kind.noises(readings),
            kind.mean_sums, kind.free_sums, USUAL, own,
        )  # fmt: skip
    likelihood[0] += np.log(FIRM)
    chosen = np.argmax(likelihood, axis=0)
    for k, kind in enumerate(kinds):
        places = np.flatnonzero(chosen == k)
        if len(places):
            yield places, kind


@lru_cache(maxsize=1)  # as large as populations are
def _kinds(population: Population) -> list[Population]:
    """The population, and those with a level that wanders on top, of each size."""
    from scipy.linalg import toeplitz

    n, mean = population.n_periods, population.mean
    walk = population.wander * toeplitz(np.exp(-np.arange(n) / n))
    walk *= np.outer(mean, mean) + population.covariance  # of a product with what is multiplied
    firm = replace(population, wander=0.0)
    return [
        replace(firm, covariance=population.covariance + size * walk) if size else firm
        for size in SIZES
    ]
