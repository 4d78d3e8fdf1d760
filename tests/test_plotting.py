"""Pictures show the numbers of the recovery: lines, bands, steps and bars are compared to them."""

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.dates import date2num, num2date
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

import unsum
from tests.problems import random_readings
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.calendar import Calendar
from unsum.errors import ParameterError
from unsum.experiments.town import simulate_town
from unsum.panel import Panel
from unsum.plotting import choose_series, find_series
from unsum.readings import Readings
from unsum.recovering import recover

HOSTILE = r"$\frac{1}{ </script>_^" + "\nx" * 60


@pytest.fixture(scope="module")
def town():
    return Readings.from_frame(simulate_town(16).bills, range_end="2023-07-01", drop_bad=True)


@pytest.fixture(scope="module")
def with_intervals(town):
    return recover(town, "panel", interval=0.9, steps=2)


@pytest.fixture(scope="module")
def with_profiles(town):
    return recover(town, "nmf", rank=3, max_iter=5)


@pytest.fixture(scope="module")
def hourly():
    """Two weeks around the night in which clocks go forward."""
    first = int(np.datetime64("2024-03-24T23:00", "us").astype(np.int64))
    calendar = Calendar.covering("h", "Europe/Paris", first, first + 335 * 3600 * 10**6)
    values = np.random.default_rng(0).gamma(4, 1, (6, 335))
    return aggregate(Panel.from_values(values, list("abcdef"), calendar), AtRandom(12, seed=1))


def labelled(axis, kind, label):
    """The one artist of a kind whose label begins so."""
    (found,) = (
        each for each in axis.get_children()
        if isinstance(each, kind) and str(each.get_label()).startswith(label)
    )  # fmt: skip
    return found


def place_of(readings, name):
    return readings.names.to_pylist().index(name)


def y_of(axis, label):
    (line,) = (each for each in axis.lines if each.get_label().startswith(label))
    return line.get_ydata()


def test_the_line_is_what_was_recovered_and_the_band_its_interval(with_intervals):
    names = ["C0004", "C0011"]
    figure = with_intervals.plot(names)
    table = with_intervals.to_frame("pandas")
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 2
    for axis, name in zip(figure.axes, names, strict=True):
        rows = table[table["series"] == name]
        np.testing.assert_allclose(y_of(axis, "recovered (panel)"), rows["value"], rtol=1e-12)
        band = labelled(axis, PolyCollection, "90 % interval")
        corners = band.get_paths()[0].vertices[:-1, 1]
        n = len(rows)  # round the band: lower ends forth, upper ends back, corners repeated
        np.testing.assert_allclose(corners[1 : n + 1], rows["lower"], rtol=1e-12)
        np.testing.assert_allclose(corners[n + 2 : 2 * n + 2][::-1], rows["upper"], rtol=1e-12)
        assert axis.get_title(loc="left").startswith(name)


def test_steps_are_readings_at_their_mean_levels(with_intervals, town):
    n = place_of(town, "C0004")
    part = town[n : n + 1]
    (axis,) = with_intervals.plot("C0004").axes
    steps = np.array(labelled(axis, LineCollection, "readings").get_segments())
    length = part.stop - part.start
    np.testing.assert_allclose(steps[:, 0, 1], part.total / length)
    np.testing.assert_allclose(steps[:, 1, 0] - steps[:, 0, 0], length)  # in days
    first = date2num(np.datetime64(town.calendar.text(0)))
    np.testing.assert_allclose(steps[:, 0, 0] - first, part.start)


def test_estimated_readings_are_broken_lines():
    table = {
        "series": ["a", "a"],
        "start": ["2024-01-01", "2024-01-11"],
        "end": ["2024-01-11", "2024-01-21"],
        "total": [1.0, 2.0],
        "quality": ["actual", "estimated"],
    }
    (axis,) = recover(Readings.from_frame(table), "even").plot().axes
    (_, whole), (_, broken) = labelled(axis, LineCollection, "readings").get_linestyles()
    assert whole is None
    assert broken is not None


def test_even_spreading_and_periods_without_reading_are_behind(with_profiles, town):
    name = "C0004"
    n = place_of(town, name)
    (axis,) = with_profiles.plot(name).axes
    even = labelled(axis, StepPatch, "even spreading").get_data()
    np.testing.assert_allclose(even.values, recover(town, "even").values[n])
    unread = labelled(axis, StepPatch, "no reading").get_data()
    assert np.array_equal(unread.values, ~town.covered()[n])
    assert len(unread.edges) == town.n_periods + 1
    (axis,) = with_profiles.plot(name, even=False).axes
    assert not [each for each in axis.patches if each.get_label() == "even spreading"]


