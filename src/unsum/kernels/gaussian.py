"""Series drawn from one Gaussian population, given their readings.

The population has a mean and a covariance over periods. All that readings need of the covariance
are its running sums: `row_sums[e]` is the sum of its rows before edge e, `both_sums` that over rows
and columns. So the covariance of two readings is four entries of `both_sums`, and that of a reading
with all periods the difference of two rows of `row_sums`. `noise` is the variance of each reading's
own error: next to nothing for one that binds, more for one that was estimated.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def condition_rows(
    indptr, start, stop, total, noise, mean, mean_sums, row_sums, both_sums, values
):  # fmt: skip
    """Write the conditional mean of every series, given its readings, into the rows of `values`."""
    largest = _most_readings(indptr, len(mean))
    L, w = np.empty((largest, largest)), np.empty(largest)
    for n in range(len(values)):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        if _is_known(first, m, noise, len(mean)):
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
    indptr, start, stop, total, noise, mean_sums, both_sums, squared_sums, usual, pulls,
    precision, weights, errors,
):  # fmt: skip
    """What readings say about every series, as differences by period.

    A are the readings of a series, K their covariance, g what they have beyond the mean, C the
    covariance of the population. The conditional mean is the population's plus `C A' K^-1 g`: the
    running sums of a row of `pulls` are `A' K^-1 g`. The conditional covariance is `C - C P C` with
    `P = A' K^-1 A`: the running sums of `precision` in both directions, with its transpose, are the
    sum of P over all series, times their `weights`. Those are about one, and less the further a
    series is from the mean, beside `usual`, the trace of C; the squared distance that is to be
    expected given readings takes `squared_sums`, the running sums of C C. `errors` receives the
    expected square of each reading's own error. Returns the log-likelihood of the readings, up to a
    constant.
    """
    largest = _most_readings(indptr, len(both_sums))
    L, w, own = np.empty((largest, largest)), np.empty(largest), np.empty(largest)
    likelihood = 0.0
    for n in range(len(indptr) - 1):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        _factor(start, stop, first, m, both_sums, noise, L)
        _whiten(start, stop, total, first, m, mean_sums, L, w)
        inverse = invert(L, m)
        both = np.dot(inverse.T, inverse)
        for i in range(m):
            likelihood -= 0.5 * w[i] * w[i] + np.log(L[i, i])
            own[i] = 0.0
        for i in range(m):
            for j in range(i + 1):
                own[j] += inverse[i, j] * w[i]
        squares = usual
        for i in range(m):
            a, b = start[first + i], stop[first + i]
            pulls[n, a] += own[i]
            pulls[n, b] -= own[i]
            error = noise[first + i]
            errors[first + i] = error - error * error * (both[i, i] - own[i] * own[i])
            for j in range(i + 1):
                c, d = start[first + j], stop[first + j]
                value = squared_sums[b, d] - squared_sums[a, d]
                value -= squared_sums[b, c] - squared_sums[a, c]
                value *= own[i] * own[j] - both[i, j]
                squares += value if i == j else 2.0 * value
        weights[n] = 2.0 / (1.0 + squares / usual)
        _add_precision(start, stop, first, m, weights[n], both, precision)
    return likelihood


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def explain_sums(
    indptr, start, stop, total, noise, counting, mean_sums, both_sums, doubt_sums, asked,
    first_period, last_period, slot, weight, variance, counted, shared, surprise, residue,
):  # fmt: skip
    """The conditional variance of sums of a series over periods, and how they hang on the mean.

    Series n is asked about the sums from `first_period` to `last_period` at places `asked[n]` to
    `asked[n + 1]`. A series has noise of its own at every period, `counting` times the mean there,
    which its readings have in their `noise`; `counted` receives what that alone leaves open. If the
    mean of the population were higher by some curve, what is recovered of a sum would miss it by
    the product of that curve with a residue. `shared` receives the variance of that, `doubt_sums`
    being the running sums of the covariance of the mean. The residues, times the `weight` of each
    sum, are added to the rows of `residue` that `slot` says, as differences from period to
    period. `surprise` receives the squared size of what the readings have beyond the mean, in units
    of what is usual.
    """
    n_periods = len(mean_sums) - 1
    most, longest = _most_readings(indptr, n_periods), 0
    for n in range(len(asked) - 1):
        longest = max(longest, asked[n + 1] - asked[n])
    L, w = np.empty((most, most)), np.empty(most)
    U, V = np.empty((most, longest)), np.empty(longest)
    for n in range(len(indptr) - 1):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        begin, count = asked[n], asked[n + 1] - asked[n]
        if _is_known(first, m, noise, n_periods):
            surprise[n] = m
            variance[begin : begin + count] = 0.0
            counted[begin : begin + count] = 0.0
            shared[begin : begin + count] = 0.0
            continue
        _factor(start, stop, first, m, both_sums, noise, L)
        _whiten(start, stop, total, first, m, mean_sums, L, w)
        surprise[n] = 0.0
        for i in range(m):
            surprise[n] += w[i] * w[i]
        for q in range(count):
            c, d = first_period[begin + q], last_period[begin + q]
            variance[begin + q] = both_sums[d, d] - 2.0 * both_sums[c, d] + both_sums[c, c]
            counted[begin + q] = counting[n] * (mean_sums[d] - mean_sums[c])
            variance[begin + q] += counted[begin + q]
        for i in range(m):
            a, b = start[first + i], stop[first + i]
            for q in range(count):
                c, d = first_period[begin + q], last_period[begin + q]
                U[i, q] = both_sums[b, d] - both_sums[a, d] - both_sums[b, c] + both_sums[a, c]
                low, high = max(a, c), min(b, d)
                if low < high and counting[n] > 0.0:
                    own = mean_sums[high] - mean_sums[low]
                    U[i, q] += counting[n] * own
                    counted[begin + q] -= counting[n] * own * own / (mean_sums[b] - mean_sums[a])
            for j in range(i):
                for q in range(count):
                    U[i, q] -= L[i, j] * U[j, q]
            for q in range(count):
                U[i, q] /= L[i, i]
                variance[begin + q] -= U[i, q] * U[i, q]
        for q in range(count):
            c, d = first_period[begin + q], last_period[begin + q]
            counted[begin + q] = max(counted[begin + q], 0.0)
            variance[begin + q] = max(variance[begin + q], counted[begin + q])
            shared[begin + q] = doubt_sums[d, d] - 2.0 * doubt_sums[c, d] + doubt_sums[c, c]
        for i in range(m - 1, -1, -1):
            for j in range(i + 1, m):
                for q in range(count):
                    U[i, q] -= L[j, i] * U[j, q]
            for q in range(count):
                U[i, q] /= L[i, i]
        for i in range(m):
            a, b = start[first + i], stop[first + i]
            for q in range(count):
                c, d = first_period[begin + q], last_period[begin + q]
                V[q] = -2.0 * (
                    doubt_sums[b, d] - doubt_sums[a, d] - doubt_sums[b, c] + doubt_sums[a, c]
                )
            for j in range(i + 1):
                c, d = start[first + j], stop[first + j]
                both = doubt_sums[b, d] - doubt_sums[a, d] - doubt_sums[b, c] + doubt_sums[a, c]
                both *= 1.0 if i == j else 2.0
                for q in range(count):
                    V[q] += both * U[j, q]
            for q in range(count):
                shared[begin + q] += U[i, q] * V[q]
        for q in range(count):
            shared[begin + q] = max(shared[begin + q], 0.0)
        if len(residue) == 0:
            continue
        for i in range(m):
            for q in range(count):
                row = slot[begin + q]
                residue[row, start[first + i]] -= weight[begin + q] * U[i, q]
                residue[row, stop[first + i]] += weight[begin + q] * U[i, q]
        for q in range(count):
            row = slot[begin + q]
            residue[row, first_period[begin + q]] += weight[begin + q]
            residue[row, last_period[begin + q]] -= weight[begin + q]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def judge_rows(indptr, start, stop, total, noise, mean_sums, both_sums, usual, likelihood):
    """The log-likelihood of each series' readings, up to what depends on their number alone.

    They have a Student distribution with `usual` degrees of freedom. Series that are read at every
    period are not judged.
    """
    n_periods = len(mean_sums) - 1
    largest = _most_readings(indptr, n_periods)
    L, w = np.empty((largest, largest)), np.empty(largest)
    for n in range(len(likelihood)):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        likelihood[n] = 0.0
        if _is_known(first, m, noise, n_periods):
            continue
        _factor(start, stop, first, m, both_sums, noise, L)
        _whiten(start, stop, total, first, m, mean_sums, L, w)
        squares = 0.0
        for i in range(m):
            squares += w[i] * w[i]
            likelihood[n] -= np.log(L[i, i])
        likelihood[n] -= 0.5 * (usual + m) * np.log1p(squares / usual)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def solve_rows(indptr, start, stop, total, noise, both_sums, solution):
    """The inverse of the covariance of each series' readings, times totals."""
    largest = _most_readings(indptr, len(total))
    L = np.empty((largest, largest))
    for n in range(len(indptr) - 1):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        _factor(start, stop, first, m, both_sums, noise, L)
        for i in range(m):
            value = total[first + i]
            for j in range(i):
                value -= L[i, j] * solution[first + j]
            solution[first + i] = value / L[i, i]
        for i in range(m - 1, -1, -1):
            value = solution[first + i]
            for j in range(i + 1, m):
                value -= L[j, i] * solution[first + j]
            solution[first + i] = value / L[i, i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def whiten_sums(indptr, start, stop, noise, both_sums, sums, explained, answer):
    """For curves with running sums `sums`, what the readings of each series explain of them.

    With A the readings of a series and L the factor of their covariance K, its rows of `explained`
    receive `L^-1 A C` for curves C, and those of `answer` `K^-1 A C`.
    """
    largest, count = _most_readings(indptr, len(start)), sums.shape[1]
    L = np.empty((largest, largest))
    for n in range(len(indptr) - 1):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        _factor(start, stop, first, m, both_sums, noise, L)
        for i in range(m):
            for q in range(count):
                explained[first + i, q] = sums[stop[first + i], q] - sums[start[first + i], q]
            for j in range(i):
                for q in range(count):
                    explained[first + i, q] -= L[i, j] * explained[first + j, q]
            for q in range(count):
                explained[first + i, q] /= L[i, i]
        for i in range(m - 1, -1, -1):
            for q in range(count):
                answer[first + i, q] = explained[first + i, q]
            for j in range(i + 1, m):
                for q in range(count):
                    answer[first + i, q] -= L[j, i] * answer[first + j, q]
            for q in range(count):
                answer[first + i, q] /= L[i, i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def inform_mean(
    indptr, start, stop, total, noise, mean_sums, both_sums, usual, precision, pull
):  # fmt: skip
    """Add what the readings say about the mean of the population, as differences by period.

    The running sums of `precision` in both directions, (n_periods + 1) squared, are with their
    transpose the sum of `w A' K^-1 A`: A are the readings of a series, K their covariance. Those of
    `pull` are the sum of `w A' K^-1 g`: g is what they have beyond the mean. The weight w of a
    series follows from how wild it is, as if its readings had a Student distribution with `usual`
    degrees of freedom.
    """
    largest = _most_readings(indptr, len(both_sums))
    L, w = np.empty((largest, largest)), np.empty(largest)
    for n in range(len(indptr) - 1):
        first, m = indptr[n], indptr[n + 1] - indptr[n]
        _factor(start, stop, first, m, both_sums, noise, L)
        _whiten(start, stop, total, first, m, mean_sums, L, w)
        inverse = invert(L, m)
        squares = 0.0
        for i in range(m):
            squares += w[i] * w[i]
        weight = (usual + m) / (usual + squares)
        for i in range(m):
            for j in range(i + 1):
                value = weight * inverse[i, j] * w[i]
                pull[start[first + j]] += value
                pull[stop[first + j]] -= value
        both = np.dot(inverse.T, inverse)
        _add_precision(start, stop, first, m, weight, both, precision)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _add_precision(start, stop, first, m, weight, inverse, precision):
    """Add half of an inverse covariance of readings; the transpose of that is the other half."""
    for i in range(m):
        a, b = start[first + i], stop[first + i]
        for j in range(i + 1):
            c, d = start[first + j], stop[first + j]
            value = weight * inverse[i, j]
            if i == j:
                value *= 0.5
            precision[a, c] += value
            precision[b, c] -= value
            precision[a, d] -= value
            precision[b, d] += value


@njit(cache=True, nogil=True)
def _is_known(first, m, noise, n_periods):
    """Whether a series is read at every period, and none of that is estimated."""
    if m < n_periods:
        return False
    same = True
    for d in range(first, first + m):
        same &= noise[d] == noise[first]
    return same


@njit(cache=True, nogil=True)
def _most_readings(indptr, limit):
    """Of any series with fewer than a limit."""
    most = 0
    for n in range(len(indptr) - 1):
        if indptr[n + 1] - indptr[n] <= limit:
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
                value += noise[first + i]
            for k in range(j):
                value -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(max(value, 1e-12 * noise[first + i]))
            else:
                L[i, j] = value / L[j, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def invert(L, m):
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
