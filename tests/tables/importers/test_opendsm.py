"""Billing frames: a value where a period begins, nothing where it goes on."""

import numpy as np
import pandas as pd
import pytest

from tests.tables.importers.helpers import SAMPLES, found, load, rows
from unsum.errors import ReadingsError


def test_a_file_is_a_series_and_its_last_row_closes_the_last_period():
    imported = load("opendsm", "opendsm.csv", unit="kWh")
    assert rows(imported) == [
        ("opendsm", "2024-01-05 06:00:00+00:00", "2024-02-06 06:00:00+00:00", 632.0),
        ("opendsm", "2024-02-06 06:00:00+00:00", "2024-03-07 06:00:00+00:00", 701.5),
        ("opendsm", "2024-03-07 06:00:00+00:00", "2024-04-05 06:00:00+00:00", 590.0),
    ]
    local = load("opendsm", "opendsm.csv", tz="America/Chicago")
    assert rows(local)[0][1] == "2024-01-05 00:00:00-06:00"


def test_a_frame_of_days_round_trip():
    rng = np.random.default_rng(5)
    days = pd.date_range("2024-01-01", periods=100, freq="D", tz="UTC")
    begins = np.array([0, 28, 60])
    totals = rng.uniform(100, 900, 3)
    frame = pd.DataFrame({"observed": np.nan, "temperature": 5.0}, index=days)
    frame.iloc[begins, 0] = totals
    imported = load("opendsm", frame, name="building 7")
    assert imported.table["series"].unique().to_pylist() == ["building 7"]
    readings = imported.readings()
    assert readings.start.tolist() == begins.tolist()
    assert readings.stop.tolist() == [28, 60, 99]
    np.testing.assert_array_equal(readings.total, totals)


def test_several_series_and_a_period_that_is_not_closed():
    table = {
        "id": ["a", "a", "b", "b", "b"],
        "time": ["2024-01-01", "2024-02-01", "2024-01-05", "2024-02-05", "2024-03-05"],
        "value": [5.0, None, 1.0, 2.0, 3.0],
    }
    imported = load("opendsm", table)
    assert rows(imported) == [
        ("a", "2024-01-01", "2024-02-01", 5.0),
        ("b", "2024-01-05", "2024-02-05", 1.0),
        ("b", "2024-02-05", "2024-03-05", 2.0),
    ]
    assert found(imported) == {"open-reading": [4]}


def test_several_files_are_several_series(tmp_path):
    text = (SAMPLES / "opendsm.csv").read_text(encoding="utf-8")
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    imported = load("opendsm", [tmp_path / "north.csv", tmp_path / "south.csv"])
    assert imported.table["series"].unique().to_pylist() == ["north.csv", "south.csv"]
    assert len(imported.table) == 6


def test_a_value_that_cannot_be_read_still_ends_the_period_before():
    table = {"time": ["2024-01-01", "2024-02-01", "2024-03-01"], "value": ["5", "many", ""]}
    with pytest.raises(ReadingsError, match="row 1: 'many'"):
        load("opendsm", table)
    imported = load("opendsm", table, drop_bad=True)
    assert rows(imported) == [("series", "2024-01-01", "2024-02-01", 5.0)]
    table["time"][1] = "some day"
    with pytest.raises(ReadingsError, match="no usable reading"):
        load("opendsm", table, drop_bad=True)
