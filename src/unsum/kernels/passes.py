"""One pass of Algorithm 1 over a chunk of series: weights, then the V step, then the sums."""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.implicit import FAST, fill_water, gather, gather_lifts, project, settle
from unsum.kernels.updates import BLOCK, add_product, update_block


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def pass_chunk(
    like, ptr, row, edge, total, share, order, tau, lift_ptr, lift_at, lift, H, H_fit, W_fit, C_fit,
    S, mixed, bound, update, n_inner, momentum, W, C, lowest, lows, width, steps, gram, sums,
):  # fmt: skip
    """Update the weights of a chunk and project, in place; return the new lifts.

    Series n of the chunk has the weights `H[order[n]]`. They are updated with the profiles `W_fit`;
    `mixed` is `W_fit' W_old`, with the profiles that V was projected with before, and `S` is
    `W_fit' W_fit`. With `n_inner` zero only the V step is done. If `H_fit` is not empty it keeps
    the updated weights, and those in H go on from there by `momentum` times the way since the last.
    `steps` receives `R H'` without lifts, `gram` receives `HH'`. `sums` has three rows: objective,
    clipped and expanded readings; squared residuals at positive weights, by profile; squared
    negative gradients at zero weights.
    """
    n_series, rank = H.shape
    new_ptr = np.zeros(n_series + 1, np.int64)
    new_at, new_lift = np.empty(len(lift_at), np.int32), np.empty(len(lift))
    weights, targets = np.zeros((rank, BLOCK)), np.zeros((rank, BLOCK))
    rows, pulls = np.zeros((BLOCK, C.shape[1])), np.zeros((BLOCK, C.shape[1]))
    largest = 0
    for low in range(0, n_series, BLOCK):
        largest = max(largest, ptr[min(low + BLOCK, n_series)] - ptr[low])
    suspects = np.empty(largest, np.int64)
    for low in range(0, n_series, BLOCK):
        high = min(low + BLOCK, n_series)
        n = high - low
        for i in range(n):
            for k in range(rank):
                weights[k, i] = H[order[low + i], k]
        if n_inner > 0:
            gather(like, ptr, row, tau, C_fit, low, high, pulls)
            gather_lifts(lift_ptr, lift_at, lift, W_fit, low, high, pulls)
            for i in range(n):
                for k in range(rank):
                    targets[k, i] = pulls[i, k]
            add_product(mixed, weights, n, targets)
            update_block(update, S, bound, targets, weights, n, n_inner)
            if len(H_fit):
                for i in range(n):
                    for k in range(rank):
                        fitted = weights[k, i]
                        way = fitted - H_fit[order[low + i], k]
                        weights[k, i] = max(0.0, fitted + momentum * way)
                        H_fit[order[low + i], k] = fitted
        for i in range(n):
            for k in range(rank):
                rows[i, k] = weights[k, i]
                H[order[low + i], k] = weights[k, i]
        objective, n_suspects = project(
            like, ptr, row, total, share, C, lowest, rows, low, high, tau, steps, pulls, suspects
        )
        change, n_expanded, n_clipped, new_at, new_lift = settle(
            ptr, row, edge, total, C, W, lows, width, rows, low, high, tau, steps, pulls, suspects,
            n_suspects, new_ptr, new_at, new_lift,
        )  # fmt: skip
        gather_lifts(new_ptr, new_at, new_lift, W, low, high, pulls)
        sums[0, 0] += objective + change
        sums[0, 1] += n_clipped
        sums[0, 2] += n_expanded
        for i in range(n):
            for k in range(rank):
                targets[k, i] = pulls[i, k]
        sum_up(weights, targets, n, gram, sums)
    n_lifts = new_ptr[n_series]
    return new_ptr, new_at[:n_lifts].copy(), new_lift[:n_lifts].copy()


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def sum_up(weights, gradients, n, gram, sums):
    """Add a block's part of `HH'` and of the squared residuals of its weights."""
    rank = len(gram)
    for k in range(rank):
        for j in range(k + 1):
            product = 0.0
            for i in range(n):
                product += weights[k, i] * weights[j, i]
            gram[k, j] += product
            if j < k:
                gram[j, k] += product
        at_positive, at_zero = 0.0, 0.0
        for i in range(n):
            squared = gradients[k, i] * gradients[k, i]
            at_positive += squared if weights[k, i] > 0.0 else 0.0
            at_zero += squared if weights[k, i] <= 0.0 and gradients[k, i] > 0.0 else 0.0
        sums[1, k] += at_positive
        sums[2, k] += at_zero


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def fill_values(indptr, start, stop, total, scale, H, W, values):
    """The projected V of a part of the series, in full: `W h`, moved onto the readings."""
    rank = H.shape[1]
    x = np.empty(len(W))
    for n in range(len(indptr) - 1):
        for t in range(len(W)):
            value = 0.0
            for k in range(rank):
                value += W[t, k] * H[n, k]
            values[n, t] = value
        for d in range(indptr[n], indptr[n + 1]):
            first, length = start[d], stop[d] - start[d]
            if scale[n] > 0.0:
                for t in range(length):
                    x[t] = values[n, first + t]
                level = fill_water(x, length, total[d] / scale[n])
                for t in range(length):
                    values[n, first + t] = max(0.0, x[t] + level)
        for t in range(len(W)):
            values[n, t] *= scale[n]
