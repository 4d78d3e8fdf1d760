"""How sure the population is of what it recovers: variances of sums, of one series or of many.

Given the population, what readings leave open is independent from series to series. What all series
share is the doubt about the mean of the population itself: on which day of a month it was cold is
the same open question for everyone. So the variance of a sum over series has two parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from unsum.population.dates import average_diagonals
from unsum.population.kriging import krige_mean
from unsum.population.model import Population, sum_both_ways
from unsum.readings import Readings
from unsum.traits import Traits

USUAL_RHYTHM = 0.1  # of the mean: the deviation of weeks, days or years that readings hide


@dataclass(frozen=True)
class Asked:
    """Sums over periods: series n is asked about those at `places[n]` to `places[n + 1]`."""

    places: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def between(cls, cuts: np.ndarray, n_series: int) -> Asked:
        """The sums between consecutive cuts, for every series."""
        count = len(cuts) - 1
        return cls(
            np.arange(n_series + 1) * count,
            np.tile(cuts[:-1], n_series),
            np.tile(cuts[1:], n_series),
        )

    def __len__(self) -> int:
        return len(self.first)

    def few(self, most: int) -> np.ndarray:
        """The places of at most so many sums of each series, spread over its own."""
        counts = np.diff(self.places)
        place = np.arange(len(self)) - np.repeat(self.places[:-1], counts)
        count = np.repeat(counts, counts)
        return np.flatnonzero(place * most // count != (place - 1) * most // count)

    def take(self, which: np.ndarray) -> Asked:
        """Some of the sums."""
        places = np.searchsorted(which, self.places)
        return Asked(places, self.first[which], self.last[which])

    def of_series(self) -> list[slice]:
        """The sums of each series that has any."""
        return [slice(low, high) for low, high in itertools.pairwise(self.places) if high > low]


@dataclass(frozen=True)
class Doubt:
    """What is open about sums, in scaled units.

    `variance` is that of a series on its own, `counted` what is noise of counting in it, `shared`
    what comes from the mean of the population.
    `surprise` is how far the readings of each series, `counts` of them, are from what is usual.
    `residues` are the curves that a wrong mean would be multiplied with, one for each slot.
    On long grids `within` is the part of `variance` that windows leave open given blocks, and
    `common` the part of that which sums of several series over the same periods share.
    `missed` is by how much more than expected each series was missed before, squared.
    """

    variance: np.ndarray
    counted: np.ndarray
    shared: np.ndarray
    surprise: np.ndarray
    counts: np.ndarray
    residues: np.ndarray
    within: np.ndarray
    common: np.ndarray
    missed: np.ndarray | float = 1.0

    @classmethod
    def join(cls, parts: Sequence[Doubt], residues: np.ndarray) -> Doubt:
        """Parts of series, one after the other, with the residues of all."""
        names = ("variance", "counted", "shared", "surprise", "counts", "within", "common")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(residues=residues, **joined)


@dataclass(frozen=True)
class Expected:
    """What is expected of series without readings, in units of their levels.

    Values (n_series, n_periods), and by period their variance and that of the mean of all.
    """

    values: np.ndarray
    variance: np.ndarray
    shared: np.ndarray


@dataclass(frozen=True)
class Doubtful:
    """A population, and the covariance of its mean given what it was learned from."""

    population: Population
    covariance_of_mean: np.ndarray

    @classmethod
    def learned_from(cls, sample: Readings, population: Population, season: int = 1) -> Doubtful:
        """With what the readings that it was learned from leave open about its mean.

        A rhythm that they hide may be there all the same.
        """
        kriged = krige_mean(sample, population, season, rhythm=USUAL_RHYTHM)
        return cls(population, kriged.covariance)

    @property
    def traits(self) -> Traits | None:
        return self.population.traits

    def forget(self) -> Doubtful:
        """The same without the traits of any series."""
        return replace(self, population=self.population.forget())

    def knowing(self, traits: Traits | None) -> Doubtful:
        """The same with the traits of other series."""
        return replace(self, population=self.population.knowing(traits))

    def levels(self, readings: Readings) -> np.ndarray:
        return self.population.levels(readings)

    def expect(self, names: pa.Array) -> Expected:
        """Of series by their traits alone."""
        population = self.population
        values = np.maximum(population.mean + np.asarray(population.shift(names)), 0.0)
        return Expected(
            np.broadcast_to(values, (len(names), population.n_periods)),
            np.diag(population.covariance),
            np.diag(self.covariance_of_mean),
        )

    @cached_property
    def sums(self) -> np.ndarray:
        """Running sums of the covariance of the mean, over rows and columns."""
        return sum_both_ways(self.covariance_of_mean)

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
        """Variances of sums; with slots, their residues added up by slot, weighted by sum."""
        from unsum.kernels.gaussian import explain_sums

        population = self.population
        variance, counted, shared = np.empty((3, len(asked)))
        surprise = np.empty(part.n_series)
        residues = np.zeros((n_slots, part.n_periods + 1))
        explain_sums(
            part.indptr, part.start, part.stop, population.scale(part, levels),
            population.noises(part), population.count(part), population.mean_sums,
            population.free_sums, self.sums, asked.places, asked.first, asked.last,
            np.zeros(0, np.int64) if slot is None else slot,
            np.ones(len(asked)) if weights is None else weights, variance, counted, shared,
            surprise, residues,
        )  # fmt: skip
        return Doubt(
            variance, counted, shared, surprise, np.diff(part.indptr),
            np.cumsum(residues, axis=1)[:, :-1], np.zeros(len(asked)), np.zeros(len(asked)),
        )  # fmt: skip

    def sources(self, part: Readings, levels: np.ndarray) -> np.ndarray:
        """The shares of the variance of each series that are its own, the panel's, and open."""
        population = self.population
        asked = Asked.between(np.arange(part.n_periods + 1), part.n_series)
        curve = population.mean - population.mean.mean()
        dateless = average_diagonals(population.covariance + np.outer(curve, curve))
        flat = Population(
            np.full(len(curve), population.mean.mean()), dateless,
            quantum=population.quantum, counting=population.counting,
        )  # fmt: skip
        whole = np.trace(dateless) + population.count(part) * population.mean.sum()
        left = []
        for each in (flat, replace(population, level=0.0)):
            known = Doubtful(each, np.zeros(dateless.shape))
            variance = known.ask(part, levels, asked).variance
            left.append(variance.reshape(part.n_series, -1).sum(axis=1) / np.maximum(whole, 1e-300))
        own, open_ = 1 - np.minimum(left[0], 1.0), np.minimum(left[1], left[0])
        return np.column_stack([own, 1 - own - open_, open_])
