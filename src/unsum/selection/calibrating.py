"""How far the truth lies from what is recovered, learned where it is known: on merged readings.

The population says how sure it is of every split. The folds show by how much splits really miss,
against that; and whether the splits of different series miss together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unsum.methods.panel import Learned
from unsum.population.long import LongDoubtful
from unsum.population.uncertainty import Asked, Doubt, Doubtful
from unsum.readings import Readings
from unsum.selection.choosing import Trial

LEVELS = np.linspace(0.0, 1.0, 201)
USUAL = 50  # Gaussian errors of the expected size that stand beside what was seen
USUAL_OUTSIDE = 10  # the same where nothing is read: there less is seen, and errors are larger
FIRM = 100  # readings of a series, of all folds, that stand for what is expected of it
DIFFER = 0.4  # how far the logarithm of the ratio usually is from zero
DIFFER_LONG = 1.5  # the same on long grids, where more is taken for granted
FEW = 12  # sums of each series that say what series share
MOST_SHARED = 2.0  # folds see coarser sums than are asked for: they may add so much, and deny none
TRUST = 2.0 ** np.arange(0, 9)  # candidates: how many readings a usual series is worth


@dataclass(frozen=True)
class Calibration:
    """What the folds say about the population's variances."""

    trust: float = 1.0  # how many readings it takes to believe that a series is wilder than others
    shared: float = 1.0  # how much of the doubt about the mean the errors of series have in common
    ratio: float = 1.0  # mean squared error of splits over their variance, as far as folds tell
    missed: float = 1.0  # squares over what is expected, of a series that folds did not judge
    misses: np.ndarray = field(default_factory=lambda: LEVELS)  # at LEVELS, error over deviation
    misses_outside: np.ndarray = field(default_factory=lambda: LEVELS)  # where nothing is read

    def spread(self, doubt: Doubt) -> np.ndarray:
        """How much wilder than usual each series is, as a factor of its variances."""
        surprising = (self.trust + doubt.surprise) / (self.trust + doubt.counts)
        return np.asarray(surprising * doubt.missed)

    def variances(self, doubt: Doubt, asked: Asked) -> np.ndarray:
        """The variance of every sum that was asked for, before `ratio`."""
        variances: np.ndarray = self.own_variances(doubt, asked) + self.shared * doubt.shared
        return variances

    def expected_squares(self, doubt: Doubt, asked: Asked) -> np.ndarray:
        """The squared error to expect of every sum of a series on its own."""
        return np.asarray(self.ratio * (self.own_variances(doubt, asked) + doubt.shared))

    def own_variances(self, doubt: Doubt, asked: Asked) -> np.ndarray:
        """The same without what series share.

        Wild series do not count differently; and windows follow the level of their series, so that
        wild ones are less so within.
        """
        spread = np.repeat(self.spread(doubt), np.diff(asked.places))
        wild = doubt.variance - doubt.within - doubt.counted
        own: np.ndarray = wild * spread + doubt.within * np.sqrt(spread) + doubt.counted
        return own

    def reach(self, interval: float) -> float:
        """How many standard deviations an interval reaches to each side, where readings cover."""
        return float(np.interp(interval, LEVELS, self.misses))

    def reach_outside(self, interval: float) -> float:
        """The same for sums with periods that no reading covers."""
        return float(np.interp(interval, LEVELS, self.misses_outside))


@dataclass(frozen=True)
class Evidence:
    """What a fold knows: how sure the population was of its sums, and by how much they missed."""

    doubtful: Doubtful | LongDoubtful
    readings: Readings
    levels: np.ndarray
    asked: Asked
    within: Doubt
    gaps: np.ndarray
    weight: np.ndarray
    asked_outside: Asked
    outside: Doubt
    gaps_outside: np.ndarray

    def knowing(self, missed: np.ndarray | float) -> Evidence:
        """The same, with doubts that know by how much each series was missed."""
        within, outside = (replace(each, missed=missed) for each in (self.within, self.outside))
        return replace(self, within=within, outside=outside)


