"""What prices on measures explain their gaps: solved set by set, with what all series share.

Exact where sets share no series and totals of a set no period; near enough otherwise to begin from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unsum.curvature import LARGEST, Blocks
from unsum.measures import Measures
from unsum.population.model import Population
from unsum.readings import Readings


@dataclass(frozen=True)
class _Set:
    """The totals of a set, their factored covariance, and how they hang on the shared curve."""

    rows: np.ndarray
    factor: Any
    reach: np.ndarray  # by roots of the covariance of the shared curve
    answer: np.ndarray  # the same, solved for


class SetSolver:
    """Solves `(own covariance + noise + losses + what is shared) prices = gaps`."""

    def __init__(
        self,
        readings: Readings,
        measures: Measures,
        population: Population,
        covariance_of_mean: np.ndarray,
        level: np.ndarray,
        size: np.ndarray,
        noise: np.ndarray,
        losses: Any,
        alone: np.ndarray,
    ) -> None:
        from scipy.linalg import cho_factor, cho_solve

        self.alone = alone
        values, vectors = np.linalg.eigh(covariance_of_mean)
        kept = values > 1e-12 * max(float(values[-1]), 1e-300)
        root = vectors[:, kept] * np.sqrt(values[kept])
        noises = population.noises(readings)
        self.sets = []
        blocks = Blocks(measures)
        for s, rows in enumerate(blocks.rows):
            if not 0 < len(rows) <= LARGEST:
                continue
            members = measures.set_series[measures.set_ptr[s] : measures.set_ptr[s + 1]]
            part = readings.take(members)
            picked = np.zeros((len(rows), measures.n_periods))
            used = np.flatnonzero(blocks.owner[s, :-1] >= 0)
            picked[blocks.owner[s, used], used] = blocks.weight[s, used]
            covariance, reach = _totals_of(
                part, noises[_readings_of(readings, members)], population, picked, level[members],
                size[members],
            )  # fmt: skip
            lost = losses[[s]][:, rows].toarray()
            factor = cho_factor(covariance + np.diag(noise[rows]) + lost.T @ lost, lower=True)
            rooted = reach @ root
            self.sets.append(_Set(rows, factor, rooted, cho_solve(factor, rooted)))
        inner = np.eye(root.shape[1])
        for each in self.sets:
            inner += each.reach.T @ each.answer
        self.inner = cho_factor(inner, lower=True)

    def solve(self, gaps: np.ndarray) -> np.ndarray:
        from scipy.linalg import cho_solve

        prices: np.ndarray = gaps / self.alone
        shared = np.zeros(len(self.inner[0]))
        for each in self.sets:
            prices[each.rows] = cho_solve(each.factor, gaps[each.rows])
            shared += each.reach.T @ prices[each.rows]
        shared = cho_solve(self.inner, shared)
        for each in self.sets:
            prices[each.rows] -= each.answer @ shared
        return prices


def _readings_of(readings: Readings, members: np.ndarray) -> np.ndarray:
    """The places of the readings of some series."""
    return np.concatenate(
        [np.arange(readings.indptr[n], readings.indptr[n + 1]) for n in members.tolist()]
    )


def _totals_of(
    part: Readings, noises: np.ndarray, population: Population, picked: np.ndarray,
    level: np.ndarray, size: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The covariance of totals given readings, and how they hang on a curve that all share."""
    from unsum.kernels.gaussian import whiten_sums

    spread = population.covariance @ picked.T
    sums = np.concatenate([np.zeros((1, len(picked))), np.cumsum(spread, axis=0)])
    explained, answer = (np.empty((part.n_readings, len(picked))) for _ in range(2))
    whiten_sums(
        part.indptr, part.start, part.stop, noises, population.both_sums, sums, explained, answer
    )
    counts = np.diff(part.indptr)
    covariance = size.sum() * (picked @ spread)
    covariance -= explained.T @ (explained * np.repeat(size, counts)[:, None])
    steps = np.zeros((part.n_periods + 1, len(picked)))
    answer *= np.repeat(level, counts)[:, None]
    np.add.at(steps, part.start, answer)
    np.add.at(steps, part.stop, -answer)
    reach = level.sum() * picked - np.cumsum(steps, axis=0)[:-1].T
    return (covariance + covariance.T) / 2, reach
