"""Dataframes and arrays of readings: every kind gives the same, odd ones end in a sentence."""

import datetime as dt
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unsum
from tests.tables.helpers import HEADER, write
from unsum.errors import ParameterError, ReadingsError, UnsumError
from unsum.reading import read_readings
from unsum.readings import Readings

ROWS = {
    "series": ["b", "a", "a"],
    "start": [dt.date(2024, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 6)],
    "end": [dt.date(2024, 1, 11), dt.date(2024, 1, 6), dt.date(2024, 1, 11)],
    "total": [10.0, 5.0, 6.0],
}


def frames():
    pandas = pd.DataFrame(ROWS)
    stamped = pandas.assign(
        start=pd.to_datetime(pandas["start"]).dt.tz_localize("Europe/Paris"),
        end=pd.to_datetime(pandas["end"]).dt.tz_localize("Europe/Paris"),
        series=pandas["series"].astype("category"),
    )
    table = pa.table(ROWS)

    class Capsule:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    return {
        "pandas": pandas,
        "pandas, nullable and zoned": stamped.convert_dtypes(),
        "pandas, text": pandas.astype(str),
        "polars": pl.DataFrame(ROWS),
        "polars, lazy": pl.DataFrame(ROWS).lazy(),
        "pyarrow": table,
        "record batch": table.to_batches()[0],
        "capsule": Capsule(),
        "duckdb": duckdb.from_arrow(table),
        "dictionary": table.set_column(0, "series", table["series"].dictionary_encode()),
        "decimal": table.set_column(3, "total", table["total"].cast(pa.decimal128(10, 2))),
        "large text": table.set_column(0, "series", table["series"].cast(pa.large_string())),
    }


@pytest.mark.parametrize("kind", list(frames()))
def test_any_dataframe_gives_the_same_readings(kind):
    readings = Readings.from_frame(frames()[kind])
    assert readings.names.to_pylist() == ["a", "b"]
    assert readings.indptr.tolist() == [0, 2, 3]
    assert readings.start.tolist() == [0, 5, 0]
    assert readings.stop.tolist() == [5, 10, 10]
    assert readings.total.tolist() == [5.0, 6.0, 10.0]


