"""Algorithm 2 against its printed form, and the rules for rho and lambda."""

import numpy as np
import pytest

from tests.factorization.test_algorithm_1 import CASES, start_of
from tests.naive import algorithm_2
from tests.problems import random_readings
from unsum.aggregation import Periodic, aggregate
from unsum.engine import CHUNK
from unsum.errors import ParameterError
from unsum.factorization.autocorrelation import (
    autocorrelation,
    largest_autocorrelation,
    solve_printed,
)
from unsum.factorization.chunk_ar import Pulled
from unsum.factorization.crew import Threads
from unsum.factorization.loop import factorize
from unsum.kernels.autocorrelated import smooth_rows
from unsum.methods.nmf_ar import NMFAR, choose_rho, choose_strength
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover

LAGS = {"one": {1: 1.0}, "week": {1: 0.6, 7: 0.4}, "third": {3: 1.0}}


def run(readings, scale, W, H, lags, rho, strength, **settings):
    with Threads(readings, scale, H, Pulled(lags, rho, strength)) as crew:
        found = factorize(crew, readings, scale, W, **settings)
        return found, np.concatenate([chunk.V for chunk in crew.chunks]).T


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("update", "kind"), [("hals", "one"), ("nenmf", "one"), ("hals", "week"), ("hals", "third")]
)
def test_the_solver_follows_the_printed_algorithm(case, update, kind):
    lags = LAGS[kind]
    readings = random_readings(5, n_series=10, **{"n_periods": 30, **CASES[case]})
    scale, W, H = start_of(readings, 3, seed=1)
    rho = np.random.default_rng(2).uniform(0.2, 0.9, 10)
    strength = choose_strength(None, rho, readings.n_periods, lags)
    unit = np.where(scale > 0, scale, 1.0)[readings.series_of_readings()]
    totals = readings.total / unit
    naive = list(algorithm_2(W, H.T, readings, totals, lags, rho, strength, update, 2, 50))
    for n_iterations in (0, 1, 10, 50):
        found, V_found = run(
            readings, scale, W, H, lags, rho, strength, update=update, n_inner=2,
            max_iter=n_iterations, tol=0.0,
        )  # fmt: skip
        V, W_naive, H_naive = naive[n_iterations]
        size = np.abs(V).max()
        np.testing.assert_allclose(V_found, V, atol=1e-9 * size)
        np.testing.assert_allclose(found.W, W_naive, rtol=1e-7, atol=1e-8 * W_naive.max())
        gap = np.sum((V - W_naive @ H_naive) ** 2)
        seen = V * readings.covered().T
        squares, products = np.sum(seen**2, axis=0), np.zeros(10)
        for lag, share in lags.items():
            products += share * np.sum(seen[lag:] * seen[:-lag], axis=0)
        objective = gap - np.sum(strength * 2 * (products - rho * squares))
        assert found.history["objective"][-1] == pytest.approx(objective, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(50))
def test_where_nothing_is_negative_the_v_step_is_theorem_2_as_printed(seed):
    rng = np.random.default_rng(seed)
    cuts = np.array([0, *np.sort(rng.choice(np.arange(1, 30), 5, replace=False)), 30])
    readings = Readings.from_arrays(
        np.zeros(6, int), cuts[:-1], cuts[1:], np.ones(6), n_series=1, n_periods=30
    )
    X = rng.random((1, 30)) + 1.0
    totals = rng.random(6) + 3 * (readings.stop - readings.start)
    rho, strength = np.array([0.3]), np.array([0.2])
    V = np.empty((1, 30))
    smooth_rows(
        readings.indptr, readings.start, readings.stop, totals, X, np.array([1]), np.ones(1), rho,
        strength, V, np.zeros((1, 30), bool),
    )  # fmt: skip
    printed = solve_printed(X[0], 0.2, 0.3, readings.start, readings.stop, totals)
    assert printed.min() > 0
    np.testing.assert_allclose(V[0], printed, atol=1e-9 * printed.max())


