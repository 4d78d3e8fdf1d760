"""Algorithm 1 without V: a pass over a range of series costs its readings, not its periods.

For fixed W and H the projected V is `W h + R`, and R is constant on a reading (`tau`) unless
nonnegativity bites there. Where it does, R has a further part, the lifts: positive corrections at
the periods that are held at zero, stored one by one. What depends on W comes through its running
sum C: the model's total of a reading is `(C[stop] - C[start]) . h`, and sums over R are sums over
the edges between readings.

All functions work through the series `low` to `high`. Sums over profiles may be reassociated, which
lets the compiler use vector registers; the order is the same on every run on a machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def gather(indptr, start, stop, tau, lift_ptr, lift_at, lift, C, W, low, high, out):
    """`W'R` of each series into a column of `out` (rank, high - low), from the running sum C."""
    rank = C.shape[1]
    g = np.empty(rank)
    for n in range(low, high):
        for k in range(rank):
            g[k] = 0.0
        at, before = -1, 0.0
        for d in range(indptr[n], indptr[n + 1]):
            first = start[d]
            if first != at and at >= 0:
                for k in range(rank):
                    g[k] += before * C[at, k]
                before = 0.0
            step = before - tau[d]
            for k in range(rank):
                g[k] += step * C[first, k]
            at, before = stop[d], tau[d]
        if at >= 0:
            for k in range(rank):
                g[k] += before * C[at, k]
        for i in range(lift_ptr[n], lift_ptr[n + 1]):
            for k in range(rank):
                g[k] += lift[i] * W[lift_at[i], k]
        for k in range(rank):
            out[k, n - low] = g[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def scatter(indptr, start, stop, tau, lift_ptr, lift_at, lift, H, low, high, steps, points):
    """Add `R H'` of these series: steps at the edges of readings, lifts at single periods."""
    rank = H.shape[1]
    h = np.empty(rank)
    for n in range(low, high):
        for k in range(rank):
            h[k] = H[n, k]
        at, before = -1, 0.0
        for d in range(indptr[n], indptr[n + 1]):
            first = start[d]
            if first != at and at >= 0:
                for k in range(rank):
                    steps[at, k] -= before * h[k]
                before = 0.0
            step = tau[d] - before
            for k in range(rank):
                steps[first, k] += step * h[k]
            at, before = stop[d], tau[d]
        if at >= 0:
            for k in range(rank):
                steps[at, k] -= before * h[k]
        for i in range(lift_ptr[n], lift_ptr[n + 1]):
            for k in range(rank):
                points[lift_at[i], k] += lift[i] * h[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _dot(table, row, h):
    total = 0.0
    for k in range(len(h)):
        total += table[row, k] * h[k]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def project(
    indptr, start, stop, total, C, lowest, lows, width, H, low, high, tau, suspects
):  # fmt: skip
    """Algorithm 1, V step, where nothing clips: `tau` of every reading.

    A reading can only clip where tau is negative and the model dips below -tau. `lowest` bounds the
    model from below by the smallest entry of each profile, `lows` by the smallest in each stretch
    of `width` periods; readings that pass both bounds are listed in `suspects`, for `settle`.
    Returns the objective and the number of suspects.
    """
    rank = H.shape[1]
    h = np.empty(rank)
    objective, n_suspects = 0.0, 0
    for n in range(low, high):
        floor = 0.0
        for k in range(rank):
            h[k] = H[n, k]
            floor += lowest[k] * h[k]
        at, sum_at = -1, 0.0
        for d in range(indptr[n], indptr[n + 1]):
            first, last = start[d], stop[d]
            if first != at:
                sum_at = _dot(C, first, h)
            sum_last = _dot(C, last, h)
            length = last - first
            level = (total[d] - (sum_last - sum_at)) / length
            at, sum_at = last, sum_last
            tau[d] = level
            objective += level * level * length
            if level + floor < 0.0 and length > 1:
                bound = np.inf
                for stretch in range(first // width, (last - 1) // width + 1):
                    bound = min(bound, _dot(lows, stretch, h))
                if level + bound < 0.0:
                    suspects[n_suspects] = d
                    n_suspects += 1
    return objective, n_suspects


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def settle(
    indptr, start, stop, total, W, H, low, high, tau, suspects, n_suspects, lift_ptr, lift_at, lift
):  # fmt: skip
    """Algorithm 1, V step, where readings may clip: expand the suspects and fill them exactly.

    Corrects `tau` and appends the lifts. Returns the change of the objective, the number of clipped
    readings, and the arrays of lifts, which may have grown.
    """
    rank = H.shape[1]
    h, x = np.empty(rank), np.empty(len(W))
    change, n_clipped, place = 0.0, 0, 0
    n_lifts = lift_ptr[low]
    for n in range(low, high):
        while place < n_suspects and suspects[place] < indptr[n + 1]:
            d = suspects[place]
            place += 1
            for k in range(rank):
                h[k] = H[n, k]
            first, length = start[d], stop[d] - start[d]
            smallest = np.inf
            for t in range(length):
                x[t] = _dot(W, first + t, h)
                smallest = min(smallest, x[t])
            if tau[d] + smallest >= 0.0:
                continue
            n_clipped += 1
            level = fill_water(x, length, total[d])
            if n_lifts + length > len(lift_at):
                lift_at = grow(lift_at, n_lifts + length)
                lift = grow(lift, n_lifts + length)
            change += (level * level - tau[d] * tau[d]) * length
            tau[d] = level
            for t in range(length):
                if x[t] + level < 0.0:
                    lift_at[n_lifts] = first + t
                    lift[n_lifts] = -(x[t] + level)
                    n_lifts += 1
                    change += x[t] * x[t] - level * level
        lift_ptr[n + 1] = n_lifts
    return change, n_clipped, lift_at, lift


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def fill_water(x, n, total):
    """The level with `sum(max(x[:n] + level, 0)) = total`: projection onto a simplex.

    Michelot's rule: average over the entries that stay positive, drop those that do not, repeat.
    Levels only fall, so it ends after finitely many rounds at the exact answer.
    """
    accumulated = 0.0
    for i in range(n):
        accumulated += x[i]
    level, size = (total - accumulated) / n, n
    while True:
        kept, remaining = 0, 0.0
        for i in range(n):
            if x[i] + level > 0.0:
                kept += 1
                remaining += x[i]
        if kept == size or kept == 0:
            return level
        level, size = (total - remaining) / kept, kept


@njit(cache=True, nogil=True)
def grow(array, size):
    """A longer copy of an array."""
    longer = np.empty(max(size, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer
