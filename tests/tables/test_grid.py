"""Readings on the calendar: inclusive ends, snapping, ranges, zones, weeks."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from tests.tables.helpers import HEADER, found, write
from unsum.errors import ParameterError, ReadingsError
from unsum.reading import check, read_readings
from unsum.readings import Readings


def test_inclusive_ends(tmp_path):
    text = "".join(
        f"a,2024-{month:02d}-01,2024-{month:02d}-{last},{last}\n"
        for month, last in ((1, 31), (2, 29), (3, 31), (4, 30), (5, 31))
    )
    path = write(tmp_path, HEADER + text)
    exclusive = check(path)
    assert "ends-look-inclusive" in exclusive.codes
    assert "gap" in exclusive.codes
    readings = read_readings(path, end="inclusive")
    assert len(readings.findings) == 0
    assert np.diff(readings.start).tolist() == [31, 29, 31, 30]
    assert (readings.stop - readings.start).tolist() == [31, 29, 31, 30, 31]


def test_inclusive_ends_with_a_time_of_day_mean_the_period_they_lie_in(tmp_path):
    text = "a,2024-01-01T00:00:00,2024-01-01T23:59:59,24\na,2024-01-02T00:00,2024-01-02T23:00,24\n"
    path = write(tmp_path, HEADER + text)
    assert read_readings(path, end="inclusive").stop.tolist() == [1, 2]
    assert read_readings(path, "h", end="inclusive").stop.tolist() == [24, 48]


def test_exclusive_ends_read_as_inclusive_are_explained(tmp_path):
    text = "a,2024-01-01,2024-01-11,1\na,2024-01-11,2024-01-21,1\na,2024-01-21,2024-02-01,1\n"
    findings = check(write(tmp_path, HEADER + text), end="inclusive")
    assert "the ends look exclusive" in findings.items[0].sentence


def test_snapping_moves_to_the_nearest_point_and_is_counted(tmp_path):
    text = "a,2024-01-01T01:00,2024-01-02T23:00,2\nb,2024-01-01T13:00,2024-01-02T02:00,2\n"
    path = write(tmp_path, HEADER + text)
    assert found(check(path))["off-grid"] == [2, 3]
    findings = check(path, snap="nearest")
    assert found(findings)["snapped"] == [2, 3]
    assert found(findings)["start-not-before-end"] == [3]
    readings = read_readings(path, snap="nearest", drop_bad=True)
    assert (readings.start.tolist(), readings.stop.tolist()) == ([0], [2])


def test_the_range_is_taken_or_given(tmp_path):
    text = "a,2024-01-10,2024-01-20,10\na,2024-01-20,2024-02-10,21\n"
    path = write(tmp_path, HEADER + text)
    wider = read_readings(path, range_start="2024-01-01", range_end=dt.date(2024, 3, 1))
    assert wider.n_periods == 60
    assert wider.start.tolist() == [9, 19]
    narrower = read_readings(path, range_end="2024-02-01")
    assert found(narrower.findings)["outside-range"] == [3]
    assert narrower.n_readings == 1
    monthly = write(tmp_path, HEADER + "a,2024-01-01,2024-03-01,10\n")
    adjusted = read_readings(monthly, "MS", range_end="2024-03-15")
    assert adjusted.findings.codes == ("adjusted",)
    assert adjusted.n_periods == 3
    with pytest.raises(ParameterError, match="range holds no reading"):
        read_readings(path, range_start="2025-01-01")


def test_offsets_need_a_zone_when_they_differ(tmp_path):
    text = (
        "a,2024-03-30T00:00+01:00,2024-03-31T00:00+01:00,24\n"
        "a,2024-03-31T00:00+01:00,2024-04-01T00:00+02:00,23\n"
    )
    path = write(tmp_path, HEADER + text)
    with pytest.raises(ReadingsError, match=r"differing offsets.*tz='Europe/Paris'"):
        read_readings(path)
    daily = read_readings(path, tz="Europe/Paris")
    assert daily.n_periods == 2
    hourly = read_readings(path, "h", tz="Europe/Paris")
    assert (hourly.stop - hourly.start).tolist() == [24, 23]
    mixed = write(tmp_path, HEADER + text + "a,2024-04-01,2024-04-02,24\n")
    with pytest.raises(ReadingsError, match="row 4 has no offset"):
        read_readings(mixed)
    assert read_readings(mixed, tz="Europe/Paris").n_periods == 3


def test_local_times_that_happen_twice_or_never(tmp_path):
    text = (
        "a,2024-10-27T00:00,2024-10-27T02:00,2\n"
        "b,2024-03-31T02:00,2024-03-31T04:00,2\n"
        "c,2024-03-31,2024-04-01,23\n"
    )
    findings = check(write(tmp_path, HEADER + text), "h", tz="Europe/Paris")
    assert found(findings)["ambiguous-time"] == [2]
    assert found(findings)["skipped-time"] == [3]
    readings = read_readings(write(tmp_path, HEADER + text), "h", tz="Europe/Paris", drop_bad=True)
    assert readings.stop.tolist() == [23]
    assert (
        len(check(write(tmp_path, HEADER + "c,2024-03-31,2024-04-01,23\n"), tz="Asia/Beirut")) == 0
    )


def test_steps_of_several_days_follow_the_phase_that_most_readings_share(tmp_path):
    text = "x,2024-01-01,2024-01-08,1\n" + "".join(
        f"a,2024-01-{day:02d},2024-01-{day + 7:02d},1\n" for day in (4, 11, 18)
    )
    findings = check(write(tmp_path, HEADER + text), "W")
    assert found(findings)["off-grid"] == [2]


def test_readings_of_whole_weeks_cannot_show_the_week():
    def frame(days):
        starts = pd.date_range("2024-01-03", periods=13, freq=f"{days}D")
        return pd.DataFrame({"series": "a", "start": starts[:-1], "end": starts[1:], "total": 1.0})

    assert "no-weekly-shape" in check(frame(7)).codes
    assert "no-weekly-shape" in check(frame(14)).codes
    assert "no-weekly-shape" in check(frame(7), "h", tz="Europe/Paris").codes
    assert "no-weekly-shape" not in check(frame(10)).codes
    assert "no-weekly-shape" not in check(frame(7), "W").codes
    assert "no-daily-shape" in check(frame(10), "h").codes
    assert "hidden-rhythm" in check(frame(10)).codes
    assert "hidden-rhythm" not in check(frame(7)).codes


def test_a_wrong_year_is_named_before_it_makes_a_huge_grid(tmp_path):
    text = "a,2024-01-01,2024-01-02,1\nb,1824-01-01,1824-01-02,1\n"
    findings = check(write(tmp_path, HEADER + text), "min")
    assert found(findings) == {"range-too-long": [2, 3]}


def test_period_numbers(tmp_path):
    path = write(tmp_path, HEADER + "a,3,10,7\nb,5,8,3\nb,x,9,1\nb,9,9.5,1\n")
    readings = read_readings(path, "period", drop_bad=True)
    assert readings.n_periods == 7
    assert readings.start.tolist() == [0, 2]
    assert readings.findings.set_aside_rows.tolist() == [4, 5]


@pytest.mark.parametrize("freq", ["D", "h", "MS", "W-MON"])
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_inclusive_dates_mean_the_same_as_text_and_as_timestamps(freq, zone):
    text = pd.DataFrame(
        {"series": "a", "start": ["2024-01-01"], "end": ["2024-03-31"], "total": 1.0,
         "active_to": ["2024-03-31"]}
    )  # fmt: skip
    dates = ["start", "end", "active_to"]
    stamps = text.assign(**{name: pd.to_datetime(text[name]) for name in dates})
    options = {"freq": freq, "tz": zone, "end": "inclusive"}
    first = Readings.from_frame(text, **options)
    second = Readings.from_frame(stamps, **options)
    assert np.array_equal(first.calendar.edges, second.calendar.edges)
    assert first.stop.tolist() == second.stop.tolist() == [first.n_periods]
    assert first.active.tolist() == second.active.tolist() == [[0, first.n_periods]]
    assert set(second.findings.codes) <= {"no-weekly-shape"}  # 91 days are 13 weeks
    if zone:
        zoned = text.assign(
            **{name: pd.to_datetime(text[name]).dt.tz_localize(zone) for name in dates}
        )
        assert Readings.from_frame(zoned, **options).stop.tolist() == first.stop.tolist()


def test_an_inclusive_end_in_the_middle_of_a_month_is_off_the_grid():
    frame = pd.DataFrame(
        {"series": "a", "start": [pd.Timestamp("2024-01-01")], "end": [pd.Timestamp("2024-01-15")],
         "total": 1.0}
    )  # fmt: skip
    assert "off-grid" in check(frame, "MS", end="inclusive").codes


def test_a_range_does_not_shift_the_weeks_of_the_readings(tmp_path):
    text = "".join(f"a,2024-01-{day:02d},2024-01-{day + 7:02d},7\n" for day in (1, 8, 15, 22))
    readings = read_readings(write(tmp_path, HEADER + text), "W", range_start="2023-12-01")
    assert readings.n_readings == 4
    assert "adjusted" in readings.findings.codes
    assert readings.calendar.text(0) == "2023-11-27"


def test_weeks_are_phased_by_the_wall_clock():
    mondays = [*pd.date_range("2024-01-01", periods=5, freq="7D"),
               *pd.date_range("2024-07-01", periods=5, freq="7D")]  # fmt: skip
    tuesdays = list(pd.date_range("2024-03-05", periods=6, freq="7D"))
    starts = pd.Series(mondays + tuesdays)
    frame = pd.DataFrame({"series": "a", "start": starts, "end": starts + pd.Timedelta(days=7),
                          "total": 1.0})  # fmt: skip
    findings = check(frame, "W", tz="Europe/London")
    assert found(findings)["off-grid"] == list(range(10, 16))


def test_snapping_applies_at_the_edge_of_the_range(tmp_path):
    path = write(tmp_path, HEADER + "a,2023-12-31T23:59,2024-01-03T00:01,3\n")
    readings = read_readings(path, snap="nearest", range_start="2024-01-01", range_end="2024-01-03")
    assert (readings.start.tolist(), readings.stop.tolist()) == ([0], [2])
    assert readings.findings.codes == ("snapped",)
