"""Coarser readings, and what is known about how they split."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsum.draws import name_keys, uniform
from unsum.errors import ParameterError
from unsum.findings import Findings
from unsum.methods.nmf import levels
from unsum.readings import Readings

SHARE = 0.5  # of the pairs that could be merged


@dataclass(frozen=True)
class Merged:
    """Coarser readings, and what is known about the split of those that were merged."""

    readings: Readings
    series: np.ndarray
    start: np.ndarray
    middle: np.ndarray
    stop: np.ndarray
    first: np.ndarray  # the totals before and after the middle
    second: np.ndarray
    level: np.ndarray  # the mean of each pair's series

    def score(self, values: np.ndarray) -> float:
        """Relative error of the split by recovered values (n_series, n_periods); 0 is perfect.

        As in a mean-normalised panel, with each half of a pair spread evenly.
        """
        before, after = self.middle - self.start, self.stop - self.middle
        squares = (self.first / self.level) ** 2 / before + (self.second / self.level) ** 2 / after
        size = float(np.sum(squares))
        error = float(np.sum(self.gaps(values, self.level) ** 2 * (1 / before + 1 / after)))
        return float(np.sqrt(error / size)) if size > 0 else float(error > 0)

    def gaps(self, values: np.ndarray, level: np.ndarray) -> np.ndarray:
        """By how much recovered values miss the first half of each pair, in units of its level."""
        unit = np.maximum(values.max(axis=1), np.finfo(float).tiny)  # sums must not overflow
        sums = np.cumsum(values / unit[:, None], axis=1)
        sums = np.concatenate([np.zeros((len(values), 1)), sums], axis=1)
        found = sums[self.series, self.middle] - sums[self.series, self.start]
        gaps: np.ndarray = found * (unit[self.series] / level) - self.first / level
        return gaps


def merge_neighbours(readings: Readings, share: float = SHARE, seed: int = 0) -> Merged:
    """Merge a share of the pairs of readings that touch, at random; no reading is in two pairs."""
    series = readings.series_of_readings()
    place = np.arange(readings.n_readings) - readings.indptr[series]
    touches = np.zeros(readings.n_readings, np.bool_)
    touches[:-1] = (series[1:] == series[:-1]) & (readings.start[1:] == readings.stop[:-1])
    keys = name_keys(readings.names, seed)
    parity = (uniform(keys, 0) < 0.5)[series]
    level = levels(readings)
    chosen = touches & ((place + parity) % 2 == 0) & (level[series] > 0)
    chosen &= uniform(keys[series], place + 1) < share
    pairs = np.flatnonzero(chosen)
    if not len(pairs):
        raise ParameterError("no two readings of a series touch, so none can be merged.")
    kept = np.ones(readings.n_readings, np.bool_)
    kept[pairs + 1] = False
    stop, total = readings.stop.copy(), readings.total.copy()
    stop[pairs] = readings.stop[pairs + 1]
    total[pairs] += readings.total[pairs + 1]
    counts = np.bincount(series[kept], minlength=readings.n_series)
    coarser = replace(
        readings,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        start=readings.start[kept],
        stop=stop[kept],
        total=total[kept],
        estimated=None,
        findings=Findings(),
    )
    return Merged(
        coarser, series[pairs], readings.start[pairs], readings.stop[pairs],
        readings.stop[pairs + 1], readings.total[pairs], readings.total[pairs + 1],
        level[series[pairs]],
    )  # fmt: skip
