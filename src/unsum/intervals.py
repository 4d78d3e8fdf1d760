"""Intervals: for periods, for sums over periods, and for sums over series.

They are central and marginal: each on its own holds the truth with the probability asked for. They
never leave what is certain: a sum is at least the readings that lie within it and, where readings
cover it, at most the readings that touch it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from unsum.engine import block_size
from unsum.methods.panel import Learned, PanelModel
from unsum.panel import sum_between
from unsum.population.long import LongDoubtful
from unsum.population.uncertainty import Asked, Doubt, Doubtful
from unsum.readings import Readings
from unsum.selection.calibrating import Calibration, calibrate
from unsum.selection.choosing import Trial, score_candidates
from unsum.selection.merging import sample_readings
from unsum.traits import Traits

FEWEST = 5  # series, before how they differ says anything
FOLDS = 4  # of merged readings, to see how far the panel model misses


@dataclass(frozen=True)
class Bounds:
    """Lower and upper ends, in the shape of the sums they belong to."""

    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class Asking:
    """Sums of some series, from `first` on, and the slot that each of them is added to.

    `least` and `most` are what is certain about each.
    """

    first: int
    part: Readings
    asked: Asked
    slot: np.ndarray
    least: np.ndarray
    most: np.ndarray


@dataclass(frozen=True)
class Uncertainty:
    """How sure the recovery is: a population, the level of each series in it, what folds showed.

    `missed` is by how much more than expected folds missed each series, squared.
    """

    doubtful: Doubtful | LongDoubtful
    levels: np.ndarray
    missed: np.ndarray
    calibration: Calibration

    def take(self, series: np.ndarray) -> Uncertainty:
        """The same for some series."""
        return replace(self, levels=self.levels[series], missed=self.missed[series])

    def forget(self) -> Uncertainty:
        """The same without anything of a single series."""
        return replace(self.take(np.zeros(0, np.int64)), doubtful=self.doubtful.forget())

    def apply(self, readings: Readings, traits: Traits | None) -> Uncertainty:
        """The same for other series."""
        doubtful = self.doubtful.knowing(traits)
        levels = doubtful.levels(readings)
        missed = np.full(len(levels), self.calibration.missed)
        return replace(self, doubtful=doubtful, levels=levels, missed=missed)

    def _ask(self, first: int, part: Readings, asked: Asked, **slots: Any) -> Doubt:
        """What is open about sums of a part that begins at series `first`."""
        own = slice(first, first + part.n_series)
        doubt = self.doubtful.ask(part, self.levels[own], asked, **slots)
        return replace(doubt, missed=self.missed[own])

    def variances(self, first: int, part: Readings, cuts: np.ndarray) -> np.ndarray:
        """Of sums between cuts of a part that begins at series `first`, over squared levels."""
        asked = Asked.between(cuts, part.n_series)
        doubt = self._ask(first, part, asked)
        variances = self.calibration.variances(doubt, asked)
        return variances.reshape(part.n_series, -1)

    def bound(
        self, first: int, part: Readings, cuts: np.ndarray, sums: np.ndarray, interval: float
    ) -> Bounds:
        """Intervals of recovered sums between cuts (n_series, n_cuts - 1)."""
        inside = sum_between(part.covered(), cuts) == np.diff(cuts)
        reach = np.where(
            inside, self.calibration.reach(interval), self.calibration.reach_outside(interval)
        )
        reach *= np.sqrt(self.variances(first, part, cuts))
        reach *= self.levels[first : first + part.n_series, None]
        return _within(sums, reach, *certain_sums(part, cuts))

    def bound_outside(self, asking: Asking, sums: np.ndarray, interval: float) -> Bounds:
        """Intervals of one sum of each series, over periods that no reading covers."""
        part = asking.part
        levels = self.levels[asking.first : asking.first + part.n_series]
        doubt = self._ask(asking.first, part, asking.asked)
        variance = self.calibration.variances(doubt, asking.asked)
        reach = self.calibration.reach_outside(interval) * np.sqrt(variance) * levels
        return _within(sums, reach, asking.least, asking.most)

    def bound_groups(self, asking: Iterable[Asking], sums: np.ndarray, interval: float) -> Bounds:
        """Intervals of sums over several series, each of which has a slot."""
        from scipy.stats import norm

        unit = np.full(len(sums), np.finfo(float).tiny)  # the largest level in each slot
        own, counts = np.zeros(len(sums)), np.zeros(len(sums))
        least, most = np.zeros(len(sums)), np.zeros(len(sums))
        together = np.zeros(len(sums))
        residues = np.zeros((len(sums), len(self.doubtful.covariance_of_mean)))
        for each in asking:
            least += np.bincount(each.slot, each.least, len(sums))
            most += np.bincount(each.slot, each.most, len(sums))
            open_ = np.flatnonzero(each.least < each.most)  # of others, rounding would remain
            part, asked, slot = each.part, each.asked.take(open_), each.slot[open_]
            levels = self.levels[each.first : each.first + part.n_series]
            by_sum = np.repeat(levels, np.diff(asked.places))
            smaller = unit.copy()
            np.maximum.at(unit, slot, by_sum)
            smaller /= unit
            own, together = own * smaller**2, together * smaller
            residues *= smaller[:, None]
            shares = by_sum / unit[slot]
            doubt = self._ask(each.first, part, asked, slot=slot, n_slots=len(sums), weights=shares)
            variance = shares**2 * self.calibration.own_variances(doubt, asked)
            spread = np.repeat(self.calibration.spread(doubt), np.diff(asked.places))
            common = shares**2 * doubt.common * np.sqrt(spread)
            own += np.bincount(slot, variance - common, len(sums))
            together += np.bincount(slot, np.sqrt(common), len(sums))
            counts += np.bincount(slot, minlength=len(sums))
            residues += doubt.residues
        own += together**2
        curves = residues @ self.doubtful.covariance_of_mean
        shared = self.calibration.shared * np.maximum(np.sum(curves * residues, axis=1), 0.0)
        deviation = unit * np.sqrt(self.calibration.ratio * own + shared)
        reach = np.where(
            np.isinf(most),
            self.calibration.reach_outside(interval),
            self.calibration.reach(interval),
        )
        alone = unit * np.sqrt(own + shared) * reach
        gaussian = float(norm.ppf((1 + interval) / 2)) * deviation
        return _within(sums, np.where(counts == 1, alone, gaussian), least, most)

    def sources(self, first: int, part: Readings) -> np.ndarray:
        """The shares of the variance of each series that are its own, the panel's, and open."""
        return self.doubtful.sources(part, self.levels[first : first + part.n_series])

    def expected_error(
        self, readings: Readings, fill: Callable[[int, Readings], np.ndarray]
    ) -> float | None:
        """The mean-normalised error over covered periods to expect of values that `fill` gives."""
        if np.count_nonzero(self.levels > 0) < FEWEST:
            return None
        whole, missed, first = 0.0, 0.0, 0
        for part in readings.parts(block_size(readings.n_periods)):
            levels = self.levels[first : first + part.n_series, None]
            scaled = fill(first, part) / np.where(levels > 0, levels, 1.0)
            asked = Asked.between(np.arange(part.n_periods + 1), part.n_series)
            doubt = self._ask(first, part, asked)
            variance = self.calibration.expected_squares(doubt, asked).reshape(part.n_series, -1)
            covered = part.covered() & (levels > 0)
            scaled, variance = (np.where(covered, each, 0.0) for each in (scaled, variance))
            count = np.maximum(covered.sum(axis=1), 1)
            size = np.maximum(scaled.sum(axis=1) / count, 1e-12) ** 2
            error = variance.sum(axis=1)
            missed += float(np.sum(error / size))
            whole += float(np.sum((np.sum(scaled**2, axis=1) + error) / size))
            first += part.n_series
        return float(np.sqrt(missed / whole))


