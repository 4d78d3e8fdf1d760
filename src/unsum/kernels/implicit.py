"""Algorithm 1 without V: a pass over a range of series costs its readings, not its periods.

For fixed W and H the projected V is `W h + R`, and R is constant on a reading (`tau`) unless
nonnegativity bites there. Where it does, R has a further part, the lifts: positive corrections at
the periods that are held at zero, stored one by one. What depends on W comes through its running
sum C: the model's total of a reading is `(C[stop] - C[start]) . h`, and sums over R are sums over
the edges between readings.

Sums over profiles may be reassociated, which lets the compiler use vector registers; the order is
the same on every run on a machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 128  # series handled together, so that their weights stay in the first cache
FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def gather(indptr, start, stop, tau, lift_ptr, lift_at, lift, C, W, n, g):
    """`g = W'R` for series n, from the running sum C of W."""
    rank = C.shape[1]
    g[:] = 0.0
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def scatter(indptr, start, stop, tau, lift_ptr, lift_at, lift, n, h, steps, points):
    """Add `R_n h'` to the sums over series: steps at edges, lifts at periods."""
    rank = len(h)
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
def fill_water(x, total):
    """The level theta with `sum(max(x + theta, 0)) = total`: projection onto a simplex.

    Michelot's rule: average over the entries that stay positive, drop those that do not, repeat.
    Levels only fall, so it ends after finitely many rounds at the exact answer.
    """
    n = len(x)
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def project(indptr, start, stop, total, W, C, lowest, lows, width, n, h, tau, x, found):
    """Algorithm 1, V step, for series n: `tau` of its readings, and the lifts where it clips.

    A reading can only clip where tau is negative and the model dips below -tau. `lowest` bounds the
    model from below by the smallest entry of each profile, `lows` by the smallest in each stretch
    of `width` periods; only readings that pass both bounds are expanded. Lifts go to `found`
    (period, amount). Returns the part of the objective, and how many readings were clipped and
    expanded, and the number of lifts.
    """
    floor = 0.0
    for k in range(len(h)):
        floor += lowest[k] * h[k]
    objective = 0.0
    n_clipped, n_expanded, n_lifts = 0, 0, 0
    at, sum_at = -1, 0.0
    for d in range(indptr[n], indptr[n + 1]):
        first, last = start[d], stop[d]
        if first != at:
            sum_at = _dot(C, first, h)
        sum_last = _dot(C, last, h)
        length = last - first
        level = (total[d] - (sum_last - sum_at)) / length
        at, sum_at = last, sum_last
        if level + floor < 0.0 and length > 1:
            bound = np.inf
            for stretch in range(first // width, (last - 1) // width + 1):
                bound = min(bound, _dot(lows, stretch, h))
            if level + bound < 0.0:
                n_expanded += 1
                smallest = np.inf
                for t in range(first, last):
                    x[t - first] = _dot(W, t, h)
                    smallest = min(smallest, x[t - first])
                if level + smallest < 0.0:
                    n_clipped += 1
                    level = fill_water(x[:length], total[d])
                    for t in range(length):
                        if x[t] + level < 0.0:
                            found[n_lifts, 0] = first + t
                            found[n_lifts, 1] = -(x[t] + level)
                            n_lifts += 1
                            objective += x[t] * x[t] - level * level
        tau[d] = level
        objective += level * level * length
    return objective, n_clipped, n_expanded, n_lifts


@njit(cache=True, nogil=True)
def grow(array, size):
    """A longer copy of an array."""
    longer = np.empty(max(size, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer
