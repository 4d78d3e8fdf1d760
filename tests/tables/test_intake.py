"""Rows to readings: every finding, with the right rows, and every row accounted for."""

import datetime as dt
import gzip
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unsum
from unsum.errors import ParameterError, ReadingsError, TableError, UnsumError
from unsum.findings import CATALOGUE
from unsum.readings import Readings, check, read_readings

HEADER = "series,start,end,total\n"


def write(tmp_path, text, name="bills.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def found(findings):
    return {finding.code: finding.rows.tolist() for finding in findings}


def assert_accounted(findings):
    assert findings.rows_used + findings.rows_set_aside == findings.rows_read
    assert len(np.unique(findings.set_aside_rows)) == findings.rows_set_aside


def test_a_clean_table_has_no_findings(tmp_path):
    path = write(tmp_path, HEADER + "b,2024-01-01,2024-02-01,31\na,2024-01-01,2024-01-11,5\n")
    readings = read_readings(path)
    assert len(readings.findings) == 0
    assert readings.names.to_pylist() == ["a", "b"]
    assert (readings.n_series, readings.n_periods, readings.n_readings) == (2, 31, 2)
    assert readings.start.tolist() == [0, 0]
    assert readings.stop.tolist() == [10, 31]
    assert readings.total.tolist() == [5.0, 31.0]
    assert readings.findings.rows_read == readings.findings.rows_used == 2


ONE_OF_EACH = """series,start,end,total,quality,active_from,active_to
A,2024-01-01,2024-02-01,310,actual,,
A,2024-02-01,2024-03-01,290,actual,,
A,2024-02-20,2024-03-05,11,actual,,

B,2024-01-20,2024-01-10,3,actual,,
B,2024-01-01
C,2024-01-31,2024-02-11,-4,actual,,
C,2024-01-31,yesterday,4,actual,,
C,2024-02-11,2024-02-13,12 kWh,actual,,
D,2024-02-11,2024-02-13,2,actual,,
D,2024-02-11,2024-02-13,2,actual,,
E,2024-02-11,2024-02-13,2,actual,,
E,2024-02-11,2024-02-13,3,actual,,
F,2024-02-11,2024-02-13,inf,actual,,
F,2024-02-11,2024-02-13,,actual,,
,2024-02-11,2024-02-13,1,actual,,
G,2024-01-01,2024-01-02,1,guessed,,
G,2024-01-03,2024-01-04,1,actual,,
G,2024-01-04,2024-01-05,1,actual,,
G,2024-01-05,2024-01-06,100001,actual,,
H,2024-01-05,2024-01-06,0,actual,,
I,2024-01-05,2024-01-06T06:00,1,actual,,
J,2024-01-05,2024-01-16,1,actual,2024-01-10,
J,2024-01-16,2024-01-26,1,actual,2024-01-12,
K,2024-01-05,2024-01-16,1,actual,2024-01-10,2024-01-12
K,2024-01-20,2024-01-26,1,actual,2024-01-10,2024-01-12
L,2024-03-20,2024-04-26,1,actual,,
"""


def test_one_of_each_finding_names_its_rows(tmp_path):
    path = write(tmp_path, ONE_OF_EACH)
    findings = check(path, range_end="2024-04-01")
    rows = {}
    for finding in findings:
        rows.setdefault(finding.code, []).extend(finding.rows.tolist())
    assert rows == {
        "malformed-row": [7],
        "missing-value": [17],
        "unreadable-value": [9, 10],
        "missing-total": [16],
        "infinite-total": [15],
        "start-not-before-end": [6],
        "off-grid": [23],
        "conflicting-activity": [24, 25],
        "outside-activity": [27],
        "conflicting-duplicate": [13, 14],
        "overlap": [3, 4],
        "negative-total": [8],
        "outside-range": [28],
        "no-usable-reading": [6, 8, 9, 10, 13, 14, 15, 16, 23, 24, 25, 28],
        "gap": [19],
        "absurd-magnitude": [21],
        "blank-row": [5],
        "unknown-quality": [18],
        "trimmed-to-activity": [26],
        "merged-duplicates": [12],
        "all-zero": [22],
    }
    assert_accounted(findings)
    assert findings.rows_read == 27
    for finding in findings:
        assert finding.sentence.endswith(".")
        assert finding.severity == CATALOGUE[finding.code][0]
        assert finding.action


def test_bad_rows_stop_or_are_set_aside_with_their_reasons(tmp_path):
    path = write(tmp_path, ONE_OF_EACH)
    with pytest.raises(ReadingsError) as caught:
        read_readings(path)
    assert "row 9: 'yesterday'" in str(caught.value)
    assert "row 10: '12 kWh'" in str(caught.value)
    readings = read_readings(path, drop_bad=True)
    assert readings.names.to_pylist() == ["A", "D", "G", "H", "K", "L"]
    assert_accounted(readings.findings)
    reasons = dict(
        zip(readings.findings.set_aside_rows, readings.findings.set_aside_codes, strict=True)
    )
    assert reasons[7] == "malformed-row"
    assert reasons[4] == "overlap"
    assert 3 not in reasons
    assert reasons[5] == "blank-row"


def test_the_missing_column_and_those_there_are_named(tmp_path):
    path = write(tmp_path, "account,start,end,kwh\nA,2024-01-01,2024-01-02,1\n")
    findings = check(path)
    assert findings.codes == ("missing-column", "missing-column")
    assert "no column 'series'; its columns are 'account', 'start', 'end', 'kwh'" in (
        findings.items[0].sentence
    )
    readings = read_readings(path, columns={"series": "account", "total": "kwh"})
    assert readings.n_readings == 1
    with pytest.raises(ParameterError, match="columns: a key must be one of"):
        read_readings(path, columns={"kwh": "total"})


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
    with pytest.raises(TableError, match="is a folder"):
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


def test_inclusive_ends(tmp_path):
    text = "".join(
        f"a,2024-{month:02d}-01,2024-{month:02d}-{last},{last}\n"
        for month, last in ((1, 31), (2, 29), (3, 31), (4, 30), (5, 31))
    )
    path = write(tmp_path, HEADER + text)
    exclusive = check(path)
    assert "ends-look-inclusive" in exclusive.codes
    assert "gap" in exclusive.codes
    readings = read_readings(path, end="inclusive")
    assert len(readings.findings) == 0
    assert np.diff(readings.start).tolist() == [31, 29, 31, 30]
    assert (readings.stop - readings.start).tolist() == [31, 29, 31, 30, 31]


def test_inclusive_ends_with_a_time_of_day_mean_the_period_they_lie_in(tmp_path):
    text = "a,2024-01-01T00:00:00,2024-01-01T23:59:59,24\na,2024-01-02T00:00,2024-01-02T23:00,24\n"
    path = write(tmp_path, HEADER + text)
    assert read_readings(path, end="inclusive").stop.tolist() == [1, 2]
    assert read_readings(path, "h", end="inclusive").stop.tolist() == [24, 48]


def test_exclusive_ends_read_as_inclusive_are_explained(tmp_path):
    text = "a,2024-01-01,2024-01-11,1\na,2024-01-11,2024-01-21,1\na,2024-01-21,2024-02-01,1\n"
    findings = check(write(tmp_path, HEADER + text), end="inclusive")
    assert "the ends look exclusive" in findings.items[0].sentence


def test_overlaps_name_both_readings_the_overlap_and_the_amounts(tmp_path):
    text = "a,2024-01-01,2024-02-01,310\na,2024-01-25,2024-03-01,280\n"
    finding = check(write(tmp_path, HEADER + text)).items[0]
    assert finding.details == (
        "series 'a': row 2, 2024-01-01 to 2024-02-01, total 310, and row 3, 2024-01-25 to "
        "2024-03-01, total 280, share 7 periods from 2024-01-25",
    )


def test_dropping_overlaps_keeps_as_many_readings_as_possible():
    months = pd.date_range("2024-01-01", periods=13, freq="MS")
    frame = pd.DataFrame({"start": months[:-1], "end": months[1:], "total": 30.0})
    year = pd.DataFrame({"start": [months[0]], "end": [months[-1]], "total": [360.0]})
    table = pd.concat([year, frame]).assign(series="a")
    readings = Readings.from_frame(table, drop_bad=True)
    assert readings.n_readings == 12
    assert readings.findings.set_aside_rows.tolist() == [0]


def test_snapping_moves_to_the_nearest_point_and_is_counted(tmp_path):
    text = "a,2024-01-01T01:00,2024-01-02T23:00,2\nb,2024-01-01T13:00,2024-01-02T02:00,2\n"
    path = write(tmp_path, HEADER + text)
    assert found(check(path))["off-grid"] == [2, 3]
    findings = check(path, snap="nearest")
    assert found(findings)["snapped"] == [2, 3]
    assert found(findings)["start-not-before-end"] == [3]
    readings = read_readings(path, snap="nearest", drop_bad=True)
    assert (readings.start.tolist(), readings.stop.tolist()) == ([0], [2])


def test_the_range_is_taken_or_given(tmp_path):
    text = "a,2024-01-10,2024-01-20,10\na,2024-01-20,2024-02-10,21\n"
    path = write(tmp_path, HEADER + text)
    wider = read_readings(path, range_start="2024-01-01", range_end=dt.date(2024, 3, 1))
    assert wider.n_periods == 60
    assert wider.start.tolist() == [9, 19]
    narrower = read_readings(path, range_end="2024-02-01")
    assert found(narrower.findings)["outside-range"] == [3]
    assert narrower.n_readings == 1
    monthly = write(tmp_path, HEADER + "a,2024-01-01,2024-03-01,10\n")
    adjusted = read_readings(monthly, "MS", range_end="2024-03-15")
    assert adjusted.findings.codes == ("adjusted",)
    assert adjusted.n_periods == 3
    with pytest.raises(ParameterError, match="range holds no reading"):
        read_readings(path, range_start="2025-01-01")


def test_offsets_need_a_zone_when_they_differ(tmp_path):
    text = (
        "a,2024-03-30T00:00+01:00,2024-03-31T00:00+01:00,24\n"
        "a,2024-03-31T00:00+01:00,2024-04-01T00:00+02:00,23\n"
    )
    path = write(tmp_path, HEADER + text)
    with pytest.raises(ReadingsError, match=r"differing offsets.*tz='Europe/Paris'"):
        read_readings(path)
    daily = read_readings(path, tz="Europe/Paris")
    assert daily.n_periods == 2
    hourly = read_readings(path, "h", tz="Europe/Paris")
    assert (hourly.stop - hourly.start).tolist() == [24, 23]
    mixed = write(tmp_path, HEADER + text + "a,2024-04-01,2024-04-02,24\n")
    with pytest.raises(ReadingsError, match="row 4 has no offset"):
        read_readings(mixed)
    assert read_readings(mixed, tz="Europe/Paris").n_periods == 3


def test_local_times_that_happen_twice_or_never(tmp_path):
    text = (
        "a,2024-10-27T00:00,2024-10-27T02:00,2\n"
        "b,2024-03-31T02:00,2024-03-31T04:00,2\n"
        "c,2024-03-31,2024-04-01,23\n"
    )
    findings = check(write(tmp_path, HEADER + text), "h", tz="Europe/Paris")
    assert found(findings)["ambiguous-time"] == [2]
    assert found(findings)["skipped-time"] == [3]
    readings = read_readings(write(tmp_path, HEADER + text), "h", tz="Europe/Paris", drop_bad=True)
    assert readings.stop.tolist() == [23]
    assert (
        len(check(write(tmp_path, HEADER + "c,2024-03-31,2024-04-01,23\n"), tz="Asia/Beirut")) == 0
    )


def test_steps_of_several_days_follow_the_phase_that_most_readings_share(tmp_path):
    text = "x,2024-01-01,2024-01-08,1\n" + "".join(
        f"a,2024-01-{day:02d},2024-01-{day + 7:02d},1\n" for day in (4, 11, 18)
    )
    findings = check(write(tmp_path, HEADER + text), "W")
    assert found(findings)["off-grid"] == [2]


def test_readings_of_whole_weeks_cannot_show_the_week():
    def frame(days):
        starts = pd.date_range("2024-01-03", periods=8, freq=f"{days}D")
        return pd.DataFrame({"series": "a", "start": starts[:-1], "end": starts[1:], "total": 1.0})

    assert "no-weekly-shape" in check(frame(7)).codes
    assert "no-weekly-shape" in check(frame(14)).codes
    assert "no-weekly-shape" in check(frame(7), "h", tz="Europe/Paris").codes
    assert "no-weekly-shape" not in check(frame(10)).codes
    assert "no-weekly-shape" not in check(frame(7), "W").codes


def test_a_wrong_year_is_named_before_it_makes_a_huge_grid(tmp_path):
    text = "a,2024-01-01,2024-01-02,1\nb,1824-01-01,1824-01-02,1\n"
    findings = check(write(tmp_path, HEADER + text), "min")
    assert found(findings) == {"range-too-long": [2, 3]}


def test_period_numbers(tmp_path):
    path = write(tmp_path, HEADER + "a,3,10,7\nb,5,8,3\nb,x,9,1\nb,9,9.5,1\n")
    readings = read_readings(path, "period", drop_bad=True)
    assert readings.n_periods == 7
    assert readings.start.tolist() == [0, 2]
    assert readings.findings.set_aside_rows.tolist() == [4, 5]


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


def test_estimated_readings_are_marked(tmp_path):
    text = (
        "series,start,end,total,quality\n"
        "a,2024-01-01,2024-01-02,1,E\n"
        "a,2024-01-02,2024-01-03,1,Actual\n"
    )
    readings = read_readings(write(tmp_path, text))
    assert readings.estimated.tolist() == [True, False]
    assert readings.to_arrow()["quality"].to_pylist() == ["estimated", "actual"]


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


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "", "c"]),
            st.sampled_from(
                ["2024-01-01", "2024-01-05", "2024-01-09", "x", "", "2024-01-03T05:00"]
            ),
            st.sampled_from(["2024-01-05", "2024-01-09", "2024-01-20", "2024-01-01", "?"]),
            st.sampled_from(["1", "2.5", "-1", "", "inf", "nan", "abc", "0"]),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_every_row_is_used_or_set_aside_once(rows):
    columns = map(list, zip(*rows, strict=True))
    table = pa.table(dict(zip(("series", "start", "end", "total"), columns, strict=True)))
    findings = check(table)
    assert_accounted(findings)
    assert findings.rows_read == len(rows)
    try:
        readings = Readings.from_frame(table, drop_bad=True)
    except ReadingsError:
        return
    merged = sum(len(item.rows) for item in findings if item.code == "merged-duplicates")
    assert readings.n_readings + merged == findings.rows_used
    assert (readings.start < readings.stop).all()
    same = np.diff(readings.series_of_readings()) == 0
    assert (readings.stop[:-1][same] <= readings.start[1:][same]).all()


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


