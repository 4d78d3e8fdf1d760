"""Bills: the ways in which they say when they begin and end."""

import pytest

from tests.tables.importers.helpers import found, load, rows
from unsum.errors import ParameterError, ReadingsError, TableError


def test_inclusive_ends_are_written_a_day_on():
    imported = load("bills", "bills.csv", end="inclusive")
    assert rows(imported) == [
        ("77-1", "2024-01-03", "2024-02-02", 412.0),
        ("77-1", "2024-02-02", "2024-03-04", 388.0),
        ("77-2", "2024-01-10", "2024-02-09", 97.0),
    ]
    assert imported.table["quality"].to_pylist() == ["actual", "estimated", "actual"]
    assert imported.table["unit"].to_pylist() == ["kWh"] * 3
    assert "Ignored: 'Cost'." in imported.notes
    assert imported.readings().n_readings == 3
    assert rows(load("bills", "bills.csv"))[0][2] == "2024-02-01"


def test_an_opower_file_has_ends_and_days():
    imported = load("bills", "opower.tsv")
    assert rows(imported) == [
        ("SP1", "2024-01-01", "2024-02-01", 300.0),
        ("SP1", "2024-02-01", "2024-03-01", 280.5),
        ("SP2", "2024-01-11", "2024-02-10", 120.0),
    ]
    assert imported.table["quality"].to_pylist() == ["actual", "estimated", "actual"]
    last_days = load("bills", "opower.tsv", end="inclusive")
    assert rows(last_days)[0][1:3] == ("2024-01-02", "2024-02-02")


def test_starts_and_days_serve_too():
    table = {"account": ["a"], "start": ["2024-02-01"], "days": [29], "kWh": [58.0]}
    assert rows(load("bills", table)) == [("a", "2024-02-01", "2024-03-01", 58.0)]


def test_bills_with_ends_alone_begin_where_the_one_before_ended():
    with pytest.raises(TableError, match=r"end 'bill_date'.*--from-previous"):
        load("bills", "bills_ends.csv")
    imported = load("bills", "bills_ends.csv", from_previous=True)
    assert rows(imported) == [
        ("x", "2024-01-31", "2024-03-01", 310.0),
        ("x", "2024-03-01", "2024-04-02", 290.0),
    ]
    assert found(imported) == {"open-reading": [2, 5]}


def test_the_first_bill_begins_by_its_days_where_they_are_known():
    table = {
        "account": ["a", "a", "b"],
        "end": ["2024-02-01", "2024-03-05", "2024-02-01"],
        "days": [31, None, None],
        "kwh": [1, 2, 3],
    }
    imported = load("bills", table, from_previous=True)
    assert rows(imported) == [
        ("a", "2024-01-01", "2024-02-01", 1.0),
        ("a", "2024-02-01", "2024-03-05", 2.0),
    ]
    assert found(imported) == {"open-reading": [2]}


def test_a_bill_set_aside_still_says_where_the_next_begins():
    ends = ["2024-01-01", "2024-02-01", "2024-03-01"]
    table = {"account": ["a"] * 3, "end": ends, "kwh": ["1", "?", "3"]}
    imported = load("bills", table, from_previous=True, drop_bad=True)
    assert rows(imported) == [("a", "2024-02-01", "2024-03-01", 3.0)]
    twice = {"account": ["a"] * 4, "end": [*ends, ends[1]], "kwh": [1, 2, 3, 4]}
    imported = load("bills", twice, from_previous=True, drop_bad=True)
    assert rows(imported) == [("a", "2024-02-01", "2024-03-01", 3.0)]
    assert found(imported)["conflicting-duplicate"] == [1, 3]


def test_a_bill_of_an_unknown_date_makes_its_series_unknown():
    table = {
        "account": ["a", "a", "a", "b", "b"],
        "end": ["2024-01-01", "soon", "2024-03-01", "2024-01-01", "2024-02-01"],
        "kwh": [1, 2, 3, 4, 5],
    }
    imported = load("bills", table, from_previous=True, drop_bad=True)
    assert rows(imported) == [("b", "2024-01-01", "2024-02-01", 5.0)]
    table["account"][1] = None
    with pytest.raises(ReadingsError):
        load("bills", table | {"end": ["2024-01-01"] * 5}, from_previous=True, drop_bad=True)


def test_what_is_wrong_is_named():
    with pytest.raises(ReadingsError) as caught:
        load("bills", "bills_bad.csv")
    message = str(caught.value)
    assert "row 3: 'a', 2024-02-01 to 2024-01-01" in message
    assert "without a value in column 'account'; fill it in. (row 4)" in message
    assert "row 5: 'ten'" in message
    assert "totals are in 2 units: kWh, m3" in message
    imported = load("bills", "bills_bad.csv", to="kWh", drop_bad=True)
    assert rows(imported) == [("a", "2024-01-01", "2024-02-01", 10.0)]
    assert imported.findings.rows_set_aside == 4


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"account": ["a"], "kwh": [1]}, {}, "of start, end and duration it has none"),
        ({"account": ["a"], "end": ["2024-02-01"], "days": [0], "kwh": [1]}, {}, "not a whole"),
        ({"account": ["a"], "end": ["2024-02-01"], "days": [1e9], "kwh": [1]}, {}, "not a whole"),
        ({"account": ["a"], "start": ["2024-01-01"], "end": ["2024-02-01"], "kwh": [1],
          "therms": [2]}, {}, "could hold the total: 'kwh', 'therms'"),
        ({"account": ["a"], "start": ["2024-01-01"], "end": ["2024-02-01"], "kwh": [1]},
         {"end": "open"}, "end must be one of"),
        ({"account": ["a"], "start": ["2024-01-01"], "end": ["2024-02-01"], "kwh": [1]},
         {"columns": {"start": "begin"}}, "has no column 'begin'; its columns are 'account'"),
        ({"account": [], "start": [], "end": [], "kwh": []}, {}, "no rows"),
    ],
)  # fmt: skip
def test_tables_that_make_no_sense(table, options, message):
    with pytest.raises((ParameterError, ReadingsError, TableError), match=message):
        load("bills", table, **options)


def test_negative_totals_pass_for_recover_to_judge():
    table = {"account": ["a"], "start": ["2024-01-01"], "end": ["2024-02-01"], "kwh": [-5]}
    assert rows(load("bills", table))[0][3] == -5.0


def test_aware_days_are_local_days():
    table = {
        "account": ["a"],
        "end": ["2024-04-01T00:00+02:00"],
        "days": [2],  # one of them has 23 hours
        "kwh": [1],
    }
    imported = load("bills", table, tz="Europe/Paris")
    assert rows(imported)[0][1] == "2024-03-30 00:00:00+01:00"
