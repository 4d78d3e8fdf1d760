"""Totals beyond the readings of single series: of groups, of chosen periods, of any weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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
    own: np.ndarray  # which are readings of a series; they come before totals of groups

    @classmethod
    def of_intervals(
        cls, series: np.ndarray, start: np.ndarray, stop: np.ndarray, total: np.ndarray,
        labels: tuple[str, ...], *, n_series: int, n_periods: int,
        estimated: np.ndarray | None = None,
    ) -> Measures:  # fmt: skip
        """Totals of single series over intervals."""
        owners, piece_set = np.unique(series, return_inverse=True)
        n = len(total)
        return cls(
            n_series, n_periods, np.arange(len(owners) + 1), owners.astype(np.int64),
            np.arange(n), piece_set, start, stop, np.ones(n), total, labels,
            tuple(f"series {owner}" for owner in owners),
            np.zeros(n, np.bool_) if estimated is None else estimated, np.ones(n, np.bool_),
        )  # fmt: skip

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

    def groups(self) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Sets of several series with their disjoint totals: the set, start, stop, total."""
        pieces = np.bincount(self.measure, minlength=len(self))
        plain = (pieces[self.measure] == 1) & (self.weight == 1) & ~self.estimated[self.measure]
        plain &= np.diff(self.set_ptr)[self.piece_set] > 1
        found = []
        for place in np.unique(self.piece_set[plain]):
            own = np.flatnonzero(plain & (self.piece_set == place))
            own = own[np.argsort(self.start[own], kind="stable")]
            start, stop, total = self.start[own], self.stop[own], self.total[self.measure[own]]
            if (start[1:] >= stop[:-1]).all() and total.any():
                found.append((int(place), start, stop, total))
        return found

    def spans(self) -> Iterator[tuple[int, int, int, float]]:
        """Measures of single series: the series, the interval they span, and the total in it.

        The total is in proportion to what the measure covers; in order of the ends of intervals.
        """
        alone = np.diff(self.set_ptr)[self.piece_set] == 1
        heads = np.flatnonzero(np.diff(self.measure, prepend=-1))
        if not len(heads):
            return
        owner = self.set_series[self.set_ptr[self.piece_set]]
        alone = np.logical_and.reduceat(alone, heads)
        alone &= np.minimum.reduceat(owner, heads) == np.maximum.reduceat(owner, heads)
        first, last = np.minimum.reduceat(self.start, heads), np.maximum.reduceat(self.stop, heads)
        size = np.add.reduceat(self.weight * (self.stop - self.start), heads)
        for i in np.argsort(last, kind="stable"):
            if alone[i]:
                total = float(self.total[self.measure[heads[i]]])
                length = int(last[i] - first[i])
                yield int(owner[heads[i]]), int(first[i]), int(last[i]), total * length / size[i]

    def shares(self) -> Iterator[tuple[int, int, int, float]]:
        """The same for measures of several series, each of which gets its part of every piece."""
        sizes = self.weight * (self.stop - self.start) * np.diff(self.set_ptr)[self.piece_set]
        rate = self.total / np.bincount(self.measure, sizes, len(self))
        for i in np.argsort(self.stop, kind="stable"):
            total = float(rate[self.measure[i]] * (self.stop[i] - self.start[i]))
            for n in self.set_series[
                slice(*self.set_ptr[self.piece_set[i] : self.piece_set[i] + 2])
            ]:
                yield int(n), int(self.start[i]), int(self.stop[i]), total

    def intervals(self) -> np.ndarray:
        """The pieces that are readings of one series, unweighted, on their own."""
        pieces = np.bincount(self.measure, minlength=len(self))
        plain = (pieces[self.measure] == 1) & (self.weight == 1) & self.own[self.measure]
        return np.flatnonzero(plain & (np.diff(self.set_ptr)[self.piece_set] == 1))

    def join(self, other: Measures) -> Measures:
        """These and others of the same series."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("set_series", "start", "stop", "weight", "total", "estimated", "own")
        }
        return replace(
            self,
            set_ptr=np.concatenate([self.set_ptr, self.set_ptr[-1] + other.set_ptr[1:]]),
            measure=np.concatenate([self.measure, len(self) + other.measure]),
            piece_set=np.concatenate([self.piece_set, self.n_sets + other.piece_set]),
            labels=self.labels + other.labels,
            set_names=self.set_names + other.set_names,
            **arrays,
        )

    def move(self, places: np.ndarray, n_series: int) -> Measures:
        """The same with series at other places."""
        return replace(self, n_series=n_series, set_series=places[self.set_series])

    def on(self, first: int, n_periods: int) -> Measures:
        """The same on a longer calendar, of which theirs begins at period `first`."""
        return replace(self, n_periods=n_periods, start=self.start + first, stop=self.stop + first)

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
            own=self.own[kept],
        )

    def binding(self) -> Measures:
        """The measures that are not estimated."""
        return self.keep(~self.estimated) if self.estimated.any() else self

    def scaled(self, scale: np.ndarray) -> Measures:
        """The same with every measure multiplied; totals are left as they are."""
        return replace(self, weight=self.weight * scale[self.measure])

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
