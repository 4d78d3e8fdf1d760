"""The quadratic program over a chain, against a general solver and its own optimality."""

import cvxpy as cp
import numpy as np
import pytest

from unsum.kernels.chain import MAX_STEPS, make_workspace, solve_chain, solve_nonnegative


def random_problem(seed):
    """Random readings and a random positive definite tridiagonal matrix with a linear term."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    cuts = np.sort(rng.choice(n + 1, int(rng.integers(2, n + 2)), replace=False))
    keep = rng.random(len(cuts) - 1) < 0.8
    keep[0] = True
    begin, end = cuts[:-1][keep], cuts[1:][keep]
    total = (end - begin) * (0.02 + rng.gamma(0.4, 1.0, len(begin)))
    total[rng.random(len(begin)) < 0.1] = 0.0
    total[0] += 0.5
    coupling = rng.uniform(-1, 1, (n, int(rng.integers(1, 5)))) * (rng.random((n, 1)) < 0.9)
    diagonal = 0.1 + np.abs(dense(np.zeros(n), coupling)).sum(axis=0)
    linear = rng.normal(0, 1, n)
    return diagonal, coupling, linear, begin, end, total


def dense(diagonal, coupling):
    """The matrix; what would reach past the last period is left out."""
    matrix = np.diag(diagonal)
    for j in range(min(coupling.shape[1], len(diagonal) - 1)):
        beside = coupling[: len(diagonal) - j - 1, j]
        matrix += np.diag(beside, j + 1) + np.diag(beside, -j - 1)
    return matrix


@pytest.mark.parametrize("seed", range(60))
def test_chain_program_matches_a_general_solver(seed):
    diagonal, coupling, linear, begin, end, total = random_problem(seed)
    v = np.empty(len(diagonal))
    steps = solve_chain(diagonal, coupling, linear, begin, end, total, v)
    assert steps < MAX_STEPS
    x = cp.Variable(len(v))
    quadratic = 0.5 * cp.quad_form(x, cp.psd_wrap(dense(diagonal, coupling)))
    sums = [cp.sum(x[a:b]) == t for a, b, t in zip(begin, end, total, strict=True)]
    problem = cp.Problem(cp.Minimize(quadratic - linear @ x), [x >= 0, *sums])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    np.testing.assert_allclose(v, x.value, atol=1e-6)


@pytest.mark.parametrize("seed", range(200))
def test_active_sets_and_interior_points_agree_from_any_first_set(seed):
    problem = random_problem(seed)
    v, other = np.empty(len(problem[0])), np.empty(len(problem[0]))
    solve_chain(*problem, v)
    zero = np.random.default_rng(seed).random(len(v)) < 0.3
    solve_nonnegative(*problem, other, zero, make_workspace(len(v), problem[1].shape[1]))
    np.testing.assert_allclose(other, v, atol=1e-6)
    again = solve_nonnegative(*problem, v, zero, make_workspace(len(v), problem[1].shape[1]))
    assert again == 1
    np.testing.assert_allclose(v, other, atol=1e-12)


def test_active_sets_seldom_need_interior_points():
    steps = []
    for seed in range(400):
        problem = random_problem(seed)
        v = np.empty(len(problem[0]))
        zero = np.zeros(len(v), bool)
        steps.append(
            solve_nonnegative(*problem, v, zero, make_workspace(len(v), problem[1].shape[1]))
        )
    assert np.mean(np.array(steps) < 0) < 0.02


@pytest.mark.parametrize("solver", ["interior", "active"])
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_chain_program_satisfies_its_optimality_conditions(seed, solver):
    diagonal, coupling, linear, begin, end, total = random_problem(seed)
    v = np.empty(len(diagonal))
    if solver == "interior":
        solve_chain(diagonal, coupling, linear, begin, end, total, v)
    else:
        zero = np.zeros(len(v), bool)
        room = make_workspace(len(v), coupling.shape[1])
        solve_nonnegative(diagonal, coupling, linear, begin, end, total, v, zero, room)
    gradient = dense(diagonal, coupling) @ v - linear
    assert v.min() >= 0
    for low, high, amount in zip(begin, end, total, strict=True):
        assert v[low:high].sum() == pytest.approx(amount, abs=1e-7)
        if amount > 0:
            positive = v[low:high] > 1e-5
            multiplier = gradient[low:high][positive].mean()
            np.testing.assert_allclose(gradient[low:high][positive], multiplier, atol=2e-5)
            assert (gradient[low:high] >= multiplier - 2e-5).all()
    free = np.ones(len(v), bool)
    for low, high in zip(begin, end, strict=True):
        free[low:high] = False
    assert (np.abs(gradient[free & (v > 1e-5)]) < 2e-5).all()
    assert (gradient[free] > -2e-5).all()
