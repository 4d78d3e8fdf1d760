"""How the totals of a set move with the prices on them: blocks of the dual's curvature.

Sets that share no series do not move each other's totals, and then these blocks are all there is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unsum.measures import Measures

LARGEST = 1500  # totals of a set that are solved for together


class Blocks:
    """For each set, its totals that lie in it alone and share no period."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures
        shape = (measures.n_sets, measures.n_periods + 1)
        place = _places(measures)
        chosen = place[measures.measure] >= 0
        some = [array[chosen] for array in (measures.piece_set, measures.start, measures.stop)]
        owner, weight = np.zeros(shape, np.int64), np.zeros(shape)
        for steps, amounts in (
            (owner, place[measures.measure[chosen]] + 1), (weight, measures.weight[chosen]),
        ):  # fmt: skip
            np.add.at(steps, (some[0], some[1]), amounts)
            np.add.at(steps, (some[0], some[2]), -amounts)
            np.cumsum(steps, axis=1, out=steps)
        self.owner, self.weight = owner - 1, weight
        home = np.full(len(measures), -1)
        home[measures.measure[chosen]] = some[0]
        self.rows = [np.flatnonzero(home == s) for s in range(measures.n_sets)]

    def factor(
        self, readings: tuple[np.ndarray, ...], d: np.ndarray, values: np.ndarray, least: np.ndarray
    ) -> list[tuple[np.ndarray, Any]]:
        """The totals of each set, and a factor of their curvature with `least` added to it."""
        from scipy.linalg import cho_factor

        from unsum.kernels.filling import add_curvature

        indptr, start, stop, _ = readings
        measures, found = self.measures, []
        for s, rows in enumerate(self.rows):
            if not 0 < len(rows) <= LARGEST:
                continue
            block = np.diag(least[rows])
            members = measures.set_series[measures.set_ptr[s] : measures.set_ptr[s + 1]]
            add_curvature(
                members, indptr, start, stop, d, values, self.owner[s], self.weight[s], block
            )
            found.append((rows, cho_factor(block, lower=True, check_finite=False)))
        return found


def solve(blocks: list[tuple[np.ndarray, Any]], gaps: np.ndarray) -> np.ndarray:
    """The gaps divided by the curvature: by blocks, and by one where there are none."""
    from scipy.linalg import cho_solve

    prices = gaps.copy()
    for rows, factor in blocks:
        prices[rows] = cho_solve(factor, gaps[rows], check_finite=False)
    return prices


def _places(measures: Measures) -> np.ndarray:
    """Where each total stands among those of its set; -1 where it shares periods or sets."""
    pieces = np.bincount(measures.measure, minlength=len(measures))
    first = np.full(len(measures), measures.n_sets)
    np.minimum.at(first, measures.measure, measures.piece_set)
    last = np.full(len(measures), -1)
    np.maximum.at(last, measures.measure, measures.piece_set)
    times = np.zeros((measures.n_sets, measures.n_periods + 1))
    np.add.at(times, (measures.piece_set, measures.start), 1)
    np.add.at(times, (measures.piece_set, measures.stop), -1)
    shared = np.cumsum(np.cumsum(times, axis=1) > 1, axis=1)
    before = np.where(measures.start > 0, shared[measures.piece_set, measures.start - 1], 0)
    alone = shared[measures.piece_set, measures.stop - 1] == before
    usable = (first == last) & (pieces > 0)
    usable &= np.bincount(measures.measure, ~alone, len(measures)) == 0
    place = np.full(len(measures), -1)
    for s in range(measures.n_sets):
        own = np.flatnonzero(usable & (first == s))
        place[own] = np.arange(len(own))
    return place
