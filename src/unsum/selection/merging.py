"""Readings made coarser on purpose, so that what was taken away can be asked for.

Where series are read about equally often, neighbouring readings are merged in pairs. Where some are
read far more often than others (smart meters among bills), some of those are given the intervals of
the others: what is asked for is then what is really wanted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsum.draws import name_keys, reading_lengths, sample_within, uniform
from unsum.errors import ParameterError
from unsum.methods.nmf import levels
from unsum.methods.panel import MAX_PERIODS
from unsum.readings import Readings

SHARE = 0.5  # of the pairs that could be merged, of the series that could imitate others
LEFT_OUT = 0.25  # of the series lose their first or their last reading
FEWEST = 4  # imitating series that can tell anything
ENOUGH, MAX_READINGS = 8_000, 50_000  # of the series that methods are judged by
MAX_WORK = 4_000_000_000  # more than enough, as long as readings times squared periods are not more
MAX_OF_LONG = 100_000  # the same on long grids, where a reading costs less
MAX_VALUES = 8_000_000  # of the same series; every trial keeps its own


class NothingToMergeError(ParameterError):
    """No two readings of a series touch."""


@dataclass(frozen=True)
class Merged:
    """Coarser readings, and those that are hidden in them."""

    readings: Readings
    hidden: Readings  # what the merged readings were before
    left_out: Readings  # first or last readings of some series, no longer covered at all
    level: np.ndarray  # the mean of each series

    def score(self, values: np.ndarray) -> float:
        """Relative error of recovered values (n_series, n_periods) on hidden readings.

        A mean of errors, not of their squares, so that a few wild readings do not decide.
        """
        error, size = self.errors(values).mean(), self.sizes().mean()
        return float(error / size) if size > 0 else float(error > 0)

    def errors(self, values: np.ndarray) -> np.ndarray:
        """The error of every hidden reading, as in a mean-normalised panel if spread evenly."""
        length = self.hidden.stop - self.hidden.start
        errors: np.ndarray = np.abs(self.gaps(self.hidden, values, self.level)) / np.sqrt(length)
        return errors

    def sizes(self) -> np.ndarray:
        """Hidden readings in the units of their errors."""
        level = self.level[self.hidden.series_of_readings()]
        length = self.hidden.stop - self.hidden.start
        return np.asarray(self.hidden.total / level / np.sqrt(length))

    @staticmethod
    def gaps(asked: Readings, values: np.ndarray, level: np.ndarray) -> np.ndarray:
        """By how much recovered values miss readings, in units of the level of their series."""
        unit = np.maximum(values.max(axis=1), np.finfo(float).tiny)  # sums must not overflow
        sums = np.cumsum(values / unit[:, None], axis=1)
        sums = np.concatenate([np.zeros((len(values), 1)), sums], axis=1)
        series = asked.series_of_readings()
        found = sums[series, asked.stop] - sums[series, asked.start]
        gaps: np.ndarray = found * (unit[series] / level[series]) - asked.total / level[series]
        return gaps


def sample_readings(readings: Readings, seed: int) -> np.ndarray:
    """The places of all series, or of some that have enough readings to judge by.

    Series that are read at every period cost next to nothing, but they have values. Teachers all
    stay.
    """
    counts = np.diff(readings.indptr)
    most = int(np.clip(MAX_WORK // readings.n_periods**2, ENOUGH, MAX_READINGS))
    if readings.n_periods > MAX_PERIODS:
        most = MAX_OF_LONG
    cost = np.where(counts == readings.n_periods, 1, counts) / most
    cost = np.maximum(cost, readings.n_periods / MAX_VALUES)
    n_own = _n_own(readings)
    own = sample_within(readings, np.arange(n_own), cost[:n_own], seed)
    return np.concatenate([own, np.arange(n_own, readings.n_series)])


def merge_neighbours(readings: Readings, share: float = SHARE, seed: int = 0) -> Merged:
    """Merge neighbouring readings, at random by the names of series.

    Estimated readings are left as they are.
    """
    keys = name_keys(readings.names, seed)
    touches = _touching(readings)
    joined = _imitate(readings, keys, touches, share)
    if joined is None:
        joined = _pair(readings, keys, touches, share)
    if not joined.any():
        if not (levels(readings) > 0).any():
            raise NothingToMergeError("all readings are zero.")
        raise NothingToMergeError("no two readings of a series touch, so none can be merged.")
    merged = joined.copy()
    merged[:-1] |= joined[1:]
    ends = _choose_ends(readings, keys, merged)
    kept = np.ones(readings.n_readings, np.bool_)
    kept[ends] = False
    heads = kept & ~joined
    places = np.flatnonzero(heads)
    group = np.cumsum(heads) - 1
    in_order = np.flatnonzero(kept)
    last = in_order[np.append(np.flatnonzero(np.diff(group[in_order])), len(in_order) - 1)]
    coarser = readings.keep(heads)
    total = np.bincount(group[kept], readings.total[kept], len(places))
    alone = ~merged[places]
    return Merged(
        replace(
            coarser,
            stop=readings.stop[last],
            total=np.where(alone, readings.total[places], total),
        ),
        readings.keep(merged),
        readings.keep(~kept),
        levels(readings),
    )


def _n_own(readings: Readings) -> int:
    """Series before the teachers, who are left as they are."""
    return readings.n_series - readings.n_teachers


def _touching(readings: Readings) -> np.ndarray:
    """Which readings begin where the one before them, of the same series, ends."""
    series = readings.series_of_readings()
    touches = np.zeros(readings.n_readings, np.bool_)
    touches[1:] = (series[1:] == series[:-1]) & (readings.start[1:] == readings.stop[:-1])
    if readings.estimated is not None:
        touches[1:] &= ~(readings.estimated[1:] | readings.estimated[:-1])
    touches &= (levels(readings)[series] > 0) & (series < _n_own(readings))
    return touches


def _pair(readings: Readings, keys: np.ndarray, touches: np.ndarray, share: float) -> np.ndarray:
    """Which readings are merged with the one before; no reading is in two pairs."""
    series = readings.series_of_readings()
    place = np.arange(readings.n_readings) - readings.indptr[series]
    parity = (uniform(keys, 0) < 0.5)[series]
    draws = uniform(keys[series], place)
    chosen = touches & ((place + parity) % 2 == 1) & (draws < share)
    if touches.any() and not chosen.any():  # a small panel: then one pair is merged
        chosen[np.argmin(np.where(touches, draws, np.inf))] = True
    return np.asarray(chosen)


def _imitate(
    readings: Readings, keys: np.ndarray, touches: np.ndarray, share: float
) -> np.ndarray | None:
    """Which readings are merged with the one before, so that some series look like coarser ones.

    None where too few series are read at least twice as often as is usual.
    """
    length, usual = reading_lengths(readings)
    pupil = np.arange(readings.n_series) < _n_own(readings)
    fine = np.flatnonzero(pupil & (length <= usual / 2) & (uniform(keys, 2**33) < share))
    coarse = np.flatnonzero(pupil & (length >= usual / 2))
    joined = np.zeros(readings.n_readings, np.bool_)
    imitating = 0
    for n in fine:
        model = coarse[int(uniform(keys[n : n + 1], 2**33 + 1)[0] * len(coarse))]
        own = slice(readings.indptr[n], readings.indptr[n + 1])
        other = slice(readings.indptr[model], readings.indptr[model + 1])
        joined[own] = _joined_by(
            readings.start[own], readings.stop[own], touches[own], readings.start[other],
            readings.stop[other],
        )  # fmt: skip
        imitating += bool(joined[own].any())
    return joined if imitating >= FEWEST else None


def _joined_by(
    start: np.ndarray, stop: np.ndarray, touches: np.ndarray, first: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Which readings of a series lie in an interval of another that they tile, not at its start."""
    joined = np.zeros(len(start), np.bool_)
    low, high = np.searchsorted(start, first), np.searchsorted(stop, last)
    for a, b, begin, end in zip(low, high, first, last, strict=True):
        tiles = b < len(stop) and a < b and start[a] == begin and stop[b] == end
        if tiles and touches[a + 1 : b + 1].all():
            joined[a + 1 : b + 1] = True
    return joined


def _choose_ends(readings: Readings, keys: np.ndarray, merged: np.ndarray) -> np.ndarray:
    """The first or last readings of some series with three or more, if they are not merged."""
    last = uniform(keys, 2**32) < 0.5
    ends = np.where(last, readings.indptr[1:] - 1, readings.indptr[:-1])
    used = (np.diff(readings.indptr) >= 3) & (uniform(keys, 2**32 + 1) < LEFT_OUT) & ~merged[ends]
    used &= np.arange(readings.n_series) < _n_own(readings)
    if readings.estimated is not None:
        used &= ~readings.estimated[ends]
    return np.asarray(ends[used])
