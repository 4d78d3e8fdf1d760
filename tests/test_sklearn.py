"""The conventions of scikit-learn: clones, parameters, pipelines, and searches with real folds."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tests.problems import random_readings
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.errors import ParameterError, TableError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.town import simulate_town
from unsum.linear import LinearReadings
from unsum.methods import METHODS, make_method
from unsum.methods.nmf import NMF
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.selection.choosing import score_candidates
from unsum.sklearn import Recoverer, SeriesKFold, groups_of


@pytest.fixture(scope="module")
def truth():
    """The first 120 days of a few customers."""
    town = simulate_town(24, seed=2).truth
    calendar = town.calendar
    return Panel(
        town.names,
        type(calendar)(calendar.frequency, None, calendar.edges[:121]),
        town.values[:, :120],
    )


@pytest.fixture(scope="module")
def readings(truth):
    return aggregate(truth, AtRandom(10, seed=1, ends=True))


@pytest.fixture(scope="module")
def bills(readings):
    return readings.to_frame("pandas")


def test_parameters_are_stored_untouched_and_cloned():
    columns, settings = {"series": "account"}, {"max_iter": 5}
    recoverer = Recoverer("nmf", columns=columns, settings=settings, rank=2, output="wide")
    assert recoverer.columns is columns
    assert recoverer.settings is settings
    copy = clone(recoverer)
    assert copy.get_params() == recoverer.get_params()
    assert copy.set_params(rank=3, method="nmf-ar").rank == 3
    assert recoverer.rank == 2
    assert repr(Recoverer(NMF(rank=2))).startswith("Recoverer(method=NMF(rank=2")


@pytest.mark.parametrize("name", sorted(METHODS))
def test_method_objects_are_their_own_clones(name):
    method = make_method(name, {})
    assert clone(method) is method
    assert clone(Recoverer(method)).method is method


def test_fitting_changes_no_parameter(bills):
    recoverer = Recoverer("nmf", rank=2, settings={"max_iter": 3})
    before = recoverer.get_params()
    assert recoverer.fit(bills) is recoverer
    assert recoverer.get_params() == before
    assert recoverer.recovery_.settings["rank"] == 2
    assert recoverer.recovery_.settings["max_iter"] == 3


@pytest.mark.parametrize("method", ["denton", "nmf", "panel"])
def test_fitted_values_are_those_of_recover(method, readings, bills):
    settings = {"panel": {"steps": 2}, "nmf": {"max_iter": 3}}.get(method, {})
    given = Recoverer(method, settings=settings, output="array").fit_transform(bills)
    assert np.array_equal(given, recover(readings, method, **settings).values)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_tables_come_back_in_the_library_they_came_in(backend, readings):
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[backend]
    table = readings.to_frame(backend)
    values = recover(readings, "denton").values
    long = Recoverer("denton").fit_transform(table)
    assert isinstance(long, kind)
    assert np.array_equal(np.asarray(long["value"]), values.ravel())
    wide = Recoverer("denton", output="wide").fit(table).transform(table)
    assert isinstance(wide, kind)
    assert list(getattr(wide, "column_names", getattr(wide, "columns", None))) == [
        "time",
        *readings.names.to_pylist(),
    ]
    assert np.array_equal(np.asarray(wide[readings.names[3].as_py()]), values[3])


def test_transform_recovers_others_with_what_was_learned(readings, bills):
    known = bills[bills["series"] < "C0018"]
    others = bills[bills["series"] >= "C0018"]
    recoverer = Recoverer("panel", interval=0.9, settings={"steps": 2}).fit(known)
    expected = recoverer.recovery_.apply(readings[17:], interval=0.9).to_arrow()
    found = recoverer.transform(others)
    assert list(found.columns) == ["series", "time", "value", "covered", "lower", "upper"]
    assert np.array_equal(found["value"], expected["value"].to_numpy())
    assert np.array_equal(found["upper"], expected["upper"].to_numpy())
    assert np.array_equal(recoverer.transform(readings[17:])["value"], found["value"])
    assert np.array_equal(
        pickle.loads(pickle.dumps(recoverer)).transform(others)["value"], found["value"]
    )


def test_tables_are_read_as_told(bills):
    french = pd.DataFrame(
        {
            "account": bills["series"],
            "du": pd.to_datetime(bills["start"]).dt.strftime("%d/%m/%Y"),
            "au": (pd.to_datetime(bills["end"]) - pd.Timedelta("1D")).dt.strftime("%d/%m/%Y"),
            "kwh": bills["total"],
        }
    )
    french.loc[3, "kwh"] = None
    columns = {"series": "account", "start": "du", "end": "au", "total": "kwh"}
    reading = {"end": "inclusive", "date_format": "%d/%m/%Y", "drop_bad": True}
    recoverer = Recoverer("even", columns=columns, reading=reading, output="array")
    values = recoverer.fit_transform(french)
    assert np.array_equal(recoverer.transform(french), values)
    plain = Recoverer("even", output="array").fit_transform(bills.drop(index=3))
    np.testing.assert_allclose(values, plain)
    with pytest.raises(ParameterError, match="reading: a key must be one of 'end', 'snap'"):
        Recoverer(reading={"ends": "inclusive"}).fit(bills)


def test_mistakes_are_told_in_a_sentence(bills, readings):
    with pytest.raises(NotFittedError):
        Recoverer("denton").transform(bills)
    with pytest.raises(ParameterError, match="output must be one of 'long', 'wide', 'array'"):
        Recoverer("denton", output="tall").fit(bills)
    with pytest.raises(ParameterError, match="method 'denton' has no setting 'rank'"):
        Recoverer("denton", rank=2).fit(bills)
    with pytest.raises(ParameterError, match="knows no intervals"):
        Recoverer("denton").fit(bills).set_params(interval=0.9).transform(bills)
    with pytest.raises(TableError, match="not a table"):
        groups_of(readings)


def test_linear_readings_are_taken_too():
    truth = Panel.from_values(np.random.default_rng(0).gamma(2, 1, (4, 24)))
    window = np.arange(24) % 2 == 0
    registers = {
        name: aggregate(Panel.from_values(truth.values * chosen), Periodic(12, offset=0))
        for name, chosen in {"a": window, "b": ~window}.items()
    }
    linear = LinearReadings.from_registers(registers, {"a": window, "b": ~window})
    recoverer = Recoverer("even", output="array").fit(linear)
    assert np.array_equal(recoverer.recovery_.values, recover(linear, "even").values)
    np.testing.assert_allclose(recoverer.transform(linear), recover(linear, "even").values)


def test_without_the_truth_the_score_is_that_of_merged_readings(readings, bills):
    methods = [("denton", make_method("denton", {})), ("even", make_method("even", {}))]
    for candidate in score_candidates(readings, methods):
        score = Recoverer(candidate.label).fit(bills).score(bills)
        assert score == pytest.approx(-candidate.score, rel=1e-12)


def test_with_the_truth_the_score_is_the_error(truth, readings, bills):
    recoverer = Recoverer("denton").fit(bills)
    values = recover(readings, "denton").values
    expected = -measure_recovery(truth, readings, values).normalised_covered
    wide = pd.DataFrame(truth.values.T, columns=truth.names.to_pylist())
    wide.insert(0, "time", truth.calendar.texts(slice(None, -1)))
    backwards = Panel(truth.names[::-1], truth.calendar, truth.values[::-1])
    for form in (truth, backwards, wide, wide[wide.columns[::-1]], truth.values):
        assert recoverer.score(bills, form) == pytest.approx(expected, rel=1e-12)
    some = bills[bills["series"] > "C0010"]
    assert recoverer.score(some, truth) == recoverer.score(some, truth.values[10:])
    with pytest.raises(ParameterError, match=r"the truth must have a row for each series.*\(24, 1"):
        recoverer.score(bills, truth.values[1:])
    with pytest.raises(ParameterError, match=r"the truth has no series 'C0001' \(4 are missing\)"):
        recoverer.score(bills, Panel(truth.names[4:], truth.calendar, truth.values[4:]))
    with pytest.raises(ParameterError, match="the truth must have the periods from 2023-01-01"):
        recoverer.score(bills, wide[5:])


def test_a_series_is_never_in_two_folds(bills):
    names = bills["series"].to_numpy()
    seen = []
    for train, test in SeriesKFold(5).split(bills):
        assert not set(names[train]) & set(names[test])
        assert sorted([*train, *test]) == list(range(len(bills)))
        seen.append(set(names[test]))
    assert sorted(name for fold in seen for name in fold) == sorted(set(names))
    assert {len(fold) for fold in seen} == {4, 5}
    assert SeriesKFold(5).get_n_splits() == 5


def test_folds_belong_to_names_not_to_rows(bills):
    def folds_of(table, **options):
        names = np.asarray(table["series"])
        return [set(names[test]) for _, test in SeriesKFold(3, **options).split(table)]

    shuffled = bills.sample(frac=1, random_state=0)
    assert folds_of(bills) == folds_of(shuffled) == folds_of(pl.from_pandas(bills))
    assert folds_of(bills) != folds_of(bills, seed=1)
    with pytest.raises(ParameterError, match="30 folds need as many series; there are 24"):
        next(SeriesKFold(30).split(bills))
    with pytest.raises(ParameterError, match="n_splits must be a whole number of at least 2"):
        SeriesKFold(1)
    with pytest.raises(ParameterError, match="the table has no column 'account'"):
        next(SeriesKFold(3, column="account").split(bills))


def test_groups_serve_the_splitters_of_scikit_learn(bills):
    groups = groups_of(bills)
    assert len(set(zip(groups, bills["series"], strict=True))) == len(set(groups)) == 24
    scores = cross_val_score(Recoverer("denton"), bills, cv=GroupKFold(3), groups=groups)
    assert (scores < 0).all()


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_search_over_methods_and_ranks_with_folds_over_series(backend, readings):
    table = readings.to_frame(backend)
    choices = [
        {"method": ["even", "denton", NMF(rank=1, max_iter=3)]},
        {"method": ["nmf"], "rank": [1, 3], "settings": [{"max_iter": 3}]},
    ]
    search = GridSearchCV(Recoverer(), choices, cv=SeriesKFold(3), error_score="raise")
    search.fit(table)
    scores = search.cv_results_["mean_test_score"]
    assert scores[2] == scores[3]  # one rank, told in two ways
    assert len(set(scores)) == 4
    assert search.best_score_ == scores.max()
    for k, (train, test) in enumerate(SeriesKFold(3).split(table)):
        rows = [table.iloc[part] if backend == "pandas" else table[part] for part in (train, test)]
        by_hand = Recoverer("nmf", rank=3, settings={"max_iter": 3}).fit(rows[0]).score(rows[1])
        assert search.cv_results_[f"split{k}_test_score"][4] == by_hand
    best = search.best_estimator_
    assert best.recovery_.method == getattr(best.method, "name", best.method)
    assert np.array_equal(best.recovery_.readings.total, readings.total)


def test_pipelines_begin_with_tables_and_go_on_with_arrays(bills):
    kilo = FunctionTransformer(lambda table: table.assign(total=table["total"] / 1000))
    first = Pipeline([("units", kilo), ("recover", Recoverer("denton"))])
    table = first.fit_transform(bills)
    whole = Recoverer("denton").fit_transform(bills)
    np.testing.assert_allclose(table["value"], whole["value"] / 1000, rtol=1e-9)
    first.set_params(recover__method="even").fit(bills)
    assert first.named_steps["recover"].recovery_.method == "even"
    assert first.score(bills) < 0
    shapes = FunctionTransformer(lambda values: values / values.mean(axis=1, keepdims=True))
    kinds = Pipeline(
        [
            ("recover", Recoverer("denton", output="array")),
            ("shapes", shapes),
            ("kinds", KMeans(2, n_init=1, random_state=0)),
        ]
    )
    assert kinds.fit_predict(bills).shape == (24,)
    assert kinds.predict(bills[bills["series"] < "C0004"]).shape == (3,)


def test_traits_of_others_are_taken_from_the_same_table(readings, bills):
    rng = np.random.default_rng(0)
    traits = {"series": readings.names.to_pylist(), "area": rng.gamma(3, 1, 24).tolist()}
    recoverer = Recoverer("panel", settings={"traits": traits, "steps": 1}, output="array")
    recoverer.fit(bills[bills["series"] < "C0020"])
    assert recoverer.transform(bills[bills["series"] >= "C0020"]).shape == (5, 120)


def test_numbered_readings_have_their_own_calendar():
    readings = random_readings(1, n_series=8)
    recoverer = Recoverer("denton", output="array").fit(readings)
    assert recoverer.transform(readings[2:4]).shape == (2, 40)
    table = readings.to_frame("pandas")
    by_number = Recoverer("denton", freq="period", output="array")
    assert by_number.fit(table).transform(table).shape == by_number.recovery_.values.shape


def test_a_series_called_time_has_no_place_in_a_wide_table():
    table = {"series": ["time"], "start": [0], "end": [2], "total": [1.0]}
    with pytest.raises(ParameterError, match="a series is called 'time'"):
        Recoverer("even", freq="period", output="wide").fit_transform(table)


def test_without_scikit_learn_the_remedy_is_named():
    code = "import sys\nsys.modules['sklearn'] = None\nimport unsum.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'unsum[sklearn]'" in run.stderr.splitlines()[-1]


def test_a_readings_outside_the_dates_learned_is_refused(readings):
    recoverer = Recoverer("even").fit(readings)
    later = {"series": ["x"], "start": ["2024-01-01"], "end": ["2024-02-01"], "total": [1.0]}
    with pytest.raises(ParameterError, match="read them with the same freq and tz, within its"):
        recoverer.transform(Readings.from_frame(later))
