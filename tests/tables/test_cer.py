"""CER's files as published: a few meters with their quirks."""

import numpy as np
import pytest

from unsum.errors import TableError
from unsum.tables.cer import read_cer


def write_files(folder, n_days=4, short_day=None, long_day=None, gap=None):
    """Three meters in two files; half hour h of day d of meter m uses m + d / 10 kWh."""
    files = []
    for number, meters in enumerate(([1000, 1001], [1002]), start=1):
        lines = []
        for meter in meters:
            for day in range(200, 200 + n_days):
                halves = range(1, 49)
                if day == short_day:
                    halves = [half for half in halves if half not in (3, 4)]
                if day == long_day:
                    halves = range(1, 51)
                lines += [
                    f"{meter} {day}{half:02d} {meter % 10 + day / 1000:.3f}"
                    for half in halves
                    if (meter, day, half) != gap
                ]
        path = folder / f"File{number}.txt"
        path.write_text("\n".join(reversed(lines)) + "\n")
        files.append(path)
    return files


def test_days_of_all_files(tmp_path):
    panel, left_out = read_cer(write_files(tmp_path))
    assert panel.names.to_pylist() == ["1000", "1001", "1002"]
    assert left_out == []
    assert panel.calendar.text(0) == "2009-07-19"  # day 200
    expected = 48 * (np.arange(3)[:, None] + np.arange(200, 204) / 1000)
    np.testing.assert_allclose(panel.values, expected, rtol=1e-12)


def test_days_when_clocks_change_have_46_or_50_half_hours(tmp_path):
    panel, left_out = read_cer(write_files(tmp_path, short_day=201, long_day=202))
    assert left_out == []
    np.testing.assert_allclose(panel.values[1, 1], 46 * 1.201)
    np.testing.assert_allclose(panel.values[1, 2], 50 * 1.202)


def test_meters_with_a_gap_are_left_out_and_named(tmp_path):
    files = write_files(tmp_path, gap=(1001, 202, 17))
    panel, left_out = read_cer(files)
    assert panel.names.to_pylist() == ["1000", "1002"]
    assert left_out == ["1001"]
    panel, left_out = read_cer(files, first_day=200, n_days=2)
    assert panel.values.shape == (3, 2)
    assert left_out == []


def test_what_is_wrong_is_named(tmp_path):
    (path, _) = write_files(tmp_path)
    text = path.read_text()
    path.write_text(text.replace(" 20348 ", " 20351 ", 1))
    with pytest.raises(TableError, match=r"line 1 .* has 20351"):
        read_cer(path)
    path.write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(TableError, match=r"line 385 .* repeats meter 1000, code 20001"):
        read_cer(path)
    path.write_text(text.replace(" ", ";"))
    with pytest.raises(TableError, match="cannot be read as lines of meter"):
        read_cer(path)
    path.write_text(text)
    with pytest.raises(TableError, match="no file has a day from 900"):
        read_cer(path, first_day=900, n_days=3)
