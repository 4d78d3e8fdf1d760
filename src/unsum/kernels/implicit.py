"""Algorithm 1 without V: a pass over a range of series costs its readings, not its periods.

For fixed W and H the projected V is `W h + R`, and R is constant on a reading (`tau`) unless
nonnegativity bites there. Where it does, R has a further part, the lifts: positive corrections at
the periods that are held at zero, stored one by one. What depends on W comes through its running
sum C: the model's total of a reading is `(C[stop] - C[start]) . h`, and sums over R are sums over
the edges between readings.

So a series is laid out as its edges: entry e is an edge, with the reading that begins there. A gap
is a reading without weight (`share` zero), and so is the last edge; whatever is computed there is
multiplied away. `row` is the row of C, and of `steps`, that belongs to an edge.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.lanes import add_multiple, dot, load, store, zero

FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True)
def lay_out(indptr, start, stop, total, order):
    """The edges of each series, in this order: `ptr, edge, total, share`.

    There is one more edge at the very end, which belongs to nobody.
    """
    n_series, n_entries = len(order), 0
    for n in range(n_series):
        for d in range(indptr[n], indptr[n + 1]):
            n_entries += 1 if d > indptr[n] and start[d] == stop[d - 1] else 2
    ptr = np.zeros(n_series + 1, np.int64)
    edge = np.full(n_entries + 1, start[0])
    amount, share = np.zeros(n_entries), np.zeros(n_entries)
    e = 0
    for i in range(n_series):
        n = order[i]
        for d in range(indptr[n], indptr[n + 1]):
            edge[e], amount[e], share[e] = start[d], total[d], 1.0 / (stop[d] - start[d])
            e += 1
            if d + 1 == indptr[n + 1] or start[d + 1] != stop[d]:
                edge[e] = stop[d]
                e += 1
        ptr[i + 1] = e
    return ptr, edge, amount, share


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def gather(like, ptr, row, tau, C, low, high, out):
    """`W'R` of each series without lifts, into the rows of `out`."""
    for n in range(low, high):
        pull = zero(like)
        before = 0.0
        for e in range(ptr[n], ptr[n + 1]):
            pull = add_multiple(pull, before - tau[e], load(like, C, row[e], 0))
            before = tau[e]
        store(out, n - low, 0, pull)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def project(like, ptr, row, total, share, C, lowest, H, low, high, tau, steps, out, suspects):
    """Algorithm 1, V step, as if nothing clipped, with all that follows from it in one go.

    Writes `tau`, adds `R H'` to `steps` (differences at the edges), and writes `W'R` into the rows
    of `out`. H holds the weights of these series alone, padded. A reading can only clip where tau
    is negative and the model dips below -tau: `lowest` bounds the model by the smallest entry of
    each profile, and readings beyond that are listed in `suspects`. Returns the objective and their
    number.
    """
    objective, n_suspects = 0.0, 0
    for n in range(low, high):
        first, last = ptr[n], ptr[n + 1]
        h = load(like, H, n - low, 0)
        floor = dot(h, load(like, lowest, 0, 0))
        here = load(like, C, row[first], 0)
        sum_here = dot(here, h)
        pull = zero(like)
        before = 0.0
        for e in range(first, last):
            ahead = load(like, C, row[e + 1], 0)
            sum_ahead = dot(ahead, h)
            gap = total[e] - (sum_ahead - sum_here)
            level = gap * share[e]
            objective += gap * level
            tau[e] = level
            if level + floor < 0.0:
                suspects[n_suspects] = e
                n_suspects += 1
            pull = add_multiple(pull, before - level, here)
            step = load(like, steps, row[e], 0)
            store(steps, row[e], 0, add_multiple(step, level - before, h))
            before, sum_here, here = level, sum_ahead, ahead
        store(out, n - low, 0, pull)
    return objective, n_suspects


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def settle(
    ptr, row, edge, total, C, W, lows, width, H, low, high, tau, steps, out, suspects, n_suspects,
    lift_ptr, lift_at, lift,
):  # fmt: skip
    """Algorithm 1, V step, where readings may clip: expand the suspects and fill them exactly.

    `lows` bounds the model by the smallest entries of the profiles in each stretch of `width`
    periods, and clears most suspects. For the others corrects `tau`, `steps` and `out`, and appends
    the lifts. Returns the change of the objective, the numbers of expanded and of clipped readings,
    and the arrays of lifts, which may have grown.
    """
    rank = W.shape[1]
    x = np.empty(len(W) if n_suspects else 0)
    change, n_expanded, n_clipped = 0.0, 0, 0
    n, n_lifts = low, lift_ptr[low]
    for place in range(n_suspects):
        e = suspects[place]
        while ptr[n + 1] <= e:
            n += 1
            lift_ptr[n] = n_lifts
        i = n - low
        first, length = edge[e], edge[e + 1] - edge[e]
        if length == 1:
            continue
        bound = np.inf
        for stretch in range(first // width, (first + length - 1) // width + 1):
            bound = min(bound, _model(lows, stretch, H, i, rank))
        if tau[e] + bound >= 0.0:
            continue
        n_expanded += 1
        smallest = np.inf
        for t in range(length):
            x[t] = _model(W, first + t, H, i, rank)
            smallest = min(smallest, x[t])
        if tau[e] + smallest >= 0.0:
            continue
        n_clipped += 1
        level = fill_water(x, length, total[e])
        if n_lifts + length > len(lift_at):
            lift_at = grow(lift_at, n_lifts + length)
            lift = grow(lift, n_lifts + length)
        change += (level * level - tau[e] * tau[e]) * length
        shift = level - tau[e]
        tau[e] = level
        for k in range(rank):
            steps[row[e], k] += shift * H[i, k]
            steps[row[e + 1], k] -= shift * H[i, k]
            out[i, k] += shift * (C[row[e + 1], k] - C[row[e], k])
        for t in range(length):
            if x[t] + level < 0.0:
                lift_at[n_lifts] = first + t
                lift[n_lifts] = -(x[t] + level)
                n_lifts += 1
                change += x[t] * x[t] - level * level
    for m in range(n, high):
        lift_ptr[m + 1] = n_lifts
    return change, n_expanded, n_clipped, lift_at, lift


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def gather_lifts(lift_ptr, lift_at, lift, W, low, high, out):
    """Add the part of `W'R` that comes from lifts."""
    for n in range(low, high):
        for i in range(lift_ptr[n], lift_ptr[n + 1]):
            for k in range(W.shape[1]):
                out[n - low, k] += lift[i] * W[lift_at[i], k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def scatter_lifts(lift_ptr, lift_at, lift, order, H, points):
    """Add the part of `R H'` that comes from lifts, period by period."""
    for n in range(len(order)):
        for i in range(lift_ptr[n], lift_ptr[n + 1]):
            for k in range(H.shape[1]):
                points[lift_at[i], k] += lift[i] * H[order[n], k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _model(table, row, H, i, rank):
    value = 0.0
    for k in range(rank):
        value += table[row, k] * H[i, k]
    return value


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
