"""One pass of Algorithm 1 over a chunk of series: weights, then the V step, then the sums."""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.implicit import BLOCK, FAST, fill_water, gather, grow, project, scatter
from unsum.kernels.updates import hals, nenmf


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def pass_chunk(
    indptr, start, stop, total, tau, lift_ptr, lift_at, lift, H, W, C, S, mixed, bound, lowest,
    lows, width, update, n_inner, steps, points, gram, sums,
):  # fmt: skip
    """Update the weights of a chunk and project, in place; return the new lifts.

    `mixed` is `W'W_old` of the new and the old profiles, `S` is `W'W`. With `n_inner` zero only the
    V step is done. `steps` and `points` receive `R H'`, `gram` receives `HH'`. `sums` has three
    rows: objective, clipped and expanded readings; squared residuals at positive weights, by
    profile; squared negative gradients at zero weights.
    """
    n_series, rank = H.shape
    n_periods = len(W)
    x, found = np.empty(n_periods), np.empty((n_periods, 2))
    new_ptr = np.zeros(n_series + 1, np.int64)
    new_at, new_lift = np.empty(len(lift_at), np.int32), np.empty(len(lift))
    n_lifts = 0
    weights, targets = np.empty((rank, BLOCK)), np.empty((rank, BLOCK))
    g, h = np.empty(rank), np.empty(rank)
    for low in range(0, n_series, BLOCK):
        high = min(low + BLOCK, n_series)
        if n_inner > 0:
            n = high - low
            for i in range(n):
                gather(indptr, start, stop, tau, lift_ptr, lift_at, lift, C, W, low + i, g)
                for k in range(rank):
                    weights[k, i] = H[low + i, k]
                    targets[k, i] = g[k]
            for k in range(rank):
                for j in range(rank):
                    factor = mixed[k, j]
                    for i in range(n):
                        targets[k, i] += factor * weights[j, i]
            if update == 0:
                hals(S, targets[:, :n], weights[:, :n], n_inner)
            else:
                nenmf(S, bound, targets[:, :n], weights[:, :n], n_inner)
            for i in range(n):
                for k in range(rank):
                    H[low + i, k] = weights[k, i]
        for n in range(low, high):
            for k in range(rank):
                h[k] = H[n, k]
            part, clipped, expanded, count = project(
                indptr, start, stop, total, W, C, lowest, lows, width, n, h, tau, x, found
            )
            if n_lifts + count > len(new_at):
                new_at = grow(new_at, n_lifts + count)
                new_lift = grow(new_lift, n_lifts + count)
            for i in range(count):
                new_at[n_lifts + i] = np.int32(found[i, 0])
                new_lift[n_lifts + i] = found[i, 1]
            n_lifts += count
            new_ptr[n + 1] = n_lifts
            sums[0, 0] += part
            sums[0, 1] += clipped
            sums[0, 2] += expanded
            scatter(indptr, start, stop, tau, new_ptr, new_at, new_lift, n, h, steps, points)
            gather(indptr, start, stop, tau, new_ptr, new_at, new_lift, C, W, n, g)
            for k in range(rank):
                if h[k] > 0.0:
                    sums[1, k] += g[k] * g[k]
                elif g[k] > 0.0:
                    sums[2, k] += g[k] * g[k]
                for j in range(rank):
                    gram[k, j] += h[k] * h[j]
    return new_ptr, new_at[:n_lifts].copy(), new_lift[:n_lifts].copy()


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def fill_values(indptr, start, stop, total, scale, H, W, values):
    """The projected V of a part of the series, in full: `W h`, moved onto the readings."""
    rank = H.shape[1]
    n_periods = len(W)
    for n in range(len(indptr) - 1):
        for t in range(n_periods):
            value = 0.0
            for k in range(rank):
                value += W[t, k] * H[n, k]
            values[n, t] = value
        for d in range(indptr[n], indptr[n + 1]):
            first, last = start[d], stop[d]
            if scale[n] > 0.0:
                level = fill_level(values[n, first:last], total[d] / scale[n])
                for t in range(first, last):
                    values[n, t] = max(0.0, values[n, t] + level)
        for t in range(n_periods):
            values[n, t] *= scale[n]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def fill_level(x, total):
    """The level that moves x onto its total, nonnegative."""
    accumulated, smallest = 0.0, np.inf
    for i in range(len(x)):
        accumulated += x[i]
        smallest = min(smallest, x[i])
    level = (total - accumulated) / len(x)
    if level + smallest < 0.0:
        level = fill_water(x, total)
    return level
