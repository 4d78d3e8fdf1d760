"""Totals beyond the readings of single series: of groups, of chosen periods, of any weights."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Measures:
    """Sums over pieces; a piece is an interval of periods of all series of a set, with a weight.

    Set s owns `set_series[set_ptr[s]]` to `set_series[set_ptr[s + 1]]`. A group's load over a month
    is one piece of a set of many, a peak register one piece for each day of a set of one.
    """

    n_series: int
    n_periods: int
    set_ptr: np.ndarray
    set_series: np.ndarray
    measure: np.ndarray  # of each piece, in increasing order
    piece_set: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    weight: np.ndarray
    total: np.ndarray
    labels: tuple[str, ...]  # what each is called
    set_names: tuple[str, ...]
    estimated: np.ndarray  # which totals inform without binding

    def __len__(self) -> int:
        return len(self.total)

    @property
    def n_sets(self) -> int:
        return len(self.set_ptr) - 1

    @cached_property
    def members(self) -> Any:
        """The sets as a sparse matrix (n_sets, n_series) of ones."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.set_series))
        shape = (self.n_sets, self.n_series)
        return csr_array((ones, self.set_series, self.set_ptr), shape=shape)

    def forward(self, values: np.ndarray, first: int = 0) -> np.ndarray:
        """The totals under the given values (n_series, n_periods), of series from `first` on."""
        sums = np.zeros((self.n_sets, self.n_periods + 1))
        sums[:, :-1] = self.members[:, first : first + len(values)] @ values
        edges = np.empty(2 * len(self.measure), np.int64)
        rows = self.piece_set.astype(np.int64) * (self.n_periods + 1)
        edges[::2], edges[1::2] = rows + self.start, rows + self.stop
        pieces = np.add.reduceat(sums.ravel(), edges)[::2] if len(edges) else np.empty(0)
        return np.bincount(self.measure, pieces * self.weight, len(self))

    def prices(self, prices: np.ndarray) -> np.ndarray:
        """What a price on every total makes for the periods of every set (n_sets, n_periods)."""
        steps = np.zeros((self.n_sets, self.n_periods + 1))
        amounts = self.weight * prices[self.measure]
        np.add.at(steps, (self.piece_set, self.start), amounts)
        np.add.at(steps, (self.piece_set, self.stop), -amounts)
        return np.cumsum(steps, axis=1)[:, :-1]

    def about(self) -> Any:
        """Which measures tell about which series, as a sparse matrix (n_series, n_measures)."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.measure))
        sets = csr_array((ones, (self.piece_set, self.measure)), shape=(self.n_sets, len(self)))
        return (self.members.T @ sets).tocsr()

    def groups(self) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """Sets of several series with their disjoint totals: name, start, stop, total."""
        pieces = np.bincount(self.measure, minlength=len(self))
        plain = (pieces[self.measure] == 1) & (self.weight == 1) & ~self.estimated[self.measure]
        plain &= np.diff(self.set_ptr)[self.piece_set] > 1
        found = []
        for place in np.unique(self.piece_set[plain]):
            own = np.flatnonzero(plain & (self.piece_set == place))
            own = own[np.argsort(self.start[own], kind="stable")]
            start, stop, total = self.start[own], self.stop[own], self.total[self.measure[own]]
            if (start[1:] >= stop[:-1]).all() and total.any():
                found.append((self.set_names[place], start, stop, total))
        return found

    def take(self, series: np.ndarray) -> Measures:
        """The measures that tell about some series alone, with those renumbered."""
        place = np.full(self.n_series, -1)
        place[series] = np.arange(len(series))
        whole = np.logical_and.reduceat(place[self.set_series] >= 0, self.set_ptr[:-1])
        lost = np.bincount(self.measure, ~whole[self.piece_set], len(self)) > 0
        return replace(
            self.keep(~lost), n_series=len(series), set_series=np.maximum(place[self.set_series], 0)
        )

    def keep(self, kept: np.ndarray) -> Measures:
        """Some of the measures, by a mask; sets stay."""
        pieces = kept[self.measure]
        return replace(
            self,
            measure=(np.cumsum(kept) - 1)[self.measure[pieces]],
            piece_set=self.piece_set[pieces],
            start=self.start[pieces],
            stop=self.stop[pieces],
            weight=self.weight[pieces],
            total=self.total[kept],
            labels=tuple(itertools.compress(self.labels, kept)),
            estimated=self.estimated[kept],
        )

    def binding(self) -> Measures:
        """The measures that are not estimated."""
        return self.keep(~self.estimated) if self.estimated.any() else self

    def squared(self) -> Measures:
        """The same with squared weights, for variances."""
        return replace(self, weight=self.weight**2)

    def digest(self, digest: Any) -> None:
        """Add all of it to a hash."""
        for item in fields(self):
            digest.update(np.ascontiguousarray(getattr(self, item.name)).tobytes())

    def adjoint(self, prices: np.ndarray) -> np.ndarray:
        """What a price on every total makes for every value (n_series, n_periods)."""
        spread: np.ndarray = self.members.T @ self.prices(prices)
        return spread
