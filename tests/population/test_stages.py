"""Long grids: blocks, windows of blocks, and what finely read series teach the others."""

import itertools

import numpy as np
import pytest

from tests.problems import random_readings
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.errors import ParameterError
from unsum.methods.panel import StagedFit
from unsum.panel import Panel
from unsum.population.stages import Stages, _teachers
from unsum.readings import Readings
from unsum.recovering import recover

DAY = 12


def days_of_series(seed=0, n_series=40, n_days=200, share=None):
    """Two kinds of days, mixed differently in every series, on a grid of `DAY` periods a day."""
    rng = np.random.default_rng(seed)
    kinds = np.array([[1, 1, 1, 2, 4, 6, 6, 4, 2, 1, 1, 1], [3, 2, 1, 1, 1, 1, 1, 2, 3, 5, 6, 4.0]])
    share = rng.random((n_series, 1)) if share is None else share[:, None]
    shape = share * kinds[0] + (1 - share) * kinds[1]
    days = np.exp(np.cumsum(rng.normal(0, 0.05, (n_series, n_days)), axis=1))
    values = (days[:, :, None] * shape[:, None, :]).reshape(n_series, -1)
    return values * (1 + 0.1 * rng.random(values.shape))


def mixed_readings(values, fine, length):
    """Every period of some series; the others over stretches of a given length."""
    rows = []
    for n, own in enumerate(values):
        every = 1 if fine[n] else length
        starts = np.arange(0, len(own), every)
        stops = np.minimum(starts + every, len(own))
        totals = np.add.reduceat(own, starts)
        rows += [(n, a, b, t) for a, b, t in zip(starts, stops, totals, strict=True)]
    series, start, stop, total = (np.array(column) for column in zip(*rows, strict=True))
    return Readings.from_arrays(
        series, start, stop, total, n_series=len(values), n_periods=values.shape[1]
    )


@pytest.mark.parametrize("seed", range(40))
def test_readings_by_blocks_keep_their_sums(seed):
    readings = random_readings(seed, n_series=9, n_periods=60, coverage=0.7)
    stages = Stages(60, 6, 18)
    blocks = stages.coarsen(readings)
    assert blocks.n_periods == 10
    assert (np.diff(blocks.indptr) >= 1).all()
    for n in range(9):
        own = slice(blocks.indptr[n], blocks.indptr[n + 1])
        start, stop = blocks.start[own], blocks.stop[own]
        assert (start < stop).all()
        assert (stop[:-1] <= start[1:]).all()
        mine = slice(readings.indptr[n], readings.indptr[n + 1])
        begin, end, total = readings.start[mine], readings.stop[mine], readings.total[mine]
        if (begin[1:] == end[:-1]).all() and len(start) > 1:
            before = begin[0] - 6.0, -6.0 * total[0] / (end[0] - begin[0])
            after = end[-1] + 6.0, total.sum() + 6.0 * total[-1] / (end[-1] - begin[-1])
            places = np.r_[before[0], begin[0], end, after[0]]
            ahead = np.r_[before[1], 0.0, np.cumsum(total), after[1]]
            expected = np.interp(stop * 6, places, ahead) - np.interp(start * 6, places, ahead)
            np.testing.assert_allclose(blocks.total[own], expected, rtol=1e-9, atol=1e-12)


def test_readings_at_the_edges_of_blocks_are_kept_as_they_are():
    values = days_of_series(n_series=5, n_days=6)
    stages = Stages(72, 12, 36)
    daily = mixed_readings(values, np.zeros(5, bool), 12)
    hourly = mixed_readings(values, np.ones(5, bool), 12)
    for readings in (daily, hourly):
        blocks = stages.coarsen(readings)
        assert blocks.n_readings == 30
        np.testing.assert_allclose(blocks.total.reshape(5, 6), values.reshape(5, 6, 12).sum(2))


