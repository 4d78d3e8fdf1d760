"""Results as folders of files: whole, with their books, and the same as one file."""

import hashlib
import json

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import unsum
from unsum.errors import TableError
from unsum.experiments.town import simulate_town
from unsum.tables import folders
from unsum.tables.folders import MANIFEST, check_folder_destination, part_bounds, write_folder


@pytest.fixture(scope="module")
def town():
    bills = simulate_town(600).bills
    readings = unsum.Readings.from_frame(bills, drop_bad=True)
    return unsum.recover(readings, "denton")


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(folders, "PART_VALUES", 256 * 425)


def read(folder):
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    return ds.dataset(files).to_table()


def test_files_together_are_the_long_table(town, small_parts, tmp_path):
    checks = write_folder(town, tmp_path / "out")
    assert checks["files"] == 3
    assert read(tmp_path / "out").equals(town.to_arrow())
    assert checks["rows"] == town.readings.n_series * town.readings.n_periods
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_manifest_holds_the_books(town, small_parts, tmp_path):
    write_folder(town, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {MANIFEST, *(record["file"] for record in manifest["files"])}
    for record in manifest["files"]:
        path = tmp_path / "out" / record["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == record["sha256"]
        assert pq.read_metadata(path).num_rows == record["rows"]
        assert record["sum_where_binding"] == pytest.approx(
            record["sum_of_binding_readings"], rel=1e-9
        )
    books, found = manifest["input"], town.readings.findings
    assert books["rows_read"] == books["rows_used"] + books["rows_set_aside"] == found.rows_read
    assert books["sum_read"] == pytest.approx(
        books["sum_of_readings"] + books["sum_set_aside"] + books["sum_repeated"], rel=1e-12
    )
    assert manifest["sum"] == pytest.approx(town.values.sum(), rel=1e-12)


def test_a_folder_is_replaced_whole(town, tmp_path):
    write_folder(town, tmp_path / "out")
    (tmp_path / "out" / "extra").write_text("old")
    write_folder(town, tmp_path / "out")
    assert not (tmp_path / "out" / "extra").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_the_older_result(town, small_parts, tmp_path, monkeypatch):
    write_folder(town, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    calls = []

    def fail(recovery, own, work, write=folders.write_part):
        calls.append(own)
        if own[0] > 0:
            raise OSError(28, "No space left on device")
        return write(recovery, own, work)

    monkeypatch.setattr(folders, "write_part", fail)
    with pytest.raises(TableError, match="cannot be written: No space left"):
        write_folder(town, tmp_path / "out")
    assert len(calls) > 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_that_are_recorded_are_not_written_again(town, small_parts, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    bounds = part_bounds(town.readings)
    for own in bounds[:2]:
        folders.write_part(town, own, work)
    damaged = work / f"part-{bounds[1][0]:010}.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    (work / ".part-0000000512.parquet.1.part").write_bytes(b"of a process that was killed")
    made = []
    original = town.make

    def watch(first, part):
        made.append(first)
        return original(first, part)

    monkeypatch.setitem(town.__dict__, "make", watch)
    write_folder(town, tmp_path / "out", work=work)
    assert sorted(made) == [bounds[1][0], bounds[2][0]]
    assert read(tmp_path / "out").equals(town.to_arrow())
    assert not list((tmp_path / "out").glob(".*"))
    (tmp_path / "out" / ".part-0000000512.parquet.1.part").write_bytes(b"of one that was late")
    check_folder_destination(tmp_path / "out")


def test_other_folders_are_not_written_over(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(TableError, match="holds something else"):
        check_folder_destination(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="is a file"):
        check_folder_destination(tmp_path / "file")
    with pytest.raises(TableError, match="does not exist"):
        check_folder_destination(tmp_path / "no" / "out")
    (tmp_path / "empty").mkdir()
    check_folder_destination(tmp_path / "empty")


def test_intervals_go_into_files_too(small_parts, tmp_path):
    readings = unsum.Readings.from_frame(simulate_town(40, n_days=240).bills, drop_bad=True)
    recovery = unsum.recover(readings, "panel", interval=0.9)
    write_folder(recovery, tmp_path / "out")
    table = read(tmp_path / "out")
    assert table.column_names == ["series", "time", "value", "covered", "lower", "upper"]
    assert table.equals(recovery.to_arrow())
    assert np.all(np.asarray(table["lower"]) <= np.asarray(table["value"]))