@pytest.mark.parametrize(
    ("frame", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_results_come_back_in_the_library_of_the_user(frame, kind):
    readings = Readings.from_frame(frames()[frame])
    assert isinstance(readings.to_frame(), kind)
    recovery = unsum.recover(readings)
    assert isinstance(recovery.to_frame(), kind)
    assert isinstance(recovery.totals("W"), kind)
    assert isinstance(recovery.to_frame("pandas"), pd.DataFrame)
    with pytest.raises(ParameterError, match="backend 'excel' cannot be used"):
        recovery.to_frame("excel")


def test_integer_names_sort_as_numbers_and_text_keeps_its_zeros(tmp_path):
    frame = pd.DataFrame(ROWS).assign(series=[10, 9, 9])
    assert Readings.from_frame(frame).names.to_pylist() == [9, 10]
    path = write(tmp_path, HEADER + "007,2024-01-01,2024-01-02,1\n")
    assert read_readings(path).names.to_pylist() == ["007"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": [0.5]}, "start must be a one-dimensional array of integers"),
        ({"series": [3]}, r"series must lie between 0 and 1; series\[0\] is 3"),
        ({"stop": [9]}, r"stop must lie between 0 and 5; stop\[0\] is 9"),
        ({"total": [1.0, 2.0]}, "the arrays must have one length"),
        ({"names": ["a", "a"]}, "2 different names"),
    ],
)
def test_wrong_arrays_are_named(change, message):
    arguments = {"series": [0], "start": [1], "stop": [4], "total": [1.0]} | change
    with pytest.raises(ParameterError, match=message):
        Readings.from_arrays(**arguments, n_series=2, n_periods=5)


def test_arrays_go_through_the_same_validator():
    arguments = {"n_series": 3, "n_periods": 9}
    with pytest.raises(ReadingsError, match="overlap"):
        Readings.from_arrays([0, 0], [1, 2], [4, 6], [1.0, 1.0], **arguments)
    with pytest.raises(ReadingsError, match="without a total"):
        Readings.from_arrays([0], [1], [4], [np.nan], **arguments)
    with pytest.raises(ReadingsError, match="not before its end"):
        Readings.from_arrays([0], [4], [4], [1.0], **arguments)
    with pytest.raises(ReadingsError, match="arrays are empty"):
        Readings.from_arrays(np.empty(0, int), np.empty(0, int), np.empty(0, int), [], **arguments)
    readings = Readings.from_arrays([2, 0], [1, 2], [4, 6], [1.0, -1.0], **arguments)
    assert readings.names.to_pylist() == [2]
    assert readings.findings.codes == ("negative-total", "no-usable-reading")


def test_readings_cannot_be_changed_and_slices_share_memory():
    readings = Readings.from_frame(pd.DataFrame(ROWS))
    with pytest.raises(ValueError, match="read-only"):
        readings.total[0] = 1
    part = readings[1:2]
    assert part.names.to_pylist() == ["b"]
    assert np.shares_memory(part.total, readings.total)
    assert part.indptr.tolist() == [0, 1]
    assert sum(piece.n_readings for piece in readings.parts(1)) == readings.n_readings
    with pytest.raises(ParameterError):
        _ = readings[0]


def test_the_fingerprint_follows_the_content():
    frame = pd.DataFrame(ROWS)
    first = Readings.from_frame(frame).fingerprint()
    assert Readings.from_frame(frame.iloc[::-1]).fingerprint() == first
    assert Readings.from_frame(frame.assign(total=[10.0, 5.0, 7.0])).fingerprint() != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"date_format": "%d/%m/%d"}, "does not give a whole date"),
        ({"date_format": "%H:%M"}, "does not give a whole date"),
        ({"range_start": 20240101}, "range_start must be a date"),
        ({"range_end": "9999-12-31", "tz": "Europe/Paris"}, "outside the years"),
        ({"range_start": 3.5}, "is not a date"),
        ({"freq": "36h"}, "is not a known step"),
    ],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        Readings.from_frame(pd.DataFrame(ROWS), **options)


def test_options_of_other_types_are_understood():
    options = {"tz": ZoneInfo("Europe/Paris"), "range_start": np.datetime64("2023-12-31")}
    assert Readings.from_frame(pd.DataFrame(ROWS), **options).n_periods == 11


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(ROWS).assign(total=[1, "x", 2]),
        pd.DataFrame(ROWS).assign(series=[[1], [2], [3]]),
        pa.table({**ROWS, "start": pa.array([2**62] * 3, pa.timestamp("us"))}),
        pa.table({**ROWS, "start": pa.array([2**31 - 1] * 3, pa.int32()).cast(pa.date32())}),
        pa.table([pa.array([1])] * 2, ["series", "series"]),
        {"series": ["a"], "start": []},
        pd.Series([1, 2]),
    ],
)
def test_odd_tables_end_in_a_sentence(frame):
    with pytest.raises(UnsumError):
        Readings.from_frame(frame)


def test_odd_columns_that_are_not_used_do_no_harm():
    frame = pd.DataFrame(ROWS).assign(note=[1, "x", None], more=[1 + 2j] * 3)
    assert Readings.from_frame(frame).n_readings == 3


@pytest.mark.parametrize(
    "change",
    [
        {"total": ["x"]}, {"total": [[1.0]]}, {"total": [1j]}, {"names": [1, "b"]},
        {"n_series": 1.5}, {"n_periods": 2**40}, {"n_periods": 0},
    ],
)  # fmt: skip
def test_odd_arrays_end_in_a_sentence(change):
    arguments = {"series": [0], "start": [1], "stop": [4], "total": [1.0], "n_series": 2,
                 "n_periods": 5}  # fmt: skip
    with pytest.raises(ParameterError):
        Readings.from_arrays(**(arguments | change))
