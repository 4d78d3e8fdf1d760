"""Grids too long for one covariance: first by blocks of periods, then within windows of blocks.

The blocks of the whole range (days of half hours) are a panel of their own. Within windows of a few
blocks (a week), a series has its own short readings, and the totals of the other blocks. Windows of
all series and of a part of the range are draws from one population: series that are read finely
teach the shape of a day to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unsum.calendar import Calendar
from unsum.draws import sample_series
from unsum.errors import ParameterError
from unsum.population.learn import learn_population
from unsum.population.model import Population
from unsum.readings import Readings

MAX_BLOCKS = 1000
MAX_WINDOW = 700
MAX_GROUPS = 6  # parts of the range with a population of their own
MAX_FINE, MAX_OTHERS = 200, 100  # series that the windows are learned from
MAX_DRAWS = 800  # windows of series that a population is learned from
STEPS = 10


@dataclass(frozen=True)
class Stages:
    """How a grid is cut: periods in a block, and in a window of whole blocks."""

    n_periods: int
    block: int
    window: int

    @classmethod
    def choose(cls, n_periods: int, season: int) -> Stages:
        """Blocks are seasons, where there is one, or what leaves a thousand of them."""
        if n_periods > MAX_BLOCKS * MAX_WINDOW:
            raise ParameterError(
                f"method 'panel' handles up to {MAX_BLOCKS * MAX_WINDOW:,} periods, these are "
                f"{n_periods:,}; use a coarser step, or another method."
            )
        block = max(1, season)
        if -(-n_periods // block) > MAX_BLOCKS:
            block *= -(-n_periods // (block * MAX_BLOCKS))
        return cls(n_periods, block, block * max(1, min(7, MAX_WINDOW // block)))

    @property
    def n_blocks(self) -> int:
        return -(-self.n_periods // self.block)

    @property
    def begins(self) -> np.ndarray:
        """Where windows begin."""
        return np.arange(0, self.n_periods, self.window)

    def coarsen(self, readings: Readings) -> Readings:
        """The readings by blocks; every series has at least one."""
        from unsum.kernels.blocks import block_readings

        counts = np.empty(readings.n_series, np.int64)
        first, last = (np.empty(readings.n_readings, np.int64) for _ in range(2))
        sums = np.empty(readings.n_readings)
        made = block_readings(*readings.arrays, self.block, counts, first, last, sums)
        first, last, sums = first[:made], last[:made], sums[:made]
        none = np.flatnonzero(counts == 0)
        if len(none):
            places = np.concatenate([[0], np.cumsum(counts)])[none]
            heads = readings.indptr[:-1]
            covered = np.add.reduceat(readings.stop - readings.start, heads)[none]
            rate = np.add.reduceat(readings.total, heads)[none] / covered
            where = np.minimum(readings.start[heads[none]] // self.block, self.n_blocks - 1)
            first, last = np.insert(first, places, where), np.insert(last, places, where + 1)
            sums = np.insert(sums, places, rate * self.block)
            counts[none] = 1
        return _readings(readings.names, self.n_blocks, counts, first, last, sums)

    def look(
        self, readings: Readings, blocks: np.ndarray, begin: int
    ) -> tuple[Readings, np.ndarray]:
        """The readings of a window, and how many of each series are its own."""
        from unsum.kernels.blocks import window_readings

        counts, own = (np.empty(readings.n_series, np.int64) for _ in range(2))
        most = readings.n_readings + readings.n_series * (self.window // self.block)
        first, last = (np.empty(most, np.int64) for _ in range(2))
        sums = np.empty(most)
        made = window_readings(
            *readings.arrays, blocks, self.block, begin, self.window, counts, own, first, last,
            sums,
        )  # fmt: skip
        seen = _readings(
            readings.names, self.window, counts, first[:made], last[:made], sums[:made]
        )
        return seen, own


def learn_windows(
    readings: Readings,
    stages: Stages,
    fill_blocks: Callable[[np.ndarray], np.ndarray],
    *,
    shrinkage: float,
    season: int,
    seed: int,
    threads: int | None,
) -> list[Population]:
    """A population of windows for each part of the range; `fill_blocks` gives blocks of series."""
    places = _teachers(readings, stages, seed)
    sample = readings.take(places)
    blocks = fill_blocks(places)
    begins = stages.begins
    n_groups = min(MAX_GROUPS, len(begins))
    populations = []
    for group in np.array_split(np.arange(len(begins)), n_groups):
        most = max(1, MAX_DRAWS // sample.n_series)
        chosen = group[np.unique(np.linspace(0, len(group) - 1, most).astype(int))]
        seen = _join([stages.look(sample, blocks, int(begins[k]))[0] for k in chosen])
        if not seen.n_series:  # nothing was used there; then at any time
            seen = _join([stages.look(sample, blocks, int(k))[0] for k in begins])
            seen = seen[:MAX_DRAWS]
        learned = learn_population(
            seen, shrinkage=shrinkage, steps=STEPS, season=season, seed=seed, threads=threads
        )
        populations.append(learned.population)
    return populations


def _teachers(readings: Readings, stages: Stages, seed: int) -> np.ndarray:
    """Series to learn windows from: finely read ones first, none that is zero throughout."""
    heads = readings.indptr[:-1]
    useful = np.maximum.reduceat(readings.total, heads) > 0
    short = np.minimum.reduceat(readings.stop - readings.start, heads) < stages.block
    chosen = []
    for some, most in ((useful & short, MAX_FINE), (useful & ~short, MAX_OTHERS)):
        places = np.flatnonzero(some)
        names = readings.names.take(places)
        chosen.append(places[sample_series(names, most, seed)])
    return np.sort(np.concatenate(chosen))


def _join(parts: list[Readings]) -> Readings:
    """Windows one after the other, as series of their own, without those that are zero."""
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    total = np.concatenate([part.total for part in parts])
    together = _readings(
        np.arange(len(counts)),
        parts[0].n_periods,
        counts,
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.stop for part in parts]),
        total,
    )
    seen = np.flatnonzero(counts > 0)
    largest = np.maximum.reduceat(total, together.indptr[:-1][seen])
    return together.take(seen[largest > 0])


def _readings(
    names: object, n_periods: int, counts: np.ndarray, first: np.ndarray, last: np.ndarray,
    sums: np.ndarray,
) -> Readings:  # fmt: skip
    import pyarrow as pa

    labels = names if isinstance(names, pa.Array | pa.ChunkedArray) else pa.array(names)
    active = np.tile(np.array([0, n_periods], np.int32), (len(counts), 1))
    return Readings(
        labels, Calendar.numbered(n_periods), np.concatenate([[0], np.cumsum(counts)]),
        first.astype(np.int32), last.astype(np.int32), sums, active,
    )  # fmt: skip
