"""Fine tables: long or wide, their step guessed, their mistakes named."""

import numpy as np
import pandas as pd
import pytest

from unsum.errors import TableError
from unsum.tables.panels import read_panel


def wide(freq="D", n=60, **columns):
    times = pd.date_range("2024-01-01", periods=n, freq=freq)
    values = np.arange(n, dtype=float)
    return pd.DataFrame({"time": times, "b": values, "a": values * 2, **columns})


@pytest.mark.parametrize("freq", ["D", "h", "15min", "W-MON", "MS", "2D", "30min"])
def test_the_step_is_guessed_from_the_times(freq):
    panel = read_panel(wide(freq))
    assert panel.values.shape == (2, 60)
    assert panel.names.to_pylist() == ["a", "b"]
    assert panel.values[0].tolist() == (np.arange(60.0) * 2).tolist()


def test_long_and_wide_are_the_same_panel():
    frame = wide()
    long = frame.melt("time", var_name="series").sample(frac=1, random_state=0)
    assert np.array_equal(read_panel(long).values, read_panel(frame).values)


def test_numbered_times():
    panel = read_panel(wide().assign(time=np.arange(5, 65)))
    assert panel.calendar.frequency.numbered
    assert panel.n_periods == 60


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
        (wide().drop(index=7), "series 'a' has the value nan at 2024-01-08"),
        (wide(c=-1.0), "series 'c' has the value -1 at 2024-01-01"),
        (pd.concat([wide(), wide().iloc[:1]]), "more than one value"),
        (wide().assign(time="soon"), "has the time 'soon'"),
        (wide().iloc[:0], "has no rows"),
    ],
)
def test_mistakes_are_named(frame, message):
    with pytest.raises(TableError, match=message):
        read_panel(frame)


def test_times_off_the_grid_are_named():
    with pytest.raises(TableError, match="not on a grid of 'D'"):
        read_panel(wide("h"), freq="D")