def assess(
    learned: Learned, places: np.ndarray, trials: Sequence[Trial], panels: Sequence[Trial]
) -> Uncertainty:
    """How sure a recovery is, from a method's trials and those of the population beside it.

    Trials were of the series at the given places.
    """
    calibration, found = calibrate(trials, [cast(Learned, trial.fit) for trial in panels])
    missed = np.full(len(learned.levels), calibration.missed)
    missed[places] = found
    return Uncertainty(learned.doubtful(), learned.levels, missed, calibration)


def assess_panel(
    readings: Readings, method: PanelModel, fit: Learned, threads: int | None = None
) -> Uncertainty:
    """The same for the panel model on its own."""
    places = sample_readings(readings, method.seed)
    (candidate,) = score_candidates(
        readings.take(places), [("panel", method)], folds=FOLDS, seed=method.seed, threads=threads
    )
    return assess(fit, places, candidate.trials, candidate.trials)


def certain_sums(part: Readings, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that sums between cuts can be, by the readings that bind."""
    from unsum.kernels.totals import bound_sums

    least = np.empty((part.n_series, len(cuts) - 1))
    most = np.empty_like(least)
    bound_sums(*part.binding().arrays, part.active, cuts, least, most)
    return least, most


def _within(sums: np.ndarray, reach: np.ndarray, least: np.ndarray, most: np.ndarray) -> Bounds:
    """Intervals around sums, within what is certain; of no width where that is one value."""
    lower = np.minimum(np.maximum(sums - reach, least), sums)
    upper = np.maximum(np.minimum(sums + reach, most), sums)
    fixed = least == most
    return Bounds(np.where(fixed, sums, lower), np.where(fixed, sums, upper))