def test_periods_in_which_a_series_does_not_exist_are_not_missing_readings():
    table = {
        "series": ["a", "b"],
        "start": [4, 0],
        "end": [8, 12],
        "total": [3.0, 5.0],
        "active_from": [2, None],
        "active_to": [10, None],
    }
    readings = Readings.from_frame(pa.table(table), "period")
    (axis,) = recover(readings, "denton").plot("a").axes
    unread = labelled(axis, StepPatch, "no reading").get_data().values
    assert np.flatnonzero(unread).tolist() == [2, 3, 8, 9]


def test_a_few_series_are_chosen_by_level_and_always_the_same(with_profiles, town):
    chosen = choose_series(town, 3)
    length = town.stop - town.start
    peak = np.maximum.reduceat(town.total / length, town.indptr[:-1])
    assert len(chosen) == 3
    assert (np.diff(peak[chosen]) < 0).all()
    assert all(length[town.indptr[n] : town.indptr[n + 1]].max() > 1 for n in chosen)
    titles = [axis.get_title(loc="left") for axis in with_profiles.plot().axes]
    expected = [town.names[int(n)].as_py() for n in chosen]
    assert [title.split(",")[0] for title in titles] == expected
    assert len(choose_series(town[:2], 3)) == 2


def test_drawing_does_not_make_the_values_of_all_series(town):
    recovery = recover(town, "denton")
    recovery.plot()
    recovery.plot("C0003")
    assert "values" not in recovery.__dict__


def test_unknown_names_are_told_with_the_closest(with_profiles):
    with pytest.raises(ParameterError, match=r"no series is called 'C004'; close to it are 'C00"):
        with_profiles.plot(["C0004", "C004"])
    with pytest.raises(ParameterError, match="there are 16, from 'C0001' to 'C0016'"):
        with_profiles.plot("Zürich")
    with pytest.raises(ParameterError, match="1 to 50 names; got 0"):
        with_profiles.plot([])


def test_close_names_are_found_among_very_many():
    names = [f"meter {n:06d}" for n in range(30_000)]
    every = np.arange(30_000)
    readings = Readings.from_arrays(
        every, every * 0, every * 0 + 2, every + 1.0, n_series=30_000, n_periods=2, names=names
    )
    with pytest.raises(ParameterError, match=r"close to it are 'meter 02\d+', 'meter 02"):
        find_series(readings, "meter 0234567")
    assert find_series(readings, ["meter 000007", "meter 000001"]).tolist() == [7, 1]


def test_names_are_drawn_as_they_are():
    readings = Readings.from_arrays(
        [0, 1], [0, 0], [2, 2], [1.0, 2.0], n_series=2, n_periods=3, names=[HOSTILE, "b"]
    )
    recovery = recover(readings, "even")
    figure = recovery.plot(HOSTILE)
    assert figure._repr_png_().startswith(b"\x89PNG")
    title = figure.axes[0].get_title(loc="left")
    assert title.startswith(r"$\frac{1}{ </script>_^ x x")
    assert len(title) < 80
    recovery.plot_totals([0, 3], by=None).savefig(pa.BufferOutputStream(), format="svg")


def test_drawing_on_given_axes_leaves_pyplot_alone(with_intervals):
    figure, axes = plt.subplots(2)
    try:
        assert with_intervals.plot("C0004", axes=axes[0]) is figure
        assert len(axes[0].lines) == 1
        assert not axes[1].lines
        assert with_intervals.plot(axes=axes) is figure
        parts = figure.subfigures(1, 2)
        assert with_intervals.plot_totals(axes=parts[0].subplots()) is figure
        with pytest.raises(ParameterError, match="3 series are drawn on as many axes; got 2"):
            with_intervals.plot(["C0001", "C0002", "C0003"], axes=axes)
        with_intervals.plot()
        with_intervals.plot_profiles()
        with_intervals.plot_totals()
        assert plt.get_fignums() == [figure.number]
    finally:
        plt.close(figure)
    with pytest.raises(ParameterError, match="axes must be matplotlib axes"):
        with_intervals.plot("C0004", axes="here")


def test_axes_of_others_keep_their_labels(with_profiles):
    numbered = recover(random_readings(2), "even")
    grid = Figure().subplots(2, 2)
    for recovery, column in ((with_profiles, 0), (numbered, 1)):
        for axis in grid[:, column]:
            recovery.plot(axes=axis)
    assert all(axis.xaxis.get_tick_params()["labelbottom"] for axis in grid.ravel())
    assert [axis.get_xlabel() for axis in grid[:, 1]] == ["period", "period"]


def test_what_is_drawn_on_top_later_is_seen(with_profiles):
    (axis,) = with_profiles.plot("C0004").axes
    top = axis.get_ylim()[1]
    assert axis.get_ylim()[0] == 0
    axis.plot(axis.lines[0].get_xdata(), np.full(with_profiles.readings.n_periods, 10 * top))
    assert axis.get_ylim()[1] > 10 * top


