"""Totals of groups of series: met where they can be, and what they teach."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unsum
from tests.problems import random_readings
from tests.test_intervals import simulate
from unsum.aggregation import Periodic, aggregate
from unsum.errors import ParameterError, TableError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.town import simulate_town
from unsum.methods import METHODS
from unsum.panel import Panel, sum_between
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.tables.write import write_table

every_method = pytest.mark.parametrize("method", sorted(METHODS))


def loads_of(truth, groups, cuts):
    """The table of totals of groups between cuts of a panel."""
    names = truth.names.to_pylist()
    rows = []
    for group, members in groups.items():
        values = truth.values[[names.index(member) for member in members]].sum(axis=0)
        sums = sum_between(values, cuts)
        edges = truth.calendar.label_edges(cuts).to_pylist()
        rows += zip([group] * len(sums), edges[:-1], edges[1:], sums, strict=True)
    return pd.DataFrame(rows, columns=["group", "start", "end", "total"])


def small_case(seed=0, n_series=8, n_periods=30):
    """A panel, its readings, and groups that are nested and overlap."""
    rng = np.random.default_rng(seed)
    values = rng.gamma(0.8, 1.0, (n_series, n_periods)) * rng.lognormal(0, 1, (n_series, 1))
    truth = Panel.from_values(values)
    groups = {"all": range(8), "low": range(4), "odd": range(1, 8, 2)}
    return truth, aggregate(truth, Periodic(7)), groups


def assert_met(recovery, table):
    gaps = recovery.gaps("pyarrow")
    assert np.all(np.abs(gaps["gap"]) <= 1e-9 * np.asarray(gaps["total"]))
    np.testing.assert_allclose(gaps["total"], table["total"])


@every_method
def test_totals_of_nested_and_overlapping_groups_are_met(method):
    truth, readings, groups = small_case()
    loads = loads_of(truth, groups, np.arange(0, 31, 2))
    recovery = recover(readings, method, groups=groups, group_totals=loads)
    assert_met(recovery, loads)
    for group, members in groups.items():
        own = loads[loads["group"] == group]
        found = sum_between(recovery.values[list(members)].sum(axis=0), np.arange(0, 31, 2))
        np.testing.assert_allclose(found, own["total"], rtol=1e-9)
    assert recovery.values.min() >= 0
    sums = np.concatenate([np.zeros((8, 1)), np.cumsum(recovery.values, axis=1)], axis=1)
    series = readings.series_of_readings()
    found = sums[series, readings.stop] - sums[series, readings.start]
    np.testing.assert_allclose(found, readings.total, rtol=1e-9)


@pytest.mark.parametrize(("method", "factor"), [("panel", 0.9), ("auto", 0.9), ("nmf", 1.0)])
def test_daily_loads_of_groups_lower_the_error(method, factor):
    truth = simulate(n_series=60)
    readings = aggregate(truth, Periodic(16))
    names = truth.names.to_pylist()
    groups = {f"feeder {k}": names[k::6] for k in range(6)}
    loads = loads_of(truth, groups, np.arange(truth.n_periods + 1))
    errors = [
        measure_recovery(truth, each, recover(each, method).values).normalised_covered
        for each in (readings, readings.with_groups(groups, loads))
    ]
    assert errors[1] < factor * errors[0]


def test_totals_that_contradict_readings_are_met_in_least_squares():
    truth, readings, groups = small_case()
    cuts = np.arange(0, 31, 7)  # the periods of every series' readings, if they begin together
    readings = aggregate(truth, Periodic(7, offset=0))
    loads = loads_of(truth, {"all": groups["all"]}, cuts)
    loads["total"] *= np.array([1.03, 1.0, 0.98, 1.0])
    recovery = recover(readings, "even", groups=groups, group_totals=loads)
    gaps = recovery.gaps("pandas")
    true = loads["total"] / np.array([1.03, 1.0, 0.98, 1.0])
    np.testing.assert_allclose(gaps["gap"], loads["total"] - true, rtol=1e-6, atol=1e-9)
    (finding,) = [each for each in recovery.findings if each.code == "total-gap"]
    assert finding.sentence.startswith("2 of 4 totals beyond single series cannot be met")
    assert finding.details[0].startswith("group 'all', 0 to 7: total ")


def test_members_without_readings_get_what_the_others_leave():
    truth, readings, groups = small_case()
    known = readings.take(np.array([0, 1, 2, 4, 5, 6, 7]))
    loads = loads_of(truth, groups, np.arange(31))
    assert known.with_groups(groups, loads).findings.codes[-1] == "no-own-reading"
    for method in ("even", "nmf", "panel"):
        recovery = recover(known, method, groups=groups, group_totals=loads)
        assert recovery.readings.names.to_pylist() == list(range(8))
        assert_met(recovery, loads)
        assert not recovery.readings.covered()[3].any()
        assert recovery.values[3].sum() == pytest.approx(truth.values[3].sum(), rel=0.35)
        assert recovery.tails == 0 or len(recovery.unbilled(backend="pyarrow")) == recovery.tails
        assert len(recovery.to_arrow()) == 8 * 30
    with pytest.raises(ParameterError, match="some series have no readings of their own"):
        recover(known, "auto", groups=groups, group_totals=loads, interval=0.9)


def test_zero_loads_give_zeros():
    truth, _, _ = small_case()
    values = truth.values.copy()
    values[:, 10:13] = 0.0
    truth = Panel.from_values(values)
    readings = aggregate(truth, Periodic(7))
    loads = loads_of(truth, {"all": range(8)}, np.arange(31))
    recovery = recover(readings, "even", groups={"all": range(8)}, group_totals=loads)
    assert not recovery.values[:, 10:13].any()
    assert_met(recovery, loads)


def test_a_saved_recovery_still_meets_its_groups(tmp_path):
    truth, readings, groups = small_case()
    loads = loads_of(truth, groups, np.arange(0, 31, 5))
    recovery = recover(readings, "panel", groups=groups, group_totals=loads, interval=0.9)
    recovery.save(tmp_path / "m.unsum")
    again = unsum.load(tmp_path / "m.unsum")
    assert np.array_equal(again.values, recovery.values)
    assert again.to_arrow().equals(recovery.to_arrow())
    assert again.readings.fingerprint() == recovery.readings.fingerprint()
    assert again.readings.fingerprint() != readings.fingerprint()
    assert len(again.apply(readings[:3]).values) == 3


def test_what_is_wrong_with_groups_is_said():
    truth, readings, groups = small_case()
    loads = loads_of(truth, groups, np.arange(0, 31, 5))
    with pytest.raises(TableError, match="group 'odd' has totals but no members"):
        readings.with_groups({"all": range(8), "low": range(4)}, loads)
    with pytest.raises(TableError, match="has no column 'group'"):
        readings.with_groups(pd.DataFrame({"series": [0], "feeder": ["a"]}), loads)
    with pytest.raises(TableError, match="series '0' and group None; fill in both"):
        readings.with_groups(pd.DataFrame({"series": ["0"], "group": [None]}), loads)
    with pytest.raises(ParameterError, match="the member 'x' of a group is not among the series"):
        readings.with_groups(groups | {"low": ["x"]}, loads)
    with pytest.raises(ParameterError, match="groups and group_totals go together"):
        recover(readings, groups=groups)
    with pytest.raises(unsum.ReadingsError, match="overlap"):
        readings.with_groups(groups, pd.concat([loads, loads.assign(end=loads["end"] + 1)[:1]]))


def test_the_command_line_takes_loads_of_groups(tmp_path):
    town = simulate_town(30, seed=4)
    readings = Readings.from_frame(town.bills, drop_bad=True)
    write_table(readings.to_arrow(), tmp_path / "bills.csv")
    names = readings.names.to_pylist()
    pairs = {"series": names, "group": [f"f{n % 3}" for n in range(len(names))]}
    write_table(pa.table(pairs), tmp_path / "feeders.csv")
    groups = {f"f{k}": names[k::3] for k in range(3)}
    loads = loads_of(town.truth, groups, np.arange(0, 366, 1))
    loads["total"] *= 1.02  # losses
    far = pd.DataFrame({"group": ["f0"], "start": ["2030-01-01"], "end": ["2030-01-02"]})
    loads = pd.concat([loads, far.assign(total=5.0)])
    loads.to_csv(tmp_path / "loads.csv", index=False)
    command = [sys.executable, "-m", "unsum", "recover", "bills.csv", "-o", "daily.parquet"]
    command += ["--groups", "feeders.csv", "--group-totals", "loads.csv", "--method", "panel"]
    done = subprocess.run(
        [*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["group_totals"]
    assert told["rows_read"] == told["rows_used"] + told["rows_set_aside"] == 3 * 365 + 1
    assert told["rows_set_aside"] == 1
    assert (tmp_path / "daily.group-totals.set-aside.csv").exists()
    assert told["n_totals"] == 3 * 365
    assert {"label", "total", "recovered", "gap"} == set(told["gaps"][0])
    lone = subprocess.run(command[:-4], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert lone.returncode == 2
    assert "--groups and --group-totals go together" in lone.stderr


def test_loads_of_one_series_are_like_readings_of_it():
    readings = random_readings(5, n_series=6)
    truth = recover(readings, "denton")
    panel = Panel.from_values(truth.values)
    loads = loads_of(panel, {"one": [2]}, np.arange(0, 41))
    recovery = recover(readings, "even", groups={"one": [2]}, group_totals=loads)
    np.testing.assert_allclose(recovery.values[2], truth.values[2], atol=1e-8 * truth.values.max())


def test_permuting_the_series_permutes_the_values():
    truth, readings, groups = small_case(n_periods=28)
    loads = loads_of(truth, groups, np.arange(29))
    order = np.random.default_rng(0).permutation(8)
    moved = Readings.from_arrays(
        order[readings.series_of_readings()], readings.start, readings.stop, readings.total,
        n_series=8, n_periods=28,
    )  # fmt: skip
    renamed = {group: [int(order[n]) for n in members] for group, members in groups.items()}
    for method in ("denton", "panel"):
        values = recover(readings, method, groups=groups, group_totals=loads).values
        found = recover(moved, method, groups=renamed, group_totals=loads).values[order]
        np.testing.assert_allclose(found, values, atol=1e-8 * values.max())


def test_rows_of_the_totals_that_are_not_used_are_told_and_options_reach_them():
    truth, readings, _ = small_case()
    loads = loads_of(truth, {"all": range(8)}, np.arange(0, 31, 10))
    loads.loc[1, "total"] = -1.0
    found = readings.with_groups({"all": range(8)}, loads).findings
    (told,) = [each for each in found if each.code == "negative-total"]
    assert told.sentence.startswith("totals of groups: 1 row with a negative total")
    inclusive = loads.assign(end=loads["end"] - 1, total=1.0)
    known = readings.with_groups({"all": range(8)}, inclusive, end="inclusive")
    assert known.further.stop.tolist() == [10, 20, 30]


def test_a_zero_load_over_billed_series_is_a_gap_and_no_warning():
    _, readings, _ = small_case()
    loads = pd.DataFrame({"group": ["one"], "start": [0], "end": [30], "total": [0.0]})
    recovery = recover(readings, "even", groups={"one": [0]}, group_totals=loads)
    (finding,) = [each for each in recovery.findings if each.code == "total-gap"]
    assert "inf" not in finding.sentence


def test_groups_go_with_traits_and_with_a_rho_for_each_series():
    truth, readings, groups = small_case()
    loads = loads_of(truth, groups, np.arange(31))
    traits = pd.DataFrame({"series": range(8), "area": np.arange(8.0)})
    both = {"groups": groups, "group_totals": loads}
    assert_met(recover(readings, "panel", traits=traits, **both), loads)
    assert_met(recover(readings, "nmf-ar", rank=2, rho=np.full(8, 0.5), **both), loads)


def test_members_without_readings_have_no_intervals_later_either():
    truth, readings, groups = small_case()
    known = readings.take(np.arange(7))
    loads = loads_of(truth, groups, np.arange(31))
    recovery = recover(known, "auto", groups=groups, group_totals=loads)
    with pytest.raises(ParameterError, match="knows no intervals"):
        recovery.with_interval(0.9)
    with pytest.raises(ParameterError, match="no model to tell sources by"):
        recovery.diagnosis()
    with pytest.raises(ParameterError, match="some series have no readings of their own"):
        recover(readings, "auto").apply(known.with_groups(groups, loads), interval=0.9)
