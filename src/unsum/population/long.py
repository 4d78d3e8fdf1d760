"""How sure the populations of a long grid are: by blocks, and within windows of blocks.

A period has a place among the blocks: the whole ones before it, and the share of its own block that
usually comes before. A sum between two places has what is open about blocks, as if they were filled
in the usual way; and on top what is open within its first and its last block, given all blocks.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from unsum.population.stages import Stages, given_blocks, recover_blocks
from unsum.population.uncertainty import Asked, Doubt, Doubtful, Expected
from unsum.readings import Readings
from unsum.traits import Traits

MAX_ASKED = 1 << 20  # sums at once
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]  # of the edges of blocks around a sum


@dataclass(frozen=True)
class LongDoubtful:
    """The population of blocks with its doubt, and those of windows."""

    stages: Stages
    blocks: Doubtful
    windows: list[Doubtful]
    alike: float  # the share of what windows leave open that series have in common

    @property
    def covariance_of_mean(self) -> np.ndarray:
        return self.blocks.covariance_of_mean

    @property
    def traits(self) -> Traits | None:
        return self.blocks.traits

    def forget(self) -> LongDoubtful:
        windows = [known.forget() for known in self.windows]
        return replace(self, blocks=self.blocks.forget(), windows=windows)

    def knowing(self, traits: Traits | None) -> LongDoubtful:
        windows = [known.knowing(traits) for known in self.windows]
        return replace(self, blocks=self.blocks.knowing(traits), windows=windows)

    def levels(self, readings: Readings) -> np.ndarray:
        return self.blocks.levels(self.stages.coarsen(readings))

    def sources(self, part: Readings, levels: np.ndarray) -> np.ndarray:
        """As of a short grid, of blocks."""
        return self.blocks.sources(self.stages.coarsen(part), levels)

    def expect(self, names: pa.Array) -> Expected:
        """Of series by their traits alone: blocks, filled as windows of such series are."""
        stages, found = self.stages, self.blocks.expect(names)
        block = np.arange(stages.n_periods) // stages.block
        share = np.diff(self.places)
        values, within = found.values[:, block] * share, np.zeros(stages.n_periods)
        for begin, known in stages.each(self.windows):
            population = known.population
            own = slice(begin, min(begin + stages.window, stages.n_periods))
            seen = slice(stages.margin, stages.margin + own.stop - begin)
            shapes = known.expect(names).values
            sums = np.add.reduceat(shapes, np.arange(0, stages.span, stages.block), axis=1)
            shares = shapes / np.maximum(np.repeat(sums, stages.block, axis=1), 1e-300)
            values[:, own] = found.values[:, block[own]] * shares[:, seen]
            _, left = given_blocks(population, stages.block)
            usual = np.add.reduceat(population.mean, np.arange(0, stages.span, stages.block))
            scale = self.blocks.population.mean[block[own]]
            scale = scale / np.repeat(usual, stages.block)[seen]
            within[own] = left[seen] * scale**2
        return Expected(
            values,
            found.variance[block] * share**2 + within,
            found.shared[block] * share**2,
        )

    def ask(
        self,
        part: Readings,
        levels: np.ndarray,
        asked: Asked,
        *,
        slot: np.ndarray | None = None,
        n_slots: int = 0,
        weights: np.ndarray | None = None,
    ) -> Doubt:
        """As of a short grid; residues are curves by blocks."""
        own = np.ones(len(asked)) if weights is None else weights
        slots = np.zeros(len(asked), np.int64) if slot is None else slot
        residues = np.zeros((n_slots, self.stages.n_blocks))
        found = []
        for low, high in itertools.pairwise(_cut(asked)):
            some = slice(asked.places[low], asked.places[high])
            few = Asked(
                asked.places[low : high + 1] - some.start, asked.first[some], asked.last[some]
            )
            found.append(
                self._ask(part[low:high], levels[low:high], few, slots[some], own[some], residues)
            )
        return Doubt.join(found, residues)

    def _ask(
        self,
        part: Readings,
        levels: np.ndarray,
        asked: Asked,
        slot: np.ndarray,
        weights: np.ndarray,
        residues: np.ndarray,
    ) -> Doubt:
        coarse = self.stages.coarsen(part)
        between = _Between.of(asked, self.places)
        if not len(residues):
            found = self.blocks.ask(coarse, levels, between.asked)
        else:
            same = between.number(asked, slot)
            _, heads, rows = np.unique(same, return_index=True, return_inverse=True)
            found = self.blocks.ask(
                coarse, levels, between.asked, slot=rows, n_slots=len(heads),
                weights=weights[between.owner],
            )  # fmt: skip
            owners = slot[between.owner[heads]]
            np.add.at(residues, owners, between.line[heads, None] * found.residues)
        by_blocks = between.combine(found.variance)
        within, common = self._within(part, coarse, levels, asked)
        seen = self._sees_readings(part, asked)
        return replace(
            found,
            variance=np.where(seen, np.maximum(by_blocks, within), by_blocks + within),
            counted=np.zeros(len(within)),
            shared=between.combine(found.shared),
            within=within,
            common=common,
        )

    @cached_property
    def places(self) -> np.ndarray:
        """Where the edges of periods lie among the blocks."""
        stages = self.stages
        count = stages.window // stages.block
        places = []
        for begin, known in stages.each(self.windows):
            mean = known.population.mean[stages.margin :][: stages.window]
            shape = np.maximum(mean, 1e-300).reshape(count, stages.block)
            before = np.cumsum(shape, axis=1) - shape
            share = np.minimum(before / shape.sum(axis=1, keepdims=True), 1.0)
            places.append(share + (begin // stages.block + np.arange(count))[:, None])
        if not places:
            return np.arange(stages.n_periods + 1) / stages.block
        flat = np.append(np.concatenate(places).ravel(), len(places) * count)
        return flat[: stages.n_periods + 1]

    def _within(
        self, part: Readings, coarse: Readings, levels: np.ndarray, asked: Asked
    ) -> tuple[np.ndarray, np.ndarray]:
        """Variances of sums given all blocks: of what they have of their first and last ones.

        At each end of a sum it is seen with its margins; a sum that is seen whole is so once. Also
        the part that series have in common: what is alike, and the doubt about means.
        """
        variance, common = np.zeros(len(asked)), np.zeros(len(asked))
        stages = self.stages
        if not self.windows:
            return variance, common
        head = asked.first // stages.window
        tail = np.maximum(asked.last - 1, 0) // stages.window
        in_head = asked.last <= (head + 1) * stages.window + stages.margin
        in_tail = asked.first >= tail * stages.window - stages.margin
        asking = np.concatenate([np.flatnonzero(in_head | ~in_tail), np.flatnonzero(~in_head)])
        number = np.concatenate([head[in_head | ~in_tail], tail[~in_head]])
        asking = asking[order := np.argsort(number, kind="stable")]
        cuts = np.searchsorted(number[order], np.arange(len(stages.begins) + 1))
        series = np.repeat(np.arange(part.n_series), np.diff(asked.places))
        unit = np.where(levels > 0, levels, np.inf)
        blocks = recover_blocks(self.blocks.population, coarse, levels)
        for k, (begin, known) in enumerate(stages.each(self.windows)):
            some = np.sort(asking[cuts[k] : cuts[k + 1]])
            if not len(some):
                continue
            places, seen = stages.look(part, blocks, begin)
            some = some[np.isin(series[some], places)]
            place = np.searchsorted(places, series[some])
            own = Asked(
                np.searchsorted(place, np.arange(len(places) + 1)),
                np.maximum(asked.first[some] - begin + stages.margin, 0),
                np.minimum(asked.last[some] - begin + stages.margin, stages.span),
            )
            within = known.levels(seen)
            found = known.ask(seen, within, own)
            scale = (within[place] / unit[series[some]]) ** 2
            common[some] += (self.alike * found.variance + found.shared) * scale
            variance[some] += (found.variance + found.shared) * scale
        return variance, common

    def _sees_readings(self, part: Readings, asked: Asked) -> np.ndarray:
        """Whether the readings at both ends of sums lie in windows, which then know all there is.

        Otherwise windows know the totals of blocks, and what is open about these comes on top.
        """
        stages, series = self.stages, np.repeat(np.arange(part.n_series), np.diff(asked.places))
        starts = part.series_of_readings() * part.n_periods + part.start
        seen = asked.first < asked.last
        for period in (asked.first, np.maximum(asked.last - 1, 0)):
            place = np.searchsorted(starts, series * part.n_periods + period, side="right") - 1
            place = np.maximum(place, 0)
            start, stop = part.start[place], part.stop[place]
            begin = period // stages.window * stages.window - stages.margin
            seen &= (
                (starts[place] // part.n_periods == series) & (start <= period) & (period < stop)
            )
            seen &= (begin <= start) & (stop <= begin + stages.span)
        return np.asarray(seen)


def _cut(asked: Asked) -> np.ndarray:
    """Where series are divided, so that not too many sums are asked for at once."""
    n_series = len(asked.places) - 1
    targets = np.arange(0, len(asked) + MAX_ASKED, MAX_ASKED)
    return np.unique(np.append(np.searchsorted(asked.places, targets).clip(max=n_series), n_series))


@dataclass(frozen=True)
class _Between:
    """Sums between places among blocks, as mixtures of sums between edges of blocks.

    A running sum at a place is a mean of those at the edges around it. So a sum is a mixture of
    four running sums, and its variance one of the variances of their differences, as the weights
    add up to zero.
    """

    asked: Asked  # the differences
    owner: np.ndarray  # which sum each belongs to
    pair: np.ndarray  # which pair of edges it is
    square: np.ndarray  # its weight in the variance
    line: np.ndarray  # its weight in the sum
    n_asked: int

    @classmethod
    def of(cls, asked: Asked, places: np.ndarray) -> _Between:
        first, last = places[asked.first], places[asked.last]
        low, high = np.floor(first), np.floor(last)
        edges = np.column_stack([low, low + 1, high, high + 1]).astype(np.int64)
        weights = np.column_stack([first - low - 1, low - first, high + 1 - last, last - high])
        for one, other in ((0, 2), (1, 3), (1, 2)):  # the same edge has one weight
            same = edges[:, one] == edges[:, other]
            weights[same, one] += weights[same, other]
            weights[same, other] = 0.0
        i, j = np.array(PAIRS).T
        kept = ((i == 0) | (weights[:, i] != 0)) & (weights[:, j] != 0)
        owner, pair = np.nonzero(kept)
        return cls(
            Asked(
                np.concatenate([[0], np.cumsum(kept.sum(axis=1))])[asked.places],
                edges[owner, i[pair]],
                edges[owner, j[pair]],
            ),
            owner,
            pair,
            -weights[owner, i[pair]] * weights[owner, j[pair]],
            np.where(i[pair] == 0, weights[owner, j[pair]], 0.0),
            len(asked),
        )

    def combine(self, found: np.ndarray) -> np.ndarray:
        """What was found of differences, as that of the sums."""
        return np.maximum(np.bincount(self.owner, self.square * found, self.n_asked), 0.0)

    def number(self, asked: Asked, slot: np.ndarray) -> np.ndarray:
        """The same number for differences that have the same weight in the same slot."""
        size = int(asked.last.max(initial=0)) + 1
        sums = (slot * size + asked.first) * size + asked.last
        return np.where(self.line != 0, sums[self.owner] * len(PAIRS) + self.pair, -1)