def test_profiles_are_relative_to_their_mean_over_time_and_by_weekday(with_profiles, town):
    figure = with_profiles.plot_profiles()
    days = np.array(town.calendar.texts(slice(None, -1)), "datetime64[D]")
    weekday = (days.astype(int) + 3) % 7  # 1970-01-01 was a Thursday
    over_time, by_weekday = figure.axes[::2], figure.axes[1::2]
    assert len(over_time) == len(by_weekday) == 3
    for k in range(3):
        shape = with_profiles.profiles[:, k] / with_profiles.profiles[:, k].mean()
        np.testing.assert_allclose(over_time[k].lines[0].get_ydata(), shape)
        means = [shape[weekday == d].mean() for d in range(7)]
        np.testing.assert_allclose(by_weekday[k].lines[0].get_ydata(), means)
    shares = [float(axis.get_title(loc="left").split(", ")[1].split(" ")[0]) for axis in over_time]
    parts = with_profiles.weights.sum(axis=0) * with_profiles.profiles.sum(axis=0)
    np.testing.assert_allclose(shares, 100 * parts / parts.sum(), atol=0.51)


def test_profiles_together_on_one_axes_all_fit(with_profiles):
    figure = Figure()
    axes = figure.subplots(2, 3)
    with_profiles.plot_profiles(axes=axes[0, 0])
    highest = max(line.get_ydata().max() for line in axes[0, 0].lines)
    assert len(axes[0, 0].lines) == 3
    assert len({line.get_color() for line in axes[0, 0].lines}) == 3
    assert axes[0, 0].get_ylim()[1] > highest
    with_profiles.plot_profiles(axes=axes)
    assert [len(axis.lines) for axis in axes.ravel()] == [4, 1, 1, 1, 1, 1]
    with pytest.raises(ParameterError, match="3 profiles are drawn on 3 axes"):
        with_profiles.plot_profiles(axes=axes.ravel()[:4])


def test_where_there_are_no_profiles_the_population_is_drawn_or_a_sentence_said(
    with_intervals, town
):
    mean = with_intervals.population.mean
    axis = with_intervals.plot_profiles().axes[0]
    np.testing.assert_allclose(axis.lines[0].get_ydata(), mean / mean.mean())
    with pytest.raises(ParameterError, match=r"a recovery by 'denton' .* has no shared profiles"):
        recover(town, "denton").plot_profiles()


