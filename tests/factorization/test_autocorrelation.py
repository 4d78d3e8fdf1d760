"""Theorems 1 and 2 against dense solutions."""

import numpy as np
import pytest
from scipy.optimize import brentq

from unsum.errors import ParameterError
from unsum.factorization.autocorrelation import (
    autocorrelation,
    largest_autocorrelation,
    project_autocorrelation,
    share_lags,
    solve_printed,
)


def delta_matrix(n, rho):
    return np.eye(n, k=1) + np.eye(n, k=-1) - 2 * rho * np.eye(n)


def dense_theorem_1(x0, rho):
    """The optimum by a dense eigendecomposition and a general root finder."""
    matrix = delta_matrix(len(x0), rho)
    values, vectors = np.linalg.eigh(matrix)
    z = vectors.T @ x0

    def slack(strength):
        return np.sum(values * z**2 / (1 - strength * values) ** 2)

    if slack(0.0) >= 0:
        return x0, 0.0
    strength = brentq(slack, 0, (1 - 1e-14) / values[-1], xtol=1e-16, rtol=1e-15)
    return np.linalg.solve(np.eye(len(x0)) - strength * matrix, x0), strength


@pytest.mark.parametrize("seed", range(200))
def test_theorem_1_matches_a_dense_solution(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    x0 = rng.gamma(0.5, 1.0, n) if seed % 2 else rng.normal(0, 1, n)
    rho = rng.uniform(-1, largest_autocorrelation(n) - 1e-3)
    x, strength = project_autocorrelation(x0 * 10.0 ** rng.integers(-200, 200), rho)
    expected, multiplier = dense_theorem_1(x0, rho)
    np.testing.assert_allclose(x / np.abs(x).max(), expected / np.abs(expected).max(), atol=1e-8)
    assert strength == pytest.approx(multiplier, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("seed", range(100))
def test_theorem_1_is_feasible_and_no_feasible_point_is_nearer(seed):
    rng = np.random.default_rng(seed)
    n = 25
    x0 = rng.normal(0, 1, n)
    rho = rng.uniform(-0.5, 0.97)
    x, _ = project_autocorrelation(x0, rho)
    matrix = delta_matrix(n, rho)
    assert x @ matrix @ x >= -1e-12 * (x @ x)
    distance = np.sum((x - x0) ** 2)
    for _ in range(200):
        other = x + rng.normal(0, 1, n) * 10.0 ** rng.uniform(-6, 0)
        if other @ matrix @ other >= 0:
            assert np.sum((other - x0) ** 2) >= distance - 1e-12


def test_feasible_series_are_left_alone_and_all_series_are_solved_at_once():
    rng = np.random.default_rng(1)
    x0 = np.abs(rng.normal(1, 0.4, (50, 30)))
    rho = np.where(np.arange(50) % 2, 0.0, 0.96)
    x, strength = project_autocorrelation(x0, rho)
    assert np.array_equal(x[1::2], x0[1::2])
    assert (strength[1::2] == 0).all()
    assert (strength[::2] > 0).all()
    assert (autocorrelation(x)[::2] >= 0.96 - 1e-12).all()
    alone, one = project_autocorrelation(x0[4], rho[4])
    assert np.array_equal(alone, x[4])
    assert one == strength[4]


def test_theorem_1_without_the_leading_component():
    n, rho = 9, 0.6
    sines = np.sin(np.outer(np.arange(1, n + 1), np.arange(1, n + 1)) * np.pi / (n + 1))
    x0 = sines[:, -1] + 0.2 * sines[:, 5]
    x, strength = project_autocorrelation(x0, rho)
    delta = 2 * largest_autocorrelation(n) - 2 * rho
    assert strength == pytest.approx(1 / delta)
    assert x @ delta_matrix(n, rho) @ x == pytest.approx(0, abs=1e-12)
    assert x @ sines[:, 0] > 0


def test_theorem_1_where_only_zero_is_feasible():
    rho = largest_autocorrelation(12) + 1e-3
    x, strength = project_autocorrelation(np.ones(12), rho)
    assert not x.any()
    assert strength == np.inf
    zero, none = project_autocorrelation(np.zeros(12), 0.5)
    assert not zero.any()
    assert none == 0


@pytest.mark.parametrize(("x0", "rho"), [([1.0, np.nan], 0.5), ([1.0, 2.0], 1.5)])
def test_theorem_1_refuses_nonsense(x0, rho):
    with pytest.raises(ParameterError):
        project_autocorrelation(x0, rho)


@pytest.mark.parametrize("seed", range(100))
def test_theorem_2_matches_a_dense_solution(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 50))
    cuts = np.sort(rng.choice(n + 1, int(rng.integers(2, n + 2)), replace=False))
    keep = rng.random(len(cuts) - 1) < 0.8
    keep[0] = True
    start, stop = cuts[:-1][keep], cuts[1:][keep]
    total, x0 = rng.gamma(1.0, 1.0, len(start)), rng.normal(1, 1, n)
    rho = rng.uniform(-0.9, 0.9)
    limit = 2 * largest_autocorrelation(n) - 2 * rho
    strength = rng.uniform(0, 0.95) / limit if limit > 0 else rng.uniform(0, 3)
    inverse = np.linalg.inv(np.eye(n) - strength * delta_matrix(n, rho))
    A = np.array(
        [[low <= t < high for t in range(n)] for low, high in zip(start, stop, strict=True)]
    )
    A = A.astype(float)
    Q = inverse @ A.T @ np.linalg.inv(A @ inverse @ A.T)
    expected = Q @ total + (np.eye(n) - Q @ A) @ inverse @ x0
    found = solve_printed(x0, strength, rho, start, stop, total)
    np.testing.assert_allclose(found, expected, atol=1e-9 * max(1, np.abs(expected).max()))
    np.testing.assert_allclose(A @ found, total, atol=1e-9 * max(1, np.abs(expected).max()))


def test_theorem_2_refuses_a_strength_that_is_not_convex():
    with pytest.raises(ParameterError, match="1 / delta_1"):
        solve_printed(np.ones(5), 10.0, 0.0, np.array([0]), np.array([5]), np.array([5.0]))


@pytest.mark.parametrize(
    ("lags", "least"), [({1: 1}, 2), ({3: 1}, 4), ({1: 1, 7: 1}, 8), ({2: 0.9, 3: 0.1}, 4)]
)
@pytest.mark.parametrize("more", [0, 1, 30, 101])
def test_the_largest_autocorrelation_is_that_of_the_dense_matrix(lags, least, more):
    n_periods = least + more
    lags = share_lags(lags, n_periods)
    matrix = np.zeros((n_periods, n_periods))
    for lag, share in lags.items():
        matrix += share / 2 * (np.eye(n_periods, k=lag) + np.eye(n_periods, k=-lag))
    values, vectors = np.linalg.eigh(matrix)
    limit = largest_autocorrelation(n_periods, lags)
    assert limit == pytest.approx(values[-1], abs=1e-12)
    assert autocorrelation(vectors[:, -1], lags) == pytest.approx(limit, abs=1e-12)


def test_shares_of_lags():
    assert share_lags((1, 7), 30) == {1: 0.5, 7: 0.5}
    assert share_lags({7: 1, 1: 3}, 30) == {1: 0.75, 7: 0.25}
    assert share_lags((1,), 1) == {1: 1.0}
    with pytest.raises(ParameterError, match="lag 7 does not fit into a window of 7 periods"):
        share_lags((1, 7), 7)
