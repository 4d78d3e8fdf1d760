"""Algorithm 2, V step: series pulled towards their autocorrelation, nonnegative and exact."""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.chain import make_workspace, solve_nonnegative
from unsum.kernels.implicit import FAST, fill_water


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def smooth_rows(indptr, start, stop, total, X, lags, shares, rho, strength, V, zero):
    """For every row x of X, write into V the minimiser of

        ||v - x||^2 - lambda v' Delta_rho v   subject to   A v = b, v >= 0,

    where `v' Delta_rho v` is twice the sum over lags of `share * v[t] v[t + lag]`, less twice that
    of `rho v[t]^2`, over the periods that some reading covers. Elsewhere v is x: nothing would
    bound the second term there, and model and values would chase each other to infinity.

    `zero` holds the periods that were zero at the last solution and is kept up to date. Where
    lambda is zero this is the simplex projection of Algorithm 1. Returns the objective, and how
    many rows met nonnegativity's bound.
    """
    n_series, n_periods = X.shape
    objective, n_clipped = 0.0, 0
    width = lags.max()
    diagonal, coupling = np.empty(n_periods), np.zeros((n_periods, width))
    covered = np.empty(n_periods, np.bool_)
    x = np.empty(n_periods)
    workspace = make_workspace(n_periods, width)
    for n in range(n_series):
        first, last = indptr[n], indptr[n + 1]
        covered[:] = False
        for d in range(first, last):
            covered[start[d] : stop[d]] = True
        if strength[n] > 0.0:
            for t in range(n_periods):
                diagonal[t] = 1.0 + 2.0 * strength[n] * rho[n] if covered[t] else 1.0
            for i in range(len(lags)):
                lag, pull = lags[i], -strength[n] * shares[i]
                for t in range(n_periods - lag):
                    coupling[t, lag - 1] = pull if covered[t] and covered[t + lag] else 0.0
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
        for t in range(n_periods):
            if covered[t]:
                gap += (V[n, t] - X[n, t]) ** 2
                squares += V[n, t] * V[n, t]
        for i in range(len(lags)):
            product = 0.0
            for t in range(n_periods - lags[i]):
                if covered[t] and covered[t + lags[i]]:
                    product += V[n, t] * V[n, t + lags[i]]
            products += shares[i] * product
        objective += gap - strength[n] * 2.0 * (products - rho[n] * squares)
    return objective, n_clipped
