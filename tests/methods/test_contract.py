"""What every method promises, present and future: add its name to the list and it is held to it."""

import numpy as np
import pyarrow as pa
import pytest

from tests.problems import random_readings
from unsum.engine import CHUNK
from unsum.errors import ParameterError
from unsum.methods import METHODS
from unsum.methods.denton import Denton
from unsum.readings import Readings
from unsum.recovering import recover

every_method = pytest.mark.parametrize("method", sorted(METHODS))


def assert_exact(readings, values):
    assert values.shape == (readings.n_series, readings.n_periods)
    assert np.isfinite(values).all()
    assert values.min() >= 0
    owner = readings.series_of_readings()
    for n, low, high, total in zip(
        owner, readings.start, readings.stop, readings.total, strict=True
    ):
        found = values[n, low:high].sum()
        assert found == pytest.approx(total, rel=1e-9, abs=1e-320)


def one_series(start, stop, total, n_periods):
    return Readings.from_arrays(
        np.zeros(len(start), int), np.array(start), np.array(stop), np.array(total, float),
        n_series=1, n_periods=n_periods,
    )  # fmt: skip


@every_method
@pytest.mark.parametrize("seed", range(8))
def test_values_are_nonnegative_finite_and_exact(method, seed):
    readings = random_readings(seed, n_series=20, n_periods=60, shape=0.2 + seed)
    assert_exact(readings, recover(readings, method).values)


@every_method
@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e9])
def test_scaling_the_totals_scales_the_values(method, factor):
    readings = random_readings(11, n_series=12)
    values = recover(readings, method).values
    scaled = recover(readings.with_totals(readings.total * factor), method).values
    np.testing.assert_allclose(scaled / factor, values, rtol=1e-8, atol=1e-8 * values.max())


@every_method
def test_scaling_one_series_leaves_the_others(method):
    readings = random_readings(12, n_series=12)
    values = recover(readings, method).values
    total = readings.total * np.where(readings.series_of_readings() == 3, 1e4, 1.0)
    scaled = recover(readings.with_totals(total), method).values
    scaled[3] /= 1e4
    np.testing.assert_allclose(scaled, values, rtol=1e-8, atol=1e-8 * values.max())


@every_method
def test_permuting_the_series_permutes_the_values(method):
    readings = random_readings(13, n_series=15)
    order = np.random.default_rng(0).permutation(15)
    permuted = Readings.from_arrays(
        order[readings.series_of_readings()], readings.start, readings.stop, readings.total,
        n_series=15, n_periods=readings.n_periods,
    )  # fmt: skip
    values = recover(readings, method).values
    found = recover(permuted, method).values[order]
    np.testing.assert_allclose(found, values, rtol=1e-8, atol=1e-8 * values.max())


@every_method
def test_same_bits_for_any_threads_and_any_split_into_chunks(method):
    readings = random_readings(14, n_series=2 * CHUNK + 30, n_periods=30)
    fit = recover(readings, method, threads=1)
    values = fit.values
    for threads in (2, 7):
        assert np.array_equal(recover(readings, method, threads=threads).values, values)
    for cuts in ([0, CHUNK], [0, 2 * CHUNK], [0, CHUNK, 2 * CHUNK]):
        for first, last in zip(cuts, [*cuts[1:], readings.n_series], strict=True):
            assert np.array_equal(fit.values_of(first, readings[first:last]), values[first:last])


@every_method
def test_same_input_same_bits(method):
    first = recover(random_readings(15), method).values
    assert np.array_equal(recover(random_readings(15), method).values, first)


@every_method
def test_one_series_one_period(method):
    assert recover(one_series([0], [1], [4.5], 1), method).values.tolist() == [[4.5]]


@every_method
def test_all_zeros(method):
    readings = one_series([0, 4], [4, 9], [0, 0], 12)
    assert not recover(readings, method).values.any()


@every_method
def test_full_coverage_by_length_one_readings_returns_them(method):
    truth = np.random.default_rng(4).gamma(0.5, 1.0, (6, 25))
    series, period = np.divmod(np.arange(truth.size), 25)
    readings = Readings.from_arrays(
        series, period, period + 1, truth.ravel(), n_series=6, n_periods=25
    )
    np.testing.assert_allclose(recover(readings, method).values, truth, rtol=1e-12)


@every_method
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_totals_of_a_whole_panel(method, size):
    readings = random_readings(16, n_series=10)
    extreme = readings.with_totals(readings.total / readings.total.max() * size)
    assert_exact(extreme, recover(extreme, method).values)


@every_method
def test_extreme_totals_mixed_in_one_series(method):
    readings = one_series([0, 5, 9, 14, 20], [5, 9, 14, 20, 26], [1e-300, 1e300, 0, 1, 1e-300], 30)
    assert_exact(readings, recover(readings, method).values)


@every_method
def test_zero_totals_give_exact_zeros_beside_positive_ones(method):
    readings = one_series([0, 5, 9], [5, 9, 14], [10, 0, 10], 14)
    values = recover(readings, method).values
    assert not values[0, 5:9].any()
    assert_exact(readings, values)


@every_method
def test_a_series_is_zero_outside_its_active_periods(method):
    table = pa.table(
        {
            "series": ["a", "a", "b"],
            "start": ["2024-01-03", "2024-01-10", "2024-01-01"],
            "end": ["2024-01-10", "2024-01-20", "2024-02-01"],
            "total": [7.0, 30.0, 31.0],
            "active_from": ["2024-01-05", "2024-01-05", None],
            "active_to": ["2024-01-18", "2024-01-18", None],
        }
    )
    readings = Readings.from_frame(table)
    values = recover(readings, method).values
    assert not values[0, :4].any()
    assert not values[0, 17:].any()
    assert values[0, 4:9].sum() == pytest.approx(7.0)
    assert values[0, 9:17].sum() == pytest.approx(30.0)


@every_method
def test_the_result_tells_how_it_was_found(method):
    recovery = recover(random_readings(17), method)
    assert recovery.method == method or (method == "auto" and recovery.method in METHODS)
    assert len(recovery.stop_reason.split()) > 3
    assert set(recovery.history) >= {"objective", "residual"}


def test_method_objects_are_what_their_names_stand_for():
    readings = random_readings(19)
    assert np.array_equal(recover(readings, Denton()).values, recover(readings, "denton").values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "spline"}, "method must be one of 'auto', .*'denton'.* got 'spline'"),
        ({"method": "even", "rank": 3}, "method 'even' has no setting 'rank'"),
        ({"method": Denton(), "rank": 3}, "settings go into the method object"),
        ({"threads": 0}, "threads must be at least 1; got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ParameterError, match=message):
        _ = recover(random_readings(20), **arguments).values