@pytest.mark.parametrize("freq", ["D", "h", "MS", "W-MON"])
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_inclusive_dates_mean_the_same_as_text_and_as_timestamps(freq, zone):
    text = pd.DataFrame(
        {"series": "a", "start": ["2024-01-01"], "end": ["2024-03-31"], "total": 1.0,
         "active_to": ["2024-03-31"]}
    )  # fmt: skip
    dates = ["start", "end", "active_to"]
    stamps = text.assign(**{name: pd.to_datetime(text[name]) for name in dates})
    options = {"freq": freq, "tz": zone, "end": "inclusive"}
    first = Readings.from_frame(text, **options)
    second = Readings.from_frame(stamps, **options)
    assert np.array_equal(first.calendar.edges, second.calendar.edges)
    assert first.stop.tolist() == second.stop.tolist() == [first.n_periods]
    assert first.active.tolist() == second.active.tolist() == [[0, first.n_periods]]
    assert set(second.findings.codes) <= {"no-weekly-shape"}  # 91 days are 13 weeks
    if zone:
        zoned = text.assign(
            **{name: pd.to_datetime(text[name]).dt.tz_localize(zone) for name in dates}
        )
        assert Readings.from_frame(zoned, **options).stop.tolist() == first.stop.tolist()


def test_an_inclusive_end_in_the_middle_of_a_month_is_off_the_grid():
    frame = pd.DataFrame(
        {"series": "a", "start": [pd.Timestamp("2024-01-01")], "end": [pd.Timestamp("2024-01-15")],
         "total": 1.0}
    )  # fmt: skip
    assert "off-grid" in check(frame, "MS", end="inclusive").codes