@pytest.mark.parametrize("update", ["hals", "nenmf"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("strength", [None, 0.2])
@pytest.mark.parametrize("lags", [(1,), (1, 7)])
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_objective_never_rises_when_lambda_is_frozen(update, scale, strength, lags, accelerate):
    for seed, shape in ((1, 0.3), (2, 30.0)):
        readings = random_readings(seed, n_series=20, shape=shape)
        method = NMFAR(
            rank=3, update=update, scale=scale, strength=strength, lags=lags, rho=0.7, max_iter=60,
            tol=1e-9, accelerate=accelerate,
        )  # fmt: skip
        objective = method.fit(readings).history["objective"]
        assert len(objective) > 5
        size = np.abs(objective).max()
        assert (np.diff(objective) <= 1e-12 * size).all()


def test_the_papers_rule_pulls_only_series_that_miss_their_autocorrelation():
    readings = random_readings(3, n_series=12, shape=2.0)
    recovery = recover(readings, "nmf-ar", rank=2, rho=0.95, strength="paper", max_iter=20)
    fit = recovery.fit
    delta = 2 * (largest_autocorrelation(readings.n_periods) - 0.95)
    assert fit.strength.tolist() == [min(1.0, 1 / (2 * delta))] * 12
    easy = recover(readings, "nmf-ar", rank=2, rho=-1.0, strength="paper", max_iter=20)
    plain = recover(readings, "nmf", rank=2, max_iter=20, accelerate=False)
    np.testing.assert_allclose(easy.values, plain.values, atol=1e-7 * plain.values.max())


def test_same_bits_for_any_number_of_threads():
    readings = random_readings(3, n_series=2 * CHUNK + 17, n_periods=24)
    values = [
        recover(readings, "nmf-ar", rank=3, max_iter=10, threads=threads).values
        for threads in (1, 2, 7)
    ]
    assert np.array_equal(values[0], values[1])
    assert np.array_equal(values[0], values[2])


def test_rho_from_history_is_carried_over_to_another_window():
    rng = np.random.default_rng(1)
    history = Panel.from_values(rng.random((3, 50)) + 1)
    readings = aggregate(Panel.from_values(rng.random((3, 20)) + 1), Periodic(4, offset=0))
    rho, findings = choose_rho(history, readings)
    expected = autocorrelation(history.values) * (50 / 49) * (19 / 20)
    np.testing.assert_allclose(rho, np.minimum(expected, rho.max()))
    assert findings == () or findings[0].code == "adjusted"


def test_rho_is_kept_below_what_is_possible_and_said():
    readings = random_readings(1)
    rho, findings = choose_rho(1.0, readings)
    assert (rho < largest_autocorrelation(readings.n_periods)).all()
    assert findings[0].code == "adjusted"
    assert len(findings[0].series) == readings.n_series
    recovery = recover(readings, "nmf-ar", rho=1.0, max_iter=5)
    assert "adjusted" in [finding.code for finding in recovery.findings]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lags": ()}, "at least one lag"),
        ({"lags": (0,)}, "whole numbers of at least 1; got 0"),
        ({"lags": {7: -1.0}}, "weight of lag 7 must be positive"),
        ({"rho": 2.0}, "rho must lie between -1 and 1"),
        ({"rho": "high"}, "rho must be a number"),
        ({"rho": [0.5, 0.6]}, "one for each of 7 series"),
        ({"strength": "strong"}, "strength must be a number, 'paper' or None"),
        ({"strength": 100.0, "rho": 0.0}, "below 1 / delta_1"),
        ({"rho": Panel.from_values(np.ones((2, 9)))}, "series 2 is not in the history"),
    ],
)
def test_impossible_settings_are_named(settings, message):
    with pytest.raises(ParameterError, match=message):
        recover(random_readings(1), "nmf-ar", **settings)
