"""Denton's series against a quadratic programming solver."""

import numpy as np
import pytest

from tests.problems import random_readings, roughness, smoothest
from unsum.kernels.smooth import smooth_series


def solve(readings):
    values = np.empty((readings.n_series, readings.n_periods))
    n_clipped = smooth_series(*readings.arrays, readings.active, values)
    return values, n_clipped


@pytest.mark.parametrize("seed", range(40))
def test_denton_matches_a_quadratic_program(seed):
    readings = random_readings(seed, n_series=3, n_periods=10 + seed, shape=0.3 + seed % 3)
    values, _ = solve(readings)
    for n in range(readings.n_series):
        own = slice(readings.indptr[n], readings.indptr[n + 1])
        arguments = readings.start[own], readings.stop[own], readings.total[own]
        if arguments[2].max() == 0:
            assert not values[n].any()
            continue
        oracle = smoothest(*arguments, readings.n_periods)
        assert roughness(values[n]) <= roughness(oracle) + 1e-9 * max(values[n]) ** 2
        np.testing.assert_allclose(values[n], oracle, atol=1e-6 * oracle.max() * 20)


def test_both_branches_are_exercised_by_the_random_problems():
    _, some = solve(random_readings(0, n_series=200, shape=0.3))
    _, none = solve(random_readings(0, n_series=200, shape=400.0, zeros=0.0, coverage=1.0))
    assert some > 50
    assert none < 100


def test_tails_continue_flat_and_gaps_are_bridged_by_a_line():
    readings = random_readings(5, n_series=50, shape=50.0, zeros=0.0)
    values, _ = solve(readings)
    for n in range(readings.n_series):
        own = slice(readings.indptr[n], readings.indptr[n + 1])
        start, stop = readings.start[own], readings.stop[own]
        size = values[n].max()
        np.testing.assert_allclose(values[n, : start[0]], values[n, start[0]], atol=1e-7 * size)
        np.testing.assert_allclose(values[n, stop[-1] :], values[n, stop[-1] - 1], atol=1e-7 * size)
        for low, high in zip(stop[:-1], start[1:], strict=True):
            if high > low and values[n, low - 1 : high + 1].min() > 1e-3 * size:
                bend = np.diff(values[n, low - 1 : high + 1], 2)
                np.testing.assert_allclose(bend, 0, atol=1e-6 * size)


def test_equal_rates_give_a_constant_series():
    readings = random_readings(7, n_series=4, zeros=0.0)
    flat = readings.with_totals(3.5 * (readings.stop - readings.start))
    values, n_clipped = solve(flat)
    assert n_clipped == 0
    np.testing.assert_allclose(values, 3.5, rtol=1e-12)


def test_a_year_from_two_totals_stays_accurate_on_a_long_grid():
    n_periods = 8760
    indptr, start, stop = np.array([0, 3]), np.array([0, 4000, 8000]), np.array([4000, 8000, 8760])
    total = np.array([4000.0, 12000.0, 700.0])
    values = np.empty((1, n_periods))
    active = np.array([[0, n_periods]])
    smooth_series(indptr, start, stop, total, active, values)
    assert values.min() >= 0
    sums = [values[0, a:b].sum() for a, b in zip(start, stop, strict=True)]
    np.testing.assert_allclose(sums, total, rtol=1e-8)
    # Inside a reading, where the series is positive, the second difference is constant.
    bend = np.diff(values[0, 5000:7000], 2)
    assert np.ptp(bend) < 1e-9
