"""Series drawn from one Gaussian population, given their readings.

The population has a mean and a covariance over periods. All that readings need of the covariance
are its running sums: `row_sums[e]` is the sum of its rows before edge e, `both_sums` that over rows
and columns. So the covariance of two readings is four entries of `both_sums`, and that of a reading
with all periods the difference of two rows of `row_sums`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def condition_rows(
    indptr, start, stop, total, mean, mean_sums, row_sums, both_sums, noise, values
):  # fmt: skip
    """Write the conditional mean of every series, given its readings, into the rows of `values`.

    `noise` is the variance of a reading's error for each of its periods.
    """
    largest = _most_readings(indptr, len(mean))
    L, w = np.empty((largest, largest)), np.empty(largest)
    for n in range(len(values)):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        if m == len(mean):  # a reading for every period: nothing is left to say
            for t in range(m):
                values[n, t] = total[first + t]
            continue
        _factor(start, stop, first, m, both_sums, noise, L)
        _whiten(start, stop, total, first, m, mean_sums, L, w)
        for i in range(m - 1, -1, -1):
            for j in range(i + 1, m):
                w[i] -= L[j, i] * w[j]
            w[i] /= L[i, i]
        for t in range(len(mean)):
            values[n, t] = mean[t]
        for i in range(m):
            begin, end = start[first + i], stop[first + i]
            for t in range(len(mean)):
                values[n, t] += w[i] * (row_sums[end, t] - row_sums[begin, t])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def explain_rows(
    indptr, start, stop, total, mean, mean_sums, row_sums, both_sums, noise, values, explained
):  # fmt: skip
    """As `condition_rows`, and what the readings explain: `explained` has a row for each reading.

    The conditional covariance of series n is that of the population less `G'G`, where G are its
    rows. Returns the log-likelihood of the readings, up to a constant.
    """
    n_periods = len(mean)
    largest = _most_readings(indptr, n_periods + 1)
    L, w = np.empty((largest, largest)), np.empty(largest)
    likelihood = 0.0
    for n in range(len(values)):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        _factor(start, stop, first, m, both_sums, noise, L)
        _whiten(start, stop, total, first, m, mean_sums, L, w)
        for t in range(n_periods):
            values[n, t] = mean[t]
        with_periods = np.empty((m, n_periods))
        for i in range(m):
            begin, end = start[first + i], stop[first + i]
            for t in range(n_periods):
                with_periods[i, t] = row_sums[end, t] - row_sums[begin, t]
        np.dot(_invert(L, m), with_periods, explained[first : first + m])
        for i in range(m):
            for t in range(n_periods):
                values[n, t] += w[i] * explained[first + i, t]
            likelihood -= 0.5 * w[i] * w[i] + np.log(L[i, i])
    return likelihood


@njit(cache=True, nogil=True)
def _most_readings(indptr, n_periods):
    """Of any series that is not read at every period."""
    most = 0
    for n in range(len(indptr) - 1):
        if indptr[n + 1] - indptr[n] < n_periods:
            most = max(most, indptr[n + 1] - indptr[n])
    return most


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _factor(start, stop, first, m, both_sums, noise, L):
    """The Cholesky factor of the covariance of a series' readings."""
    for i in range(m):
        a, b = start[first + i], stop[first + i]
        for j in range(i + 1):
            c, d = start[first + j], stop[first + j]
            value = both_sums[b, d] - both_sums[a, d] - both_sums[b, c] + both_sums[a, c]
            if i == j:
                value += noise * (b - a)
            for k in range(j):
                value -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(max(value, 1e-12 * noise * (b - a)))
            else:
                L[i, j] = value / L[j, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _invert(L, m):
    """The inverse of a lower triangular matrix."""
    inverse = np.zeros((m, m))
    for i in range(m):
        scale = 1.0 / L[i, i]
        for k in range(i):
            factor = -scale * L[i, k]
            for j in range(k + 1):
                inverse[i, j] += factor * inverse[k, j]
        inverse[i, i] = scale
    return inverse


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _whiten(start, stop, total, first, m, mean_sums, L, w):
    """What a series' readings have beyond the mean, in units of the factor."""
    for i in range(m):
        d = first + i
        value = total[d] - (mean_sums[stop[d]] - mean_sums[start[d]])
        for j in range(i):
            value -= L[i, j] * w[j]
        w[i] = value / L[i, i]
