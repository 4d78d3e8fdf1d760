"""Stationary series, seen through readings.

All that readings need of a stationary covariance is the variance of a sum over k periods, for every
k: the covariance of two readings is half of four such variances, at the lags between their ends.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unsum.kernels.gaussian import invert


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def weigh_lags(
    indptr, start, stop, gap, noise, variance_of_sums, usual, fitted, expected, of_noise
):  # fmt: skip
    """How a change of each variance of sums would change the likelihood of the readings.

    `gap` is what the readings have beyond the mean, `noise` the variance of what each has on its
    own. Series differ in how wild they are: together
    their readings have a Student distribution, with `usual` degrees of freedom, under which wild
    ones count for less. The likelihood rises with the variances of sums as `fitted - expected` (up
    to the factor 1/4), two histograms over lags that are added to. `of_noise` receives the same two
    for a factor of the noise. Returns the log-likelihood, up to a constant.
    """
    most = 0
    for n in range(len(indptr) - 1):
        most = max(most, indptr[n + 1] - indptr[n])
    L, pull = np.empty((most, most)), np.empty(most)
    likelihood = 0.0
    for n in range(len(indptr) - 1):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        for i in range(m):
            a, b = start[first + i], stop[first + i]
            for j in range(i + 1):
                c, d = start[first + j], stop[first + j]
                value = variance_of_sums[abs(d - a)] + variance_of_sums[abs(c - b)]
                value -= variance_of_sums[abs(c - a)] + variance_of_sums[abs(d - b)]
                value *= 0.5
                if i == j:
                    value = value * (1.0 + 1e-7) + noise[first + i]
                for k in range(j):
                    value -= L[i, k] * L[j, k]
                L[i, j] = np.sqrt(max(value, 1e-300)) if i == j else value / L[j, j]
        inverse = invert(L, m)
        both = np.dot(inverse.T, inverse)
        pull[:m] = 0.0
        squares = 0.0
        for i in range(m):
            white = 0.0
            for j in range(i + 1):
                white += inverse[i, j] * gap[first + j]
            for j in range(i + 1):
                pull[j] += inverse[i, j] * white
            squares += white * white
            likelihood -= np.log(L[i, i])
        likelihood -= 0.5 * (usual + m) * np.log1p(squares / usual)
        weight = (usual + m) / (usual + squares)
        for i in range(m):
            a, b = start[first + i], stop[first + i]
            for j in range(i + 1):
                c, d = start[first + j], stop[first + j]
                precision, product = both[i, j], weight * pull[i] * pull[j]
                if i == j:
                    of_noise[0] += product * noise[first + i]
                    of_noise[1] += precision * noise[first + i]
                else:
                    precision, product = 2.0 * precision, 2.0 * product
                for lag, sign in ((d - a, 1.0), (c - b, 1.0), (c - a, -1.0), (d - b, -1.0)):
                    fitted[abs(lag)] += sign * product
                    expected[abs(lag)] += sign * precision
    return likelihood
