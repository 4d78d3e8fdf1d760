"""Cumulative reads: differences, rollovers, new meters, and decreases that say nothing."""

import numpy as np
import pytest

from tests.tables.importers.helpers import found, load, rows
from unsum.errors import ParameterError, ReadingsError, TableError


def reads(*indices, **more):
    """Reads of one meter, 30 days apart."""
    days = np.datetime64("2024-01-01") + 30 * np.arange(len(indices))
    return {
        "meter": ["m"] * len(indices),
        "date": [str(day) for day in days],
        "index": list(indices),
        **more,
    }


def test_a_file_as_utilities_write_it():
    imported = load("registers", "registers.csv", digits=5)
    assert rows(imported) == [
        ("M-104", "2024-01-02", "2024-02-01", 535.0),
        ("M-104", "2024-02-01", "2024-03-04", 567.0),  # 99745 to 00312
        ("M-104", "2024-03-04", "2024-04-02", 508.0),
        ("M-207", "2024-01-05", "2024-02-06", 91.75),
        ("M-207", "2024-02-06", "2024-03-08", 88.75),  # the new meter begins at zero
    ]
    quality = ["estimated", "estimated", "actual", "actual", "actual"]
    assert imported.table["quality"].to_pylist() == quality
    assert imported.table["unit"].to_pylist() == ["kWh"] * 5
    assert found(imported) == {"lone-read": [10], "meter-change": [8], "rollover": [4]}
    assert "series from 'Meter ID'" in imported.notes[0]


def test_every_read_but_the_first_ends_a_reading_and_differences_add_up():
    rng = np.random.default_rng(1)
    index = 100 + np.cumsum(rng.integers(0, 50, 20))
    order = rng.permutation(20)
    table = reads(*index)
    shuffled = {name: [values[i] for i in order] for name, values in table.items()}
    imported = load("registers", shuffled)
    totals = imported.table["total"].to_numpy()
    np.testing.assert_array_equal(totals, np.diff(index))
    assert totals.sum() == index[-1] - index[0]


def test_registers_of_a_meter_are_series_or_are_added():
    options = {"date_format": "%d/%m/%Y", "decimal": ","}
    imported = load("registers", "registers_day_night.csv", **options)
    assert rows(imported) == [
        ("1001/day", "2024-01-01", "2024-01-31", 1000.0),
        ("1001/day", "2024-01-31", "2024-03-01", 895.0),
        ("1001/night", "2024-01-01", "2024-01-31", 800.0),
        ("1001/night", "2024-01-31", "2024-03-01", 865.0),
    ]
    added = load("registers", "registers_day_night.csv", add_registers=True, **options)
    assert rows(added) == [
        ("1001", "2024-01-01", "2024-01-31", 1800.0),
        ("1001", "2024-01-31", "2024-03-01", 1760.0),
    ]


def test_registers_read_on_other_days_are_not_added():
    table = {
        "meter": ["m"] * 5,
        "register": ["day", "day", "night", "night", "day"],
        "date": ["2024-01-01", "2024-02-01", "2024-01-01", "2024-02-01", "2024-03-01"],
        "index": [0, 5, 0, 3, 9],
    }
    with pytest.raises(ReadingsError, match="not all registers of the meter have one"):
        load("registers", table, add_registers=True)
    imported = load("registers", table, add_registers=True, drop_bad=True)
    assert rows(imported) == [("m", "2024-01-01", "2024-02-01", 8.0)]
    assert imported.findings.set_aside_rows.tolist() == [4]


def test_what_is_wrong_is_named_with_rows_values_and_remedies():
    with pytest.raises(ReadingsError) as caught:
        load("registers", "registers_bad.csv")
    message = str(caught.value)
    assert "'a': 200 on 2024-02-01 (row 3), then 50 on 2024-03-01 (row 4)" in message
    for remedy in ("--digits", "--serial", "--keep-negative", "--drop-bad"):
        assert remedy in message
    assert "'b', 2024-02-01: 20 (row 8), 25 (row 9)" in message
    assert "row 11: 'soon'" in message
    assert "row 12: 'many'" in message


def test_after_a_decrease_a_register_starts_anew_so_that_no_total_is_wrong():
    imported = load("registers", "registers_bad.csv", drop_bad=True)
    assert rows(imported) == [
        ("a", "2024-04-01", "2024-05-01", 70.0),
        ("b", "2024-01-01", "2024-03-01", 20.0),  # the two reads in between disagree
    ]
    assert imported.findings.set_aside_rows.tolist() == [2, 3, 4, 8, 9, 11, 12]


def test_meters_that_run_backwards_keep_their_negative_differences():
    imported = load("registers", reads(100, 80, 130), keep_negative=True)
    assert imported.table["total"].to_pylist() == [-20.0, 50.0]
    assert found(imported) == {}


def test_a_rollover_must_be_plausible():
    slow = reads(9_000, 9_010, 9_020, 5)  # 10 in 30 days, then 985
    with pytest.raises(ReadingsError, match="too large for a rollover"):
        load("registers", slow, digits=4)
    imported = load("registers", reads(9_980, 9_990, 15), digits=4)
    assert imported.table["total"].to_pylist() == [10.0, 25.0]
    detail = imported.findings.items[0].details[0]
    assert detail == "'m': 9990 on 2024-01-31 (row 1), then 15 on 2024-03-01 (row 2): used 25"