def test_a_window_has_own_readings_and_the_blocks_they_leave_free():
    readings = Readings.from_arrays(
        [0, 0, 0, 0, 1], [0, 4, 13, 24, 0], [4, 8, 15, 40, 48], [1.0, 2.0, 3.0, 4.0, 9.0],
        n_series=2, n_periods=48,
    )  # fmt: skip
    stages = Stages(48, 8, 24)
    blocks = np.arange(12.0).reshape(2, 6)
    places, seen = stages.look(readings, blocks, 0)
    assert places.tolist() == [0, 1]
    assert intervals(seen, 0) == [(0, 4, 1.0), (4, 8, 2.0), (13, 15, 3.0), (16, 24, 2.0)]
    assert intervals(seen, 1) == [(0, 8, 6.0), (8, 16, 7.0), (16, 24, 8.0)]
    _, later = stages.look(readings, blocks, 24)
    assert intervals(later, 0) == [(0, 16, 4.0), (16, 24, 5.0)]  # longer than a block, but within
    assert intervals(later, 1) == [(0, 8, 9.0), (8, 16, 10.0), (16, 24, 11.0)]


def test_a_window_sees_its_margins():
    readings = Readings.from_arrays(
        [0, 0, 0], [0, 20, 28], [6, 28, 40], [1.0, 2.0, 3.0], n_series=1, n_periods=48
    )
    stages = Stages(48, 8, 16, 8)
    assert stages.span == 32
    blocks = np.arange(6.0)[None]
    first, middle, last = (stages.look(readings, blocks, begin)[1] for begin in stages.begins)
    assert intervals(first, 0) == [(8, 14, 1.0), (16, 24, 1.0), (24, 32, 2.0)]
    assert intervals(middle, 0) == [(0, 8, 1.0), (12, 20, 2.0), (20, 32, 3.0)]
    assert intervals(last, 0) == [(4, 16, 3.0), (16, 24, 5.0)]


def intervals(readings, n):
    own = slice(readings.indptr[n], readings.indptr[n + 1])
    columns = (readings.start[own], readings.stop[own], readings.total[own])
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("length", [DAY, 30 * DAY])
def test_finely_read_series_teach_the_day_to_the_others(length):
    values = days_of_series()
    fine = np.arange(40) % 4 == 0
    readings = mixed_readings(values, fine, length)
    recovery = recover(readings, "panel", season=DAY)
    assert isinstance(recovery.fit, StagedFit)
    assert recovery.fit.stages.block == DAY
    gaps = [
        np.linalg.norm(each.values[~fine] - values[~fine])
        for each in (recovery, recover(readings, "even"))
    ]
    assert gaps[0] < 0.85 * gaps[1]
    again = recover(readings, "panel", season=DAY, threads=1)
    assert np.array_equal(recovery.values, again.values)
    first = [recovery.values_of(low, readings[low : low + 8]) for low in range(0, 40, 8)]
    assert np.array_equal(np.concatenate(first), recovery.values)


def test_readings_that_are_longer_than_blocks_are_seen_too():
    values = days_of_series()
    readings = aggregate(Panel.from_values(values), AtRandom(3 * DAY // 2))
    covered = readings.covered()
    gaps = [
        np.linalg.norm((each.values - values)[covered])
        for each in (recover(readings, "panel", season=DAY), recover(readings, "even"))
    ]
    assert gaps[0] < 0.75 * gaps[1]


@pytest.mark.parametrize("scheme", [AtRandom(40), Periodic(7), Periodic(500)])
def test_any_readings_on_a_long_grid_are_met(scheme):
    rng = np.random.default_rng(1)
    truth = Panel.from_values(rng.gamma(1.0, 1.0, (6, 2300)))
    readings = aggregate(truth, scheme)
    recovery = recover(readings, "panel")
    sums = aggregate(Panel.from_values(recovery.values), readings).total
    np.testing.assert_allclose(sums, readings.total, rtol=1e-9)
    zeros = readings.with_totals(np.zeros(readings.n_readings))
    assert not recover(zeros, "panel").values[readings.covered()].any()


def test_grids_that_are_too_long_are_refused():
    readings = Readings.from_arrays([0], [0], [5], [1.0], n_series=1, n_periods=1_800_000)
    with pytest.raises(ParameterError, match="up to 900,000 periods, these are 1,800,000"):
        recover(readings, "panel")


@pytest.mark.parametrize("n_periods", [46 * 48, 46 * 48 + 10, 46 * 48 + 30])
def test_constant_series_stay_constant_wherever_they_are_cut(n_periods):
    rows = []
    for n in range(5):
        cuts = np.unique(np.r_[0, np.arange(10 + 5 * n, n_periods, 340 + n), n_periods])
        rows += [(n, a, b) for a, b in itertools.pairwise(cuts.tolist())]
    series, start, stop = np.array(rows).T
    readings = Readings.from_arrays(
        series, start, stop, 1.0 * (stop - start), n_series=5, n_periods=n_periods
    )
    np.testing.assert_allclose(recover(readings, "panel", season=48).values, 1.0, rtol=1e-9)


def test_moved_boundaries_take_along_what_lies_between():
    readings = Readings.from_arrays(
        [0, 0, 0], [2, 7, 18], [7, 18, 22], [10.0, 11.0, 12.0], n_series=1, n_periods=24
    )
    blocks = Stages(24, 8, 24).coarsen(readings)
    assert intervals(blocks, 0) == [(0, 1, 15.0), (1, 2, 8.0), (2, 3, 20.0)]


def test_what_lies_between_edges_of_blocks_is_not_lost():
    readings = Readings.from_arrays(
        [0, 0, 1], [0, 17, 3], [16, 18, 5], [0.0, 7.0, 4.0], n_series=2, n_periods=24
    )
    blocks = Stages(24, 8, 24).coarsen(readings)
    assert intervals(blocks, 0) == [(0, 2, 7.0)]
    assert intervals(blocks, 1) == [(0, 1, 16.0)]


def test_a_block_that_readings_leave_free_has_its_total():
    readings = Readings.from_arrays([0, 0], [2, 12], [12, 15], [5.0, 3.0], n_series=1, n_periods=24)
    _, seen = Stages(24, 8, 24).look(readings, np.full((1, 3), 7.0), 0)
    assert intervals(seen, 0) == [(2, 12, 5.0), (12, 15, 3.0), (16, 24, 7.0)]


def test_a_short_reading_does_not_make_a_teacher():
    n_periods = 40 * DAY
    fine = [(n, a, a + 1) for n in range(10) for a in range(n_periods)]
    cuts = [0, 3, *range(10 * DAY, n_periods + 1, 10 * DAY)]
    stubs = [(n, a, b) for n in range(10, 400) for a, b in itertools.pairwise(cuts)]
    series, start, stop = np.array(fine + stubs).T
    readings = Readings.from_arrays(
        series, start, stop, np.ones(len(series)), n_series=400, n_periods=n_periods
    )
    teachers = _teachers(readings, Stages.choose(n_periods, DAY), 0)
    assert teachers[:10].tolist() == list(range(10))
    assert len(teachers) == 110


def test_series_that_are_zero_at_times_are_not_alike_for_that():
    values = np.random.default_rng(0).gamma(2.0, 1.0, (10, 2400))
    for n in range(10):
        values[n, n % 2 * 1200 :][:1200] = 0.0
    readings = mixed_readings(values, np.ones(10, bool), DAY)
    assert recover(readings, "panel", season=DAY).fit.alike < 0.05


def test_a_season_can_be_too_long_for_blocks():
    assert Stages.choose(60_000, 2500).block == 60
    assert Stages.choose(35_040, 96) == Stages(35_040, 96, 672, 96)
    assert Stages.choose(105_120, 288) == Stages(105_120, 288, 288, 288)
    assert Stages.choose(20_000, 1440) == Stages(20_000, 1440, 1440, 0)
