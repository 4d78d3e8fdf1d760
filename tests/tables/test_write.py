"""Files: whole and checked, or not at all."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unsum
from tests.problems import random_readings
from unsum.errors import ParameterError, TableError, UnsumError
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.tables import write
from unsum.tables.panels import read_panel
from unsum.tables.write import whole_file, write_recovery, write_table

HOURS = pd.DataFrame(
    {
        "series": ["x", "x", 'y, "quoted"\nname'],
        "start": ["2024-10-26T00:00+02:00", "2024-10-27T00:00+02:00", "2024-10-26T00:00+02:00"],
        "end": ["2024-10-27T00:00+02:00", "2024-10-28T00:00+01:00", "2024-10-28T00:00+01:00"],
        "total": [24.0, 50.0, 49.0],
    }
)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_what_is_written_comes_back_bit_for_bit(tmp_path, suffix, layout):
    readings = Readings.from_frame(HOURS, "h", tz="Europe/Paris")
    recovery = recover(readings)
    path = tmp_path / f"out{suffix}"
    checks = write_recovery(recovery, path, layout=layout)
    assert checks["worst_relative_gap"] < 1e-12
    assert checks["rows"] == (98 if layout == "long" else 49)
    panel = read_panel(path, tz="Europe/Paris")
    assert np.array_equal(panel.values, recovery.values)
    assert panel.names.to_pylist() == readings.names.to_pylist()
    assert np.array_equal(panel.calendar.edges, readings.calendar.edges)
    assert os.listdir(tmp_path) == [path.name]


def test_times_of_readings_are_spelt_with_their_own_offsets(tmp_path):
    hours = pd.date_range("2024-01-01", "2025-01-01", freq="h", tz="Europe/Paris", inclusive="left")
    panel = read_panel(pd.DataFrame({"time": hours, "a": 1.0, "b": 1.0}))
    for every in (3000, 4000):
        readings = unsum.aggregate(panel, unsum.AtRandom(every))
        write_table(readings.to_arrow(), tmp_path / "readings.csv")
        again = unsum.read_readings(tmp_path / "readings.csv", "h", tz="Europe/Paris")
        assert again.to_arrow().equals(readings.to_arrow())
        table = pd.read_csv(tmp_path / "readings.csv")
        local = readings.to_frame("pandas")["start"]
        assert table["start"].tolist() == [moment.isoformat(timespec="minutes") for moment in local]


def test_the_same_input_writes_the_same_bytes(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        write_recovery(recover(random_readings(1)), tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_parquet_carries_its_provenance(tmp_path):
    recovery = recover(random_readings(1))
    write_recovery(recovery, tmp_path / "out.parquet")
    metadata = pq.read_schema(tmp_path / "out.parquet").metadata
    assert json.loads(metadata[b"unsum"]) == json.loads(json.dumps(recovery.provenance()))


def test_many_blocks_are_verified_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("unsum.engine.BLOCK_VALUES", 1)
    readings = random_readings(2, n_series=600, n_periods=11)
    recovery = recover(readings)
    steps = []
    checks = write_recovery(recovery, tmp_path / "out.parquet", progress=steps.append)
    assert steps == [256, 256, 88]
    assert checks["rows"] == 6600
    assert checks["sum"] == pytest.approx(recovery.values.sum())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_that_comes_back_wrong_is_not_shown(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_text("the old output")
    original = write.long_table

    def spoiled(*parts):
        table = original(*parts)
        return table.set_column(2, "value", pa.array(np.asarray(table["value"]) * 1.001))

    monkeypatch.setattr(write, "long_table", spoiled)
    with pytest.raises(UnsumError, match="fail the check"):
        write_recovery(recover(random_readings(1)), path)
    assert path.read_text() == "the old output"
    assert os.listdir(tmp_path) == [path.name]


def test_a_file_that_lost_rows_is_not_shown(tmp_path, monkeypatch):
    original = write.long_table
    monkeypatch.setattr(write, "long_table", lambda *parts: original(*parts)[:-1])
    with pytest.raises(TableError, match="missing rows"):
        write_recovery(recover(random_readings(1)), tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "out.csv"
    path.write_text("the old output")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(TableError, match=r"out.csv cannot be written: No space left on device"):
        write_table(pa.table({"a": [1]}), path)
    monkeypatch.undo()
    assert path.read_text() == "the old output"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_an_interruption_leaves_nothing_behind(tmp_path):
    def write_and_interrupt():
        with whole_file(tmp_path / "out.csv") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_interrupt()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "layout", "error", "message"),
    [
        ("out.xlsx", "long", ParameterError, "must end in .csv or .parquet"),
        ("absent/out.csv", "long", TableError, "the folder .* does not exist"),
        ("out.csv", "tall", ParameterError, "layout must be one of 'long', 'wide'"),
    ],
)
def test_impossible_destinations(tmp_path, name, layout, error, message):
    with pytest.raises(error, match=message):
        write_recovery(recover(random_readings(1)), tmp_path / name, layout=layout)


def test_wide_tables_have_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "MAX_WIDE", 3)
    with pytest.raises(ParameterError, match="write a long one"):
        write_recovery(recover(random_readings(1)), tmp_path / "out.csv", layout="wide")
    monkeypatch.undo()
    clash = Readings.from_frame(HOURS.assign(series="time", start=["2024-01-01"] * 3,
                                             end=["2024-01-05"] * 3, total=1.0))  # fmt: skip
    with pytest.raises(ParameterError, match="a series is called 'time'"):
        write_recovery(unsum.recover(clash), tmp_path / "out.csv", layout="wide")