def test_without_others_a_rollover_may_be_a_tenth_of_the_register():
    assert load("registers", reads(950, 40), digits=3).table["total"].to_pylist() == [90.0]
    with pytest.raises(ReadingsError, match="too large for a rollover"):
        load("registers", reads(500, 40), digits=3)


def test_digits_and_multiplier_may_be_columns():
    usual = reads(95, 3, dials=[2, 2], constant=[40, 40])
    assert load("registers", usual).table["total"].to_pylist() == [8.0 * 40]
    named = reads(95, 3, wheels=[2, 2], ratio=[40, 40])
    imported = load("registers", named, digits="wheels", multiplier="ratio")
    assert imported.table["total"].to_pylist() == [8.0 * 40]
    imported = load("registers", reads(10, 12), multiplier=80)
    assert imported.table["total"].to_pylist() == [160.0]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (reads(1, 2), {"digits": 2.5}, "digits must be whole"),
        (reads(1, 2), {"digits": 0}, "digits must be positive"),
        (reads(1, 2), {"multiplier": [2]}, "a number or the name of a column"),
        (reads(1, 2), {"inclusive": True}, "has no option 'inclusive'"),
        (reads(1, 2), {"columns": {"total": "index"}}, "a key must be one of 'series'"),
        (reads(1, 2), {"multiplier": "ratio"}, "has no column 'ratio'"),
        (reads(1, 200), {"digits": 2}, "fit in the digits of their register"),
        (reads(1, 2, multiplier=[1, -1]), {}, "should hold positive numbers"),
        (reads(1, 2, digits=[5, 5.5]), {}, "whole numbers of digits"),
        (reads(1, float("inf")), {}, "infinite number"),
        (reads(1, None), {}, "without a value in column 'index'"),
        ({"meter": ["a"], "account": ["b"], "date": ["2024-01-01"], "index": [1]}, {},
         "2 columns that could hold the series: 'meter', 'account'"),
        ({"date": ["2024-01-01"], "index": [1]}, {}, "name='home'"),
    ],
)  # fmt: skip
def test_options_and_tables_that_make_no_sense(table, options, message):
    with pytest.raises((ParameterError, ReadingsError, TableError), match=message):
        load("registers", table, **options)


def test_a_changed_constant_starts_anew():
    imported = load("registers", reads(10, 20, 20, 25, multiplier=[1, 1, 40, 40]))
    assert imported.table["total"].to_pylist() == [10.0, 200.0]
    assert "meter-change" in found(imported)


def test_reads_without_a_serial_number_are_of_the_meter_before():
    table = reads(10, 20, 3, 8, serial=["A", None, "B", None])
    assert load("registers", table).table["total"].to_pylist() == [10.0, 5.0]


def test_a_read_given_twice_counts_once_and_an_actual_one_rather_than_an_estimate():
    table = {
        "meter": ["m"] * 3,
        "date": ["2024-01-01", "2024-02-01", "2024-02-01"],
        "index": [1, 5, 5],
        "quality": ["A", "E", "A"],
    }
    imported = load("registers", table)
    assert imported.table["quality"].to_pylist() == ["actual"]
    assert found(imported) == {"merged-duplicates": [1]}


def test_times_to_the_second_survive(tmp_path):
    table = reads(1, 2) | {"date": ["2024-01-01T10:20:30", "2024-02-01T08:00:00"]}
    imported = load("registers", table)
    assert rows(imported)[0][1:3] == ("2024-01-01T10:20:30", "2024-02-01T08:00:00")
    assert imported.recover_options == " --snap nearest"
    assert imported.readings(snap="nearest").total.tolist() == [1.0]


def test_offsets_are_kept_or_named():
    table = reads(1, 2) | {"date": ["2024-01-01T00:00+01:00", "2024-06-01T00:00+02:00"]}
    with pytest.raises(ReadingsError, match=r"differing offsets.*tz='Europe/Paris'"):
        load("registers", table)
    imported = load("registers", table, tz="Europe/Paris")
    assert imported.table["end"].to_pylist()[0].isoformat() == "2024-06-01T00:00:00+02:00"
    assert imported.recover_options == " --tz Europe/Paris"
    mixed = reads(1, 2) | {"date": ["2024-01-01T00:00+01:00", "2024-06-01T00:00"]}
    with pytest.raises(ReadingsError, match="write all of them with their offset"):
        load("registers", mixed, tz="Europe/Paris")


def test_a_changed_unit_starts_anew():
    table = reads(1000, 2000, 2.0, 3.5, unit=["kWh", "kWh", "MWh", "MWh"])
    assert load("registers", table, to="kWh").table["total"].to_pylist() == [1000.0, 1500.0]


def test_local_midnights_need_no_snapping():
    table = reads(1, 2) | {"date": ["2024-01-01T06:30Z", "2024-02-01T06:00Z"]}
    assert load("registers", table).recover_options == " --tz UTC --snap nearest"


def test_columns_of_strange_kinds():
    with pytest.raises(TableError, match=r"cannot be (understood|converted)"):
        load("registers", reads(1, 2) | {"meter": [{"a": 1}, {"a": 2}]})
