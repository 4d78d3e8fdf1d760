"""Tables larger than memory give the readings that they would give in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from unsum.errors import TableError
from unsum.experiments.town import simulate_town
from unsum.tables.intake import take_in
from unsum.tables.rows import Options
from unsum.tables.source import open_source
from unsum.tables.within import BYTES_OF_ROW, SHARE, count_parts, take_in_within


def shuffled(table, seed=0):
    return table.take(pa.array(np.random.default_rng(seed).permutation(len(table))))


@pytest.fixture(scope="module")
def bills():
    return shuffled(simulate_town(60).bills)


def memory_for(path, n_parts):
    """So much memory that a table is cut into so many parts."""
    rows = open_source(path).count_rows()
    return int(rows * BYTES_OF_ROW / SHARE / n_parts) + 1


def same(readings, others):
    assert readings.names.equals(others.names)
    assert np.array_equal(readings.calendar.edges, others.calendar.edges)
    for name in ("indptr", "start", "stop", "total", "active"):
        assert np.array_equal(getattr(readings, name), getattr(others, name)), name
    if readings.estimated is None:
        assert others.estimated is None
    else:
        assert np.array_equal(readings.estimated, others.estimated)


@pytest.mark.parametrize("n_parts", [2, 7, 30])
@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_readings_and_accounts_are_those_of_the_whole_table(bills, n_parts, kind, tmp_path):
    path = tmp_path / f"bills.{kind}"
    if kind == "csv":
        pv.write_csv(bills, path)
    elif kind == "parquet":
        pq.write_table(bills, path, row_group_size=500)
    else:
        path.mkdir()
        for k in range(4):
            pq.write_table(bills.slice(k * 1500, 1500 if k < 3 else None), path / f"{k}.parquet")
    whole = take_in(path, Options())
    parts = take_in_within(path, Options(), memory_for(path, n_parts), tmp_path / "work")
    same(whole.usable, parts.usable)
    assert parts.findings.rows_read == whole.findings.rows_read
    assert np.array_equal(parts.findings.set_aside_rows, whole.findings.set_aside_rows)
    assert parts.findings.set_aside_codes == whole.findings.set_aside_codes
    assert parts.findings.row_origin == whole.findings.row_origin
    rows = [(finding.code, finding.rows.tolist()) for finding in whole.findings]
    assert sorted((each.code, each.rows.tolist()) for each in parts.findings) == sorted(rows)


def test_readings_stay_on_disk(bills, tmp_path):
    pq.write_table(bills, tmp_path / "bills.parquet")
    memory = memory_for(tmp_path / "bills.parquet", 4)
    intake = take_in_within(tmp_path / "bills.parquet", Options(), memory, tmp_path / "work")
    readings = intake.usable
    assert isinstance(readings.total.base, np.memmap)
    assert not (tmp_path / "work" / "spilled").exists()
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["readings"]


def test_parts_with_their_own_range_share_one_calendar(tmp_path):
    rows = {
        "series": ["a", "a", "b", "c"],
        "start": ["2024-03-01", "2024-03-10", "2024-01-01", "2024-02-05"],
        "end": ["2024-03-10", "2024-03-12", "2024-01-09", "2024-02-12"],
        "total": [1.0, 2.0, 3.0, 4.0],
    }
    pv.write_csv(pa.table(rows), tmp_path / "bills.csv")
    for freq in ("D", "W"):
        options = Options(freq, snap="nearest")
        whole = take_in(tmp_path / "bills.csv", options)
        parts = take_in_within(tmp_path / "bills.csv", options, 100, tmp_path / freq)
        if freq == "D":
            same(whole.usable, parts.usable)
        assert parts.usable.n_series == 3
        assert parts.usable.calendar.n_periods >= whole.usable.calendar.n_periods


def test_whole_numbers_are_ordered_by_size(tmp_path):
    rng = np.random.default_rng(0)
    series = rng.permutation(np.repeat(np.arange(200), 3))
    rows = {"series": series, "start": np.zeros(600, int), "end": np.ones(600, int)}
    table = pa.table(rows | {"total": rng.uniform(size=200)[series]})
    pq.write_table(table, tmp_path / "bills.parquet")
    options = Options("period")
    whole = take_in(tmp_path / "bills.parquet", options)
    parts = take_in_within(tmp_path / "bills.parquet", options, 30_000, tmp_path / "work")
    same(whole.usable, parts.usable)


def test_what_stops_a_part_stops_the_table(tmp_path):
    path = tmp_path / "bills.csv"
    lines = [f"s{n:03},2024-01-01,2024-02-01,{n}" for n in range(200)]
    lines[50] = "s050,2024-01-01,2099-01-01,1"
    path.write_text("series,start,end,total\n" + "\n".join(lines) + "\n")
    intake = take_in_within(path, Options("min"), 10_000, tmp_path / "work")
    assert intake.usable is None
    assert "range-too-long" in intake.findings.codes
    lines[50] = "s050,2024-01-01,2024-02-01,1,2,3"
    lines[60] = "s060,2024-01-01,nonsense,1"
    path.write_text("series,start,end,total\n" + "\n".join(lines) + "\n")
    intake = take_in_within(path, Options(), 10_000, tmp_path / "again")
    whole = take_in(path, Options())
    assert intake.findings.set_aside_rows.tolist() == whole.findings.set_aside_rows.tolist()
    assert set(intake.findings.codes) == set(whole.findings.codes)


def test_interleaved_readings_need_memory(tmp_path):
    path = tmp_path / "bills.csv"
    lines = [f"s{n:03},2024-01-01,2024-02-01,{n}" for n in range(100)]
    lines += ["s050,2024-01-15,2024-02-15,30"]
    path.write_text("series,start,end,total\n" + "\n".join(lines) + "\n")
    with pytest.raises(TableError, match="are solved in memory"):
        take_in_within(path, Options(overlaps="solve"), 10_000, tmp_path / "work")


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(TableError, match="holds no Parquet file"):
        open_source(tmp_path)
    (tmp_path / "a.parquet").write_text("not Parquet")
    with pytest.raises(TableError, match="cannot be read as Parquet files"):
        open_source(tmp_path)


def test_small_tables_are_not_cut(bills, tmp_path):
    pq.write_table(bills, tmp_path / "bills.parquet")
    assert count_parts(open_source(tmp_path / "bills.parquet"), 1 << 30) == 1
    take_in_within(tmp_path / "bills.parquet", Options(), 1 << 30, tmp_path / "work")
    assert not (tmp_path / "work").exists()
