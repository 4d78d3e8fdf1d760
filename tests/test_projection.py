"""The projection onto readings and further measures, against a solver of quadratic programs."""

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from scipy import sparse

from tests.problems import random_readings
from unsum.joining import FREEDOM
from unsum.measures import Measures
from unsum.projection import project


def random_measures(rng, n_series, n_periods, n_measures):
    """Sums over random sets and pieces, with random weights; totals are zero as yet."""
    n_sets = 4
    sets = [
        rng.choice(n_series, rng.integers(1, n_series + 1), replace=False) for _ in range(n_sets)
    ]
    measure, piece_set, start, stop, weight = [], [], [], [], []
    for r in range(n_measures):
        for _ in range(int(rng.integers(1, 4))):
            low, high = np.sort(rng.choice(n_periods + 1, 2, replace=False))
            measure.append(r)
            piece_set.append(int(rng.integers(n_sets)))
            start.append(low)
            stop.append(high)
            weight.append(float(rng.choice([1.0, 1.0, 0.5, 2.0])))
    return Measures(
        n_series, n_periods, np.concatenate([[0], np.cumsum([len(each) for each in sets])]),
        np.concatenate([np.sort(each) for each in sets]), np.array(measure), np.array(piece_set),
        np.array(start), np.array(stop), np.array(weight), np.zeros(n_measures),
        tuple(f"m{r}" for r in range(n_measures)), tuple(f"s{k}" for k in range(n_sets)),
        np.zeros(n_measures, bool), np.zeros(n_measures, bool),
    )  # fmt: skip


def with_totals(measures, total):
    return replace(measures, total=total)


def matrix_of(measures):
    """The measures as a dense matrix over all values."""
    n, size = len(measures), measures.n_series * measures.n_periods
    rows = np.zeros((n, measures.n_series, measures.n_periods))
    for r, s, a, b, w in zip(
        measures.measure, measures.piece_set, measures.start, measures.stop, measures.weight,
        strict=True,
    ):  # fmt: skip
        members = measures.set_series[measures.set_ptr[s] : measures.set_ptr[s + 1]]
        rows[r][np.ix_(members, np.arange(a, b))] += w
    return rows.reshape(n, size)


def own_matrix(readings):
    rows = np.zeros((readings.n_readings, readings.n_series, readings.n_periods))
    for r, (n, a, b) in enumerate(
        zip(readings.series_of_readings(), readings.start, readings.stop, strict=True)
    ):
        rows[r, n, a:b] = 1.0
    return rows.reshape(readings.n_readings, -1)


def solve_qp(P, q, equal, values, n_positive):
    """Minimise v'Pv/2 + q'v subject to equal v = values, the first n_positive not below 0."""
    n = len(q)
    lower = -sparse.eye_array(n_positive, n, format="csc")
    A = sparse.vstack([sparse.csc_array(equal), lower], format="csc")
    b = np.concatenate([values, np.zeros(n_positive)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.ZeroConeT(len(values)), clarabel.NonnegativeConeT(n_positive)]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.triu(P)), q, sparse.csc_matrix(A), b, cones, settings
    )
    return np.array(solver.solve().x)


def make_case(seed, *, feasible=True):
    rng = np.random.default_rng(seed)
    readings = random_readings(seed, n_series=int(rng.integers(1, 5)), n_periods=12, coverage=0.7)
    size = (readings.n_series, 12)
    measures = random_measures(rng, *size, int(rng.integers(1, 7)))
    truth = rng.gamma(0.6, 1.0, size) * (rng.random(size) < 0.8)
    total = matrix_of(measures) @ truth.ravel()
    if not feasible:
        total = total * rng.uniform(0.2, 3.0, len(total))
    else:
        sums = own_matrix(readings) @ truth.ravel()
        readings = readings.with_totals(sums)
    x = rng.gamma(0.6, 1.0, size)
    d = x + FREEDOM * rng.uniform(0.5, 2.0, size)
    return readings, with_totals(measures, total), x, d


