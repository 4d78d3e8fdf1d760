"""Fine values: long and wide, stamped at the start or at the end of each step."""

import numpy as np
import pandas as pd
import pytest

from tests.tables.importers.helpers import found, load, rows
from unsum.errors import ParameterError, ReadingsError, TableError


def test_a_long_table_and_its_gap():
    imported = load("nixtla", "nixtla.csv")
    assert rows(imported) == [
        ("H1", "2024-01-01", "2024-01-02", 12.0),
        ("H1", "2024-01-02", "2024-01-03", 14.5),
        ("H2", "2024-01-01", "2024-01-02", 3.0),
        ("H2", "2024-01-02", "2024-01-03", 4.0),
        ("H2", "2024-01-03", "2024-01-04", 5.0),
    ]
    assert found(imported) == {"no-value": [4]}
    assert imported.freq == "D"
    assert imported.recover_options == ""


def test_a_wide_table_with_a_hole():
    imported = load("wide", "wide.csv")
    assert imported.findings.rows_set_aside == 0
    assert found(imported) == {"no-value": [4]}
    assert imported.recover_options == " --freq h"
    assert rows(imported)[4:] == [
        ("kitchen", "2024-03-31 00:00:00", "2024-03-31 01:00:00", 1.0),
        ("kitchen", "2024-03-31 01:00:00", "2024-03-31 02:00:00", 2.0),
        ("kitchen", "2024-03-31 03:00:00", "2024-03-31 04:00:00", 4.0),
    ]
    with pytest.raises(ReadingsError, match=r"never happen on the clocks.*(?s:.)*row 4"):
        load("wide", "wide.csv", tz="Europe/Berlin")


def test_half_hours_of_esb_are_told_apart_where_clocks_go_back():
    with pytest.raises(ReadingsError, match="--tz Europe/Dublin"):
        load("end-stamped", "hdf.csv")
    imported = load("end-stamped", "hdf.csv", tz="Europe/Dublin")
    imports = [row for row in rows(imported) if row[0].endswith("/Active Import Interval")]
    assert [row[3] for row in imports] == [0.025, 0.05, 0.1, 0.15, 0.2, 0.25]  # kW halved
    assert [row[1][11:] for row in imports] == [
        "00:00:00+01:00", "00:30:00+01:00", "01:00:00+01:00", "01:30:00+01:00",
        "01:00:00+00:00", "01:30:00+00:00",
    ]  # fmt: skip
    assert found(imported) == {"not-a-total": [9]}
    assert imported.table["unit"].unique().to_pylist() == ["kWh"]
    assert "kW became kWh: multiplied by the hours of each step." in imported.notes
    assert imported.readings(tz="Europe/Dublin").n_readings == 7


def test_the_hour_that_comes_twice_in_an_ascending_file():
    table = {"id": ["a"] * 4, "time": [f"2024-10-27 0{h}:00" for h in (0, 1, 1, 2)],
             "value": [1, 2, 3, 4]}  # fmt: skip
    imported = load("nixtla", table, tz="Europe/Dublin")
    assert imported.table["total"].to_pylist() == [1.0, 2.0, 3.0, 4.0]
    single = {name: [*values[:2], *values[3:]] for name, values in table.items()}
    with pytest.raises(ReadingsError, match="happen twice"):
        load("nixtla", single, tz="Europe/Dublin")


def test_a_period_may_end_when_clocks_go_forward():
    table = {"time": ["2024-03-31 00:30", "2024-03-31 01:00", "2024-03-31 02:30"], "a": [1, 2, 3]}
    imported = load("end-stamped", table, tz="Europe/Dublin")
    assert [row[1][11:] for row in rows(imported)] == [
        "00:00:00+00:00", "00:30:00+00:00", "02:00:00+01:00",
    ]  # fmt: skip


@pytest.mark.parametrize("freq", ["15min", "h", "D", "W", "MS"])
@pytest.mark.parametrize("layout", ["nixtla", "wide", "end-stamped"])
def test_a_round_trip_of_every_step(freq, layout):
    rng = np.random.default_rng(3)
    edges = pd.date_range("2024-01-01", periods=13, freq="W-MON" if freq == "W" else freq)
    values = rng.uniform(0, 9, (2, 12))
    stamps = edges[1:] if layout == "end-stamped" else edges[:-1]
    wide = pd.DataFrame({"time": stamps, "a": values[0], "b": values[1]})
    if layout == "nixtla":
        wide = wide.melt("time", var_name="unique_id", value_name="y").rename(
            columns={"time": "ds"}
        )
    imported = load(layout, wide.sample(frac=1, random_state=0))
    np.testing.assert_array_equal(imported.table["total"].to_numpy(), values.ravel())
    starts = pd.to_datetime(imported.table["start"].to_pandas())
    ends = pd.to_datetime(imported.table["end"].to_pandas())
    assert (starts.to_numpy().reshape(2, -1) == edges[:-1].to_numpy()).all()
    assert (ends.to_numpy().reshape(2, -1) == edges[1:].to_numpy()).all()
    readings = imported.readings()
    assert readings.n_periods == 12
    np.testing.assert_array_equal(readings.total, values.ravel())