def calibrate(
    trials: Sequence[Trial], fits: Sequence[Learned]
) -> tuple[Calibration, np.ndarray | float]:
    """From what a method recovered on each fold, and the population learned there.

    Also by how much more than expected each series was missed, squared.
    """
    evidence = [
        _gather(trial, fit)
        for trial, fit in zip(trials, fits, strict=True)
        if fit.sample is not None  # a fold may be zero throughout
    ]
    if not sum(len(each.asked) for each in evidence):
        gaussian = _quantiles([], 1.0, USUAL)
        return Calibration(misses=gaussian, misses_outside=gaussian), 1.0
    found = Calibration(trust=_likely_trust(evidence))
    ratio = _ratio(evidence, found)
    found = replace(found, ratio=ratio)
    missed, usual = _missed(evidence, found)
    evidence = [  # each is judged by what the others know
        each.knowing(_missed([other for other in evidence if other is not each], found)[0])
        for each in evidence
    ]
    found = replace(found, shared=_shared(evidence, found), missed=usual)
    misses, outside = [], []
    for each in evidence:
        variance = found.variances(each.within, each.asked)
        misses.append(np.abs(each.gaps) / np.sqrt(np.maximum(variance, 1e-300)))
        variance = found.variances(each.outside, each.asked_outside)
        outside.append(np.abs(each.gaps_outside) / np.sqrt(np.maximum(variance, 1e-300)))
    found = replace(
        found,
        misses=_quantiles(misses, 1.0, USUAL),
        misses_outside=_quantiles(outside, np.sqrt(ratio), USUAL_OUTSIDE),
    )
    return found, missed


