"""Grids too long for one covariance: first by blocks of periods, then within windows of blocks.

The blocks of the whole range (days of half hours) are a panel of their own. Within windows of a few
blocks (a week), a series has its own short readings, and the totals of the other blocks. Windows of
all series and of a part of the range are draws from one population: series that are read finely
teach the shape of a day to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from unsum.calendar import Calendar
from unsum.draws import reading_lengths, sample_series
from unsum.errors import ParameterError
from unsum.population.learn import learn_population
from unsum.population.model import Population
from unsum.population.uncertainty import Doubtful
from unsum.readings import Readings
from unsum.traits import Traits

MAX_BLOCKS = 1000
MAX_SEASON = 1500  # periods of a block, if it is a season
MAX_SPAN = 900  # periods of a window with its margins, unless it is a single block
ENOUGH_SPAN = 700  # which margins of more than a block do not exceed
BLOCKS, MARGIN = 7, 5  # of a window, and beyond both of its ends, at most
MAX_GROUPS = 6  # parts of the range with a population of their own
MAX_FINE, MAX_OTHERS = 200, 100  # series that the windows are learned from
MAX_DRAWS = 800  # windows of series that a population is learned from
STEPS = 10
ALIKE, USUAL = 0.02, 1.0  # the same where no two series are fully read, and windows it is worth


@dataclass(frozen=True)
class Stages:
    """How a grid is cut: periods in a block, and in a window of whole blocks."""

    n_periods: int
    block: int
    window: int
    margin: int = 0  # what is seen beyond both ends of a window

    @classmethod
    def choose(cls, n_periods: int, season: int) -> Stages:
        """Blocks are seasons, where there is one, or what leaves a thousand of them."""
        if n_periods > MAX_BLOCKS * MAX_SPAN:
            raise ParameterError(
                f"method 'panel' handles up to {MAX_BLOCKS * MAX_SPAN:,} periods, these are "
                f"{n_periods:,}; use a coarser step, or another method."
            )
        block = season if 1 < season <= MAX_SEASON else 1
        if -(-n_periods // block) > MAX_BLOCKS:
            block *= -(-n_periods // (block * MAX_BLOCKS))
        most = max(1, MAX_SPAN // block)
        margin = max(1, min(MARGIN, (ENOUGH_SPAN // block - BLOCKS) // 2)) if most > 2 else 0
        return cls(n_periods, block, block * min(BLOCKS, most - 2 * margin), block * margin)

    @property
    def n_blocks(self) -> int:
        return -(-self.n_periods // self.block)

    @property
    def span(self) -> int:
        """The periods that are seen with a window."""
        return self.window + 2 * self.margin

    @property
    def begins(self) -> np.ndarray:
        """Where windows begin."""
        return np.arange(0, self.n_periods, self.window)

    def coarsen(self, readings: Readings) -> Readings:
        """The readings by blocks; every series has at least one."""
        from unsum.kernels.blocks import block_readings

        counts = np.empty(readings.n_series, np.int64)
        made = _Made.room(readings.n_readings)
        made = made.cut(
            block_readings(*readings.arrays, _soft(readings), self.block, counts, *made.columns)
        )
        none = np.flatnonzero(counts == 0)  # whose readings lie between edges
        if len(none):
            places = np.concatenate([[0], np.cumsum(counts)])[none]
            heads = readings.indptr[:-1]
            covered = np.add.reduceat(readings.stop - readings.start, heads)[none]
            rate = np.add.reduceat(readings.total, heads)[none] / covered
            where = np.minimum(readings.start[heads[none]] // self.block, self.n_blocks - 1)
            soft = np.logical_or.reduceat(_soft(readings), heads)[none]
            rows = (where, where + 1, rate * self.block, soft)
            made = _Made(
                *(np.insert(*each) for each in zip(made.columns, [places] * 4, rows, strict=True))
            )
            counts[none] = 1
        coarse = made.as_readings(readings, self.n_blocks, counts)
        lost = np.add.reduceat(coarse.total, coarse.indptr[:-1]) <= 0
        lost &= np.maximum.reduceat(readings.total, readings.indptr[:-1]) > 0
        if lost.any():  # all that is positive lies between edges
            whole = np.add.reduceat(readings.total, readings.indptr[:-1])
            total = coarse.total.copy()
            total[coarse.indptr[:-1][lost]] = whole[lost]
            coarse = coarse.with_totals(total)
        return coarse

    def each(self, windows: Sequence[Doubtful]) -> Iterator[tuple[int, Doubtful]]:
        """Where each window begins, and the population of its part of the range."""
        for known, begins in zip(windows, np.array_split(self.begins, len(windows)), strict=True):
            for begin in begins:
                yield int(begin), known

    def look(
        self, readings: Readings, blocks: np.ndarray, begin: int
    ) -> tuple[np.ndarray, Readings]:
        """The places of the series that have readings in a window, with its margins, and these."""
        from unsum.kernels.blocks import window_readings

        counts = np.empty(readings.n_series, np.int64)
        made = _Made.room(readings.n_readings + readings.n_series * (self.span // self.block))
        made = made.cut(
            window_readings(
                *readings.arrays, _soft(readings), blocks, self.block, begin - self.margin,
                self.span, counts, *made.columns,
            )
        )  # fmt: skip
        places = np.flatnonzero(counts)
        return places, made.as_readings(readings, self.span, counts).take(places)


def _soft(readings: Readings) -> np.ndarray:
    if readings.estimated is None:
        return np.broadcast_to(np.False_, readings.n_readings)
    return readings.estimated


@dataclass(frozen=True)
class _Made:
    """Readings that are being made."""

    first: np.ndarray
    last: np.ndarray
    sums: np.ndarray
    soft: np.ndarray

    @classmethod
    def room(cls, most: int) -> _Made:
        kinds = (np.int64, np.int64, np.float64, np.bool_)
        return cls(*(np.empty(most, kind) for kind in kinds))

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.first, self.last, self.sums, self.soft

    def cut(self, count: int) -> _Made:
        return _Made(*(column[:count] for column in self.columns))

    def as_readings(self, of: Readings, n_periods: int, counts: np.ndarray) -> Readings:
        """As readings of the same series on another grid."""
        return Readings(
            of.names, Calendar.numbered(n_periods), np.concatenate([[0], np.cumsum(counts)]),
            self.first.astype(np.int32), self.last.astype(np.int32), self.sums,
            np.tile(np.array([0, n_periods], np.int32), (len(counts), 1)),
            estimated=None if of.estimated is None else self.soft,
        )  # fmt: skip


def recover_blocks(population: Population, blocks: Readings, levels: np.ndarray) -> np.ndarray:
    """Means of series by blocks, nonnegative, that meet their readings."""
    from unsum.kernels.totals import meet_totals

    values = np.empty((blocks.n_series, blocks.n_periods))
    population.condition(blocks, levels, values)
    meet_totals(*blocks.binding().arrays, blocks.active, values)
    return values


def learn_windows(
    readings: Readings,
    stages: Stages,
    fill_blocks: Callable[[np.ndarray], np.ndarray],
    *,
    shrinkage: float,
    season: int,
    traits: Traits | None,
    doubt: float | None,
    seed: int,
    threads: int | None,
) -> tuple[list[Doubtful], float]:
    """A population of windows for each part of the range; `fill_blocks` gives blocks of series.

    Also the share of what windows leave open that series have in common at the same dates.
    """
    places = _teachers(readings, stages, seed)
    sample = readings.take(places)
    blocks = fill_blocks(places)
    begins = stages.begins
    n_groups = min(MAX_GROUPS, len(begins))
    populations, likeness = [], Likeness(stages)
    for group in np.array_split(np.arange(len(begins)), n_groups):
        most = max(1, MAX_DRAWS // sample.n_series)
        chosen = group[np.unique(np.linspace(0, len(group) - 1, most).astype(int))]
        windows = [stages.look(sample, blocks, int(begins[k]))[1] for k in chosen]
        seen = _join(windows, named=traits is not None)
        if not seen.n_series:  # nothing was used there; then at any time
            windows = [stages.look(sample, blocks, int(k))[1] for k in begins]
            seen = _join(windows, named=traits is not None)[:MAX_DRAWS]
        if not seen.n_series:
            flat = Population(np.ones(stages.span), np.zeros((stages.span, stages.span)))
            return [Doubtful(flat, flat.covariance)] * n_groups, ALIKE
        learned = learn_population(
            seen, shrinkage=shrinkage, steps=STEPS, season=season, traits=traits, doubt=doubt,
            seed=seed, threads=threads,
        )  # fmt: skip
        # Windows follow the levels of blocks.
        population = replace(learned.population, wander=0.0, level=0.0)
        populations.append(Doubtful.learned_from(seen, population, season))
        likeness.learn(population, windows)
    return populations, likeness.share


def given_blocks(population: Population, block: int) -> tuple[np.ndarray, np.ndarray]:
    """How periods answer to the sums of blocks (n_blocks, n_periods), and what these leave open."""
    edges = np.arange(0, population.n_periods + 1, block)
    sums = population.row_sums[edges[1:]] - population.row_sums[edges[:-1]]
    inner = np.add.reduceat(sums, edges[:-1], axis=1)
    inner += population.noise * block * np.eye(len(inner))
    response = np.linalg.solve(inner, sums)
    left = np.diag(population.covariance) - np.sum(sums * response, axis=0)
    return response, np.maximum(left, 0.0)


class Likeness:
    """Whether series miss what their blocks say of a window together, where they are fully read."""

    def __init__(self, stages: Stages) -> None:
        self.block = stages.block
        self.together, self.whole = 0.0, 0.0

    @property
    def share(self) -> float:
        found = (self.together + USUAL * ALIKE) / (self.whole + USUAL)
        return float(np.clip(found, 0.0, 1.0))

    def learn(self, population: Population, windows: Sequence[Readings]) -> None:
        """From pairs of series in windows at the same dates."""
        n = population.n_periods
        response, _ = given_blocks(population, self.block)
        for window in windows:
            used = np.maximum.reduceat(window.total, window.indptr[:-1]) > 0
            known = window.take(np.flatnonzero(window.complete() & used))
            if known.n_series < 2:
                continue
            values = population.scale(known, population.levels(known)).reshape(-1, n)
            gaps = values - population.mean
            gaps -= np.add.reduceat(gaps, np.arange(0, n, self.block), axis=1) @ response
            size = np.sqrt(np.mean(gaps**2, axis=1, keepdims=True))
            gaps = np.divide(gaps, size, out=gaps, where=size > 0)
            count = len(gaps)
            shared = np.mean(gaps.sum(axis=0) ** 2) - count
            self.together += shared / (count * (count - 1))
            self.whole += 1.0


def _teachers(readings: Readings, stages: Stages, seed: int) -> np.ndarray:
    """Series to learn windows from: finely read ones first, none that is zero throughout."""
    heads = readings.indptr[:-1]
    useful = np.maximum.reduceat(readings.total, heads) > 0
    short = reading_lengths(readings)[0] < stages.block
    chosen = []
    for some, most in ((useful & short, MAX_FINE), (useful & ~short, MAX_OTHERS)):
        places = np.flatnonzero(some)
        names = readings.names.take(places)
        chosen.append(places[sample_series(names, most, seed)])
    return np.sort(np.concatenate(chosen))


def _join(parts: list[Readings], *, named: bool) -> Readings:
    """Windows one after the other, as series of their own, without those that are zero.

    They keep the names of their series where these have traits.
    """
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    soft = [part.estimated for part in parts if part.estimated is not None]
    together = Readings(
        names=pa.concat_arrays([part.names for part in parts])
        if named
        else pa.array(np.arange(len(counts))),
        calendar=parts[0].calendar,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        start=np.concatenate([part.start for part in parts]),
        stop=np.concatenate([part.stop for part in parts]),
        total=np.concatenate([part.total for part in parts]),
        active=np.concatenate([part.active for part in parts]),
        estimated=np.concatenate(soft) if soft else None,
    )
    largest = np.maximum.reduceat(together.total, together.indptr[:-1])
    return together.take(np.flatnonzero(largest > 0))
