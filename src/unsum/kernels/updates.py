"""Updates of one factor while the other and V are fixed.

Both solve, for every column x of a block (rank, n), the nonnegative least squares problem

    minimise   x' S x / 2 - g' x   subject to   x >= 0,

with S shared: for weights S = W'W and g = W'V, for profiles S = HH' and g = H V'.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def hals(S, g, x, n, n_sweeps):
    """Hierarchical alternating least squares: one profile after the other, for n columns."""
    rank = len(S)
    gap = np.empty(n)
    for _ in range(n_sweeps):
        for k in range(rank):
            if S[k, k] <= 0.0:
                continue
            for i in range(n):
                gap[i] = g[k, i]
            for j in range(rank):
                factor = S[k, j]
                for i in range(n):
                    gap[i] -= factor * x[j, i]
            scale = 1.0 / S[k, k]
            for i in range(n):
                x[k, i] = max(0.0, x[k, i] + scale * gap[i])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def nenmf(S, bound, g, x, n, n_steps):
    """Nesterov's optimal gradient method with restart, for n columns one by one.

    `bound` is the largest eigenvalue of S. When a step would raise the objective, momentum is
    dropped and a plain projected gradient step taken, so the objective never rises.
    """
    rank = len(S)
    if bound <= 0.0:
        return
    here, ahead, tried = np.empty(rank), np.empty(rank), np.empty(rank)
    S_here, S_ahead, S_tried = np.empty(rank), np.empty(rank), np.empty(rank)
    for i in range(n):
        for k in range(rank):
            here[k] = x[k, i]
            ahead[k] = x[k, i]
        value = _value(S, g, here, S_here, i)
        S_ahead[:] = S_here
        momentum = 1.0
        for _ in range(n_steps):
            for k in range(rank):
                tried[k] = max(0.0, ahead[k] - (S_ahead[k] - g[k, i]) / bound)
            new_value = _value(S, g, tried, S_tried, i)
            if new_value > value and momentum > 1.0:
                ahead[:] = here
                S_ahead[:] = S_here
                momentum = 1.0
                continue
            following = (1.0 + np.sqrt(4.0 * momentum * momentum + 1.0)) / 2.0
            factor = (momentum - 1.0) / following
            for k in range(rank):
                ahead[k] = tried[k] + factor * (tried[k] - here[k])
                S_ahead[k] = S_tried[k] + factor * (S_tried[k] - S_here[k])
                here[k] = tried[k]
                S_here[k] = S_tried[k]
            value, momentum = new_value, following
        for k in range(rank):
            x[k, i] = here[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _value(S, g, x, S_x, i):
    """The objective of column i at x; `S_x` receives `S x`."""
    rank = len(x)
    value = 0.0
    for k in range(rank):
        total = 0.0
        for j in range(rank):
            total += S[k, j] * x[j]
        S_x[k] = total
        value += x[k] * (0.5 * total - g[k, i])
    return value
