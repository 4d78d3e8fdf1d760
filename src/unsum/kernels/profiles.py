"""What an iteration does over periods: sums from the series, then new profiles."""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.implicit import FAST
from unsum.kernels.updates import BLOCK, add_product, update_block


@njit(cache=True, nogil=True)
def add_rows(rows, values, total):
    """`total[rows] += values`."""
    for i in range(len(rows)):
        for k in range(values.shape[1]):
            total[rows[i], k] += values[i, k]


@njit(cache=True, nogil=True)
def sum_steps(steps, points, W, residual, squares):
    """`R H'` from its differences and single points (which may be absent).

    `squares` receives sums of squares by profile: of `R H'` where W is positive, and where W is
    zero and wants to grow; and of W.
    """
    rank = W.shape[1]
    running = np.zeros(rank)
    for t in range(len(W)):
        for k in range(rank):
            running[k] += steps[t, k]
            value = running[k]
            if len(points):
                value += points[t, k]
            residual[t, k] = value
            squares[2, k] += W[t, k] * W[t, k]
            if W[t, k] > 0.0:
                squares[0, k] += value * value
            elif value > 0.0:
                squares[1, k] += value * value


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def update_profiles(W, gram, bound, residual, update, n_inner, low, high, W_new):
    """`W = Update(W, H, V)` for a stretch of periods, from `V H' = W H H' + R H'`."""
    rank = W.shape[1]
    columns, targets = np.zeros((rank, BLOCK)), np.zeros((rank, BLOCK))
    for begin in range(low, high, BLOCK):
        n = min(BLOCK, high - begin)
        for i in range(n):
            for k in range(rank):
                columns[k, i] = W[begin + i, k]
                targets[k, i] = residual[begin + i, k]
        add_product(gram, columns, n, targets)
        update_block(update, gram, bound, targets, columns, n, n_inner)
        for i in range(n):
            for k in range(rank):
                W_new[begin + i, k] = columns[k, i]


@njit(cache=True, nogil=True)
def sum_profiles(W, C):
    """The running sum of W into C, from its second row on."""
    for t in range(len(W)):
        for k in range(W.shape[1]):
            C[t + 1, k] = C[t, k] + W[t, k]
