"""Series as near as can be to given values, while their readings are met.

Near is in a metric: `d` is how far each value may go for the same price, zero for those that are
zero. With a price `z` on every value, the nearest are `max(0, x + d (z + mu))`, where mu is one
number for each reading, and zero where there is none.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MOST_STEPS = 100


@njit(cache=True, nogil=True, error_model="numpy")
def fill_towards(indptr, start, stop, total, x, d, z, values):
    """Write the nearest values with prices z; every reading is met."""
    for n in range(len(x)):
        for t in range(x.shape[1]):
            values[n, t] = max(0.0, x[n, t] + d[n, t] * z[n, t])
        for r in range(indptr[n], indptr[n + 1]):
            _meet(start[r], stop[r], total[r], x[n], d[n], z[n], values[n])


@njit(cache=True, nogil=True, error_model="numpy")
def _meet(begin, end, total, x, d, z, values):
    """Newton's root of a convex, increasing function, from the right: it ends at the root."""
    if total <= 0.0:
        for t in range(begin, end):
            values[t] = 0.0
        return
    found, room = 0.0, 0.0
    for t in range(begin, end):
        found += x[t] + d[t] * z[t]
        room += d[t]
    if room == 0.0:
        return
    price = (total - found) / room
    for _ in range(MOST_STEPS):
        found, room = 0.0, 0.0
        for t in range(begin, end):
            value = x[t] + d[t] * (z[t] + price)
            if value > 0.0:
                found += value
                room += d[t]
        if room == 0.0:
            break
        following = price + (total - found) / room
        if not following < price:
            break
        price = following
    for t in range(begin, end):
        values[t] = max(0.0, x[t] + d[t] * (z[t] + price))


@njit(cache=True, nogil=True, error_model="numpy")
def follow(indptr, start, stop, d, values, z, moves):
    """Write how the nearest values move when prices move by z; what is zero stays."""
    for n in range(len(values)):
        for t in range(values.shape[1]):
            moves[n, t] = d[n, t] * z[n, t] if values[n, t] > 0.0 else 0.0
        for r in range(indptr[n], indptr[n + 1]):
            moved, room = 0.0, 0.0
            for t in range(start[r], stop[r]):
                if values[n, t] > 0.0:
                    moved += moves[n, t]
                    room += d[n, t]
            if room > 0.0:
                for t in range(start[r], stop[r]):
                    if values[n, t] > 0.0:
                        moves[n, t] -= d[n, t] * (moved / room)


@njit(cache=True, nogil=True, error_model="numpy")
def dearest(indptr, start, stop, total, z, slack):
    """The most that series that meet their readings can be worth at prices z; maybe infinite.

    Prices up to the slack count as none where no reading limits a series.
    """
    most = 0.0
    for n in range(len(z)):
        covered = 0
        for r in range(indptr[n], indptr[n + 1]):
            for t in range(covered, start[r]):
                if z[n, t] > slack:
                    return np.inf
            highest = z[n, start[r]]
            for t in range(start[r], stop[r]):
                highest = max(highest, z[n, t])
            most += total[r] * highest
            covered = stop[r]
        for t in range(covered, z.shape[1]):
            if z[n, t] > slack:
                return np.inf
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def add_curvature(members, indptr, start, stop, d, values, owner, weight, block):
    """Add to `block` how totals of some series move with the prices on them.

    Period t belongs to the total at `owner[t]`, with a weight, or to none if that is negative.
    """
    sums, touched = np.zeros(len(block)), np.empty(len(block), np.int64)
    for n in members:
        for t in range(values.shape[1]):
            if owner[t] >= 0 and values[n, t] > 0.0:
                block[owner[t], owner[t]] += weight[t] * weight[t] * d[n, t]
        for r in range(indptr[n], indptr[n + 1]):
            room, count = 0.0, 0
            for t in range(start[r], stop[r]):
                if values[n, t] > 0.0:
                    room += d[n, t]
                    if owner[t] >= 0 and d[n, t] > 0.0:
                        if sums[owner[t]] == 0.0:
                            touched[count] = owner[t]
                            count += 1
                        sums[owner[t]] += weight[t] * d[n, t]
            for i in range(count):
                share = sums[touched[i]] / room
                for j in range(count):
                    block[touched[i], touched[j]] -= share * sums[touched[j]]
            for i in range(count):
                sums[touched[i]] = 0.0


@njit(cache=True, nogil=True)
def reading_totals(indptr, start, stop, total, largest):
    """Raise every value to the total of the reading that covers it."""
    for n in range(len(largest)):
        for r in range(indptr[n], indptr[n + 1]):
            for t in range(start[r], stop[r]):
                largest[n, t] = max(largest[n, t], total[r])
