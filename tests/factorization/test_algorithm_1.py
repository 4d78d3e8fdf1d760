"""The implicit solver against the algorithm as printed."""

import warnings

import numpy as np
import pytest
import sklearn.decomposition
from sklearn.exceptions import ConvergenceWarning

from tests.naive import algorithm_1, project_simplex, residuals
from tests.problems import random_readings
from unsum.engine import CHUNK
from unsum.errors import ParameterError
from unsum.factorization.chunk_aligned import is_aligned
from unsum.factorization.crew import Plain, Threads
from unsum.factorization.loop import factorize
from unsum.kernels.implicit import fill_water
from unsum.methods.nmf import NMF, levels
from unsum.readings import Readings
from unsum.recovering import recover

# name: settings of the random readings; the first two hardly clip, the others clip a lot
CASES = {
    "even levels": {"shape": 80.0, "zeros": 0.0, "coverage": 1.0},
    "gaps": {"shape": 80.0, "zeros": 0.0, "coverage": 0.6},
    "clipping": {"shape": 0.3, "zeros": 0.2, "coverage": 0.9},
    "short": {"shape": 1.0, "zeros": 0.1, "coverage": 0.8, "n_periods": 12},
}


def solve(readings, scale, W, H, *, accelerate=False, threads=None, **settings):
    with Threads(readings, scale, H, Plain(accelerate), threads) as crew:
        return factorize(crew, readings, scale, W, accelerate=accelerate, **settings)


def start_of(readings, rank, seed):
    rng = np.random.default_rng(seed)
    scale = levels(readings)
    W = rng.random((readings.n_periods, rank)) + 0.05
    H = rng.random((readings.n_series, rank)) * (scale > 0)[:, None]
    return scale, W, H


def expand(readings, found, scale):
    """V of the solver, in full and unscaled by series, as (T x N)."""
    from unsum.kernels.passes import fill_values

    values = np.empty((readings.n_series, readings.n_periods))
    fill_values(*readings.arrays, scale, found.H, found.W, values)
    return (values / np.where(scale > 0, scale, 1.0)[:, None]).T


def same_dates(seed, *, length_one=False, shape=0.5):
    """Readings of 12 series at the same dates, with a gap; some clip."""
    rng = np.random.default_rng(seed)
    cuts = np.arange(21) if length_one else np.array([0, 4, 5, 11, 18, 20])
    keep = np.arange(len(cuts) - 1) != 2
    start, stop = np.tile(cuts[:-1][keep], 12), np.tile(cuts[1:][keep], 12)
    series = np.repeat(np.arange(12), int(keep.sum()))
    total = rng.gamma(shape, 1.0, len(series)) * (stop - start)
    return Readings.from_arrays(series, start, stop, total, n_series=12, n_periods=20)


def make_case(case):
    if case == "same dates":
        return same_dates(3)
    if case == "length one":
        return same_dates(4, length_one=True)
    return random_readings(5, n_series=14, **{"n_periods": 40, **CASES[case]})


@pytest.mark.parametrize("case", [*CASES, "same dates", "length one"])
@pytest.mark.parametrize("update", ["hals", "nenmf"])
@pytest.mark.parametrize("inner", [1, 3])
def test_the_implicit_solver_follows_the_printed_algorithm(case, update, inner):
    readings = make_case(case)
    assert is_aligned(readings) == (case in ("same dates", "length one"))
    scale, W, H = start_of(readings, 3, seed=1)
    unit = np.where(scale > 0, scale, 1.0)[readings.series_of_readings()]
    naive = list(algorithm_1(W, H.T, readings, readings.total / unit, update, inner, 50))
    for n_iterations in (0, 1, 2, 10, 50):
        found = solve(
            readings, scale, W, H, update=update, n_inner=inner, max_iter=n_iterations, tol=0.0
        )
        V, W_naive, H_naive = naive[n_iterations]
        # late, a last digit decides whether the inner steps of nenmf stop: one step apart
        loose = 100 if n_iterations == 50 else 1
        for factor, printed in ((found.W, W_naive), (found.H, H_naive.T)):
            np.testing.assert_allclose(
                factor, printed, rtol=1e-7 * loose, atol=1e-8 * loose * printed.max()
            )
        active = scale > 0
        V_found = expand(readings, found, scale)
        np.testing.assert_allclose(
            V_found[:, active], V[:, active], rtol=1e-7 * loose, atol=1e-9 * loose * np.abs(V).max()
        )
        objective = np.sum((V - W_naive @ H_naive)[:, active] ** 2)
        assert found.history["objective"][-1] == pytest.approx(objective, rel=1e-7 * loose)


