"""Fine tables: long or wide, their step guessed, their mistakes named."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from unsum.calendar import Calendar, moment_of
from unsum.errors import TableError
from unsum.tables.panels import read_panel


def wide(freq="D", n=60, **columns):
    times = pd.date_range("2024-01-01", periods=n, freq=freq)
    values = np.arange(n, dtype=float)
    return pd.DataFrame({"time": times, "b": values, "a": values * 2, **columns})


@pytest.mark.parametrize(
    "freq", ["D", "h", "15min", "W-MON", "MS", "QS", "YS", "2D", "30min", "6h", "12h"]
)
def test_the_step_is_guessed_from_the_times(freq):
    panel = read_panel(wide(freq))
    assert panel.values.shape == (2, 60)
    assert panel.names.to_pylist() == ["a", "b"]
    assert panel.values[0].tolist() == (np.arange(60.0) * 2).tolist()


def test_long_and_wide_are_the_same_panel():
    frame = wide()
    long = frame.melt("time", var_name="series").sample(frac=1, random_state=0)
    assert np.array_equal(read_panel(long).values, read_panel(frame).values)


@pytest.mark.parametrize("kind", [int, str])
def test_numbered_times(kind):
    panel = read_panel(wide().assign(time=np.arange(5, 65).astype(kind)))
    assert panel.calendar.frequency.numbered
    assert panel.n_periods == 60
    assert panel.totals([5, 15])["total"].to_pylist() == [90.0, 45.0]


@pytest.mark.parametrize("freq", ["30min", "6h", "12h", "D", "7D", "W", "MS", "QS"])
def test_the_step_is_guessed_across_clock_changes(freq):
    span = moment_of("2024-02-01"), moment_of("2024-12-01")
    calendar = Calendar.covering(freq, "America/New_York", *span)
    times = pa.array(calendar.edges[:-1], pa.timestamp("us", "America/New_York"))
    panel = read_panel(pa.table({"time": times, "a": np.ones(len(times))}))
    assert np.array_equal(panel.calendar.edges, calendar.edges)


def test_blank_lines_and_decimal_commas(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("time;a\n2024-01-01;1,5\n2024-01-02;2\n\n  \n")
    assert read_panel(path, decimal=",").values.tolist() == [[1.5, 2.0]]


def test_local_hours_over_a_clock_change():
    times = pd.date_range("2024-10-26", "2024-10-28", freq="h", tz="Europe/Paris", inclusive="left")
    frame = pd.DataFrame({"time": times, "a": 1.0})
    assert read_panel(frame).n_periods == 49
    text = frame.assign(time=[moment.isoformat() for moment in times])
    assert read_panel(text, tz="Europe/Paris").n_periods == 49
    with pytest.raises(TableError, match="differing offsets"):
        read_panel(text)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (wide().rename(columns={"time": "when"}), "no column 'time'"),
        (wide()[["time"]], "no column of values"),
        (wide().drop(index=7), "no value for series 'a' at 2024-01-08 .2 are missing"),
        (wide(c=-1.0), "row 0 of the table has '-1.0' in column 'c'"),
        (wide(c=[np.nan, *range(59)]), "row 0 of the table has 'None' in column 'c'"),
        (wide(c=["x"] * 60), "row 0 of the table has 'x' in column 'c'"),
        (wide(c=[[1]] * 60), "has .* in column 'c'"),
        (pd.concat([wide(), wide().iloc[:1]]), "more than one value for series 'a' at 2024-01-01"),
        (wide().assign(time="soon"), "row 0 of the table has the time 'soon'"),
        (wide().iloc[:0], "has no rows"),
        (wide().iloc[:1], "a single time does not show its step"),
        (wide(series="a", value=1.0).iloc[:2].assign(series=["a", ""]), "row 1 .* has no series"),
    ],
)
def test_mistakes_are_named(frame, message):
    with pytest.raises(TableError, match=message):
        read_panel(frame)


def test_times_off_the_grid_are_named():
    with pytest.raises(TableError, match="not on a grid of 'D'"):
        read_panel(wide("h"), freq="D")
