"""Covariances that are the same at all dates, or after every season: averages over dates.

An average over few dates is a tapered one: of a covariance at a lag of half the window, only half
is kept, which keeps the result positive semidefinite. A taper blurs the spectrum, and where slow
movements are far stronger than fast ones, as in smooth series, much of them passes for fast ones.
So series are made about equally strong at all speeds before they are averaged, and as they were
after that. And what series have at every season alike, such as a day of their own, would lose a
third of its variance to a taper in every step of learning, until readings that hardly show it are
taken for sure; so that part is averaged on its own, around the season, where no taper is needed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

ORDER = 4  # periods that each is compared with: it takes no more to tell slow from fast
LEAST = 1e-10  # of the variance, so that systems stay solvable


def average_dates(covariance: np.ndarray, season: int = 1, seasonal: float = 0.0) -> np.ndarray:
    """The covariance nearest in shape that is stationary, in part seasonal where there is a season.

    `seasonal` is the part that is only the same after every season.
    """
    from scipy.linalg import solve_banded

    bands = _whitening(covariance)
    white = _filter(bands, _filter(bands, covariance).T)
    averaged = _average(white, season, seasonal)
    once = season / len(white)
    if season > 1 and once < 1:  # of a single season nothing is known to last
        phase = np.arange(len(white)) % season
        lasting, rest = _split_lasting(white, phase)
        kept = _average_around(lasting, seasonal)[np.ix_(phase, phase)]
        kept += _average(rest, season, seasonal)
        averaged = once * averaged + (1 - once) * kept
    below = (len(bands) - 1, 0)
    coloured = solve_banded(below, bands, solve_banded(below, bands, averaged).T)
    return np.asarray((coloured + coloured.T) / 2)


def _average(covariance: np.ndarray, season: int, seasonal: float) -> np.ndarray:
    averaged = average_diagonals(covariance)
    if season > 1:
        averaged = (1 - seasonal) * averaged + seasonal * average_diagonals(covariance, season)
    return averaged


def _split_lasting(covariance: np.ndarray, phase: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of means over all seasons, by phase, and that of what is left at each period.

    Their traces, the first over all periods, add up to the whole.
    """
    phases = np.arange(phase.max() + 1)
    means = np.equal.outer(phases, phase) / np.bincount(phase)[:, None]
    rows = means @ covariance
    lasting = rows @ means.T
    rest = covariance - rows[phase] - rows.T[:, phase] + lasting[np.ix_(phase, phase)]
    return lasting, rest


def _average_around(covariance: np.ndarray, seasonal: float) -> np.ndarray:
    """The same at all phases, but for the part that is seasonal; phases close in a circle."""
    phases = np.arange(len(covariance))
    apart = np.subtract.outer(phases, phases) % len(phases)
    by_lag = np.bincount(apart.ravel(), covariance.ravel()) / len(phases)
    return np.asarray((1 - seasonal) * by_lag[apart] + seasonal * covariance)


def average_diagonals(covariance: np.ndarray, season: int = 1) -> np.ndarray:
    """The same with a taper.

    Sums over the places of a diagonal that are whole seasons apart are divided by the number of
    seasons in the window.
    """
    n = len(covariance)
    diagonal = _diagonals(n, season)
    sums = np.bincount(diagonal.ravel(), covariance.ravel(), season * n) * (season / n)
    sums.reshape(season, n)[:, 1:] /= 2  # seen on both sides of the main diagonal
    return np.asarray(sums[diagonal])


@lru_cache(maxsize=2)  # as large as covariances are
def _diagonals(n: int, season: int) -> np.ndarray:
    """Which places lie on one diagonal, whole seasons apart: the phase times n, plus the lag."""
    periods = np.arange(n)
    phase = np.minimum.outer(periods, periods) % season
    return np.asarray(phase * n + np.abs(np.subtract.outer(periods, periods)))


def _whitening(covariance: np.ndarray) -> np.ndarray:
    """A triangular matrix that takes from each period what those before it say of it, by diagonals.

    The diagonal comes first, then those below it, filled up with zeros. What periods say of the
    next is taken as the same at all dates; the first ones have fewer before them.
    """
    n = len(covariance)
    order = min(ORDER, n - 1)
    near = np.zeros((order + 1, order + 1))
    for first in range(n - order):
        near += covariance[first : first + order + 1, first : first + order + 1]
    size = float(np.trace(near))
    near = near / size if size > 0 else np.eye(order + 1)
    lowest = float(np.linalg.eigvalsh(near)[0])  # below zero where nothing but rounding is left
    near += (LEAST + 2 * max(-lowest, 0.0)) * np.eye(order + 1)
    rows = np.linalg.inv(np.linalg.cholesky(near))
    bands = np.zeros((order + 1, n))
    for lag in range(order + 1):
        place = np.minimum(np.arange(lag, n), order)
        bands[lag, : n - lag] = rows[place, place - lag]
    return bands


def _filter(bands: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The product of a matrix given by its diagonals with columns."""
    filtered = bands[0][:, None] * columns
    for lag, band in enumerate(bands[1:], start=1):
        filtered[lag:] += band[:-lag, None] * columns[:-lag]
    return np.asarray(filtered)
