"""Aggregate and recover are inverse verbs."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.problems import random_readings
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.calendar import Calendar, moment_of
from unsum.errors import ParameterError
from unsum.methods import METHODS
from unsum.panel import Panel
from unsum.recovering import recover


def daily_panel(n_series=5, n_periods=100, seed=0):
    values = np.random.default_rng(seed).gamma(2.0, 3.0, (n_series, n_periods))
    first = moment_of("2024-01-10")
    calendar = Calendar.covering("D", None, first, first + n_periods * 86_400_000_000)
    return Panel.from_values(values, [f"m{n}" for n in range(n_series)], calendar)


@given(
    seed=st.integers(0, 10_000),
    method=st.sampled_from(sorted(METHODS)),
    n_periods=st.integers(1, 50),
    shape=st.floats(0.05, 50),
)
def test_aggregating_a_recovery_returns_its_readings(seed, method, n_periods, shape):
    readings = random_readings(seed, n_series=4, n_periods=n_periods, shape=shape)
    again = aggregate(recover(readings, method), readings)
    np.testing.assert_allclose(again.total, readings.total, rtol=1e-9)
    assert again.start is readings.start


@pytest.mark.parametrize("scheme", [Periodic(7), AtRandom(7), Periodic(7, offset=3)])
def test_schemes_leave_the_ends_uncovered_unless_told(scheme):
    panel = daily_panel()
    open_ends = aggregate(panel, scheme)
    assert not open_ends.covered().all()
    closed = aggregate(panel, type(scheme)(7, ends=True))
    assert closed.covered().all()
    np.testing.assert_allclose(
        np.add.reduceat(closed.total, closed.indptr[:-1]), panel.values.sum(axis=1)
    )


def test_periodic_readings_have_one_length_and_random_offsets():
    readings = aggregate(daily_panel(40), Periodic(7))
    assert set(readings.stop - readings.start) == {7}
    assert len(set(readings.start[readings.indptr[:-1]])) > 3


def test_random_readings_have_the_sampling_rate():
    readings = aggregate(daily_panel(40, 300), AtRandom(10))
    assert readings.n_readings == 40 * (30 - 1)
    assert len(set(readings.stop - readings.start)) > 10


@pytest.mark.parametrize("scheme", [Periodic(7, seed=3), AtRandom(7, seed=3)])
def test_dates_belong_to_the_name_of_a_series_not_to_its_place(scheme):
    panel = daily_panel(6)
    alone = Panel(panel.names[4:5], panel.calendar, panel.values[4:5])
    whole, part = aggregate(panel, scheme), aggregate(alone, scheme)
    own = slice(whole.indptr[4], whole.indptr[5])
    assert whole.start[own].tolist() == part.start.tolist()
    other = aggregate(alone, type(scheme)(7, seed=4))
    assert other.start.tolist() != part.start.tolist()


def test_calendar_rules_cut_at_months():
    panel = daily_panel(2)
    readings = aggregate(panel, "MS")
    assert [panel.calendar.text(int(t)) for t in readings.start[:3]] == [
        "2024-01-10", "2024-02-01", "2024-03-01",
    ]  # fmt: skip
    assert readings.covered().all()


def test_values_are_matched_to_readings_by_name():
    panel = daily_panel(5)
    readings = aggregate(panel, Periodic(10))
    shuffled = Panel(
        panel.names.take(pa.array([3, 1, 0, 4, 2])), panel.calendar, panel.values[[3, 1, 0, 4, 2]]
    )
    assert np.array_equal(aggregate(shuffled, readings).total, readings.total)
    fewer = Panel(panel.names[:2], panel.calendar, panel.values[:2])
    with pytest.raises(ParameterError, match="series 'm2' of the readings is not among"):
        aggregate(fewer, readings)


def test_arrays_are_matched_by_position():
    panel = daily_panel(5)
    readings = aggregate(panel, Periodic(10))
    assert np.array_equal(aggregate(panel.values, readings).total, readings.total)
    with pytest.raises(ParameterError, match="do not fit"):
        aggregate(panel.values[:, :50], readings)


@pytest.mark.parametrize(
    ("values", "rule", "message"),
    [
        (np.ones((2, 9)), Periodic(20, offset=3), "leaves no reading"),
        (np.ones((2, 9)), "MS", "plain numbers"),
        (-np.ones((2, 9)), Periodic(2), "finite and nonnegative"),
        (np.ones(9), Periodic(2), r"got shape \(9,\)"),
        (np.ones((2, 9)), [0, 12], "cuts must be at least two edges"),
    ],
)
def test_impossible_aggregations_are_explained(values, rule, message):
    with pytest.raises(ParameterError, match=message):
        aggregate(values, rule)


@pytest.mark.parametrize(
    "make", [lambda: Periodic(0), lambda: AtRandom(-1), lambda: Periodic(3, offset=3)]
)
def test_impossible_schemes_are_refused(make):
    with pytest.raises(ParameterError):
        make()
