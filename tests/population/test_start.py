"""Where learning begins: what passes for a rhythm of single series."""

import numpy as np
import pytest

from unsum.population.kriging import Kriged
from unsum.population.lags import rhythms, simple_covariances
from unsum.population.start import _explain_gaps

N_PERIODS, SEASON = 365, 7


def share_of_rhythm(seed, rhythm, length):
    """The covariance after a season over the variance, from 60 series of noise with a rhythm each.

    They are read every so many periods, and their mean is known.
    """
    rng = np.random.default_rng(seed)
    periods = np.arange(N_PERIODS)
    own = rng.normal(size=(60, SEASON))
    own -= own.mean(axis=1, keepdims=True)
    begins = rng.integers(0, length, 60)
    values = rng.normal(size=(60, N_PERIODS)) * 0.35 + rhythm * own[:, periods % SEASON]
    cuts = [np.arange(begin, N_PERIODS + 1, length) for begin in begins]
    sums = np.concatenate([np.zeros((60, 1)), np.cumsum(values, axis=1)], axis=1)
    gaps = np.concatenate([np.diff(own[cut]) for own, cut in zip(sums, cuts, strict=True)])
    indptr = np.concatenate([[0], np.cumsum([len(cut) - 1 for cut in cuts])])
    start, stop = (np.concatenate(ends) for ends in ([c[:-1] for c in cuts], [c[1:] for c in cuts]))
    n_weights = len(simple_covariances(N_PERIODS)) + len(rhythms(N_PERIODS, SEASON))
    year = 1 + 0.2 * np.cos(2 * np.pi * periods / N_PERIODS)
    kriged = Kriged(year, 1e-4 * np.eye(N_PERIODS), np.ones(n_weights))
    seen = (indptr, start, stop, gaps, np.zeros(len(gaps)))
    row, _ = _explain_gaps(seen, N_PERIODS, SEASON, kriged)
    return row[SEASON] / row[0]


@pytest.mark.parametrize("seed", range(10))
def test_noise_in_long_readings_does_not_prove_a_rhythm_nor_deny_one(seed):
    assert 0.15 < share_of_rhythm(seed, 0.0, 30) < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_a_rhythm_that_readings_show_is_found(seed):
    assert share_of_rhythm(seed, 0.35, 10) > 0.45


def test_a_rhythm_that_readings_would_show_is_denied():
    assert share_of_rhythm(0, 0.0, 2) < 0.08
