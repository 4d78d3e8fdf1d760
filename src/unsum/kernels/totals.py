"""Sums over readings: take them, spread them, meet them exactly, check them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sum_readings(indptr, start, stop, values):
    """The total of every reading under the given values (n_series, n_periods)."""
    totals = np.zeros(len(start))
    for n in range(len(indptr) - 1):
        for d in range(indptr[n], indptr[n + 1]):
            accumulated = 0.0
            for t in range(start[d], stop[d]):
                accumulated += values[n, t]
            totals[d] = accumulated
    return totals


@njit(cache=True, nogil=True)
def spread_evenly(indptr, start, stop, total, values):
    """Give every period of a reading the same share; elsewhere the mean rate of the series."""
    for n in range(len(indptr) - 1):
        first, last = indptr[n], indptr[n + 1]
        largest = 0.0
        for d in range(first, last):
            largest = max(largest, total[d])
        rate = 0.0
        if largest > 0.0:
            accumulated, n_covered = 0.0, 0
            for d in range(first, last):
                accumulated += total[d] / largest
                n_covered += stop[d] - start[d]
            rate = accumulated / n_covered * largest
        values[n, :] = rate
        for d in range(first, last):
            values[n, start[d] : stop[d]] = total[d] / (stop[d] - start[d])


@njit(cache=True, nogil=True)
def mark_covered(indptr, start, stop, covered):
    """Set the periods that some reading covers."""
    for n in range(len(indptr) - 1):
        for d in range(indptr[n], indptr[n + 1]):
            covered[n, start[d] : stop[d]] = True


@njit(cache=True, nogil=True)
def meet_totals(indptr, start, stop, total, active, values):
    """Make values nonnegative, zero outside `active`, and equal in sum to every reading.

    Each reading is rescaled as a whole. Shares are formed relative to the largest value, so that
    neither sums nor factors overflow or vanish; what rounding leaves goes to the largest value.
    A reading whose values are all zero is spread evenly; a zero total gives exact zeros.
    """
    for n in range(len(indptr) - 1):
        for t in range(values.shape[1]):
            if not values[n, t] > 0.0 or t < active[n, 0] or t >= active[n, 1]:
                values[n, t] = 0.0
        for d in range(indptr[n], indptr[n + 1]):
            largest = start[d]
            for t in range(start[d], stop[d]):
                if values[n, t] > values[n, largest]:
                    largest = t
            if total[d] == 0.0:
                values[n, start[d] : stop[d]] = 0.0
                continue
            peak = values[n, largest]
            if peak == 0.0:
                values[n, start[d] : stop[d]] = 1.0
                peak = 1.0
            accumulated = 0.0
            for t in range(start[d], stop[d]):
                values[n, t] /= peak
                accumulated += values[n, t]
            met = 0.0
            for t in range(start[d], stop[d]):
                values[n, t] = values[n, t] / accumulated * total[d]
                met += values[n, t]
            rest = total[d] - met
            if values[n, largest] + rest >= 0.0:
                values[n, largest] += rest
            else:  # totals near the smallest number: rounding can exceed the largest value
                for t in range(start[d], stop[d]):
                    taken = min(values[n, t], -rest)
                    values[n, t] -= taken
                    rest += taken


@njit(cache=True, nogil=True)
def check_totals(indptr, start, stop, total, values):
    """The worst relative gap between a reading and its values, and whether values are sound.

    Sound is finite and nonnegative. Gaps below the smallest normal number count as none.
    """
    worst, sound = 0.0, True
    for n in range(len(indptr) - 1):
        for t in range(values.shape[1]):
            if not (0.0 <= values[n, t] < np.inf):
                sound = False
        for d in range(indptr[n], indptr[n + 1]):
            accumulated = 0.0
            for t in range(start[d], stop[d]):
                accumulated += values[n, t]
            gap = abs(accumulated - total[d])
            if gap > 2.3e-308:
                worst = max(worst, gap / total[d] if total[d] > 0.0 else np.inf)
    return worst, sound


@njit(cache=True, nogil=True)
def bound_sums(indptr, start, stop, total, active, cuts, least, most):
    """The least and the most that every series can sum to between cuts, given its readings.

    At least the readings that lie within, at most those that touch, if they cover all of it that
    lies in `active`.
    """
    for n in range(len(indptr) - 1):
        for q in range(len(cuts) - 1):
            begin, end = max(cuts[q], active[n, 0]), min(cuts[q + 1], active[n, 1])
            low, high, reached = 0.0, 0.0, begin
            for d in range(indptr[n], indptr[n + 1]):
                if stop[d] <= begin or start[d] >= end:
                    continue
                if start[d] >= begin and stop[d] <= end:
                    low += total[d]
                if start[d] <= reached:
                    reached = stop[d]
                high += total[d]
            least[n, q] = low
            most[n, q] = high if reached >= end else np.inf
