"""Updates of one factor while the other and V are fixed.

Both solve, for every column x of a block, the nonnegative least squares problem

    minimise   x' S x / 2 - g' x   subject to   x >= 0,

with S shared: for weights S = W'W and g = W'V, for profiles S = HH' and g = H V'. A block has
`BLOCK` columns, of which n are in use: so many fit into the first caches.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.lanes import WIDTH, add_multiple, load, positive, store

FAST = {"reassoc", "contract"}
BLOCK = 128
TILE = (0, 0, 0, 0)  # lanes of columns that are worked on together


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def update_block(update, S, bound, g, x, n, n_inner):
    """The update of this number, for n columns of a block."""
    if update == 0:
        hals(S, g, x, n, n_inner)
    else:
        nenmf(S, bound, g, x, n, n_inner)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def update_rows(update, S, bound, targets, rows, n_inner):
    """The update of every row of an array, in place."""
    n_rows, rank = rows.shape
    x, g = np.zeros((rank, BLOCK)), np.zeros((rank, BLOCK))
    for low in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - low)
        for i in range(n):
            for k in range(rank):
                x[k, i] = rows[low + i, k]
                g[k, i] = targets[low + i, k]
        update_block(update, S, bound, g, x, n, n_inner)
        for i in range(n):
            for k in range(rank):
                rows[low + i, k] = x[k, i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def hals(S, g, x, n, n_sweeps):
    """Hierarchical alternating least squares: one profile after the other."""
    rank = len(S)
    for at in range(0, n, WIDTH * len(TILE)):
        for _ in range(n_sweeps):
            for k in range(rank):
                if S[k, k] <= 0.0:
                    continue
                gap = load(TILE, g, k, at)
                for j in range(rank):
                    gap = add_multiple(gap, -S[k, j], load(TILE, x, j, at))
                here = load(TILE, x, k, at)
                store(x, k, at, positive(add_multiple(here, 1.0 / S[k, k], gap)))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def add_product(matrix, x, n, out):
    """`out += matrix @ x` for n columns of a block."""
    rank = len(matrix)
    for at in range(0, n, WIDTH * len(TILE)):
        for k in range(rank):
            row = load(TILE, out, k, at)
            for j in range(rank):
                row = add_multiple(row, matrix[k, j], load(TILE, x, j, at))
            store(out, k, at, row)


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
