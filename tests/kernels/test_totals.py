"""Sums over readings: what is met is met exactly, whatever the scale."""

import numpy as np
import pytest

from tests.problems import random_readings
from unsum.kernels.totals import check_totals, meet_totals, spread_evenly, sum_readings


def naive_sums(readings, values):
    owner = readings.series_of_readings()
    return np.array(
        [
            values[n, low:high].sum()
            for n, low, high in zip(owner, readings.start, readings.stop, strict=True)
        ]
    )


def test_sum_readings_adds_up_the_periods_of_each_reading():
    readings = random_readings(1)
    values = np.random.default_rng(1).random((readings.n_series, readings.n_periods))
    sums = sum_readings(readings.indptr, readings.start, readings.stop, values)
    np.testing.assert_allclose(sums, naive_sums(readings, values), rtol=1e-13)


def test_spread_evenly_gives_equal_shares_and_the_mean_rate_elsewhere():
    readings = random_readings(2)
    values = np.empty((readings.n_series, readings.n_periods))
    spread_evenly(*readings.arrays, values)
    covered = readings.covered()
    for n in range(readings.n_series):
        own = slice(readings.indptr[n], readings.indptr[n + 1])
        length = readings.stop[own] - readings.start[own]
        for low, high, total in zip(
            readings.start[own], readings.stop[own], readings.total[own], strict=True
        ):
            np.testing.assert_allclose(values[n, low:high], total / (high - low), rtol=1e-15)
        np.testing.assert_allclose(
            values[n, ~covered[n]], readings.total[own].sum() / length.sum(), rtol=1e-13
        )


@pytest.mark.parametrize("total", [1e-300, 1e-30, 1.0, 1e30, 1e300, 5e-324, 1e-320])
@pytest.mark.parametrize("start_values", ["zeros", "tiny", "huge", "negative", "mixed"])
def test_meet_totals_is_exact_from_any_start(total, start_values):
    rng = np.random.default_rng(3)
    values = {
        "zeros": np.zeros((1, 30)),
        "tiny": rng.random((1, 30)) * 1e-305,
        "huge": rng.random((1, 30)) * 1e305,
        "negative": -rng.random((1, 30)),
        "mixed": rng.choice([0.0, 1e-300, 1e300, -1.0], (1, 30)),
    }[start_values]
    indptr, start, stop = np.array([0, 2]), np.array([2, 9]), np.array([9, 25])
    totals = np.array([total, total * 0.5])
    meet_totals(indptr, start, stop, totals, np.array([[0, 30]]), values)
    worst, sound = check_totals(indptr, start, stop, totals, values)
    assert sound
    assert worst <= 1e-12
    sums = np.array([values[0, 2:9].sum(), values[0, 9:25].sum()])
    np.testing.assert_allclose(sums, totals, rtol=1e-12, atol=5e-324)


def test_the_smallest_totals_are_met_over_any_length():
    for count in range(1, 60):
        for length in range(1, 40):
            values = np.ones((1, length))
            totals = np.array([count * 5e-324])
            meet_totals(
                np.array([0, 1]), np.array([0]), np.array([length]), totals,
                np.array([[0, length]]), values,
            )  # fmt: skip
            assert values.min() >= 0
            assert values.sum() == totals[0]


def test_meet_totals_keeps_the_shape_of_a_reading_and_zeroes_what_is_inactive():
    values = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    active = np.array([[1, 5]])
    meet_totals(np.array([0, 1]), np.array([1]), np.array([4]), np.array([18.0]), active, values)
    np.testing.assert_allclose(values, [[0, 4, 6, 8, 5, 0]], rtol=1e-15)


def test_a_zero_total_gives_exact_zeros():
    values = np.ones((1, 5))
    meet_totals(
        np.array([0, 1]), np.array([1]), np.array([4]), np.zeros(1), np.array([[0, 5]]), values
    )
    assert values.tolist() == [[1, 0, 0, 0, 1]]


@pytest.mark.parametrize("spoil", [np.nan, np.inf, -1e-9])
def test_check_totals_sees_unsound_values(spoil):
    values = np.ones((1, 5))
    values[0, 4] = spoil
    _, sound = check_totals(np.array([0, 1]), np.array([0]), np.array([3]), np.full(1, 3.0), values)
    assert not sound


def test_check_totals_sees_a_missed_reading():
    arguments = np.array([0, 2]), np.array([0, 3]), np.array([3, 5])
    worst, _ = check_totals(*arguments, np.array([3.0, 2.02]), np.ones((1, 5)))
    assert worst == pytest.approx(0.02 / 2.02)
    worst, _ = check_totals(*arguments, np.array([3.0, 0.0]), np.ones((1, 5)))
    assert worst == np.inf
