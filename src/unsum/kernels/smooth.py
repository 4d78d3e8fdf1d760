"""The smoothest nonnegative series that meets its readings: Denton's first differences.

For one series, minimise `sum_t (v[t+1] - v[t])^2` subject to the readings and `v >= 0`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.chain import make_workspace, solve_nonnegative


@njit(cache=True, nogil=True)
def smooth_series(indptr, start, stop, total, active, values):
    """Fill `values` with the smoothest series; return how many met nonnegativity's bound."""
    n_clipped = 0
    for n in range(len(indptr) - 1):
        first, last = indptr[n], indptr[n + 1]
        low, high = active[n, 0], active[n, 1]
        values[n, :] = 0.0
        largest = 0.0
        for d in range(first, last):
            largest = max(largest, total[d] / (stop[d] - start[d]))
        if largest == 0.0:
            continue
        line = values[n, low:high]
        begin, end = start[first:last] - low, stop[first:last] - low
        share = total[first:last] / largest
        lowest = _spline(begin, end, share, line)
        if lowest < -1e-9:
            n_clipped += 1
            _smooth_nonnegative(begin, end, share, line)
        for t in range(len(line)):
            line[t] = max(line[t], 0.0) * largest
    return n_clipped


@njit(cache=True, nogil=True)
def _spline(begin, end, total, line):
    """The solution without `v >= 0`, and its smallest value.

    Stationarity makes the second difference constant on a reading and zero in a gap: a quadratic
    spline. Its unknowns are the slopes s at the m - 1 places where a reading follows another
    (slopes at both ends are zero), and they solve a tridiagonal, diagonally dominant system.
    """
    m = len(begin)
    slope = np.zeros(m + 1)
    diagonal = np.empty(m)
    for j in range(m - 1):
        left, right = float(end[j] - begin[j]), float(end[j + 1] - begin[j + 1])
        gap = begin[j + 1] - end[j]
        diagonal[j] = (
            (2 * left * left + 3 * left + 1) / (6 * left)
            + (2 * right * right - 3 * right + 1) / (6 * right)
            + gap
        )
        slope[j + 1] = total[j + 1] / right - total[j] / left
        if j > 0:
            coupling = (left * left - 1) / (6 * left)
            factor = coupling / diagonal[j - 1]
            diagonal[j] -= factor * coupling
            slope[j + 1] -= factor * slope[j]
    for j in range(m - 2, -1, -1):
        right = float(end[j + 1] - begin[j + 1])
        slope[j + 1] = (slope[j + 1] - (right * right - 1) / (6 * right) * slope[j + 2]) / (
            diagonal[j]
        )

    lowest = np.inf
    value = 0.0
    for j in range(m):
        length = float(end[j] - begin[j])
        bend = (slope[j] - slope[j + 1]) / length
        if j > 0:
            for t in range(end[j - 1], begin[j]):
                line[t] = value + slope[j] * (t - end[j - 1] + 1)
        value = total[j] / length - slope[j] * (length - 1) / 2 + bend * (length * length - 1) / 6
        if j == 0:
            line[: begin[0]] = value
        first_value = value
        for t in range(begin[j], end[j]):
            i = t - begin[j]
            value = first_value + i * slope[j] - bend * i * (i + 1) / 2
            line[t] = value
            lowest = min(lowest, value)
    line[end[m - 1] :] = value
    return lowest


@njit(cache=True, nogil=True)
def _smooth_nonnegative(begin, end, total, line):
    """The same problem with `v >= 0`, as a quadratic program over a chain."""
    n = len(line)
    diagonal = np.full(n, 2.0)
    diagonal[0] -= 1.0
    diagonal[n - 1] -= 1.0
    coupling = np.full((n, 1), -1.0)
    zero = line < 0.0
    workspace = make_workspace(n, 1)
    solve_nonnegative(diagonal, coupling, np.zeros(n), begin, end, total, line, zero, workspace)