@pytest.mark.parametrize("rank", [1, 4, 5, 8, 9, 13, 33, 40])
def test_any_rank_fits_into_lanes(rank):
    readings = random_readings(7, n_series=45, n_periods=50, shape=1.0, zeros=0.1)
    scale, W, H = start_of(readings, rank, seed=1)
    unit = np.where(scale > 0, scale, 1.0)[readings.series_of_readings()]
    naive = list(algorithm_1(W, H.T, readings, readings.total / unit, "hals", 1, 1))
    found = solve(readings, scale, W, H, update="hals", n_inner=1, max_iter=1, tol=0.0)
    np.testing.assert_allclose(found.W, naive[1][1], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.H, naive[1][2].T, rtol=1e-7, atol=1e-9)


def test_clipping_is_exercised_and_absent_where_it_should_be():
    for case, lowest, highest in (
        ("even levels", 0.0, 0.05), ("clipping", 0.05, 1.0), ("same dates", 0.02, 1.0),
        ("length one", 0.0, 0.0),
    ):  # fmt: skip
        readings = make_case(case)
        scale, W, H = start_of(readings, 3, seed=1)
        found = solve(readings, scale, W, H, update="hals", n_inner=1, max_iter=20, tol=0.0)
        assert lowest <= found.history["clipped"][-1] <= highest
        assert found.history["clipped"][-1] <= found.history["expanded"][-1]


def test_the_residual_is_the_papers_when_factors_are_balanced():
    readings = random_readings(6, n_series=12, shape=0.5)
    scale, W, H = start_of(readings, 1, seed=2)
    found = solve(readings, scale, W, H, update="hals", n_inner=1, max_iter=3, tol=0.0)
    balance = np.sqrt(np.linalg.norm(found.W) / np.linalg.norm(found.H))
    W_even, H_even = found.W / balance, found.H.T * balance
    V = expand(readings, found, scale)
    printed, stationarity = residuals(V, W_even, H_even)
    unit = np.where(scale > 0, scale, 1.0)[readings.series_of_readings()]
    totals = readings.total / unit
    size = np.sum(totals**2 / (readings.stop - readings.start)) ** 1.5
    assert found.history["residual"][-1] == pytest.approx(printed / size, rel=1e-6)
    assert found.history["stationarity"][-1] == pytest.approx(stationarity / size, rel=1e-6)


