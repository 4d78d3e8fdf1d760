"""New readings refresh the series they touch, and say what moved."""

import subprocess
import sys
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pytest

import unsum
from unsum.errors import ParameterError, ReadingsError
from unsum.experiments.town import simulate_town
from unsum.tables.write import write_table

CUT = date(2023, 7, 10)


@pytest.fixture(scope="module")
def bills():
    town = simulate_town(60, n_days=240)
    readings = unsum.Readings.from_frame(town.bills, drop_bad=True)
    return readings.to_arrow()


def split(bills, quality=True):
    """What was known at a date, and what came later for every third series."""
    late = pc.greater(bills["end"], pa.scalar(CUT))
    old, news = bills.filter(pc.invert(late)), bills.filter(late)
    some = pc.match_substring_regex(news["series"], "[147]$")
    news = news.filter(some)
    return (old, news) if quality else (old.drop("quality"), news.drop("quality"))


def old_recovery(old, method, **settings):
    readings = unsum.Readings.from_frame(
        old, range_start=date(2023, 1, 1), range_end=date(2023, 9, 1)
    )
    return unsum.recover(readings, method, **settings)


METHODS = [
    ("even", {}), ("denton", {}), ("nmf", {"rank": 3, "max_iter": 10}),
    ("nmf-ar", {"rank": 3, "max_iter": 5}), ("panel", {"interval": 0.9}), ("auto", {}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_touched_series_meet_all_readings_and_others_keep_their_bits(bills, method, settings):
    old, news = split(bills)
    recovery = old_recovery(old, method, **settings)
    done = recovery.update(news)
    updated = done.recovery
    names = recovery.readings.names.to_pylist()
    touched = set(done.touched.to_pylist())
    assert 0 < len(touched) < len(names)
    untouched = [n for n, name in enumerate(names) if name not in touched]
    assert np.array_equal(updated.values[untouched], recovery.values[untouched])
    expected = unsum.Readings.from_frame(
        pa.concat_tables([old, news]), range_start=date(2023, 1, 1), range_end=date(2023, 9, 1)
    )
    assert updated.readings.fingerprint() == expected.fingerprint()
    again = recovery.apply(expected, interval=settings.get("interval"))
    places = [n for n, name in enumerate(names) if name in touched]
    assert np.array_equal(updated.values[places], again.values[places])
    if "interval" in settings:
        known = replace(again.uncertainty, missed=updated.uncertainty.missed)  # a model has none
        again = replace(again, uncertainty=known)
        ours, theirs = next(updated.blocks()).bounds, next(again.blocks()).bounds
        assert np.array_equal(ours.upper[places], theirs.upper[places])


def test_how_far_series_were_missed_is_not_forgotten(bills):
    old, news = split(bills)
    recovery = old_recovery(old, "panel", interval=0.9)
    sure = recovery.uncertainty
    sure = replace(sure, missed=1.0 + np.arange(len(sure.missed)))
    updated = replace(recovery, uncertainty=sure).update(news).recovery
    assert updated.readings.names.equals(recovery.readings.names)
    assert np.array_equal(updated.uncertainty.missed, sure.missed)


def test_revisions_tell_what_moved_and_why(bills):
    old, news = split(bills)
    recovery = old_recovery(old, "panel")
    done = recovery.update(news)
    table = done.revisions()
    assert set(table["series"].to_pylist()) <= set(done.touched.to_pylist())
    name = table["series"][0].as_py()
    before = recovery.totals("MS", backend="pyarrow")
    after = done.recovery.totals("MS", backend="pyarrow")

    def months(totals):
        own = totals.filter(pc.equal(totals["series"], name))
        return dict(zip(own["start"].to_pylist(), own["total"].to_pylist(), strict=True))

    then, now = months(before), months(after)
    told = table.filter(pc.equal(table["series"], name)).to_pylist()
    moved = {month for month in now if abs(now[month] - then[month]) > 1e-9 * now[month]}
    assert {row["start"] for row in told} == moved
    for row in told:
        assert row["before"] == pytest.approx(then[row["start"]])
        assert row["change"] == pytest.approx(now[row["start"]] - then[row["start"]])
        assert row["reading_end"] > CUT
    august = next(row for row in told if row["start"] == date(2023, 8, 1))
    assert august["reading_start"] < date(2023, 9, 1)


def test_new_series_join_and_estimates_give_way():
    old = {
        "series": ["a", "a", "b"],
        "start": [0, 5, 0], "end": [5, 10, 10], "total": [5.0, 7.0, 20.0],
        "quality": ["actual", "estimated", "actual"],
    }  # fmt: skip
    news = {
        "series": ["a", "aa"],
        "start": [5, 0], "end": [9, 10], "total": [3.0, 4.0], "quality": ["actual"] * 2,
    }  # fmt: skip
    recovery = unsum.recover(unsum.Readings.from_frame(old, freq="period"), "denton")
    done = recovery.update(news)
    assert done.recovery.readings.names.to_pylist() == ["a", "aa", "b"]
    assert done.superseded["total"].to_pylist() == [7.0]
    assert done.recovery.values[0, 5:9].sum() == pytest.approx(3.0)
    assert done.recovery.values[1].sum() == pytest.approx(4.0)
    table = done.revisions()
    assert table["series"].to_pylist() == ["a", "aa"]
    assert table["before"].to_pylist()[1] is None


def test_what_contradicts_a_known_reading_is_refused_or_replaces_it():
    old = {"series": ["a", "a"], "start": [0, 5], "end": [5, 10], "total": [5.0, 7.0]}
    recovery = unsum.recover(unsum.Readings.from_frame(old, freq="period"), "even")
    news = {"series": ["a"], "start": [3], "end": [7], "total": [9.0]}
    with pytest.raises(ReadingsError, match="9 from 3 to 7, but 5 from 0 to 5 is known"):
        recovery.update(news)
    done = recovery.update(news, replace=True)
    assert done.superseded["total"].to_pylist() == [5.0, 7.0]
    with pytest.raises(ReadingsError):
        recovery.update({"series": ["a"], "start": [5], "end": [10], "total": [8.0]})
    again = recovery.update({"series": ["a"], "start": [5], "end": [10], "total": [7.0]})
    assert np.array_equal(again.recovery.values, recovery.values)
    assert len(again.superseded) == 0


def test_learning_again_reaches_beyond_the_old_dates(bills):
    old, news = split(bills, quality=False)
    readings = unsum.Readings.from_frame(old)
    recovery = unsum.recover(readings, "nmf", rank=3, max_iter=5)
    with pytest.raises(ParameterError, match="learn again"):
        recovery.update(news)
    done = recovery.update(news, learn=True)
    assert done.recovery.readings.n_periods > readings.n_periods
    assert done.recovery.readings.n_readings == len(old) + len(news)
    assert done.revisions()["before"].null_count > 0
    inside = done.recovery.update(news, learn=True)  # all of it known: from where it ended
    assert inside.recovery.settings["start"] == "given"
    first = inside.recovery.history["objective"][0]
    assert first < done.recovery.history["objective"][0]


def test_the_command_writes_the_recovery_the_revisions_and_the_values(bills, tmp_path):
    old, news = split(bills)
    old_recovery(old, "even").save(tmp_path / "bills.unsum")
    write_table(news, tmp_path / "news.csv")
    done = subprocess.run(
        [
            sys.executable, "-m", "unsum", "update", "bills.unsum", "news.csv", "-o",
            "bills.unsum", "--revisions", "moved.csv", "--values", "fine.parquet",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    moved = pv.read_csv(tmp_path / "moved.csv")
    assert moved.column_names[:6] == ["series", "start", "end", "before", "after", "change"]
    assert unsum.load(tmp_path / "bills.unsum").readings.n_readings == len(old) + len(news)
    assert (tmp_path / "fine.parquet").exists()


def moving():
    """Three series, of which one moves out; names are whole numbers."""
    rows = [(n, t, t + 6, 6.0 + n, 12 if n == 1 else 30) for n in (1, 2, 10) for t in (0, 6)]
    rows += [(n, t, t + 6, 6.0 + n, 30) for n in (2, 10) for t in (12, 18)]
    names = ("series", "start", "end", "total", "active_to")
    table = dict(zip(names, zip(*rows, strict=True), strict=True))
    return unsum.Readings.from_frame(
        {name: list(values) for name, values in table.items()}, freq="period", range_end=30
    )


def test_active_times_outlive_updates():
    recovery = unsum.recover(moving(), "even")
    once = recovery.update({"series": [2], "start": [24], "end": [30], "total": [9.0]}).recovery
    twice = once.update({"series": [10], "start": [24], "end": [30], "total": [9.0]}).recovery
    assert twice.readings.active.tolist() == once.readings.active.tolist()
    assert twice.values[0, 12:].sum() == 0
    with pytest.raises(ParameterError, match="beyond the active time"):
        twice.update({"series": [1], "start": [13], "end": [15], "total": [1.0]})


def test_names_of_another_kind_are_understood_or_refused():
    recovery = unsum.recover(moving(), "even")
    news = {"series": ["10", "2"], "start": [24, 24], "end": [30, 30], "total": [5.0, 7.0]}
    done = recovery.update(news)
    assert done.recovery.readings.names.to_pylist() == [1, 2, 10]
    assert done.recovery.values[1, 24:].sum() == pytest.approx(7.0)
    assert done.recovery.values[2, 24:].sum() == pytest.approx(5.0)
    with pytest.raises(ParameterError, match="'x' is not such a name"):
        recovery.update({"series": ["x"], "start": [24], "end": [30], "total": [5.0]})


def test_what_hides_and_what_was_learned_from_stays_known():
    rng = np.random.default_rng(0)
    weeks = unsum.aggregate(rng.gamma(5.0, size=(6, 56)), unsum.Periodic(7, offset=0))
    recovery = unsum.recover(weeks, "nmf", rank=2)
    assert recovery.hides_a_rhythm
    many = {
        "series": list(range(100, 160)),
        "start": [0] * 60,
        "end": [7] * 60,
        "total": [1.0] * 60,
    }
    updated = recovery.update(many).recovery
    assert updated.hides_a_rhythm
    assert updated.model.learned_from["n_series"] == 6
