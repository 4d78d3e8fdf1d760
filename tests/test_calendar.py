"""Dates to periods: steps, months, weeks, and clocks that change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from unsum.calendar import DAY, HOUR, Calendar, Frequency, TimeZone, find_zone, moment_of
from unsum.errors import ParameterError


def utc(text, zone):
    """A local time as microseconds of UTC, by the standard library."""
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "step", "months"),
    [
        ("D", DAY, 0), ("d", DAY, 0), ("daily", DAY, 0), ("2D", 2 * DAY, 0), ("W", 7 * DAY, 0),
        ("h", HOUR, 0), ("H", HOUR, 0), ("15min", HOUR // 4, 0), ("30min", HOUR // 2, 0),
        ("6h", 6 * HOUR, 0), ("MS", 0, 1), ("month", 0, 1), ("QS", 0, 3), ("3MS", 0, 3),
        ("YS", 0, 12), ("W-SUN", 7 * DAY, 0),
    ],
)  # fmt: skip
def test_frequencies(text, step, months):
    frequency = Frequency.parse(text)
    assert (frequency.step, frequency.months) == (step, months)


@pytest.mark.parametrize(
    "text", ["", "x", "7h", "0D", "15m", "D-MON", "-1D", "W-XXX", "1.5h", "36h"]
)
def test_unknown_frequencies_are_refused_with_examples(text):
    with pytest.raises(ParameterError, match="'15min'"):
        Frequency.parse(text)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "+99:99", "../etc/passwd"])
def test_unknown_zones_are_refused_with_examples(zone):
    with pytest.raises(ParameterError, match="Europe/Paris"):
        find_zone(zone)


@pytest.mark.parametrize(
    "name",
    ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo",
     "Africa/Casablanca", "Asia/Beirut"],
)  # fmt: skip
def test_zones_agree_with_the_standard_library_hour_by_hour(name):
    first, last = moment_of("2017-01-01"), moment_of("2020-01-01")
    zone = TimeZone(name, first, last)
    moments = np.arange(first, last, HOUR // 2)
    expected = np.array(
        [
            (
                datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(moment))
            ).astimezone(ZoneInfo(name)).utcoffset() // timedelta(microseconds=1)
            for moment in moments[::7]
        ]
    )  # fmt: skip
    walls = zone.to_wall(moments)
    np.testing.assert_array_equal((walls - moments)[::7], expected)
    back, twice, never = zone.to_utc(walls)
    assert not never.any()
    np.testing.assert_array_equal(back[~twice], moments[~twice])
    assert set((moments - back)[twice]) <= {0, HOUR // 2, HOUR}  # the first of the two


def test_times_that_happen_twice_or_never_are_marked():
    zone = TimeZone("Europe/Paris", moment_of("2024-01-01"), moment_of("2025-01-01"))
    walls = np.array(
        [moment_of(text) for text in (
            "2024-03-31T01:30", "2024-03-31T02:30", "2024-03-31T03:00",
            "2024-10-27T01:59", "2024-10-27T02:00", "2024-10-27T02:59", "2024-10-27T03:00",
        )]
    )  # fmt: skip
    utc_moments, twice, never = zone.to_utc(walls)
    assert never.tolist() == [False, True, False, False, False, False, False]
    assert twice.tolist() == [False, False, False, False, True, True, False]
    assert utc_moments[1] == moment_of("2024-03-31T01:00")
    assert utc_moments[4] == moment_of("2024-10-27T00:00")


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Paris", "2024-03-31", 23), ("Europe/Paris", "2024-10-27", 25),
        ("Europe/Paris", "2024-06-01", 24), ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/Sao_Paulo", "2018-02-17", 25), ("Australia/Lord_Howe", "2024-04-07", 24.5),
    ],
)  # fmt: skip
def test_local_days_have_their_true_hours(zone, day, hours):
    following = (datetime.fromisoformat(day) + timedelta(days=1)).date().isoformat()
    first, last = utc(day, zone), utc(following, zone)
    daily = Calendar.covering("D", zone, first, last)
    assert daily.n_periods == 1
    assert np.diff(daily.edges)[0] == hours * HOUR
    assert daily.text(0) == day
    halves = Calendar.covering("30min", zone, first, last)
    assert halves.n_periods == 2 * hours


def test_hours_across_a_clock_change_are_labelled_with_offsets():
    first, last = utc("2024-10-27T01:00", "Europe/Paris"), utc("2024-10-27T04:00", "Europe/Paris")
    calendar = Calendar.covering("h", "Europe/Paris", first, last)
    assert calendar.texts(slice(None)) == [
        "2024-10-27T01:00+02:00", "2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00",
        "2024-10-27T03:00+01:00", "2024-10-27T04:00+01:00",
    ]  # fmt: skip


def test_long_steps_follow_the_wall_clock():
    first, last = utc("2024-03-30", "Europe/Paris"), utc("2024-04-02", "Europe/Paris")
    calendar = Calendar.covering("6h", "Europe/Paris", first, last)
    assert calendar.n_periods == 12
    assert (calendar.walls % (6 * HOUR) == 0).all()


def test_months_and_leap_days():
    calendar = Calendar.covering("MS", None, moment_of("2024-01-15"), moment_of("2024-04-01"))
    assert calendar.texts(slice(None)) == ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"]
    days = Calendar.covering("D", None, moment_of("2024-02-01"), moment_of("2024-03-01"))
    assert days.n_periods == 29


def test_weeks_begin_where_told():
    span = moment_of("2024-01-03"), moment_of("2024-01-20")  # a Wednesday
    assert Calendar.covering("W", None, *span).text(0) == "2024-01-03"
    assert Calendar.covering("W-MON", None, *span).text(0) == "2024-01-01"
    assert Calendar.covering("W-SUN", None, *span).text(0) == "2023-12-31"


def test_locate_finds_edges_and_rounds_to_the_nearest():
    calendar = Calendar.covering("D", None, moment_of("2024-01-01"), moment_of("2024-01-05"))
    moments = np.array(
        [moment_of(text) for text in (
            "2024-01-01", "2024-01-02T11:00", "2024-01-02T12:00", "2024-01-05", "2023-12-31",
            "2024-01-06",
        )]
    )  # fmt: skip
    nearest, exact = calendar.locate(moments)
    assert nearest.tolist() == [0, 1, 2, 4, -1, 5]
    assert exact.tolist() == [True, False, False, True, False, False]


def test_cuts_by_month_week_quarter():
    calendar = Calendar.covering("D", None, moment_of("2024-01-10"), moment_of("2024-05-15"))
    months = [calendar.text(int(cut)) for cut in calendar.cuts("MS")]
    assert months == ["2024-01-10", "2024-02-01", "2024-03-01", "2024-04-01", "2024-05-01",
                      "2024-05-15"]  # fmt: skip
    assert [calendar.text(int(cut)) for cut in calendar.cuts("W")][1] == "2024-01-15"
    assert [calendar.text(int(cut)) for cut in calendar.cuts("QS")][1:-1] == ["2024-04-01"]


def test_cuts_that_divide_a_period_are_refused():
    weekly = Calendar.covering("W", None, moment_of("2024-01-03"), moment_of("2024-03-20"))
    with pytest.raises(ParameterError, match="cuts a period of 'W' in two"):
        weekly.cuts("MS")
    with pytest.raises(ParameterError, match="plain numbers"):
        Calendar.numbered(5).cuts("MS")


def test_absurd_spans_are_refused():
    with pytest.raises(ParameterError, match="more than 10,000,000"):
        Calendar.covering("min", None, moment_of("1900-01-01"), moment_of("2024-01-01"))


@pytest.mark.parametrize("text", ["yesterday", "2024-13-01", "2024-01-01T00:00+01:00"])
def test_dates_given_by_users_are_checked(text):
    with pytest.raises(ParameterError):
        moment_of(text)


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Paris", "Australia/Lord_Howe"])
@pytest.mark.parametrize("freq", ["MS", "W", "2D", "D", "6h"])
def test_every_edge_is_a_local_midnight_or_step(zone, freq):
    step = 6 * HOUR if freq == "6h" else DAY
    rng = np.random.default_rng(0)
    for first in rng.integers(moment_of("2023-01-01"), moment_of("2025-01-01"), 40):
        calendar = Calendar.covering(freq, zone, int(first), int(first) + 40 * DAY)
        assert (calendar.walls % step == 0).all()
        assert calendar.edges[0] <= first
        assert calendar.edges[-1] >= first + 40 * DAY


def test_weeks_of_a_zoned_calendar_begin_on_monday():
    span = utc("2024-01-03", "America/New_York"), utc("2024-02-03", "America/New_York")
    hourly = Calendar.covering("h", "America/New_York", *span)
    mondays = hourly.walls[hourly.cuts("W")[1:-1]]
    assert {(int(wall) // DAY + 3) % 7 for wall in mondays} == {0}


@pytest.mark.parametrize(
    ("text", "season"),
    [("h", 24), ("15min", 96), ("D", 7), ("W", 1), ("2D", 1), ("MS", 12), ("3MS", 4), ("5MS", 1)],
)
def test_series_tend_to_repeat_after_a_day_a_week_or_a_year(text, season):
    assert Frequency.parse(text).season == season
