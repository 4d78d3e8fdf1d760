"""A pass of Algorithm 1 over series that are all read at the same dates: matrix products do it.

Totals and `tau` are matrices (series, edges), `sums` the sums of the profiles between neighbouring
edges, `(C[stop] - C[start])`. One call for a chunk, so that threads do not wait for each other.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.implicit import FAST, gather_lifts, settle
from unsum.kernels.passes import sum_up
from unsum.kernels.updates import BLOCK, update_rows

CANCELLED = 1e-4  # share of the squares below which their difference has lost too many digits


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def pass_aligned(
    ptr, row, edge, total, share, tau, lift_ptr, lift_at, lift, H, H_fit, W_fit, C_fit, S, mixed,
    bound, update, n_inner, momentum, W, C, lowest, lows, width, steps, gram, sums,
):  # fmt: skip
    """As `pass_chunk`, with one row of `share` for all series."""
    n_series, rank = H.shape
    if n_inner > 0:
        targets = np.dot(tau, sum_between(C_fit, rank)) + np.dot(H, mixed.T)
        gather_lifts(lift_ptr, lift_at, lift, W_fit, 0, n_series, targets)
        update_rows(update, S, bound, targets, H, n_inner)
        carry_on(H, H_fit, momentum)
    between = sum_between(C, rank)
    np.dot(H, between.T, tau)
    suspects = np.empty(tau.size, np.int64)
    floors = np.dot(H, np.ascontiguousarray(lowest[0, :rank]))
    objective, n_suspects = meet(total, share, floors, tau, suspects)
    pulls = np.dot(tau, between)
    _fill_steps(np.dot(tau.T, H), steps)
    new_ptr = np.zeros(n_series + 1, np.int64)
    change, n_expanded, n_clipped, new_at, new_lift = settle(
        ptr, row, edge, total.ravel(), C, W, lows, width, H, 0, n_series, tau.ravel(), steps,
        pulls, suspects, n_suspects, new_ptr, np.empty(len(lift_at), np.int32),
        np.empty(len(lift)),
    )  # fmt: skip
    gather_lifts(new_ptr, new_at, new_lift, W, 0, n_series, pulls)
    sums[0, 0] += objective + change
    sums[0, 1] += n_clipped
    sums[0, 2] += n_expanded
    _sum_up_rows(H, pulls, gram, sums)
    n_lifts = new_ptr[n_series]
    return new_ptr, new_at[:n_lifts].copy(), new_lift[:n_lifts].copy()


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def pass_complete(
    total, squares, share, old_between, H, H_fit, C_fit, S, mixed, bound, update, n_inner, momentum,
    C, steps, gram, sums,
):  # fmt: skip
    """As `pass_aligned` where every reading is of one period: V is known there, nothing clips.

    R need not be formed: two products of the totals, with the profiles and with the weights, give
    all sums over it, as in plain factorization of a matrix. `squares` is the sum of squared totals.
    Returns the sums of the profiles between edges, for the next pass.
    """
    rank = H.shape[1]
    between = sum_between(C_fit, rank) * share.reshape(-1, 1)
    products = np.dot(total, between)
    if n_inner > 0:
        elsewhere = mixed - np.dot(between.T, old_between)
        update_rows(update, S, bound, products + np.dot(H, elsewhere.T), H, n_inner)
        carry_on(H, H_fit, momentum)
    if momentum > 0.0:
        between = sum_between(C, rank) * share.reshape(-1, 1)
        products = np.dot(total, between)
    own = np.dot(between.T, between)
    _sum_up_rows(H, products - np.dot(H, own), gram, sums)
    _fill_steps(np.dot(total.T, H) - np.dot(between, gram), steps)
    objective = squares - 2.0 * np.sum(products * H) + np.sum(own * gram)
    if objective < CANCELLED * squares:
        gaps = total - np.dot(H, between.T)
        objective = np.sum(gaps * gaps)
    sums[0, 0] += objective
    return between


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def meet(total, share, floors, tau, suspects):
    """The V step as in `implicit.project`; `floors` are lower bounds of the model of each series.

    `tau` holds the model's totals and receives the levels.
    """
    objective, n_suspects = 0.0, 0
    n_series, n_edges = tau.shape
    for n in range(n_series):
        squares, smallest = 0.0, 0.0
        for m in range(n_edges):
            gap = total[n, m] - tau[n, m]
            level = gap * share[m]
            squares += gap * level
            smallest = min(smallest, level)
            tau[n, m] = level
        objective += squares
        if smallest + floors[n] < 0.0:
            for m in range(n_edges):
                if tau[n, m] + floors[n] < 0.0:
                    suspects[n_suspects] = n * n_edges + m
                    n_suspects += 1
    return objective, n_suspects


@njit(cache=True, nogil=True)
def carry_on(H, H_fit, momentum):
    """Move updated weights on by `momentum` times the way since the last; keep them in `H_fit`."""
    for n in range(len(H_fit)):
        for k in range(H.shape[1]):
            fitted = H[n, k]
            H[n, k] = max(0.0, fitted + momentum * (fitted - H_fit[n, k]))
            H_fit[n, k] = fitted


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def sum_between(C, rank):
    """The sums of each profile between neighbouring edges, and nothing after the last."""
    between = np.zeros((len(C), rank))
    for m in range(len(C) - 1):
        for k in range(rank):
            between[m, k] = C[m + 1, k] - C[m, k]
    return between


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _fill_steps(levels, steps):
    """`R H'` on each reading, as differences at the edges."""
    for m in range(len(levels)):
        for k in range(levels.shape[1]):
            steps[m, k] = levels[m, k] - (levels[m - 1, k] if m > 0 else 0.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _sum_up_rows(H, pulls, gram, sums):
    """`sum_up` for arrays that have a row for each series."""
    n_series, rank = H.shape
    weights, gradients = np.zeros((rank, BLOCK)), np.zeros((rank, BLOCK))
    for low in range(0, n_series, BLOCK):
        n = min(BLOCK, n_series - low)
        for i in range(n):
            for k in range(rank):
                weights[k, i] = H[low + i, k]
                gradients[k, i] = pulls[low + i, k]
        sum_up(weights, gradients, n, gram, sums)
