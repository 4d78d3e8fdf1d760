"""Files of readings: formats, marks, encodings, and files that are something else."""

import gzip
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from tests.tables.helpers import HEADER, assert_accounted, found, write
from unsum.errors import ReadingsError, TableError
from unsum.reading import check, read_readings
from unsum.readings import Readings
from unsum.tables.source import PATIENCE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEADER, "has a header but no rows"),
        (HEADER + "a,2024-01-01,2024-01-02,-1\n", "no usable reading"),
    ],
)
def test_tables_without_readings(tmp_path, text, message):
    with pytest.raises((TableError, ReadingsError), match=message):
        read_readings(write(tmp_path, text))


def test_files_that_are_not_tables(tmp_path):
    with pytest.raises(TableError, match="does not exist"):
        read_readings(tmp_path / "absent.csv")
    with pytest.raises(TableError, match="holds no Parquet file"):
        read_readings(tmp_path)
    damaged = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"series": ["a"]}), damaged)
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(TableError, match=r"damaged.parquet cannot be read"):
        read_readings(damaged)
    latin = tmp_path / "latin.csv"
    latin.write_bytes((HEADER + "caf\xe9,2024-01-01,2024-01-02,1\n").encode("latin-1"))
    with pytest.raises(TableError, match="UTF-8"):
        read_readings(latin)
    with pytest.raises(TableError, match="a list is not a table"):
        Readings.from_frame([1, 2])


def test_other_separators_marks_and_formats(tmp_path):
    text = "series;start;end;total\r\nA;31/01/2024;10/02/2024;12,5\r\n"
    path = write(tmp_path, "\ufeff" + text)
    findings = check(path)
    assert findings.codes == ("unreadable-value",) * 3 + ("empty-table",)
    assert "date_format" in findings.items[0].sentence
    assert "decimal=','" in findings.items[2].sentence
    readings = read_readings(path, date_format="%d/%m/%Y", decimal=",")
    assert readings.total.tolist() == [12.5]
    assert readings.calendar.text(0) == "2024-01-31"


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-01-01", "2024-01-03"),
        ("20240101", "20240103"),
        ("2024-01-01 00:00:00", "2024-01-03T00:00"),
        ("2024-01-01T00:00:00Z", "2024-01-03T00:00:00Z"),
        ("2024-01-01T00:00:00+02:00", "2024-01-03T00:00:00+02:00"),
        ("1704067200", "1704240000"),
        ("1704067200000", "1704240000000"),
        ("1704067200000000", "1704240000000000"),
        ("1704067200000000000", "1704240000000000000"),
    ],
)
def test_dates_in_many_dresses(tmp_path, start, end):
    readings = read_readings(write(tmp_path, HEADER + f"a,{start},{end},4\n"))
    assert readings.n_periods == 2
    assert readings.calendar.text(0) == "2024-01-01"


@pytest.mark.parametrize("text", ["2024-02-30", "0204-01-01", "12", "01/02/2024", "nan", "2024"])
def test_unreadable_dates_are_quoted(tmp_path, text):
    findings = check(write(tmp_path, HEADER + f"a,{text},2024-03-03,4\n"))
    assert found(findings)["unreadable-value"] == [2]
    assert repr(text) in findings.items[0].details[0]


@pytest.mark.parametrize("text", ["12,5", "1_000", "0x10", "1 000", "-", "1e", "--1", "€4"])
def test_unreadable_totals_are_quoted(tmp_path, text):
    findings = check(write(tmp_path, HEADER + f'a,2024-01-01,2024-03-03,"{text}"\n'))
    assert found(findings)["unreadable-value"] == [2]
    assert repr(text) in findings.items[0].details[0]


@pytest.mark.parametrize("text", ["", "NaN", "nan", "NA", "null", "None"])
def test_missing_totals(tmp_path, text):
    findings = check(write(tmp_path, HEADER + f"a,2024-01-01,2024-03-03,{text}\n"))
    assert found(findings)["missing-total"] == [2]


def test_estimated_readings_are_marked(tmp_path):
    text = (
        "series,start,end,total,quality\n"
        "a,2024-01-01,2024-01-02,1,E\n"
        "a,2024-01-02,2024-01-03,1,Actual\n"
    )
    readings = read_readings(write(tmp_path, text))
    assert readings.estimated.tolist() == [True, False]
    assert readings.to_arrow()["quality"].to_pylist() == ["estimated", "actual"]


def test_an_unclosed_quote_stops_even_when_bad_rows_are_dropped(tmp_path):
    lines = [f"s{i},2024-01-01,2024-02-01,5" for i in range(500)]
    lines[9] = '"' + lines[9]
    path = write(tmp_path, HEADER + "\n".join(lines) + "\n")
    with pytest.raises(ReadingsError, match=r"row 11 swallows 490 lines"):
        read_readings(path, drop_bad=True)


def test_lines_of_blanks_are_notes(tmp_path):
    path = write(tmp_path, HEADER + "a,2024-01-01,2024-01-02,1\n   \n\nb,2024-01-01,2024-01-03,1\n")
    readings = read_readings(path)
    assert readings.n_readings == 2
    assert sorted(readings.findings.set_aside_rows) == [3, 4]
    assert_accounted(readings.findings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 sheet", "an Excel or zip file"),
        ("series,start".encode("utf-16"), "UTF-16 text"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"PAR1....", "a Parquet file"),
        (b"series\0,start", "is not text"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\nseries,start,end,total\n", "begins with a blank line"),
        (b'"series,start' + b"x" * 200_000, "a quote is opened and never closed"),
        (b"series,start,end,total\nRen\xe9,2024-01-01,2024-02-01,5,7\n", "not UTF-8"),
        (
            b"series,start,end,total,total\na,2024-01-01,2024-02-01,5,7\n",
            "2 columns called 'total'",
        ),
    ],
)
def test_files_of_other_kinds_are_recognised(tmp_path, content, message, capfd):
    path = tmp_path / "bills.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_readings(path)
    assert capfd.readouterr().err == ""


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "bills.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "a,2024-01-01,2024-02-01,5\n").encode()))
    assert read_readings(path).n_periods == 31


def test_thousands_separators_are_refused_rather_than_guessed(tmp_path):
    text = "series;start;end;total\na;2024-01-01;2024-01-02;1.234\n"
    findings = check(write(tmp_path, text), decimal=",")
    assert "thousands separator" in findings.items[0].sentence


@pytest.mark.parametrize("row", ["a,2024-01-01,2024-02-01,31\n", "", 'a,"2024-01-01\n'])
def test_a_file_is_read_only_when_no_thread_holds_the_handler_of_bad_rows(
    tmp_path, monkeypatch, row
):
    held, usual = [], pv.open_csv

    def open_slowly(path, **options):
        handler = options["parse_options"].invalid_row_handler
        held.append(weakref.ref(handler))
        threading.Thread(target=lambda handler: time.sleep(0.3), args=[handler]).start()
        del handler
        return usual(path, **options)

    monkeypatch.setattr(pv, "open_csv", open_slowly)
    begun = time.monotonic()
    with suppress(ReadingsError, TableError):
        read_readings(write(tmp_path, HEADER + row))
    assert held
    assert all(handler() is None for handler in held)
    assert time.monotonic() - begun < 5


def test_a_process_ends_at_once_though_a_file_is_half_read(tmp_path):
    path = write(tmp_path, HEADER + "a,2024-01-01,2024-02-01,31\n")
    program = (
        "import sys; from unsum.tables.source import open_source\n"
        "batches = open_source(sys.argv[1]).batches(['series']); next(batches)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
