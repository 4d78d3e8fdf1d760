"""Readings of any linear kind: what they become, that they are met, and their conflicts."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from unsum import LinearReadings
from unsum.aggregation import Periodic, aggregate
from unsum.conflicts import find_conflict
from unsum.errors import ParameterError, ReadingsError
from unsum.methods import METHODS
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover

every_method = pytest.mark.parametrize("method", sorted(METHODS))


def days_and_nights(n_series=12, n_days=28, seed=0):
    """Hours with days and nights that differ from series to series."""
    rng = np.random.default_rng(seed)
    hour = np.arange(24 * n_days) % 24
    day = np.where((hour >= 8) & (hour < 20), 1.0, 0.0)
    share = rng.uniform(0.2, 2.0, (n_series, 1))
    noise = rng.gamma(20, 1 / 20, (n_series, 24 * n_days))
    return Panel.from_values(
        rng.lognormal(0, 0.5, (n_series, 1)) * (0.4 + share * day) * noise
    ), day


def registers_of(truth, window, every):
    masked = Panel.from_values(truth.values * window)
    return aggregate(masked, Periodic(every, offset=0))


def test_registers_of_a_meter_make_its_total():
    truth, day = days_and_nights()
    registers = {
        "peak": registers_of(truth, day, 24 * 7), "off": registers_of(truth, 1 - day, 24 * 7),
    }  # fmt: skip
    linear = LinearReadings.from_registers(registers, {"peak": day > 0, "off": day == 0})
    readings = linear.to_readings()
    whole = aggregate(truth, Periodic(24 * 7, offset=0))
    assert np.array_equal(readings.start, whole.start)
    assert np.array_equal(readings.stop, whole.stop)
    np.testing.assert_allclose(readings.total, whole.total, rtol=1e-12)
    assert len(readings.further) == 12 * 4 * 2
    assert readings.further.labels[0] == "register 'peak' of 0, 0 to 168"


@every_method
def test_registers_are_met_and_tell_days_from_nights(method):
    truth, day = days_and_nights(n_days=14)
    registers = {
        "peak": registers_of(truth, day, 24 * 7), "off": registers_of(truth, 1 - day, 24 * 7),
    }  # fmt: skip
    windows = {"peak": day > 0, "off": day == 0}
    recovery = recover(LinearReadings.from_registers(registers, windows), method)
    for name, window in windows.items():
        found = recovery.values * window
        sums = found.reshape(12, 2, -1).sum(axis=2)
        np.testing.assert_allclose(sums.ravel(), registers[name].total, rtol=1e-9)
    plain = recover(aggregate(truth, Periodic(24 * 7, offset=0)), method).values
    errors = [np.linalg.norm(values - truth.values) for values in (recovery.values, plain)]
    assert errors[0] < 0.8 * errors[1]


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_any_nonnegative_weights_are_met(method, seed):
    rng = np.random.default_rng(seed)
    truth = rng.gamma(1.0, 1.0, (7, 20))
    matrix = sparse.random_array((60, 140), density=0.03, rng=rng, format="csr")
    total = matrix @ truth.ravel()
    linear = LinearReadings(matrix, total, n_series=7, n_periods=20)
    recovery = recover(linear, method)
    np.testing.assert_allclose(matrix @ recovery.values.ravel(), total, rtol=1e-9, atol=1e-12)
    assert recovery.values.min() >= 0
    assert "LinearReadings(60 readings of 7 series over 20 periods)" in repr(linear)


@every_method
def test_rows_that_all_mix_series_are_met_too(method):
    truth = np.random.default_rng(5).gamma(2.0, 1.0, (4, 12))
    rows = np.zeros((12, 4, 12))
    for t in range(12):
        rows[t, :, t] = 1.0 + np.arange(4) / 4
    matrix = rows.reshape(12, 48)
    total = matrix @ truth.ravel()
    values = recover(LinearReadings(matrix, total, n_series=4, n_periods=12), method).values
    np.testing.assert_allclose(matrix @ values.ravel(), total, rtol=1e-9)


def test_chosen_periods_of_low_rank_series_are_enough_to_learn_from():
    rng = np.random.default_rng(3)
    time = np.arange(60)
    shapes = 1 + 0.8 * np.array([np.sin(time / 5), np.cos(time / 9)])
    truth = rng.gamma(2.0, 1.0, (80, 2)) @ shapes
    rows = []
    for n in range(80):
        for begin in range(0, 60, 10):
            row = np.zeros((80, 60))
            row[n, begin + rng.choice(10, 5, replace=False)] = 1.0
            rows.append(row.ravel())
    matrix = sparse.csr_array(np.array(rows))
    linear = LinearReadings(matrix, matrix @ truth.ravel(), n_series=80, n_periods=60)
    size = np.linalg.norm(truth)
    errors = {
        method: np.linalg.norm(recover(linear, method).values - truth) / size
        for method in ("even", "panel")
    }
    assert errors["panel"] < 0.5 * errors["even"]


def test_intervals_are_ordinary_readings():
    truth = np.random.default_rng(2).gamma(1.0, 1.0, (3, 12))
    rows = np.zeros((3, 3, 12))
    rows[0, 1, 2:7] = 2.0
    rows[1, 0, 0:5] = 1.0
    rows[2, 1, 7:9] = 0.5
    matrix = rows.reshape(3, 36)
    linear = LinearReadings(
        matrix, matrix @ truth.ravel(), n_series=3, n_periods=12, names=["c", "a", "b"]
    )
    readings = linear.to_readings()
    assert readings.names.to_pylist() == ["a", "c"]
    assert readings.further is None
    assert readings.indptr.tolist() == [0, 2, 3]
    assert readings.findings.codes == ("no-usable-reading",)
    assert readings.findings.items[0].series == ("b",)
    np.testing.assert_allclose(
        readings.total, [truth[1, 2:7].sum(), truth[1, 7:9].sum(), truth[0, :5].sum()]
    )


def is_feasible(matrix, total):
    if not len(total):
        return True
    return linprog(np.zeros(matrix.shape[1]), A_eq=matrix, b_eq=total).status == 0


@pytest.mark.parametrize("seed", range(30))
def test_conflicts_are_found_and_irreducible(seed):
    rng = np.random.default_rng(seed)
    matrix = sparse.csr_array(rng.integers(0, 2, (8, 12)).astype(float))
    total = matrix @ rng.integers(0, 4, 12).astype(float)
    if seed % 3:
        total = np.maximum(total + rng.integers(-6, 7, 8) * (rng.random(8) < 0.4), 0.0)
    rows, amount = find_conflict(matrix, total)
    dense = matrix.toarray()
    assert (len(rows) == 0) == is_feasible(dense, total)
    if len(rows):
        assert amount > 0
        assert not is_feasible(dense[rows], total[rows])
        for row in rows:
            others = rows[rows != row]
            assert is_feasible(dense[others], total[others])


def test_conflicts_are_told_with_readings_periods_and_amount():
    rows = np.zeros((3, 2, 10))
    rows[0, 0, [1, 3, 5]] = 1.0
    rows[1, 0, [1, 3, 5, 7]] = 1.0
    rows[2, 1, [2, 4]] = 1.0
    with pytest.raises(ReadingsError) as caught:
        LinearReadings(
            rows.reshape(3, 20), [5.0, 3.0, 1.0], n_series=2, n_periods=10, labels=list("xyz")
        ).to_readings()
    assert "1 to 8: x (total 5), y (total 3) miss each other by 2" in str(caught.value)
    rows[1, 0] = rows[0, 0] = 0.0
    rows[0, 0, 2:8] = rows[1, 0, 3:6] = 1.0
    with pytest.raises(
        ReadingsError, match=r"2 to 8: x \(total 2\), y \(total 3\) miss each other by 1"
    ):
        LinearReadings(
            rows.reshape(3, 20), [2.0, 3.0, 1.0], n_series=2, n_periods=10, labels=list("xyz")
        ).to_readings()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": [1.0]}, "the matrix must have a row for each of 1 totals"),
        ({"total": [1.0, -1.0]}, "total must be finite and nonnegative"),
        ({"matrix": np.full((2, 6), -1.0)}, "matrix must be finite and nonnegative"),
        ({"names": ["a", "a"]}, "names must be 2 different names"),
        ({"matrix": np.zeros((2, 6))}, "reading 0 has a total of 1 but no weights"),
        ({"labels": ["a"]}, "labels and calendar must fit"),
    ],
)
def test_wrong_matrices_are_named(change, message):
    given = {"matrix": np.ones((2, 6)), "total": [1.0, 1.0], "n_series": 2, "n_periods": 3}
    given |= change
    with pytest.raises(ParameterError, match=message):
        LinearReadings(given.pop("matrix"), given.pop("total"), **given).to_readings()


def test_windows_must_fit_their_registers():
    truth, day = days_and_nights(n_days=7)
    register = registers_of(truth, day, 24)
    with pytest.raises(ParameterError, match="must have the same names"):
        LinearReadings.from_registers({"peak": register}, {"off": day > 0})
    with pytest.raises(ParameterError, match="the window of 'peak' must tell of 168 periods"):
        LinearReadings.from_registers({"peak": register}, {"peak": day[:5] > 0})


def test_a_model_serves_registers_too():
    truth, day = days_and_nights(n_days=14)
    model = recover(aggregate(truth, Periodic(6)), interval=0.9).model
    registers = {
        "peak": registers_of(truth, day, 24 * 7), "off": registers_of(truth, 1 - day, 24 * 7),
    }  # fmt: skip
    linear = LinearReadings.from_registers(registers, {"peak": day > 0, "off": day == 0})
    values = model.apply(linear).values
    found = (values * day).reshape(12, 2, -1).sum(axis=2)
    np.testing.assert_allclose(found.ravel(), registers["peak"].total, rtol=1e-9)
    assert isinstance(linear.to_readings(), Readings)
