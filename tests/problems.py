"""Seeded random problems, and the slow, obvious way to solve them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from unsum.readings import Readings


def random_readings(
    seed: int,
    n_series: int = 7,
    n_periods: int = 40,
    *,
    coverage: float = 0.85,
    zeros: float = 0.1,
    shape: float = 0.5,
) -> Readings:
    """Readings at random dates with gaps, tails, some zeros, and uneven levels."""
    rng = np.random.default_rng(seed)
    series, start, stop = [], [], []
    for n in range(n_series):
        n_cuts = int(rng.integers(2, max(3, n_periods // 3)))
        cuts = np.sort(rng.choice(n_periods + 1, min(n_cuts, n_periods + 1), replace=False))
        keep = rng.random(len(cuts) - 1) < coverage
        keep[int(rng.integers(len(keep)))] = True
        series += [n] * int(keep.sum())
        start += cuts[:-1][keep].tolist()
        stop += cuts[1:][keep].tolist()
    rate = rng.gamma(shape, 1.0, len(series)) * np.exp(rng.normal(0, 1, n_series))[series]
    rate[rng.random(len(series)) < zeros] = 0.0
    total = rate * (np.array(stop) - np.array(start))
    return Readings.from_arrays(
        np.array(series), np.array(start), np.array(stop), total,
        n_series=n_series, n_periods=n_periods,
    )  # fmt: skip


def smoothest(start, stop, total, n_periods):
    """Denton's problem for one series, handed to a solver of quadratic programs."""
    scale = max(total / (stop - start)) or 1.0
    v = cp.Variable(n_periods)
    constraints = [v >= 0]
    for low, high, amount in zip(start, stop, total / scale, strict=True):
        constraints.append(cp.sum(v[int(low) : int(high)]) == amount)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.diff(v))), constraints)
    problem.solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13, max_iter=500
    )
    return v.value * scale


def roughness(values):
    return float(np.sum(np.diff(values) ** 2))
