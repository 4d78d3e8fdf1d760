"""What all formats share: columns, several files, hostile names, outputs, and recovery."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import unsum
from tests.tables.importers.helpers import SAMPLES, load, rows
from unsum.cli import app
from unsum.errors import ParameterError, ReadingsError, TableError
from unsum.reading import read_readings
from unsum.tables.importers import FORMATS

HOSTILE = ["</script><b>", 'a"b', "line\nbreak", "=1+1", "; rm -rf /", "ünï", "../..", "x" * 3000]


def run(*arguments):
    """A command in this process."""
    return CliRunner().invoke(app, [str(each) for each in arguments])


def reads(names):
    n = len(names)
    return pa.table(
        {
            "meter": [name for name in names for _ in range(3)],
            "date": ["2024-01-01", "2024-02-01", "2024-03-01"] * n,
            "index": np.arange(3.0 * n) ** 2,
        }
    )


def test_every_format_is_known_and_described():
    for name, each in FORMATS.items():
        assert each.sentence.endswith(".")
        assert name in (unsum.import_readings.__doc__ or "")
    with pytest.raises(ParameterError, match="format must be one of 'registers'"):
        unsum.import_readings("papyrus", "x.csv")
    with pytest.raises(ParameterError, match="has no option 'freq'; it takes end"):
        unsum.import_readings("bills", "x.csv", freq="D")
    with pytest.raises(ParameterError, match="got none"):
        unsum.import_readings("bills", [])
    with pytest.raises(ParameterError, match="must all be paths"):
        unsum.import_readings("bills", [{"a": [1]}, {"a": [1]}])
    with pytest.raises(ParameterError, match="not a known time zone"):
        unsum.import_readings("bills", {"a": [1]}, tz="Mars/Olympus")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_dataframes_come_back_in_their_library(library):
    frame = library({"meter": ["a", "a"], "date": ["2024-01-01", "2024-02-01"], "index": [1, 4]})
    imported = load("registers", frame)
    assert isinstance(imported.to_frame(), library)
    assert isinstance(imported.to_frame("pyarrow"), pa.Table)
    assert imported.readings().total.tolist() == [3.0]


def test_numbers_as_names_are_written_without_a_point():
    frame = pd.DataFrame(
        {"meter": [7.0, 7.0], "date": ["2024-01-01", "2024-02-01"], "index": [1, 2]}
    )
    assert rows(load("registers", frame))[0][0] == "7"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_hostile_names_survive(tmp_path, suffix):
    source = tmp_path / f"reads{suffix}"
    if suffix == ".csv":
        pv.write_csv(reads(HOSTILE), source)
    else:
        pq.write_table(reads(HOSTILE), source)
    out = tmp_path / f"readings{suffix}"
    assert load("registers", source).write(out) is None
    readings = read_readings(out)
    assert sorted(readings.names.to_pylist()) == sorted(HOSTILE)
    assert readings.n_readings == 2 * len(HOSTILE)


def test_differences_go_across_files_and_rows_are_found_again(tmp_path):
    (tmp_path / "2023.csv").write_text("meter,date,index\na,2023-11-01,10\na,2023-12-01,14\n")
    (tmp_path / "2024.csv").write_text("meter,date,index,note\na,2024-01-01,20,x\nb,?,1,y\nz\n")
    files = [tmp_path / "2023.csv", tmp_path / "2024.csv"]
    with pytest.raises(ReadingsError, match=r"row 3 of 2024.csv: '\?'"):
        load("registers", files)
    imported = load("registers", files, drop_bad=True)
    assert [row[3] for row in rows(imported)] == [4.0, 6.0]
    assert imported.findings.set_aside_rows.tolist() == [5, 6]
    assert "2024.csv from 4" in imported.findings.row_origin
    aside = imported.write(tmp_path / "readings.csv")
    text = pv.read_csv(aside, parse_options=pv.ParseOptions(newlines_in_values=True)).to_pylist()
    assert [(row["row"], row["file"], row["reason"]) for row in text] == [
        (5, "2024.csv", "unreadable-value"), (6, "", "malformed-row"),
    ]  # fmt: skip


def test_blank_and_malformed_lines_are_accounted_for(tmp_path):
    path = tmp_path / "reads.csv"
    path.write_text("meter,date,index\na,2024-01-01,1\n,,\n\na,2024-02-01,3,9\na,2024-03-01,4\n")
    with pytest.raises(ReadingsError, match="more or fewer fields than the header"):
        load("registers", path)
    imported = load("registers", path, drop_bad=True)
    assert imported.findings.set_aside_rows.tolist() == [3, 4, 5]
    assert [row[3] for row in rows(imported)] == [3.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04", "Excel or zip"),
        (b"meter,date,index\n", "has a header but no rows"),
        (b"meter,date,index\n\xff,2024-01-01,1\n", "UTF-8"),
        (b"meter,date,date,index\na,2024-01-01,2024-01-01,1\n", "time: 'date', 'date'"),
        (b"one,two\n1,2\n", "known to hold the series; its columns are 'one', 'two'"),
    ],
)  # fmt: skip
def test_files_that_are_something_else(tmp_path, content, message):
    path = tmp_path / "reads.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message):
        load("registers", path)


def test_words_for_quality():
    words = ["Actual", "EST", "", "is it?", "Substituted", "customer read"]
    table = {"account": [str(i) for i in range(6)], "start": ["2024-01-01"] * 6,
             "end": ["2024-02-01"] * 6, "kwh": [1] * 6}  # fmt: skip
    imported = load("bills", table | {"quality": words})
    quality = [word == "estimated" for word in imported.table["quality"].to_pylist()]
    assert quality == [False, True, False, False, True, False]
    assert imported.findings.items[0].details == ("row 3: 'is it?'",)
    flags = load("bills", table | {"isEstimated": [True, False, True, False, True, False]})
    assert flags.table["quality"].to_pylist() == ["estimated", "actual"] * 3


def test_the_command_writes_and_says_what_it_did(tmp_path):
    out = tmp_path / "readings.csv"
    done = run("import", "registers", SAMPLES / "registers.csv", "-o", out, "--digits", 5)
    assert done.exit_code == 0, done.output
    for text in (
        "9 read = 8 used + 1 set aside", "series from 'Meter ID'", "rollover", "meter-change",
        "5 readings of 2 series", f"unsum recover {out} -o daily.parquet",
    ):  # fmt: skip
        assert text in done.output
    assert (tmp_path / "readings.set-aside.csv").exists()
    assert read_readings(out).n_readings == 5
    told = json.loads(
        run("import", "bills", SAMPLES / "bills.csv", "-o", out, "--inclusive-end", "--json").output
    )
    assert told["command"] == "import"
    assert told["rows_read"] == told["rows_used"] == told["readings"] == 3
    assert told["next"] == f"unsum recover {out} -o daily.parquet"


def test_the_command_stops_with_a_sentence_and_writes_nothing(tmp_path):
    out = tmp_path / "readings.csv"
    done = run("import", "registers", SAMPLES / "registers_bad.csv", "-o", out)
    assert done.exit_code == 1
    assert "then 50 on 2024-03-01 (row 4)" in done.output
    assert "Nothing was written. --drop-bad sets bad rows aside." in done.output
    assert list(tmp_path.iterdir()) == []
    told = run("import", "registers", SAMPLES / "registers_bad.csv", "-o", out, "--json")
    assert json.loads(told.stdout)["findings"]
    done = run("import", "registers", SAMPLES / "registers_bad.csv", "-o", out, "--drop-bad")
    assert done.exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "readings.csv", "readings.set-aside.csv",
    ]  # fmt: skip
    own = run("import", "registers", out, "-o", out)
    assert isinstance(own.exception, ParameterError)
    assert "is the input" in str(own.exception)


def test_the_command_lists_formats():
    listed = run("import", "--list")
    assert listed.exit_code == 0
    assert all(f"  {name} " in listed.output for name in FORMATS)


@pytest.mark.parametrize(
    ("kind", "sample", "options", "recovering"),
    [
        ("registers", "registers.csv", ["--digits", "5"], []),
        ("green-button", "green_button.xml", ["--tz", "America/New_York", "--to", "kWh"],
         ["--tz", "America/New_York", "--freq", "h"]),
    ],
)  # fmt: skip
def test_what_is_recovered_adds_up_to_what_was_imported(
    tmp_path, kind, sample, options, recovering
):
    readings, out = tmp_path / "readings.csv", tmp_path / "fine.parquet"
    done = run("import", kind, SAMPLES / sample, "-o", readings, *options)
    assert done.exit_code == 0, done.output
    done = run("recover", readings, "-o", out, "--method", "even", *recovering)
    assert done.exit_code == 0, done.output
    fine = pq.read_table(out).to_pandas()
    for row in pv.read_csv(readings).to_pylist():
        own = fine[fine["series"] == row["series"]]
        times = pd.to_datetime(own["time"], utc=True)
        start, end = (pd.Timestamp(row[name]) for name in ("start", "end"))
        start, end = (each.tz_localize("UTC") if each.tz is None else each for each in (start, end))
        inside = (times >= start) & (times < end)
        assert inside.any()
        np.testing.assert_allclose(own["value"][inside].sum(), row["total"], rtol=1e-9)
