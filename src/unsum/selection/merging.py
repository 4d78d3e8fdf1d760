"""Readings made coarser on purpose: neighbours merged, and what is known about how they split."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsum.draws import name_keys, sample_series, uniform
from unsum.errors import ParameterError
from unsum.findings import Findings
from unsum.methods.nmf import levels
from unsum.readings import Readings

SHARE = 0.5  # of the pairs that could be merged
LEFT_OUT = 0.25  # of the series lose their first or their last reading
MAX_READINGS = 8_000  # of the series that methods are judged by


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
    left_out: Readings  # first or last readings of some series that are not in `readings` at all

    @property
    def weight(self) -> np.ndarray:
        """What a missed split counts: both halves, each spread evenly over its periods."""
        weight: np.ndarray = 1 / (self.middle - self.start) + 1 / (self.stop - self.middle)
        return weight

    def score(self, values: np.ndarray) -> float:
        """Relative error of the split by recovered values (n_series, n_periods); 0 is perfect.

        A mean of errors, not of their squares, so that a few wild readings do not decide.
        """
        error, size = self.errors(values).mean(), self.sizes().mean()
        return float(error / size) if size > 0 else float(error > 0)

    def errors(self, values: np.ndarray) -> np.ndarray:
        """The error of every split, as in a mean-normalised panel with halves spread evenly."""
        errors: np.ndarray = np.abs(self.gaps(values, self.level)) * np.sqrt(self.weight)
        return errors

    def sizes(self) -> np.ndarray:
        """What is split, in the units of its error."""
        before, after = self.middle - self.start, self.stop - self.middle
        squares = (self.first / self.level) ** 2 / before + (self.second / self.level) ** 2 / after
        return np.asarray(np.sqrt(squares))

    def gaps(self, values: np.ndarray, level: np.ndarray) -> np.ndarray:
        """By how much recovered values miss the first half of each pair, in units of its level."""
        unit = np.maximum(values.max(axis=1), np.finfo(float).tiny)  # sums must not overflow
        sums = np.cumsum(values / unit[:, None], axis=1)
        sums = np.concatenate([np.zeros((len(values), 1)), sums], axis=1)
        found = sums[self.series, self.middle] - sums[self.series, self.start]
        gaps: np.ndarray = found * (unit[self.series] / level) - self.first / level
        return gaps


def sample_readings(readings: Readings, seed: int) -> np.ndarray:
    """The places of all series, or of some that have enough readings to judge by."""
    if readings.n_readings <= MAX_READINGS:
        return np.arange(readings.n_series)
    size = max(1, readings.n_series * MAX_READINGS // readings.n_readings)
    return sample_series(readings.names, size, seed)


def merge_neighbours(readings: Readings, share: float = SHARE, seed: int = 0) -> Merged:
    """Merge a share of the pairs of readings that touch, at random; no reading is in two pairs.

    Estimated readings are left as they are.
    """
    series = readings.series_of_readings()
    place = np.arange(readings.n_readings) - readings.indptr[series]
    touches = np.zeros(readings.n_readings, np.bool_)
    touches[:-1] = (series[1:] == series[:-1]) & (readings.start[1:] == readings.stop[:-1])
    if readings.estimated is not None:
        touches[:-1] &= ~(readings.estimated[1:] | readings.estimated[:-1])
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
    paired = chosen.copy()
    paired[pairs + 1] = True
    ends = _choose_ends(readings, keys, paired)
    kept[ends] = False
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
        estimated=None if readings.estimated is None else readings.estimated[kept],
        findings=Findings(),
    )
    return Merged(
        coarser, series[pairs], readings.start[pairs], readings.stop[pairs],
        readings.stop[pairs + 1], readings.total[pairs], readings.total[pairs + 1],
        level[series[pairs]], _only(readings, ends),
    )  # fmt: skip


def _choose_ends(readings: Readings, keys: np.ndarray, paired: np.ndarray) -> np.ndarray:
    """The first or last readings of some series with three or more, if they are not in a pair."""
    last = uniform(keys, 2**32) < 0.5
    ends = np.where(last, readings.indptr[1:] - 1, readings.indptr[:-1])
    used = (np.diff(readings.indptr) >= 3) & (uniform(keys, 2**32 + 1) < LEFT_OUT) & ~paired[ends]
    if readings.estimated is not None:
        used &= ~readings.estimated[ends]
    return np.asarray(ends[used])


def _only(readings: Readings, places: np.ndarray) -> Readings:
    """The same series with some of their readings."""
    series = readings.series_of_readings()[places]
    counts = np.bincount(series, minlength=readings.n_series)
    return replace(
        readings,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        start=readings.start[places],
        stop=readings.stop[places],
        total=readings.total[places],
        estimated=None,
        findings=Findings(),
    )
