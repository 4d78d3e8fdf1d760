"""Public datasets through the readers of the experiments, with every line accounted for."""

import numpy as np
import pytest

from tests.tables.importers.helpers import found, load, rows
from tests.tables.test_cer import write_files
from unsum.errors import ParameterError, TableError


def test_cer_days_and_meters_left_out(tmp_path):
    files = write_files(tmp_path, gap=(1001, 202, 17))
    imported = load("cer", files)
    assert imported.n_series == 2
    assert rows(imported)[0] == ("1000", "2009-07-19", "2009-07-20", pytest.approx(48 * 0.2))
    findings = imported.findings
    assert findings.rows_read == 3 * 4 * 48 - 1
    assert findings.rows_set_aside == 4 * 48 - 1
    assert findings.items[0].series == ("1001",)
    assert imported.readings().n_readings == 8


def test_cer_some_days_only(tmp_path):
    imported = load("cer", write_files(tmp_path), first_day=201, n_days=2, to="MWh")
    assert len(imported.table) == 3 * 2
    assert len(found(imported)["outside-range"]) == 3 * 2 * 48
    assert imported.table["unit"].unique().to_pylist() == ["MWh"]
    np.testing.assert_allclose(imported.table["total"].to_numpy()[0], 48 * 0.201 / 1000)


def write_uci(tmp_path, n_rows=96 * 2 + 5):
    times = np.datetime64("2012-01-01T00:15") + np.timedelta64(15, "m") * np.arange(n_rows)
    lines = ['"";"MT_001";"MT_002"']
    for i, time in enumerate(times):
        lines.append(f'"{str(time).replace("T", " ")}:00";{i % 7},5;{int(i >= 96)},0')
    path = tmp_path / "LD2011_2014.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_uci_days_and_hours(tmp_path):
    path = write_uci(tmp_path)
    imported = load("uci", path)
    assert [row[3] for row in rows(imported) if row[0] == "MT_002"] == [0.0, 24.0]
    assert found(imported) == {"outside-range": [194, 195, 196, 197, 198]}
    assert any("1 client with zeros at first" in note for note in imported.notes)
    hourly = load("uci", path, freq="h")
    assert len(hourly.table) == 2 * 48
    assert hourly.recover_options == " --freq h"


def test_what_makes_no_sense(tmp_path):
    path = write_uci(tmp_path)
    with pytest.raises(ParameterError, match="freq must be one of 'D', 'h'"):
        load("uci", path, freq="W")
    with pytest.raises(ParameterError, match="is one file"):
        load("uci", [path, path])
    with pytest.raises(ParameterError, match="unit has no meaning"):
        load("uci", path, unit="kWh")
    with pytest.raises(TableError, match="cannot be read as lines"):
        load("cer", path)
