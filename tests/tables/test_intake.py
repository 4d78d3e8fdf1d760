"""Rows to readings: every finding, with the right rows, and every row accounted for."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables.helpers import HEADER, assert_accounted, found, write
from unsum.errors import ParameterError, ReadingsError
from unsum.findings import CATALOGUE
from unsum.reading import check, read_readings
from unsum.readings import Readings


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