def test_frames_whose_index_holds_the_times():
    index = pd.date_range("2024-01-01", periods=3, freq="D", tz="Europe/Paris")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index)
    imported = load("wide", frame)
    assert rows(imported)[0] == ("a", "2024-01-01", "2024-01-02", 1.0)
    assert isinstance(imported.to_frame(), pd.DataFrame)


def test_numbered_periods():
    table = {"unique_id": ["a"] * 3, "ds": [1, 2, 4], "y": [1.0, 2.0, 3.0]}
    imported = load("nixtla", table, freq="period")
    assert rows(imported)[2] == ("a", "4", "5", 3.0)
    assert imported.readings().n_periods == 4


@pytest.mark.parametrize(
    ("layout", "table", "options", "message"),
    [
        ("nixtla", {"unique_id": ["a"], "ds": ["2024-01-01"], "y": [1]}, {}, "give it"),
        ("nixtla", {"unique_id": ["a"], "ds": ["2024-01-01"]}, {}, "known to hold the value"),
        ("nixtla", {"unique_id": ["a"] * 2, "ds": ["2024-01-01", "2024-01-02"], "y": [1, "x"]}, {},
         "cannot be converted|cannot be read"),
        ("nixtla", {"unique_id": ["a"] * 3, "ds": ["2024-01-01", "2024-01-02", "2024-01-02"],
                    "y": [1, 2, 3]}, {}, "2 \\(row 1\\), 3 \\(row 2\\)"),
        ("nixtla", {"unique_id": ["a"] * 4, "y": [1, 2, 3, 4],
                    "ds": ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-03T07:00"]}, {},
         "not on a grid of 'D'(?s:.)*row 3: 2024-01-03T07:00"),
        ("nixtla", {"unique_id": ["a"] * 2, "ds": ["2024-01-01", "2024-01-02"], "y": [None, None]},
         {}, "no usable reading"),
        ("wide", {"time": ["2024-01-01"]}, {}, "no column of values beside 'time'"),
        ("wide", {"a": [1], "b": [2]}, {}, "known to hold the time"),
        ("wide", {"time": ["2024-01-01"], "a": [1]}, {"name": "x"}, "name has no meaning"),
        ("wide", {"time": ["2024-01-01", "2024-01-02"], "a": ["1", "one"]}, {}, "row 1: 'one'"),
        ("wide", {"time": ["2024-01-01"], "a": [1]}, {"freq": "fortnight"}, "not a known step"),
        ("end-stamped", {"time": ["2024-01-01", "9999-01-01"], "a": [1, 2]}, {}, "cannot be read"),
        ("end-stamped", {"time": ["1801-01-01T00:00", "1801-01-01T00:01", "2190-01-01T00:00"],
                         "a": [1, 2, 3]}, {}, "more than 10,000,000"),
    ],
)  # fmt: skip
def test_tables_that_make_no_sense(layout, table, options, message):
    with pytest.raises((ParameterError, ReadingsError, TableError), match=message):
        load(layout, table, **options)


def test_long_tables_of_one_series_and_wide_tables_with_telling_names():
    times = ["2024-01-02", "2024-01-03"]
    one = load("end-stamped", {"date": times, "demand": [1, 2]}, name="home")
    assert rows(one)[0] == ("home", "2024-01-01", "2024-01-02", 1.0)
    wide = load("end-stamped", {"date": times, "load": [1, 2], "demand": [3, 4]})
    assert wide.n_series == 2
    units = load("wide", {"date": times, "a_kwh": [1, 2], "b_kwh": [3, 4], "": [0, 1]})
    assert units.table["unit"].unique().to_pylist() == ["kWh"]
    assert units.n_series == 2


def test_kinds_without_a_unit():
    table = {"mprn": ["1"] * 2, "kind": ["in", "in"], "time": ["2024-01-02", "2024-01-03"],
             "kWh": [1, 2]}  # fmt: skip
    assert load("end-stamped", table).table["unit"].unique().to_pylist() == ["kWh"]


def test_clocks_put_back_by_half_an_hour():
    times = [f"2024-04-07 {text}" for text in ("01:00", "01:30", "01:30", "02:00")]
    table = {"id": ["a"] * 4, "time": times, "value": [1, 2, 3, 4]}
    imported = load("nixtla", table, tz="Australia/Lord_Howe", freq="30min")
    assert [row[1][20:] for row in rows(imported)] == ["11:00", "11:00", "10:30", "10:30"]
