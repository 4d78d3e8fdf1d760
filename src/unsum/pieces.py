"""Rows of a matrix of weights as runs of periods, and the intervals that rows make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pieces:
    """Runs of periods of one series with one weight, of which rows consist."""

    row: np.ndarray
    series: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, matrix: Any, n: int, place: np.ndarray) -> Pieces:
        """The pieces of a matrix with n periods for each series; `place` is where series go."""
        matrix.sort_indices()
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        series, period = place[matrix.indices // n], matrix.indices % n
        fresh = np.ones(len(row), np.bool_)
        fresh[1:] = (
            (row[1:] != row[:-1])
            | (series[1:] != series[:-1])
            | (period[1:] != period[:-1] + 1)
            | (matrix.data[1:] != matrix.data[:-1])
        )
        heads = np.flatnonzero(fresh)
        sizes = np.diff(np.append(heads, len(row)))
        start = period[heads].astype(np.int32)
        return cls(
            row[heads], series[heads], start, start + sizes.astype(np.int32), matrix.data[heads]
        )

    def intervals(self, total: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray,
                                                    list[np.ndarray]]:  # fmt: skip
        """Intervals of single series that follow from rows: series, start, stop, total, rows."""
        found = []
        size = np.bincount(self.row, minlength=len(total))
        for i in np.flatnonzero(size[self.row] == 1):
            amount = total[self.row[i]] / self.weight[i]
            found.append((self.series[i], self.start[i], self.stop[i], amount, self.row[i : i + 1]))
        found += self._tiled(total)
        found.sort(key=lambda each: (each[0], each[1], each[2]))
        series, start, stop, amounts, rows = zip(*found, strict=True) if found else ((),) * 5
        return (
            np.array(series, np.int64), np.array(start, np.int32), np.array(stop, np.int32),
            np.array(amounts, np.float64), list(rows),
        )  # fmt: skip

    def _tiled(self, total: np.ndarray) -> list[tuple[Any, ...]]:
        """Intervals that several rows of a series fill together, each period once."""
        heads = np.flatnonzero(np.diff(self.row, prepend=-1))
        same = np.minimum.reduceat(self.series, heads) == np.maximum.reduceat(self.series, heads)
        same &= np.minimum.reduceat(self.weight, heads) == np.maximum.reduceat(self.weight, heads)
        owner, first = self.series[heads], np.minimum.reduceat(self.start, heads)
        last, size = np.maximum.reduceat(self.stop, heads), np.diff(np.append(heads, len(self.row)))
        found: list[tuple[Any, ...]] = []
        for n in np.unique(owner[same & (size > 1)]):
            own = np.flatnonzero(same & (owner == n))
            own = own[np.argsort(first[own], kind="stable")]
            fresh = np.append(True, first[own][1:] >= np.maximum.accumulate(last[own])[:-1])
            for cluster in np.split(own, np.flatnonzero(fresh)[1:]):
                begin, end = first[cluster].min(), last[cluster].max()
                times = np.zeros(end - begin, np.int64)
                amount = 0.0
                for place in cluster:
                    some = slice(heads[place], heads[place] + size[place])
                    for low, high in zip(self.start[some], self.stop[some], strict=True):
                        times[low - begin : high - begin] += 1
                    amount += total[self.row[heads[place]]] / self.weight[heads[place]]
                if len(cluster) > 1 and (times == 1).all():
                    found.append((n, begin, end, amount, self.row[heads[cluster]]))
        return found
