"""UCI's table as published: a small one with its quirks."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from unsum.errors import TableError
from unsum.tables.uci import first_use, read_uci


def write_table(path, n_days=3, first="2012-03-24", zero_hours=(), late=96):
    """Two clients; rows are stamped at the end of a quarter of an hour."""
    begin = datetime.fromisoformat(first)
    lines = ['"";"MT_001";"MT_002"']
    for row in range(n_days * 96):
        moment = begin + timedelta(minutes=15 * (row + 1))
        one = 0.0 if (row // 4) in zero_hours else 4.5
        two = 0.0 if row < late else 2.0 + row % 96 / 96
        numbers = ";".join(str(value).replace(".", ",") for value in (one, two))
        lines.append(f'"{moment:%Y-%m-%d %H:%M:%S}";{numbers}')
    path.write_text("\n".join(lines) + "\n")
    return path


def test_days_are_kwh(tmp_path):
    panel = read_uci(write_table(tmp_path / "LD.txt", zero_hours=(25,)))
    assert panel.names.to_pylist() == ["MT_001", "MT_002"]
    assert panel.values.shape == (2, 3)
    assert panel.calendar.text(0) == "2012-03-24"
    # 4.5 kW all day, but nothing in the hour that the clocks skip on the second day
    np.testing.assert_allclose(panel.values[0], [108.0, 108.0 - 4.5, 108.0])
    np.testing.assert_allclose(panel.values[1, 1], np.sum(2.0 + np.arange(96) / 96) / 4)


def test_hours_add_up_to_days(tmp_path):
    path = write_table(tmp_path / "LD.txt")
    hours, days = read_uci(path, "h"), read_uci(path)
    np.testing.assert_allclose(hours.values.reshape(2, 3, 24).sum(axis=2), days.values)


def test_incomplete_days_at_either_end_are_left_out(tmp_path):
    path = write_table(tmp_path / "LD.txt", n_days=3, first="2012-03-24T12:00:00")
    panel = read_uci(path)
    assert panel.values.shape == (2, 2)
    assert panel.calendar.text(0) == "2012-03-25"


def test_clients_that_start_late(tmp_path):
    panel = read_uci(write_table(tmp_path / "LD.txt", late=2 * 96))
    assert first_use(panel).tolist() == [0, 2]


def test_what_is_wrong_is_named(tmp_path):
    path = write_table(tmp_path / "LD.txt")
    text = path.read_text()
    lines = text.splitlines()
    path.write_text("\n".join([*lines[:10], *lines[11:]]))
    with pytest.raises(TableError, match=r"row 10 .* is not followed by the next quarter"):
        read_uci(path)
    path.write_text(text.replace(";4,5;", ";-4,5;", 1))
    with pytest.raises(TableError, match=r"row 2 .* has -4.5 for 'MT_001'"):
        read_uci(path)
    path.write_text(text.replace(";", ","))
    with pytest.raises(TableError, match="separated by semicolons"):
        read_uci(path)
    path.write_text(text.replace(";4,5;", ";much;", 1))
    with pytest.raises(TableError, match=r"MT_001.*does not hold numbers"):
        read_uci(path)
    path.write_text("\n".join(lines[:40]))
    with pytest.raises(TableError, match="holds no whole day"):
        read_uci(path)