def test_a_range_does_not_shift_the_weeks_of_the_readings(tmp_path):
    text = "".join(f"a,2024-01-{day:02d},2024-01-{day + 7:02d},7\n" for day in (1, 8, 15, 22))
    readings = read_readings(write(tmp_path, HEADER + text), "W", range_start="2023-12-01")
    assert readings.n_readings == 4
    assert "adjusted" in readings.findings.codes
    assert readings.calendar.text(0) == "2023-11-27"


def test_weeks_are_phased_by_the_wall_clock():
    mondays = [*pd.date_range("2024-01-01", periods=5, freq="7D"),
               *pd.date_range("2024-07-01", periods=5, freq="7D")]  # fmt: skip
    tuesdays = list(pd.date_range("2024-03-05", periods=6, freq="7D"))
    starts = pd.Series(mondays + tuesdays)
    frame = pd.DataFrame({"series": "a", "start": starts, "end": starts + pd.Timedelta(days=7),
                          "total": 1.0})  # fmt: skip
    findings = check(frame, "W", tz="Europe/London")
    assert found(findings)["off-grid"] == list(range(10, 16))


def test_snapping_applies_at_the_edge_of_the_range(tmp_path):
    path = write(tmp_path, HEADER + "a,2023-12-31T23:59,2024-01-03T00:01,3\n")
    readings = read_readings(path, snap="nearest", range_start="2024-01-01", range_end="2024-01-03")
    assert (readings.start.tolist(), readings.stop.tolist()) == ([0], [2])
    assert readings.findings.codes == ("snapped",)


