import numpy as np
import pytest
from scipy.linalg import toeplitz

from unsum.experiments.synthetic import matern
from unsum.population.dates import ORDER, _split_lasting, average_dates, average_diagonals
from unsum.population.learn import Aim


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_a_stationary_covariance_stays_positive(n):
    root = np.random.default_rng(1).normal(0, 1, (n, 3))
    stationary = average_diagonals(root @ root.T)
    assert np.linalg.eigvalsh(stationary)[0] > -1e-12
    for lag in range(n):
        assert len(set(np.round(np.diagonal(stationary, lag), 12))) == 1
    for season in (1, 3):
        averaged = average_dates(root @ root.T, season, 0.5)
        assert np.linalg.eigvalsh(averaged)[0] > -1e-9 * np.trace(averaged)
        np.testing.assert_array_equal(averaged, averaged.T)


@pytest.mark.parametrize(("n", "season"), [(12, 4), (17, 5), (9, 9), (6, 1)])
def test_a_seasonal_covariance_comes_back_after_every_season(n, season):
    root = np.random.default_rng(n).normal(0, 1, (n, 3))
    covariance = root @ root.T
    seasonal = average_diagonals(covariance, season)
    assert np.linalg.eigvalsh(seasonal)[0] > -1e-12
    np.testing.assert_allclose(seasonal, seasonal.T)
    np.testing.assert_allclose(seasonal[season:, season:], seasonal[: -season or n, : -season or n])
    by_hand = sum(covariance[t, t + 1] for t in range(n - 1) if t % season == 0) / (n / season)
    assert seasonal[0, min(1, n - 1)] == pytest.approx(by_hand)


def test_smooth_series_stay_smooth():
    """A taper alone makes fast movements of what was slow."""
    covariance = matern(np.arange(150), 1.5, 10.0)

    def fast(each):
        """The mean variance of second differences."""
        steps = np.diff(np.eye(150), 2, axis=0)
        return np.trace(steps @ each @ steps.T)

    assert fast(average_diagonals(covariance)) > 1.1 * fast(covariance)
    assert fast(average_dates(covariance)) == pytest.approx(fast(covariance), rel=0.02)
    for _ in range(20):  # as often as learning does it
        covariance = average_dates(covariance)
    assert fast(covariance) == pytest.approx(fast(matern(np.arange(150), 1.5, 10.0)), rel=0.1)


@pytest.mark.parametrize(("n", "season"), [(168, 24), (100, 7)])
def test_a_day_of_their_own_stays_with_series(n, season):
    """A taper alone takes a third of it, in every step."""
    angles = 2 * np.pi * np.outer(np.arange(n), [1, 2, 3]) / season
    waves = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(n / 2)
    covariance = waves @ waves.T + 1e-3 * np.eye(n)

    def strength(each):
        return np.trace(waves.T @ each @ waves) / waves.shape[1]

    assert strength(average_diagonals(covariance, season)) < 0.75
    for _ in range(20):  # as often as learning does it
        covariance = 0.8 * covariance + 0.2 * average_dates(covariance, season, 0.8)
    assert strength(covariance) > 0.8


def test_what_lasts_and_the_rest_are_a_whole():
    """The oracle: the mean over seasons as a dense projection."""
    n, season = 17, 5
    root = np.random.default_rng(4).normal(0, 1, (n, 3))
    covariance = root @ root.T
    phase = np.arange(n) % season
    same = np.equal.outer(phase, phase)
    mean = same / same.sum(axis=1)
    rest = np.eye(n) - mean
    lasting, left = _split_lasting(covariance, phase)
    np.testing.assert_allclose(lasting[np.ix_(phase, phase)], mean @ covariance @ mean)
    np.testing.assert_allclose(left, rest @ covariance @ rest, atol=1e-12)
    assert np.diag(lasting)[phase].sum() + np.trace(left) == pytest.approx(np.trace(covariance))


def test_averages_are_those_of_a_filtered_series():
    """The oracle: the filter as a dense matrix."""
    rng = np.random.default_rng(2)
    n, p = 12, ORDER
    root = rng.normal(0, 1, (n, 5))
    covariance = root @ root.T + 0.1 * np.eye(n)
    near = sum(covariance[t : t + p + 1, t : t + p + 1] for t in range(n - p))
    rows = np.linalg.inv(np.linalg.cholesky(near))
    dense = np.zeros((n, n))
    for t in range(n):
        order = min(t, p)
        dense[t, t - order : t + 1] = rows[order, : order + 1]
    white = average_diagonals(dense @ covariance @ dense.T)
    back = np.linalg.inv(dense)
    np.testing.assert_allclose(average_dates(covariance), back @ white @ back.T, rtol=1e-6)


def test_what_is_white_or_nothing_stays_as_it_is():
    np.testing.assert_allclose(average_dates(3 * np.eye(9)), 3 * np.eye(9), atol=1e-9)
    assert not average_dates(np.zeros((6, 6))).any()
    row = 0.8 ** np.arange(60.0)
    np.testing.assert_allclose(average_dates(toeplitz(row)), toeplitz(row), atol=1e-6)
    assert np.array_equal(Aim(0.0).shrink(np.eye(3)), np.eye(3))


def test_rounding_is_no_covariance():
    """Indicators can explain all of a short grid; what is left may be a little below zero."""
    left = 1e-18 * np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.abs(average_dates(left)).max() < 1e-15
    directions = np.eye(2)
    covariance = np.array([[1.0, 0.3], [0.3, 2.0]])
    np.testing.assert_allclose(Aim(0.6, 1, directions).shrink(covariance), covariance)
