"""Whole numbers are counts, and counts are noisy in a way that readings do not show."""

import math

import numpy as np
import pytest

from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.experiments.compare import measure_recovery
from unsum.panel import Panel
from unsum.population.counts import common_quantum, count_in
from unsum.population.start import first_guess
from unsum.readings import Readings
from unsum.recovering import recover


def read(*totals):
    """Series with these totals, one after the other."""
    series = np.repeat(np.arange(len(totals)), [len(own) for own in totals])
    place = np.concatenate([np.arange(len(own)) for own in totals])
    return Readings.from_arrays(
        series, place, place + 1, np.concatenate(totals), n_series=len(totals), n_periods=9
    )


def simulate_cases(seed=0, n_series=80, n_periods=120):
    """Poisson counts of series of very different size around a curve that they share."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(0.5, 1, n_series))
    curve = 1 + 0.5 * np.sin(np.arange(n_periods) / 15)
    return Panel.from_values(rng.poisson(size[:, None] * curve).astype(float))


@pytest.mark.parametrize("unit", [1.0, 0.1, 1e-3, 7.3, 1e-9, 1e12])
def test_a_quantum_is_the_greatest_common_divisor_in_any_unit(unit):
    rng = np.random.default_rng(3)
    whole = [rng.integers(0, 5000, 6) * factor for factor in (1, 4, 25)]
    for own in whole:
        found = common_quantum(read(unit * own.astype(float)))
        assert found == pytest.approx(unit * math.gcd(*own.tolist()), rel=1e-6)


def test_readings_that_are_not_whole_numbers_have_no_quantum():
    rng = np.random.default_rng(4)
    assert common_quantum(read(*(rng.random(6) for _ in range(20)))) == 0
    mostly = [rng.random(6) for _ in range(3)] + [rng.integers(1, 99, 6) for _ in range(5)]
    assert common_quantum(read(*mostly)) == 1
    assert count_in(read(*mostly), 1.0).tolist() == [False] * 3 + [True] * 5


def test_a_few_totals_tell_nothing_and_those_that_are_alike_have_no_say():
    assert common_quantum(read([6.0, 12.0, 18.0])) == 0
    assert common_quantum(read([0.0] * 8, [5.0] * 8, [3, 4, 5, 6.0], [7, 7, 8, 9.0])) == 1


def test_counts_are_as_noisy_as_counts_and_rounded_curves_are_not():
    rng = np.random.default_rng(5)
    level = np.exp(rng.normal(3, 0.5, (60, 1)))
    smooth = level * (1 + 0.3 * np.sin(np.arange(120) / 15 + rng.uniform(0, 6, (60, 1))))
    found = []
    for values in (rng.poisson(smooth).astype(float), np.round(smooth)):
        start = first_guess(aggregate(Panel.from_values(values), Periodic(6)))
        assert start.quantum == 1
        found.append(start.counting)
    assert 0.5 < found[0] <= 1
    assert found[1] < 0.1


def test_where_series_are_read_at_every_period_noise_is_seen_not_assumed():
    truth = simulate_cases()
    readings = aggregate(truth, Periodic(5))
    fine = aggregate(truth, Periodic(1, offset=0))
    both = Readings.from_arrays(
        np.concatenate([readings.series_of_readings(), 80 + fine.series_of_readings()]),
        *(
            np.concatenate([getattr(each, name) for each in (readings, fine)])
            for name in ("start", "stop", "total")
        ),
        n_series=160,
        n_periods=120,
    )
    assert first_guess(readings).quantum == 1
    assert first_guess(both).quantum == 0


@pytest.mark.parametrize("scheme", [Periodic(10), AtRandom(10)])
def test_the_error_of_counts_is_expected_and_their_intervals_hold(scheme):
    """Within equal readings nothing else tells noise from slow movement."""
    truth = simulate_cases()
    readings = aggregate(truth, scheme)
    recovery = recover(readings, interval=0.9)
    true = measure_recovery(truth, readings, recovery.values).normalised_covered
    assert 0.85 < recovery.expected_error / true < 1.2
    bounds = next(iter(recovery.blocks())).bounds
    inside = (truth.values >= bounds.lower - 1e-9) & (truth.values <= bounds.upper + 1e-9)
    assert 0.86 < inside[readings.covered()].mean() < 0.96


def test_counts_in_another_unit_are_the_same_counts():
    readings = aggregate(simulate_cases(n_series=30, n_periods=60), Periodic(6))
    recoveries = [
        recover(readings.with_totals(readings.total * unit), interval=0.9) for unit in (1.0, 12.0)
    ]
    one, dozens = (np.concatenate([b.bounds.upper for b in r.blocks()]) for r in recoveries)
    np.testing.assert_allclose(dozens / 12, one, rtol=1e-6, atol=1e-6 * one.max())
    np.testing.assert_allclose(recoveries[1].values / 12, recoveries[0].values, rtol=1e-6)