def test_a_year_of_readings_inside_a_yearly_one_is_judged_at_once():
    n = 35_000
    starts = np.arange(n)
    frame = pa.table(
        {"series": ["a"] * (n + 1), "start": [0, *starts], "end": [n, *(starts + 1)],
         "total": np.ones(n + 1)}
    )  # fmt: skip
    findings = check(frame, "period")
    assert findings.rows_set_aside == 1
    assert findings.set_aside_rows.tolist() == [0]


def test_activity_until_for_ever_and_readings_outside_it():
    frame = pd.DataFrame(
        {
            "series": ["a", "a", "b", "c", "c"],
            "start": ["2024-01-01", "2024-01-11", "2024-01-01", "2024-01-01", "2024-01-11"],
            "end": ["2024-01-11", "2024-01-21", "2024-01-21", "2024-01-11", "2024-01-21"],
            "total": [0.0, 10.0, 5.0, 1.0, 2.0],
            "active_from": ["2024-01-11"] * 2 + [None, "2024-01-02", "2024-01-03"],
            "active_to": ["9999-12-31"] * 5,
        }
    )
    findings = check(frame)
    assert found(findings) == {
        "conflicting-activity": [3, 4], "idle-reading": [0], "no-usable-reading": [3, 4],
    }  # fmt: skip
    assert_accounted(findings)


def test_of_readings_that_agree_the_actual_one_stays():
    frame = pd.DataFrame(
        {"series": "a", "start": "2024-01-01", "end": "2024-01-03", "total": 2.0,
         "quality": ["estimated", "actual"]}
    )  # fmt: skip
    assert Readings.from_frame(frame).estimated.tolist() == [False]


def test_thousands_separators_are_refused_rather_than_guessed(tmp_path):
    text = "series;start;end;total\na;2024-01-01;2024-01-02;1.234\n"
    findings = check(write(tmp_path, text), decimal=",")
    assert "thousands separator" in findings.items[0].sentence


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
