"""Overlapping readings taken as a system: what follows from them, and where they conflict."""

import numpy as np
import pandas as pd
import pytest

from unsum.errors import ReadingsError
from unsum.methods import METHODS
from unsum.readings import Readings
from unsum.recovering import recover

every_method = pytest.mark.parametrize("method", sorted(METHODS))


def frame(*rows, quality=None):
    table = pd.DataFrame(rows, columns=["series", "start", "end", "total"])
    return table if quality is None else table.assign(quality=quality)


def read(table, **options):
    return Readings.from_frame(table, freq="period", overlaps="solve", **options)


def test_a_bill_of_two_months_and_one_of_them_give_the_other():
    readings = read(frame(("a", 0, 60, 100.0), ("a", 31, 60, 40.0), ("a", 60, 90, 30.0)))
    assert readings.to_frame()["total"].tolist() == [60.0, 40.0, 30.0]
    assert readings.further is None
    assert readings.findings.codes == ("solved-overlaps",)
    assert readings.findings.rows_used == 3


@every_method
def test_readings_that_interleave_are_all_met(method):
    table = frame(
        ("a", 0, 20, 100.0), ("a", 10, 30, 90.0), ("a", 25, 40, 20.0), ("b", 0, 40, 7.0),
        ("b", 5, 9, 3.0), ("c", 0, 13, 5.0),
    )  # fmt: skip
    recovery = recover(read(table), method)
    names = recovery.readings.names.to_pylist()
    for series, start, end, total in table.itertuples(index=False):
        found = recovery.values[names.index(series), start:end].sum()
        assert found == pytest.approx(total, rel=1e-9)
    assert recovery.values.min() >= 0
    assert not [finding for finding in recovery.findings if finding.code == "total-gap"]


@pytest.mark.parametrize("seed", range(5))
def test_random_readings_of_random_series_are_all_met(seed):
    rng = np.random.default_rng(seed)
    truth = rng.gamma(0.5, 1.0, (6, 50)) * (rng.random((6, 50)) < 0.8)
    rows = []
    for n in range(6):
        for _ in range(int(rng.integers(2, 9))):
            low, high = np.sort(rng.choice(51, 2, replace=False))
            rows.append((n, low, high, truth[n, low:high].sum()))
    table = frame(*rows).drop_duplicates(["series", "start", "end"])
    readings = read(table, range_start=0, range_end=50)
    for method in ("even", "panel"):
        values = recover(readings, method).values
        assert values.min() >= 0
        for n, start, end, total in table.itertuples(index=False):
            place = readings.names.to_pylist().index(n)
            assert values[place, start:end].sum() == pytest.approx(total, rel=1e-9, abs=1e-11)


def test_conflicts_name_the_rows_the_periods_and_the_amount():
    table = frame(("a", 0, 60, 100.0), ("a", 31, 60, 140.0), ("a", 60, 90, 30.0))
    with pytest.raises(ReadingsError) as caught:
        read(table)
    assert "series 'a', 0 to 60: row 0 (0 to 60, total 100), row 1 (31 to 60, total 140) miss" in (
        str(caught.value)
    )
    assert "by 40" in str(caught.value)
    kept = read(table, drop_bad=True)
    assert kept.to_frame()["total"].tolist() == [140.0, 30.0]
    assert kept.findings.set_aside_rows.tolist() == [0]
    assert kept.findings.set_aside_codes == ["conflicting-readings"]


def test_estimates_that_overlap_with_actual_readings_inform_but_do_not_bind():
    rows = [("a", 0, 60, 100.0), ("a", 0, 30, 70.0), ("a", 60, 90, 40.0)]
    quality = ["actual", "estimated", "actual"]
    others = [
        (f"s{n}", 30 * k, 30 * k + 30, 30.0 + 40 * ((n + k) % 2))
        for n in range(9)
        for k in range(3)
    ]
    table = frame(*rows, *others, quality=quality + ["actual"] * 27)
    readings = read(table)
    assert readings.further.estimated.tolist() == [True]
    firm = recover(readings, "even").values[0]
    assert firm[:30].sum() == pytest.approx(50.0)
    soft = recover(readings, "panel").values[0]
    assert 51.0 < soft[:30].sum() < 70.0
    assert soft[:60].sum() == pytest.approx(100.0)


@pytest.mark.parametrize("ratio", [1e6, 1e15])
def test_series_of_any_size_are_met_side_by_side(ratio):
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.5, 2, (2, 40)) * np.array([[1.0], [ratio]])
    spans = ((0, 10), (5, 17), (12, 30), (20, 40))
    rows = [(n, a, b, truth[n, a:b].sum()) for n in range(2) for a, b in spans]
    recovery = recover(read(frame(*rows)), "denton")
    for n, start, end, total in rows:
        assert recovery.values[n, start:end].sum() == pytest.approx(total, rel=1e-9)
    assert not [finding for finding in recovery.findings if finding.code == "total-gap"]


def test_readings_that_interleave_count_as_read():
    table = frame(("a", 0, 15, 9.0), ("a", 10, 20, 8.0), ("a", 20, 38, 9.0), ("a", 30, 40, 7.0))
    readings = read(table)
    assert readings.further is not None
    assert readings.covered().all()
    assert "gap" not in readings.findings.codes
    recovery = recover(readings, "even")
    assert recovery.tails == 0
    assert recovery.panel().covered.all()
    assert readings[0:1].covered().all()
    again = read(readings.to_frame())
    assert np.array_equal(again.to_frame()["total"], readings.to_frame()["total"])
    assert len(readings.to_frame()) == 4
