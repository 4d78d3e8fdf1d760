"""Where learning begins: the mean of the smoothest series, and a stationary covariance.

The covariance is a sum of simple ones: white noise, memories of growing length, rough and smooth,
and rhythms where there is a season. Their weights make the readings most likely, where wild series
count for less. What no reading can show (how a total splits within it) then follows from what they
do show at longer lags; where even that leaves a choice, each keeps the share that it began with.

Once a mean has been learned, the covariance is guessed again from it: what the smooth mean missed
no longer passes for noise of the series. And the mean is seen at every period, if dates differ, so
that its own movement says how rough series may be where their readings do not: it is another simple
covariance, which begins with half of the whole, and the others begin with their shares in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unsum.draws import sample_series
from unsum.indicators import Indicators
from unsum.methods.denton import Denton
from unsum.methods.nmf import levels
from unsum.population.counts import common_quantum
from unsum.population.kriging import Kriged, krige_mean
from unsum.population.lags import (
    memory_lengths,
    misdating,
    raise_weights,
    rhythms,
    simple_covariances,
    variances_of_sums,
)
from unsum.population.model import Population
from unsum.readings import Readings

STEPS = 60  # few, so that what readings hardly show stays near the beginning
RIDGE = 1e-3  # of a variance of one, so that effects which no reading shows stay at zero
VARIETY = 0.5  # of an effect, from series to series, before more is known
LEAST = 1e-6  # of the largest, for the mean at any period; of the variance, for any weight
USUAL = 16.0  # readings that say that a series is as wild as others
RHYTHM = 0.1  # of the share of others is what a rhythm begins with
HIDDEN = 3.0  # times that, at most, is kept of those that readings do not prove
PROOF = 5.0  # of the logarithm of a likelihood
MAX_READINGS = 3000  # of all series
MAX_OF_SERIES = 60
NOTHING = np.zeros((0, 0))  # for a covariance that is not known yet
LIKE_MEAN = 0.5  # of the variance begins as movement like that of the mean, once that is known


def first_guess(
    readings: Readings, seed: int = 0, indicators: Indicators | None = None, season: int = 1
) -> Population:
    """From series none of which is zero throughout.

    Estimated readings are used only if there is no other.
    """
    readings = _usable(readings)
    mean = _smooth_mean(readings)
    start = _likely(_some(readings, seed), Population(mean, NOTHING), season)
    if indicators is not None:
        effects = _effects(readings, indicators.scaled)
        mean = mean + _roughness(readings, indicators.scaled @ effects)
        mean = np.maximum(mean, LEAST * mean.max())
        start = replace(
            start, mean=mean, covariance=start.covariance + _variety(indicators, effects)
        )
    return start


def guess_again(
    readings: Readings,
    learned: Population,
    seed: int = 0,
    indicators: Indicators | None = None,
    season: int = 1,
) -> Population:
    """The same from the mean that was learned, and from how it moves.

    What indicators explain within readings, which no reading shows, stays in the mean.
    """
    usable = _usable(readings)
    centre = np.full(readings.n_periods, float(learned.mean.mean()))
    variety: np.ndarray | float = 0.0
    if indicators is not None:
        effects = _effects(usable, indicators.scaled)
        centre = centre + _roughness(usable, indicators.scaled @ effects)
        variety = _variety(indicators, effects)
    kriged = krige_mean(readings, learned, season, centre)
    learned = replace(learned, mean=np.maximum(kriged.mean, LEAST * kriged.mean.max()))
    likely = _likely(_some(usable, seed), learned, season, kriged)
    return replace(likely, covariance=likely.covariance + variety)


def _usable(readings: Readings) -> Readings:
    """Readings that bind, of series that are not zero throughout; all if there are none."""
    binding = readings.binding()
    usable = np.add.reduceat(np.append(binding.total, 0.0), binding.indptr[:-1]) > 0
    usable &= np.diff(binding.indptr) > 0
    return binding.take(np.flatnonzero(usable)) if usable.any() else readings


def _variety(indicators: Indicators, effects: np.ndarray) -> np.ndarray:
    """The covariance of series that respond more or less to indicators."""
    own = indicators.scaled * (VARIETY * effects)
    return np.asarray(own @ own.T)


def _effects(readings: Readings, columns: np.ndarray) -> np.ndarray:
    """By how much scaled series rise with each indicator, as far as readings show it.

    Least squares of the mean of all series over time, seen through their readings, on indicators
    seen the same way. Neighbouring readings share most of what is not explained, so that there are
    about as many independent dates as readings in a row; each effect is reduced by its error.
    """
    length = readings.stop - readings.start
    level = levels(readings)[readings.series_of_readings()]
    sums = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(columns, axis=0)])
    seen = np.column_stack(
        [
            readings.total / level / length,
            (sums[readings.stop] - sums[readings.start]) / length[:, None],
        ]
    )
    steps = np.zeros((readings.n_periods + 1, seen.shape[1] + 1))
    both = np.column_stack([seen, np.ones(len(seen))])
    np.add.at(steps, readings.start, both)
    np.subtract.at(steps, readings.stop, both)
    curves = np.cumsum(steps, axis=0)[:-1]
    curves = curves[curves[:, -1] > 0.5]
    curves = curves[:, :-1] / curves[:, -1:]
    curves -= curves.mean(axis=0)
    target, means = curves[:, 0], curves[:, 1:]
    inner = means.T @ means + RIDGE * len(means) * np.eye(means.shape[1])
    inverse = np.linalg.inv(inner)
    effects = inverse @ (means.T @ target)
    apart = float(length.mean())
    dates = len(target) / apart
    missed = float(np.mean((target - means @ effects) ** 2))
    missed *= dates / max(dates - len(effects) - 1, 1.0)
    errors = missed * np.diag(inverse) * apart
    share = 1 - errors / np.maximum(effects**2, 1e-300)
    return np.asarray(effects * np.maximum(share, 0.0))


def _roughness(readings: Readings, curve: np.ndarray) -> np.ndarray:
    """What the smoothest series with the same readings would not show of a curve."""
    from unsum.kernels.totals import sum_readings

    shifted = curve - curve.min() + np.ptp(curve) + 1e-9
    whole = np.broadcast_to(shifted, (readings.n_series, readings.n_periods))
    totals = sum_readings(
        readings.indptr, readings.start, readings.stop, np.ascontiguousarray(whole)
    )
    values = np.empty(whole.shape)
    Denton().fit(readings).fill(0, readings.with_totals(totals), values)
    return np.asarray(shifted - values.mean(axis=0))


def _smooth_mean(readings: Readings) -> np.ndarray:
    values = np.empty((readings.n_series, readings.n_periods))
    Denton().fit(readings).fill(0, readings, values)
    level = values.mean(axis=1)
    mean: np.ndarray = np.mean(values[level > 0] / level[level > 0, None], axis=0)
    return mean


def _some(readings: Readings, seed: int) -> Readings:
    """Not more series than it takes."""
    count = int(np.minimum(np.diff(readings.indptr), MAX_OF_SERIES).sum())
    if count <= MAX_READINGS:
        return readings
    size = max(1, readings.n_series * MAX_READINGS // count)
    return readings.take(sample_series(readings.names, size, seed))


def _likely(
    readings: Readings, population: Population, season: int, kriged: Kriged | None = None
) -> Population:
    """With a covariance from what readings have beyond the mean, and from how that moves.

    Whole numbers are counts, as far as readings do not deny it. Where some series are read at every
    period, noise of counting is seen, and is part of the covariance.
    """
    from scipy.linalg import toeplitz

    sums, mean_sums = population.scale(readings, population.levels(readings)), population.mean_sums
    expected = mean_sums[readings.stop] - mean_sums[readings.start]
    gap = sums - expected
    place = np.arange(readings.n_readings) - readings.indptr[readings.series_of_readings()]
    kept = place < MAX_OF_SERIES
    sizes = np.minimum(np.diff(readings.indptr), MAX_OF_SERIES)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    quantum = 0.0 if readings.complete().any() else common_quantum(readings)
    population = replace(population, quantum=quantum, counting=1.0)
    counted = population.count(readings)[readings.series_of_readings()] * expected
    seen = indptr, readings.start[kept], readings.stop[kept], gap[kept], counted[kept]
    row, counting = _explain_gaps(seen, population.n_periods, season, kriged)
    return replace(population, covariance=toeplitz(row), counting=counting)


def _explain_gaps(
    seen: tuple[np.ndarray, ...], n_periods: int, season: int, kriged: Kriged | None
) -> tuple[np.ndarray, float]:
    """A sum of simple covariances, with weights that make the gaps of readings most likely.

    And how much there is of the noise of counting.

    Rhythms come last, for what is left, and only if they explain it better than misdating does: in
    long readings little of a rhythm is seen, so that errors of readings could pass for a large one.
    Once the mean is known, those of single series are left, and noise can pass for them, too. They
    need proof; without it they are small, smaller where readings deny them, and not taken for zero.
    """
    plain = simple_covariances(n_periods)
    variance = max(float(np.mean(seen[3] ** 2 / (seen[2] - seen[1]))), 1e-12)
    weights = np.full(len(plain), variance / len(plain))
    if kriged is not None:
        of_mean = kriged.weights[: len(plain)] + LEAST * variance
        others = (1 - LIKE_MEAN) * variance * of_mean / of_mean.sum()
        weights = np.append(others, LIKE_MEAN * variance)
        plain = np.vstack([plain, kriged.movement()])
    weights, counting, _ = _likely_weights(seen, plain, weights)
    rows = plain
    if 1 < season <= memory_lengths(n_periods)[-1]:
        small = RHYTHM * np.mean(weights)
        more, misdated = (
            np.vstack([plain, each]) for each in (rhythms(n_periods, season), misdating(n_periods))
        )
        begin = np.append(weights, np.full(len(more) - len(plain), small))
        with_rhythms, still, likelihood = _likely_weights(seen, more, begin, counting)
        other = _likely_weights(seen, misdated, np.append(weights, small), counting)[2]
        if likelihood > other + (0.0 if kriged is None else PROOF):
            weights, rows, counting = with_rhythms, more, still
        elif kriged is not None:
            part = HIDDEN * np.minimum(begin, with_rhythms)[len(plain) :]
            weights, rows = np.append(weights, part), more
    return np.asarray(np.maximum(weights, LEAST * variance) @ rows), counting


def _likely_weights(
    seen: tuple[np.ndarray, ...],
    covariances: np.ndarray,
    weights: np.ndarray,
    counting: float = 1.0,
) -> tuple[np.ndarray, float, float]:
    """Multiplicative steps that raise the likelihood, and that; what is not shown stays.

    Counts may be less noisy than those of Poisson; what is beyond them is not counting.
    """
    from unsum.kernels.stationary import weigh_lags

    indptr, start, stop, gap, counted = seen
    sums, likelihood = variances_of_sums(covariances), 0.0
    for _ in range(STEPS):
        fitted, expected, of_noise = np.zeros(sums.shape[1]), np.zeros(sums.shape[1]), np.zeros(2)
        likelihood = weigh_lags(
            indptr, start, stop, gap, counting * counted, weights @ sums, USUAL, fitted, expected,
            of_noise,
        )  # fmt: skip
        weights = raise_weights(weights, sums @ fitted, sums @ expected)
        if of_noise[1] > 0:
            counting = min(counting * float(np.sqrt(of_noise[0] / of_noise[1])), 1.0)
    return weights, counting, likelihood