def _ratio(evidence: Sequence[Evidence], found: Calibration) -> float:
    """Of what was seen to what was expected, with a few errors that are as expected beside them.

    Errors of a series, of a date and of a fold go together, so that a few of them can decide; and
    series with few readings are far less known once some are merged. The less sure the ratio is,
    the nearer it is moved to one.
    """
    squares, expected, series, dates, folds = [], [], [], [], []
    for fold, each in enumerate(evidence):
        asked = each.asked
        if not len(asked):
            continue
        squares.append(each.gaps**2 * each.weight)
        expected.append(found.expected_squares(each.within, asked) * each.weight)
        series.append(np.repeat(np.arange(len(asked.places) - 1), np.diff(asked.places)))
        dates.append((asked.first + asked.last) // (4 * int(np.mean(asked.last - asked.first))))
        folds.append(np.full(len(asked), fold))
    seen, usual = np.concatenate(squares), np.concatenate(expected)
    if usual.sum() <= 0:
        return 1.0
    share = USUAL / len(seen)
    ratio = float(seen.sum() / usual.sum() + share) / (1 + share)
    away = (seen - ratio * usual) / (ratio * usual.sum())
    by_series, by_date, by_fold = (
        float(np.sum(np.bincount(np.concatenate(groups), away) ** 2))
        for groups in (series, dates, folds)
    )
    error = max(by_series + by_date - float(away @ away), by_series, by_date, by_fold)
    counts = np.concatenate([each.within.counts for each in evidence])
    error += (2 / float(np.mean(counts))) ** 2
    differ = DIFFER_LONG if isinstance(evidence[0].doubtful, LongDoubtful) else DIFFER
    return float(ratio ** (differ**2 / (differ**2 + error)))


def _missed(evidence: Sequence[Evidence], found: Calibration) -> tuple[np.ndarray | float, float]:
    """Mean squared errors of splits over what is expected of them, series by series.

    Some that are as expected stand beside them. Also the mean over series that were judged, which
    is what others have.
    """
    if not evidence:
        return 1.0, 1.0
    seen, expected, counts = np.zeros((3, len(evidence[0].levels)))
    for each in evidence:
        asked = each.asked
        series = np.repeat(np.arange(len(counts)), np.diff(asked.places))
        squares = found.expected_squares(each.within, asked) * each.weight
        seen += np.bincount(series, each.gaps**2 * each.weight, len(counts))
        expected += np.bincount(series, squares, len(counts))
        counts += np.bincount(series, minlength=len(counts))
    ratio = np.divide(seen, expected, out=np.ones(len(counts)), where=expected > 0)
    factors = (FIRM + counts * ratio) / (FIRM + counts)
    judged = counts > 0
    if 2 * judged.sum() < len(judged):  # smart meters among bills: others are asked about
        return 1.0, 1.0
    usual = float(factors[judged].mean())
    return np.asarray(np.where(judged, factors, usual)), usual


def _quantiles(misses: Sequence[np.ndarray], scale: float, usual: int) -> np.ndarray:
    """Quantiles of what was seen, together with a few Gaussian errors of a given size."""
    from scipy.stats import norm

    gaussian = scale * norm.ppf(0.5 + (np.arange(usual) + 0.5) / usual / 2)
    return np.asarray(np.quantile(np.concatenate([*misses, gaussian]), LEVELS))


def _gather(trial: Trial, fit: Learned) -> Evidence:
    fold, readings = trial.merged, trial.merged.readings
    doubtful = fit.doubtful()
    level = np.where(fit.levels > 0, fit.levels, 1.0)
    hidden, ends = (
        each.keep((fit.levels > 0)[each.series_of_readings()])
        for each in (fold.hidden, fold.left_out)
    )
    asked = Asked(hidden.indptr, hidden.start, hidden.stop)
    asked_outside = Asked(ends.indptr, ends.start, ends.stop)
    return Evidence(
        doubtful,
        readings,
        fit.levels,
        asked,
        doubtful.ask(readings, fit.levels, asked),
        fold.gaps(hidden, trial.values, level),
        1 / (hidden.stop - hidden.start),
        asked_outside,
        doubtful.ask(readings, fit.levels, asked_outside),
        fold.gaps(ends, trial.values, level),
    )


def _likely_trust(evidence: Sequence[Evidence]) -> float:
    """The degrees of freedom under which series that differ in wildness are most likely."""
    from scipy.special import gammaln

    merged = [np.diff(each.asked.places) > 0 for each in evidence]
    surprise = np.concatenate([e.within.surprise[m] for e, m in zip(evidence, merged, strict=True)])
    counts = np.concatenate([e.within.counts[m] for e, m in zip(evidence, merged, strict=True)])

    def likelihood(trust: float) -> float:
        half = (trust + counts) / 2
        terms = gammaln(half) - gammaln(trust / 2) - counts / 2 * np.log(trust)
        return float(np.sum(terms - half * np.log1p(surprise / trust)))

    return float(max(TRUST, key=likelihood))


def _shared(evidence: Sequence[Evidence], found: Calibration) -> float:
    """How much of the doubt about the mean shows in products of the errors of different series.

    One is what the population expects, and has the weight of an estimate with an error of one.
    """
    together, agreed, noise = 0.0, 0.0, 0.0
    for each in evidence:
        covariance = each.doubtful.covariance_of_mean
        few = each.asked.few(FEW)
        asked = each.asked.take(few)
        doubt = each.doubtful.ask(
            each.readings, each.levels, asked, slot=np.arange(len(asked)), n_slots=len(asked)
        )
        doubt = replace(doubt, missed=each.within.missed)
        spread = found.spread(doubt)
        root = np.sqrt(np.repeat(spread, np.diff(asked.places)))
        residues, gaps = doubt.residues / root[:, None], each.gaps[few] / root
        for places, sign in [(slice(None), 1.0), *((own, -1.0) for own in asked.of_series())]:
            some, variance = residues[places], doubt.variance[places, None]
            curve = covariance @ (some.T @ gaps[places])
            together += sign * float(gaps[places] @ (some @ curve))
            agreed += sign * _square(some, some, covariance)
            noise += sign * 2 * _square(some, some * variance, covariance)
    if agreed <= 0:
        return 1.0
    error = max(noise, 0.0) / agreed**2
    shared = (together / agreed + error) / (1 + error)
    return float(np.clip(shared, 1.0, MOST_SHARED))


def _square(one: np.ndarray, other: np.ndarray, covariance: np.ndarray) -> float:
    """The trace of `(C X'Y)^2`, whichever way is shorter."""
    if len(one) < len(covariance):
        product = other @ covariance @ one.T
    else:
        product = covariance @ (one.T @ other)
    return float(np.sum(product * product.T))
