"""What is known about series: tables of traits, what they add, and series without readings."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unsum
from unsum.aggregation import Periodic, aggregate
from unsum.errors import ParameterError, TableError
from unsum.experiments.compare import measure_recovery
from unsum.methods.panel import PanelModel
from unsum.panel import Panel
from unsum.recovering import recover
from unsum.traits import make_traits


def three_kinds(seed=0, n_series=120, n_periods=120):
    """Series of three shapes, as large as their area; and a table of kinds and areas."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n_series)
    waves = ((40, 0), (17, 1), (60, 2))
    time = np.arange(n_periods)
    shapes = 1 + 0.5 * np.array([np.sin(time * 2 * np.pi / p + q) for p, q in waves])
    area = rng.lognormal(0, 0.7, n_series)
    values = np.maximum(shapes[kind] + 0.1 * rng.normal(0, 1, (n_series, n_periods)), 0.02)
    values *= (area * rng.lognormal(0, 0.15, n_series))[:, None]
    names = [f"s{n:03}" for n in range(n_series)]
    frame = pd.DataFrame(
        {"series": names, "kind": np.array(["flat", "house", "shop"])[kind], "area": np.log(area)}
    )
    return Panel.from_values(values, names), frame


@pytest.fixture(scope="module")
def case():
    truth, frame = three_kinds()
    return truth, frame, aggregate(truth, Periodic(30))


def error_of(case, **settings):
    truth, _, readings = case
    recovery = recover(readings, **settings)
    return measure_recovery(truth, readings, recovery.values).normalised_covered, recovery


def test_kinds_help_and_wrong_ones_do_no_harm(case):
    _, frame, _ = case
    without, _ = error_of(case)
    with_traits, recovery = error_of(case, traits=frame)
    assert with_traits < 0.95 * without
    assert "traits" in recovery.candidates[0]["candidate"]
    assert recovery.settings["traits"] == ["kind=house", "kind=shop", "area"]
    shuffled = frame.assign(kind=np.random.default_rng(1).permutation(frame["kind"]))
    assert error_of(case, traits=shuffled)[0] < 1.05 * without


def test_series_without_readings_are_predicted(case, tmp_path):
    truth, frame, readings = case
    some = np.flatnonzero(np.arange(readings.n_series) % 6 > 0)
    recovery = recover(readings.take(some), traits=frame, interval=0.9)
    table = recovery.predict(backend="pyarrow")
    assert table.column_names == ["series", "time", "value", "covered", "lower", "upper"]
    names = truth.names.take(pa.array(np.arange(0, 120, 6))).to_pylist()
    assert table["series"].unique().to_pylist() == names
    assert not any(table["covered"].to_pylist())
    value, lower, upper = (np.asarray(table[name]) for name in ("value", "lower", "upper"))
    hidden = truth.values[::6].ravel()
    assert ((lower <= value) & (value <= upper) & (lower >= 0)).all()
    assert 0.85 < np.mean((hidden >= lower) & (hidden <= upper)) <= 1.0
    shape = value.reshape(20, -1)
    shape = shape / shape.mean(axis=1, keepdims=True)
    true = truth.values[::6] / truth.values[::6].mean(axis=1, keepdims=True)
    assert np.linalg.norm(shape - true) < 0.8 * np.linalg.norm(1 - true)
    recovery.save(tmp_path / "model.unsum")
    assert unsum.load(tmp_path / "model.unsum").predict(backend="pyarrow").equals(table)
    with pytest.raises(ParameterError, match="recover with traits"):
        recover(readings, "panel").predict()


def test_values_stay_exact_and_the_same_for_any_split(case):
    _, frame, readings = case
    recovery = recover(readings, "panel", traits=frame)
    sums = aggregate(Panel.from_values(recovery.values), Periodic(30)).total
    assert len(sums)
    parts = [recovery.values_of(low, readings[low : low + 40]) for low in range(0, 120, 40)]
    np.testing.assert_allclose(np.concatenate(parts), recovery.values, rtol=1e-12)


def test_wrong_tables_are_named(case, tmp_path):
    _, frame, readings = case
    for source, kind, message in (
        (frame.drop(columns="series"), TableError, "no column 'series'"),
        (frame[["series"]], TableError, "no column beside 'series'"),
        (pd.concat([frame, frame[:1]]), TableError, "one row, with a name, for each series"),
        (frame[3:], ParameterError, "series 's000' has no row in the table of traits"),
        (frame.assign(kind=frame["series"]), TableError, "more than 50; join rare kinds"),
        (frame.assign(area=[None, *frame["area"][1:]]), TableError, "has no 'area'"),
        (tmp_path / "none.csv", TableError, "none.csv"),
    ):
        with pytest.raises(kind, match=message):
            recover(readings, traits=source)
    (tmp_path / "comma.csv").write_text("series,area\ns000,1.5\ns001,n/a\n")
    (tmp_path / "empty.csv").write_text("series,area\n")
    (tmp_path / "long.csv").write_text("series,area\ns000,1.5,3\ns001,2\n")
    for name, message in (
        ("comma", "'n/a' among the numbers of 'area'"), ("empty", "has no rows"),
        ("long", "more or fewer fields"),
    ):  # fmt: skip
        with pytest.raises(TableError, match=message):
            make_traits(tmp_path / f"{name}.csv")
    assert repr(make_traits(frame)) == "Traits(kind=house, kind=shop, area)"


def test_method_objects_take_tables_too(case, tmp_path):
    _, frame, readings = case
    some = readings.take(np.arange(100))
    recovery = recover(some, PanelModel(traits=frame, steps=3))
    assert len(recovery.predict(backend="pyarrow")) == 20 * 120
    json.dumps(recovery.provenance())
    recovery.save(tmp_path / "model.unsum")