def check_nearest(seeds):
    for seed in seeds:
        readings, measures, x, d = make_case(seed)
        found = project(readings, measures, x, d)
        assert found.met, seed
        gaps = measures.total - matrix_of(measures) @ found.values.ravel()
        assert np.all(np.abs(gaps) <= 1e-9 * np.maximum(measures.total, 1e-9)), seed
        A = np.concatenate([own_matrix(readings), matrix_of(measures)])
        b = np.concatenate([readings.total, measures.total])
        weights = 1 / d.ravel()
        best = solve_qp(sparse.diags_array(weights), -weights * x.ravel(), A, b, x.size)
        cost, least = (np.sum((v - x.ravel()) ** 2 * weights) for v in (found.values.ravel(), best))
        assert cost <= least * (1 + 1e-6) + 1e-8, seed
        np.testing.assert_allclose(found.values.ravel(), best, atol=2e-4 * (1 + x.max()))


@pytest.mark.parametrize("batch", range(10))
def test_the_nearest_series_are_those_of_a_solver(batch):
    check_nearest(range(100 * batch, 100 * batch + 100))


def test_totals_that_cannot_be_met_are_met_in_least_squares():
    tried = 0
    for seed in range(150):
        readings, measures, x, d = make_case(seed, feasible=False)
        F, A = matrix_of(measures), own_matrix(readings)
        scale = 1 / np.sqrt(measures.squared().forward(d))
        S = F * scale[:, None]
        best = solve_qp(
            sparse.csc_array(S.T @ S), -S.T @ (scale * measures.total), A, readings.total, x.size
        )
        least = float(np.linalg.norm(scale * (F @ best - measures.total)))
        found = project(readings, measures, x, d)
        size = float(np.linalg.norm(scale * measures.total))
        assert np.linalg.norm(scale * found.gaps) <= least + 1e-4 * size, seed
        np.testing.assert_allclose(A @ found.values.ravel(), readings.total, rtol=1e-8, atol=1e-9)
        tried += not found.met
        assert found.proven == (not found.met), seed
        if found.proven:  # no series at all are worth that much
            assert_proof(found.direction, measures, readings)
    assert tried > 50


def assert_proof(prices, measures, readings):
    prices = prices / np.abs(prices).max()
    z = measures.adjoint(prices)
    covered = readings.covered()
    assert (z[~covered] <= 1e-6).all()
    limits = [
        z[n, a:b].max() * total
        for n, a, b, total in zip(
            readings.series_of_readings(),
            readings.start,
            readings.stop,
            readings.total,
            strict=True,
        )
    ]
    assert prices @ measures.total > sum(limits)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_do_not_matter(size):
    readings, measures, x, d = make_case(3)
    plain = project(readings, measures, x, d)
    large = project(
        readings.with_totals(readings.total * size),
        with_totals(measures, measures.total * size), x * size, d * size,
    )  # fmt: skip
    assert large.met
    np.testing.assert_allclose(large.values / size, plain.values, rtol=1e-6, atol=1e-9)


def test_measures_sum_what_their_matrix_sums():
    rng = np.random.default_rng(4)
    measures = random_measures(rng, 6, 15, 9)
    values, prices = rng.normal(0, 1, (6, 15)), rng.normal(0, 1, 9)
    np.testing.assert_allclose(measures.forward(values), matrix_of(measures) @ values.ravel())
    np.testing.assert_allclose(
        measures.adjoint(prices).ravel(), matrix_of(measures).T @ prices, atol=1e-12
    )
    left_out = np.setdiff1d(np.arange(6), measures.set_series[: measures.set_ptr[1]])
    some = np.setdiff1d(np.arange(6), left_out[:1])
    smaller = measures.take(some)
    dense = matrix_of(measures).reshape(9, 6, 15)
    alone = ~dense[:, left_out[:1]].any(axis=(1, 2))
    assert 0 < len(smaller) == alone.sum() < 9
    np.testing.assert_allclose(matrix_of(smaller), dense[alone][:, some].reshape(len(smaller), -1))