@pytest.mark.parametrize("update", ["hals", "nenmf"])
@pytest.mark.parametrize("start", ["denton", "even", "random"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("inner", [1, 4])
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_objective_never_rises(update, start, scale, inner, accelerate):
    for seed, shape in ((1, 0.3), (2, 30.0)):
        readings = random_readings(seed, n_series=25, shape=shape)
        method = NMF(
            rank=4, update=update, start=start, scale=scale, inner=inner, max_iter=80,
            accelerate=accelerate,
        )  # fmt: skip
        objective = method.fit(readings).history["objective"]
        assert len(objective) > 5
        assert (np.diff(objective) <= 1e-12 * objective[:-1]).all()


@pytest.mark.parametrize("case", [*CASES, "same dates", "length one"])
def test_accelerated_iterations_reach_the_same_in_far_fewer(case):
    readings = make_case(case)
    scale, W, H = start_of(readings, 3, seed=1)
    plain, fast = (
        solve(
            readings, scale, W, H, update="hals", n_inner=2, max_iter=150, tol=0.0,
            accelerate=accelerate,
        ).history["objective"]
        for accelerate in (False, True)
    )  # fmt: skip
    assert fast[60] <= plain[150] * (1 + 1e-9)


def test_an_accelerated_state_is_consistent_with_its_factors():
    for case in [*CASES, "same dates", "length one"]:
        readings = make_case(case)
        scale, W, H = start_of(readings, 3, seed=1)
        found = solve(
            readings, scale, W, H, update="hals", n_inner=2, max_iter=37, tol=0.0, accelerate=True
        )
        again = solve(
            readings, scale, found.W, found.H, update="hals", n_inner=2, max_iter=0, tol=0.0
        )
        for name in ("objective", "residual", "stationarity"):
            ours, theirs = found.history[name][-1], again.history[name][-1]
            assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-18)


def test_same_bits_for_any_number_of_threads():
    readings = random_readings(3, n_series=4 * CHUNK + 17, n_periods=24)
    scale, W, H = start_of(readings, 4, seed=3)
    found = [
        solve(
            readings,
            scale,
            W,
            H,
            update="hals",
            n_inner=2,
            max_iter=15,
            tol=0.0,
            accelerate=True,
            threads=threads,
        )
        for threads in (1, 2, 7)
    ]
    for other in found[1:]:
        assert np.array_equal(other.W, found[0].W)
        assert np.array_equal(other.H, found[0].H)
        assert np.array_equal(other.history["objective"], found[0].history["objective"])


@pytest.mark.parametrize("seed", range(300))
def test_water_filling_is_the_projection_onto_a_simplex(seed):
    rng = np.random.default_rng(seed)
    x = rng.gamma(0.3, 1.0, int(rng.integers(1, 30))) * rng.choice([1e-8, 1.0, 1e8])
    total = float(rng.choice([0.0, 1e-6, 1.0])) * x.sum() * rng.random()
    level = fill_water(x, len(x), total)
    np.testing.assert_allclose(
        np.maximum(x + level, 0), project_simplex(x, total), atol=1e-12 * max(x.max(), total)
    )


def test_unused_profiles_are_revived():
    readings = random_readings(4, n_series=30, shape=20.0)
    scale, W, H = start_of(readings, 4, seed=4)
    H[:, 2] = 0.0
    W[:, 1] = 0.0
    found = solve(readings, scale, W, H, update="hals", n_inner=2, max_iter=30, tol=0.0)
    assert (found.W.sum(axis=0) > 0).all()
    assert (found.H.sum(axis=0) > 0).all()
    objective = found.history["objective"]
    assert (np.diff(objective) <= 1e-12 * objective[:-1]).all()


def low_rank_readings(seed, n_series=60, n_periods=40, rank=2, every=3):
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_series, rank)) + 0.1) @ rng.gamma(1.0, 1.0, (rank, n_periods))
    series, start, stop, total = [], [], [], []
    for n in range(n_series):
        cuts = np.sort(rng.choice(n_periods - 1, n_periods // every, replace=False) + 1)
        cuts = np.concatenate([[0], cuts, [n_periods]])
        series += [n] * (len(cuts) - 1)
        start += cuts[:-1].tolist()
        stop += cuts[1:].tolist()
        total += np.add.reduceat(truth[n], cuts[:-1]).tolist()
    arrays = [np.array(column) for column in (series, start, stop, total)]
    return truth, Readings.from_arrays(*arrays, n_series=n_series, n_periods=n_periods)


def test_a_low_rank_truth_is_recovered_from_enough_random_readings():
    truth, readings = low_rank_readings(1)
    errors = []
    for seed in range(5):
        found = recover(
            readings, "nmf", rank=2, start="random", seed=seed, max_iter=20_000, tol=1e-12
        )
        errors.append(np.linalg.norm(found.values - truth) / np.linalg.norm(truth))
    assert min(errors) < 1e-5


def test_a_full_panel_is_fitted_as_well_as_by_scikit_learn():
    rng = np.random.default_rng(7)
    truth = rng.gamma(1.0, 1.0, (80, 3)) @ rng.gamma(1.0, 1.0, (3, 50)) + rng.random((80, 50))
    series, period = np.divmod(np.arange(truth.size), 50)
    readings = Readings.from_arrays(
        series, period, period + 1, truth.ravel(), n_series=80, n_periods=50
    )
    W = rng.random((50, 4)) + 0.1
    H = rng.random((80, 4)) + 0.1
    found = solve(readings, np.ones(80), W, H, update="hals", n_inner=2, max_iter=3000, tol=1e-10)
    model = sklearn.decomposition.NMF(4, init="custom", max_iter=5000, tol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it need not reach its own tolerance
        fitted = model.fit_transform(truth, W=H.copy(), H=np.ascontiguousarray(W.T))
    reference = np.sum((truth - fitted @ model.components_) ** 2)
    assert found.history["objective"][-1] <= 1.01 * reference


def test_profiles_and_weights_explain_the_model():
    truth, readings = low_rank_readings(2)
    recovery = recover(readings, "nmf", rank=2, max_iter=5000, tol=1e-9)
    assert recovery.profiles.shape == (40, 2)
    assert recovery.weights.shape == (60, 2)
    model = recovery.weights @ recovery.profiles.T
    assert np.linalg.norm(model - truth) / np.linalg.norm(truth) < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank must be a whole number from 1 to 7"),
        ({"rank": 8}, "rank must be a whole number from 1 to 7"),
        ({"rank": 2.5}, "rank must be a whole number"),
        ({"update": "mu"}, "update must be one of 'hals', 'nenmf'"),
        ({"start": "zero"}, "start must be one of"),
        ({"tol": -1}, "tol must lie between"),
        ({"max_iter": -1}, "max_iter must be a whole number of at least 0"),
        ({"inner": 0}, "inner must be a whole number of at least 1"),
    ],
)
def test_impossible_settings_are_named(settings, message):
    with pytest.raises(ParameterError, match=message):
        recover(random_readings(1), "nmf", **settings)


@pytest.mark.parametrize("rank", [1, 7])
def test_the_rank_may_be_anything_up_to_the_number_of_series(rank):
    recovery = recover(random_readings(1), "nmf", rank=rank, max_iter=30)
    assert recovery.profiles.shape[1] == rank
    assert "iterations" in recovery.stop_reason
