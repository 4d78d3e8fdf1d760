"""Models that live on: other series on what was learned, and files without anyone's data."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unsum
from tests.problems import random_readings
from tests.test_traits import three_kinds
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.errors import ParameterError, TableError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.town import simulate_town
from unsum.methods import METHODS
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.tables.write import write_table

every_method = pytest.mark.parametrize("method", sorted(METHODS))


def assert_exact(readings, values):
    assert values.min() >= 0
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    series = readings.series_of_readings()
    found = sums[series, readings.stop] - sums[series, readings.start]
    np.testing.assert_allclose(found, readings.total, rtol=1e-9, atol=1e-9 * values.max())


@every_method
def test_new_series_are_recovered_exactly_and_each_on_its_own(method, tmp_path):
    everyone = random_readings(1, n_series=40)
    known, others = everyone[:30], everyone[30:]
    model = recover(known, method).model
    together = model.apply(others)
    assert_exact(others, together.values)
    for n in (0, 7):
        alone = model.apply(others[n : n + 1]).values
        np.testing.assert_allclose(alone[0], together.values[n], rtol=1e-9, atol=1e-12)
    model.save(tmp_path / "model.unsum")
    again = unsum.load(tmp_path / "model.unsum")
    assert np.array_equal(again.apply(others).values, together.values)


@pytest.mark.parametrize("method", ["panel", "auto", "nmf"])
def test_new_series_are_as_good_as_if_they_had_been_there(method):
    town = simulate_town(200, seed=3, n_days=240)
    readings = aggregate(town.truth, AtRandom(20, seed=1))
    places = np.arange(readings.n_series)
    known, others = readings.take(places[places % 2 == 0]), readings.take(places[places % 2 == 1])
    joint = recover(readings, method).values[places % 2 == 1]
    errors = [
        measure_recovery(town.truth, others, values).normalised_covered
        for values in (joint, recover(known, method).apply(others).values)
    ]
    assert errors[1] < 1.05 * errors[0]


def test_the_panel_gives_known_series_the_values_it_had():
    readings = random_readings(4, n_series=25)
    recovery = recover(readings, interval=0.9)
    again = recovery.apply(readings, interval=0.9)
    assert np.array_equal(again.values, recovery.values)
    usual = np.full(25, recovery.uncertainty.calibration.missed)  # a model knows no single series
    alike = replace(recovery, uncertainty=replace(recovery.uncertainty, missed=usual))
    assert again.to_arrow().equals(alike.to_arrow())


def test_long_grids_are_served_too():
    readings = random_readings(5, n_series=30, n_periods=2400)
    recovery = recover(readings[:24], "panel", steps=2)
    others = readings[24:]
    assert_exact(others, recovery.apply(others).values)


def test_one_bill_gets_the_shape_of_the_others():
    town = simulate_town(100, n_days=240)
    model = recover(aggregate(town.truth, Periodic(15)), interval=0.9).model
    one = Readings.from_arrays(
        [0], [0], [31], [310.0], n_series=1, n_periods=31,
        calendar=replace(model.calendar, edges=model.calendar.edges[:32]),
    )  # fmt: skip
    recovery = model.apply(one, interval=0.9)
    assert recovery.values.shape == (1, 240)
    assert recovery.values[0, :31].sum() == pytest.approx(310.0)
    usual = town.truth.values / town.truth.values.mean(axis=1, keepdims=True)
    assert np.corrcoef(recovery.values[0, 31:], usual.mean(axis=0)[31:])[0, 1] > 0.8
    table = recovery.to_arrow()
    assert (np.asarray(table["lower"]) <= np.asarray(table["value"])).all()


def test_profiles_alone_hold_nothing_of_a_series(tmp_path):
    truth, frame = three_kinds(n_series=40, n_periods=60)
    readings = aggregate(truth, Periodic(10))
    for method, settings in (
        ("nmf-ar", {"rank": 2, "rho": np.linspace(0.1, 0.9, 40)}),
        ("panel", {"traits": frame}),
        ("auto", {}),
    ):
        recover(readings, method, **settings).save(tmp_path / "m.unsum", profiles_only=True)
        with np.load(tmp_path / "m.unsum") as file:
            arrays = {name: file[name] for name in file.files}
        header = bytes(arrays.pop("header"))
        assert b"s001" not in header
        for array in arrays.values():
            assert 40 not in array.shape
            assert readings.n_readings not in array.shape
            assert b"s001" not in array.tobytes()
            for total in readings.total[:5]:
                assert not np.any(array == total)
    model = unsum.load(tmp_path / "m.unsum")
    assert repr(model).startswith("Model(method='panel', 60 periods from 0 to 60, learned from 40")
    with pytest.raises(ParameterError, match="learned from 4 series shows them"):
        recover(readings[:4]).save(tmp_path / "m.unsum", profiles_only=True)


def test_models_with_traits_ask_for_those_of_new_series():
    truth, frame = three_kinds()
    half = frame["series"] < "s060"
    known = Panel.from_values(truth.values[:60], truth.names[:60])
    others = Panel.from_values(truth.values[60:], truth.names[60:])
    model = recover(aggregate(known, Periodic(30)), "panel", traits=frame[half]).model
    readings = aggregate(others, Periodic(30))
    recovery = model.apply(readings, traits=frame[~half])
    with_traits = measure_recovery(truth, readings, recovery.values).normalised_covered
    plain = recover(aggregate(known, Periodic(30)), "panel").apply(readings)
    without = measure_recovery(truth, readings, plain.values).normalised_covered
    assert with_traits < 0.9 * without
    with pytest.raises(ParameterError, match=r"learned with traits \(kind=house, kind=shop, area"):
        model.apply(readings)
    with pytest.raises(ParameterError, match="learned without traits"):
        recover(readings).apply(readings, traits=frame)
    with pytest.raises(TableError, match="has no column 'kind', which the model was learned with"):
        model.apply(readings, traits=frame[["series", "area"]])
    with pytest.raises(TableError, match="'big' among the numbers of 'area'"):
        model.apply(readings, traits=frame.assign(area="big"))


def test_readings_are_placed_on_the_dates_of_the_model(tmp_path):
    town = simulate_town(40, n_days=240)
    model = recover(aggregate(town.truth, Periodic(30))).model
    bill = pd.DataFrame(
        {"series": ["new"], "start": ["2023-01-01"], "end": ["2023-02-01"], "total": [90]}
    )
    recovery = model.apply(bill)
    assert recovery.values.shape == (1, 240)
    assert recovery.values[0, :31].sum() == pytest.approx(90.0)
    part = Readings.from_frame(bill)
    assert np.array_equal(model.apply(part).values, recovery.values)
    with pytest.raises(ParameterError, match="read them with the same freq and tz, within its"):
        model.apply(Readings.from_frame(bill, freq="h"))
    with pytest.raises(ParameterError, match="read them with the same freq and tz, within its"):
        model.apply(Readings.from_frame(bill.assign(start="2019-01-01")))
    with pytest.raises(ParameterError, match="knows no intervals"):
        recover(part, "even").apply(bill, interval=0.9)
    with pytest.raises(unsum.ReadingsError, match="the periods they belong to have no time zone"):
        model.apply(bill.assign(start="2023-01-01T00:00+01:00", end="2023-02-01T00:00+01:00"))


def test_the_command_line_applies_a_model(tmp_path):
    town = simulate_town(60, n_days=240)
    readings = Readings.from_frame(town.bills, drop_bad=True)
    write_table(readings[:50].to_arrow(), tmp_path / "bills.csv")
    new = readings[50:].to_arrow()
    late = new.slice(0, 1).set_column(1, "start", pa.array([town.truth.calendar.labels()[0]]))
    late = late.set_column(2, "end", pa.array(["2031-01-01"]).cast(new["end"].type))
    write_table(pa.concat_tables([new, late.cast(new.schema)]), tmp_path / "new.csv")

    def run(*arguments):
        command = [sys.executable, "-m", "unsum", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    saved = run("recover", "bills.csv", "-o", "d.csv", "--save", "m.unsum", "--profiles-only")
    assert saved.returncode == 0, saved.stderr
    done = run("apply", "m.unsum", "new.csv", "-o", "n.parquet", "--interval", "0.9", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["command"] == "apply"
    assert told["checks"]["verified"]
    assert told["rows_read"] == told["rows_used"] + 1
    assert told["findings"][0]["code"] == "outside-range"
    assert (tmp_path / "n.set-aside.csv").exists()
    refused = run("totals", "m.unsum", "-o", "t.csv")
    assert refused.returncode == 2
    assert "holds profiles only; apply it to readings" in refused.stderr
    refused = run("apply", "bills.csv", "new.csv", "-o", "x.csv")
    assert refused.returncode == 1
    assert "not a saved recovery or model" in refused.stderr


def test_models_keep_the_active_times_of_new_series():
    model = recover(aggregate(simulate_town(20).truth, Periodic(30)), "panel").model
    table = pd.DataFrame(
        {"series": ["n"] * 2, "start": ["2023-01-11", "2023-01-21"],
         "end": ["2023-01-21", "2023-02-10"], "total": [10.0, 30.0],
         "active_from": ["2023-01-11"] * 2, "active_to": ["2023-02-10"] * 2}
    )  # fmt: skip
    values = model.apply(table).values
    assert not values[0, :10].any()
    assert not values[0, 40:].any()
    assert np.array_equal(model.apply(Readings.from_frame(table)).values, values)


def test_what_few_series_share_is_not_given_away(tmp_path):
    truth, frame = three_kinds(n_series=30, n_periods=60)
    readings = aggregate(truth, Periodic(10))
    with pytest.raises(ParameterError, match="learned from 4 series shows them"):
        recover(readings[:4], "nmf").model.save(tmp_path / "m.unsum")
    owners = frame.assign(owner=[f"owner {n // 10}" for n in range(30)])
    owners.loc[0, "owner"] = "Ada"
    recovery = recover(readings, "panel", traits=owners)
    with pytest.raises(ParameterError, match="trait 'owner=Ada' has fewer than 5 series"):
        recovery.save(tmp_path / "m.unsum", profiles_only=True)
    applied = recover(readings).apply(readings[:2])
    assert applied.model.learned_from["n_series"] == 30


def test_models_that_groups_taught_serve_new_series():
    town = simulate_town(60, seed=3, n_days=240).truth
    readings = aggregate(town, Periodic(30))
    names = town.names.to_pylist()
    days = town.calendar.label_edges(slice(None)).to_pylist()
    loads = pd.DataFrame({"group": "all", "start": days[:-1], "end": days[1:]})
    loads["total"] = town.values.sum(axis=0)
    recovery = recover(readings, "auto", groups={"all": names}, group_totals=loads)
    assert "traits" not in recovery.candidates[0]["candidate"]
    assert recovery.settings["traits"] is None
    again = recovery.apply(readings[:5])
    assert_exact(readings[:5], again.values)


def test_kinds_that_a_model_does_not_know_are_refused():
    truth, frame = three_kinds(n_series=30, n_periods=60)
    readings = aggregate(truth, Periodic(10))
    model = recover(readings, "panel", traits=frame).model
    with pytest.raises(TableError, match="has 'castle' for 'kind'; the model was learned with"):
        model.apply(readings, traits=frame.assign(kind="castle"))


def test_series_where_profiles_are_near_zero_do_not_explode():
    rng = np.random.default_rng(0)
    shape = np.concatenate([np.ones(20), np.full(10, 1e-9), np.ones(20)])
    truth = Panel.from_values(shape * rng.gamma(9, 1 / 9, (20, 50)))
    new = Readings.from_arrays([0], [20], [30], [5.0], n_series=1, n_periods=50)
    for method in ("nmf", "nmf-ar", "panel"):
        values = recover(aggregate(truth, Periodic(10, offset=0)), method).apply(new).values
        assert values.max() < 100