@pytest.mark.parametrize("by", ["all", None, "groups"])
def test_bars_are_totals_and_error_bars_their_intervals(with_intervals, by):
    if by == "groups":
        by = ["even", "odd"] * (with_intervals.readings.n_series // 2)
    figure = with_intervals.plot_totals("MS", by=by)
    table = with_intervals.totals("MS", by=by, backend="pyarrow")
    total, lower, upper = (
        np.asarray(table[name]).reshape(len(figure.axes), -1)
        for name in ("total", "lower", "upper")
    )
    assert len(figure.axes) == {1: 1, 2: 2, 16: 16}[len(total)]
    for k, axis in enumerate(figure.axes):
        np.testing.assert_allclose([bar.get_height() for bar in axis.patches], total[k])
        (bars,) = axis.containers[1][2]
        ends = np.array(bars.get_segments())[:, :, 1]
        np.testing.assert_allclose(ends, np.column_stack([lower[k], upper[k]]), atol=1e-9)
        starts = [num2date(bar.get_x()) for bar in axis.patches]
        months = table["start"].to_pylist()[: len(starts)]
        assert [(day.year, day.month) for day in starts] == [(m.year, m.month) for m in months]


def test_totals_without_intervals_have_no_error_bars(with_profiles):
    (axis,) = with_profiles.plot_totals("W").axes
    assert len(axis.containers) == 1
    assert axis.get_title(loc="left") == "all 16 series"


def test_too_many_totals_are_refused_before_they_are_computed():
    recovery = recover(random_readings(0, n_series=60), "even")
    with pytest.raises(ParameterError, match="totals of 60 series need as many axes"):
        recovery.plot_totals([0, 40], by=None)
    assert "values" not in recovery.__dict__


def test_numbered_periods_are_drawn_by_their_numbers():
    table = {"series": [1, 1, 2], "start": [3, 7, 3], "end": [7, 12, 12], "total": [4.0, 2.0, 9.0]}
    recovery = recover(Readings.from_frame(table, "period"), "denton")
    figure = recovery.plot(1)
    (axis,) = figure.axes
    assert axis.get_title(loc="left") == "series 1, 2 readings"
    assert axis.lines[0].get_xdata().tolist() == (np.arange(3, 12) + 0.5).tolist()
    assert axis.get_xlabel() == "period"
    steps = np.array(labelled(axis, LineCollection, "readings").get_segments())
    assert steps[:, :, 0].tolist() == [[3, 7], [7, 12]]
    (totals,) = recovery.plot_totals([3, 7, 12]).axes
    by_two = recovery.plot_totals([3, 7, 12], by={1: 10, 2: 20}).axes
    assert [axis.get_title(loc="left") for axis in by_two] == ["group 10", "group 20"]
    assert [axis.get_xlabel() for axis in by_two] == ["", "period"]
    assert [bar.get_height() for bar in totals.patches] == pytest.approx(
        recovery.totals([3, 7, 12], by="all")["total"].to_pylist()
    )
    with pytest.raises(ParameterError, match="give the cuts as integers"):
        recovery.plot_totals()


def test_hours_run_on_when_clocks_change_and_ticks_are_local(hourly):
    recovery = recover(hourly, "nmf", rank=1, max_iter=2)
    figure = recovery.plot("a")
    (axis,) = figure.axes
    assert (np.diff(axis.lines[0].get_xdata()) == np.timedelta64(1, "h")).all()
    figure.savefig(pa.BufferOutputStream(), format="png")
    midnights = [num2date(at) for at in axis.get_xticks()]
    local = [at.astimezone(axis.xaxis.get_major_locator().tz) for at in midnights]
    assert {moment.hour for moment in local} == {0}
    assert axis.get_ylabel() == "per hour"
    by_hour = recovery.plot_profiles().axes[1].lines[0].get_ydata()
    hour = hourly.calendar.walls[:-1] // 3_600_000_000 % 24
    shape = recovery.profiles[:, 0] / recovery.profiles[:, 0].mean()
    np.testing.assert_allclose(by_hour, [shape[hour == h].mean() for h in range(24)])


def test_ticks_of_a_day_are_hours_whatever_the_step():
    quarters = {"series": ["a"], "start": ["2024-01-01"], "end": ["2024-01-04"], "total": [3.0]}
    recovery = recover(Readings.from_frame(quarters, "6h"), "nmf", rank=1)
    axis = recovery.plot_profiles().axes[1]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0", "6", "12", "18"]
    assert axis.get_xticks().tolist() == [0, 1, 2, 3]
    assert recovery.plot().axes[0].get_ylabel() == "per 6h"


def test_steps_longer_than_a_day_have_no_weekdays():
    months = {"series": ["a", "b"], "start": ["2024-01-01"] * 2, "end": ["2024-04-01"] * 2}
    readings = Readings.from_frame(months | {"total": [3.0, 4.0]}, "MS")
    figure = recover(readings, "nmf", rank=1).plot_profiles()
    assert len(figure.axes) == 1
    (axis,) = recover(readings, "even").plot("a").axes
    assert axis.get_ylabel() == "per month"


def test_members_of_groups_without_readings_are_drawn_too():
    truth = Panel.from_values(np.random.default_rng(1).gamma(3, 1, (3, 12)), list("abc"))
    readings = aggregate(truth, Periodic(4, offset=0)).take(np.array([0, 1]))
    loads = {"group": ["g"], "start": [0], "end": [12], "total": [truth.values.sum()]}
    recovery = recover(readings, "denton", groups={"g": ["a", "b", "c"]}, group_totals=loads)
    (axis,) = recovery.plot("c").axes
    assert axis.get_title(loc="left") == "c, 0 readings"
    np.testing.assert_allclose(y_of(axis, "recovered"), recovery.values[2])


def test_readings_that_interleave_are_steps_too():
    table = {"series": ["a", "a"], "start": [0, 4], "end": [8, 12], "total": [16.0, 8.0]}
    readings = Readings.from_frame(table, "period", overlaps="solve")
    (axis,) = recover(readings, "even").plot().axes
    steps = np.array(labelled(axis, LineCollection, "readings").get_segments())
    assert steps.tolist() == [[[0, 2], [8, 2]], [[4, 1], [12, 1]]]
    assert axis.get_title(loc="left") == "a, 2 readings"


def test_one_period_is_a_point():
    readings = Readings.from_arrays([0], [0], [1], [3.0], n_series=1, n_periods=1)
    (axis,) = recover(readings, "even").plot().axes
    assert axis.lines[0].get_marker() == "o"
    assert axis.lines[0].get_ydata().tolist() == [3.0]


def test_a_saved_recovery_draws_the_same(with_intervals, tmp_path):
    with_intervals.save(tmp_path / "bills.unsum")
    again = unsum.load(tmp_path / "bills.unsum")
    lines = [each.plot("C0004").axes[0].lines[0].get_ydata() for each in (again, with_intervals)]
    assert np.array_equal(*lines)
