"""Algorithm 2, V step: series pulled towards their autocorrelation, nonnegative and exact."""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.chain import make_workspace, solve_nonnegative
from unsum.kernels.implicit import FAST, fill_water


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def smooth_rows(indptr, start, stop, total, X, rho, strength, V, zero):
    """For every row x of X, write into V the minimiser of

        ||v - x||^2 - lambda v' Delta_rho v   subject to   A v = b, v >= 0,

    where `v' Delta_rho v` runs over the periods that some reading covers. Elsewhere v is x: nothing
    would bound the second term there, and model and values would chase each other to infinity.

    `zero` holds the periods that were zero at the last solution and is kept up to date. Where
    lambda is zero this is the simplex projection of Algorithm 1. Returns the objective, and how
    many rows met nonnegativity's bound.
    """
    n_series, n_periods = X.shape
    objective, n_clipped = 0.0, 0
    diagonal, coupling = np.empty(n_periods), np.empty(n_periods)
    x = np.empty(n_periods)
    workspace = make_workspace(n_periods)
    for n in range(n_series):
        first, last = indptr[n], indptr[n + 1]
        if strength[n] > 0.0:
            diagonal[:] = 1.0
            coupling[:] = 0.0
            for d in range(first, last):
                diagonal[start[d] : stop[d]] = 1.0 + 2.0 * strength[n] * rho[n]
                coupling[start[d] : stop[d]] = -strength[n]
                if d == last - 1 or start[d + 1] != stop[d]:
                    coupling[stop[d] - 1] = 0.0
            solve_nonnegative(
                diagonal, coupling, X[n], start[first:last], stop[first:last], total[first:last],
                V[n], zero[n], workspace,
            )  # fmt: skip
            if zero[n].any():
                n_clipped += 1
        else:
            V[n] = X[n]
            for d in range(first, last):
                length = stop[d] - start[d]
                for t in range(length):
                    x[t] = X[n, start[d] + t]
                level = fill_water(x, length, total[d])
                for t in range(length):
                    V[n, start[d] + t] = max(0.0, x[t] + level)
        gap, squares, products = 0.0, 0.0, 0.0
        for d in range(first, last):
            for t in range(start[d], stop[d]):
                gap += (V[n, t] - X[n, t]) ** 2
                squares += V[n, t] * V[n, t]
                if t > start[d] or (d > first and stop[d - 1] == start[d]):
                    products += V[n, t - 1] * V[n, t]
        objective += gap - strength[n] * 2.0 * (products - rho[n] * squares)
    return objective, n_clipped
