"""Quadratic programs over a chain of periods, in time proportional to the chain.

Minimise `v'Qv / 2 - f'v` subject to the readings `A v = b` and `v >= 0`, with Q symmetric, banded,
and positive definite where `A v = 0`. `coupling[t, j]` is the entry of Q between the periods t and
t + j + 1. Everything rests on the system

    [Q + theta   -A'] [dv]
    [  -A         0 ] [dy]

which is solved by elimination along the chain. The multiplier of a reading is eliminated right
after its last period. Until then every period carries one extra entry, its coupling to that
multiplier, and so do as many periods after the reading as the band is wide (`reach`). No pivoting
is needed: pivots of periods stay positive, those of multipliers negative.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-13  # totals this far below the largest are zero to the program
MAX_STEPS = 80
MAX_SWITCHES = 25


@njit(cache=True, nogil=True)
def make_workspace(n, width):
    """Room for `solve_nonnegative` on chains of n periods, to be used again and again."""
    return np.empty(n, np.int64), np.empty(n, np.bool_), _make_factor(n, 0, width)


@njit(cache=True, nogil=True)
def solve_nonnegative(diagonal, coupling, linear, begin, end, total, v, zero, workspace):
    """Write the minimiser into `v`; return the steps taken (negative: by interior points).

    An active set method: the periods in `zero` are held at zero, the rest is solved exactly;
    periods that come out negative join the set, those held against their will leave it. `zero` is
    where it begins and receives the final set, so a nearby problem is solved in a step or two. It
    almost always ends; where it cycles, interior points take over.
    """
    n, m, width = len(v), len(begin), coupling.shape[1]
    owner, free, room = workspace
    factor = room[0], room[1], room[2], np.empty(m), np.empty((m, width))
    owner[:] = -1
    multiplier = np.empty(m)
    largest = 0.0
    for d in range(m):
        largest = max(largest, total[d] / (end[d] - begin[d]))
        if total[d] > NEGLIGIBLE:
            owner[begin[d] : end[d]] = d
        else:
            owner[begin[d] : end[d]] = -2
    tolerance = 1e-12 * max(largest, 1e-3)
    for step in range(MAX_SWITCHES):
        for t in range(n):
            free[t] = owner[t] != -2 and not zero[t]
        for d in range(m):  # a reading with a total needs a period to put it in
            if total[d] > NEGLIGIBLE and not free[begin[d] : end[d]].any():
                free[begin[d] : end[d]] = True
        _factor(diagonal, coupling, owner, free, end, factor)
        _solve(factor, owner, free, end, linear, -total, v, multiplier)
        changed = False
        for t in range(n):
            if free[t]:
                negative = v[t] < -tolerance
                changed |= negative
                zero[t] = negative
            elif owner[t] != -2:
                pull = _coupled(coupling, v, t) - linear[t]
                if owner[t] >= 0:
                    pull -= multiplier[owner[t]]
                if pull < -tolerance:
                    changed = True
                    zero[t] = False
        if not changed:
            for t in range(n):
                v[t] = max(v[t], 0.0)
            return step + 1
    steps = solve_chain(diagonal, coupling, linear, begin, end, total, v)
    for t in range(n):
        zero[t] = v[t] == 0.0
    return -steps


@njit(cache=True, nogil=True)
def solve_chain(diagonal, coupling, linear, begin, end, total, v):
    """Write the minimiser into `v` by interior points; return the number of steps.

    A primal-dual method with Mehrotra's predictor and corrector. Rates `total / length` should be
    of the order of one. Periods of a reading that totals zero are zero.
    """
    n, m = len(v), len(begin)
    owner = np.full(n, -1)
    free = np.ones(n, dtype=np.bool_)
    n_free = n
    mean = 0.0
    for d in range(m):
        mean += total[d]
    mean /= max(1, np.sum(end - begin))
    v[:] = max(mean, 1e-3)
    for d in range(m):
        if total[d] <= NEGLIGIBLE:
            free[begin[d] : end[d]] = False
            v[begin[d] : end[d]] = 0.0
            n_free -= end[d] - begin[d]
        else:
            owner[begin[d] : end[d]] = d
            v[begin[d] : end[d]] = total[d] / (end[d] - begin[d])
    z = np.zeros(n)
    y = np.zeros(m)
    for t in range(n):
        if free[t]:
            z[t] = 0.1 / v[t]

    matrix = np.empty(n)
    factor = _make_factor(n, m, coupling.shape[1])
    dual, right = np.empty(n), np.empty(n)
    right_y = np.empty(m)
    dv, dz = np.zeros(n), np.zeros(n)
    dy = np.zeros(m)

    step = 0
    while step < MAX_STEPS:
        step += 1
        primal_gap, dual_gap = _residuals(
            diagonal, coupling, linear, owner, free, total, v, y, z, dual, right_y
        )
        complement = 0.0
        for t in range(n):
            if free[t]:
                complement += v[t] * z[t]
        barrier = complement / n_free
        if barrier < 1e-14 and primal_gap < 1e-11 and dual_gap < 1e-10:
            break
        for t in range(n):
            matrix[t] = diagonal[t] + (z[t] / v[t] if free[t] else 0.0)
        _factor(matrix, coupling, owner, free, end, factor)

        # Predictor: aim at complementarity zero, and see how far that goes.
        for t in range(n):
            right[t] = -dual[t] - z[t]
        _solve(factor, owner, free, end, right, right_y, dv, dy)
        for t in range(n):
            if free[t]:
                dz[t] = -z[t] - z[t] / v[t] * dv[t]
        along = min(_longest_step(v, dv, free), _longest_step(z, dz, free))
        predicted = 0.0
        for t in range(n):
            if free[t]:
                predicted += (v[t] + along * dv[t]) * (z[t] + along * dz[t])
        centre = barrier * (predicted / complement) ** 3

        # Corrector: aim at the centre, with the predictor's second-order term.
        for t in range(n):
            if free[t]:
                right[t] = -dual[t] - z[t] + (centre - dv[t] * dz[t]) / v[t]
                dz[t] = (centre - dv[t] * dz[t]) / v[t] - z[t]
        _solve(factor, owner, free, end, right, right_y, dv, dy)
        for t in range(n):
            if free[t]:
                dz[t] -= z[t] / v[t] * dv[t]
        along_v = min(1.0, 0.995 * _longest_step(v, dv, free))
        along_z = min(1.0, 0.995 * _longest_step(z, dz, free))
        # One length for both: separate ones are not safe for quadratic objectives.
        along = min(along_v, along_z)
        for t in range(n):
            if free[t]:
                v[t] += along * dv[t]
                z[t] += along * dz[t]
        for d in range(m):
            y[d] += along * dy[d]
    for t in range(n):
        if free[t] and v[t] < z[t] and v[t] < 1e-9:
            v[t] = 0.0
    return step


@njit(cache=True, nogil=True)
def solve_equality(diagonal, coupling, linear, begin, end, total, x):
    """The minimiser of `x'Qx / 2 - f'x` subject to the readings alone, for Q positive definite."""
    n, m = len(x), len(begin)
    owner, free = np.full(n, -1), np.ones(n, dtype=np.bool_)
    for d in range(m):
        owner[begin[d] : end[d]] = d
    factor = _make_factor(n, m, coupling.shape[1])
    _factor(diagonal, coupling, owner, free, end, factor)
    _solve(factor, owner, free, end, linear, -total, x, np.empty(m))


@njit(cache=True, nogil=True)
def _residuals(diagonal, coupling, linear, owner, free, total, v, y, z, dual, right_y):
    """`dual = Q v - f - A'y - z`, `right_y = A v - b`, and their largest entries."""
    n = len(v)
    right_y[:] = -total
    dual_gap = 0.0
    for t in range(n):
        if not free[t]:
            dual[t] = 0.0
            continue
        gradient = diagonal[t] * v[t] + _coupled(coupling, v, t) - linear[t] - z[t]
        if owner[t] >= 0:
            gradient -= y[owner[t]]
            right_y[owner[t]] += v[t]
        dual[t] = gradient
        dual_gap = max(dual_gap, abs(gradient))
    primal_gap = 0.0
    for d in range(len(total)):
        if total[d] > NEGLIGIBLE:
            primal_gap = max(primal_gap, abs(right_y[d]))
    return primal_gap, dual_gap


@njit(cache=True, nogil=True)
def _coupled(coupling, v, t):
    """What the neighbours of period t contribute to `Q v` there."""
    value = 0.0
    for j in range(coupling.shape[1]):
        if t > j:
            value += coupling[t - j - 1, j] * v[t - j - 1]
        if t + j + 1 < len(v):
            value += coupling[t, j] * v[t + j + 1]
    return value


@njit(cache=True, nogil=True)
def _make_factor(n, m, width):
    """Room for a factorization: pivots, band and carried entries of periods; pivots and reach of
    multipliers.
    """
    return np.empty(n), np.empty((n, width)), np.empty(n), np.empty(m), np.empty((m, width))


@njit(cache=True, nogil=True, error_model="numpy")
def _factor(matrix, coupling, owner, free, end, factor):
    """Eliminate along the chain: periods in order, each multiplier after its last period."""
    pivot, band, carried, pivot_y, reach = factor
    n, width = coupling.shape
    pivot_y[:] = 0.0
    reach[:] = 0.0
    for t in range(n):
        pivot[t] = matrix[t] if free[t] else 1.0
        carried[t] = -1.0 if free[t] and owner[t] >= 0 else 0.0
        for j in range(width):
            both = free[t] and t + j + 1 < n and free[t + j + 1]
            band[t, j] = coupling[t, j] if both else 0.0
    for t in range(n):
        d = owner[t]
        inverse = 1.0 / pivot[t]
        for j in range(width):
            share = band[t, j] * inverse
            if share == 0.0:
                continue
            later = t + j + 1
            pivot[later] -= share * band[t, j]
            for i in range(j + 1, width):
                band[later, i - j - 1] -= share * band[t, i]
            if d >= 0:
                if later < end[d]:
                    carried[later] -= share * carried[t]
                else:
                    reach[d, later - end[d]] -= share * carried[t]
        if d >= 0:
            pivot_y[d] -= carried[t] * carried[t] * inverse
            if t + 1 == end[d]:
                for j in range(min(width, n - t - 1)):
                    share = reach[d, j] / pivot_y[d]
                    if share == 0.0:
                        continue
                    pivot[t + 1 + j] -= share * reach[d, j]
                    for i in range(j + 1, min(width, n - t - 1)):
                        band[t + 1 + j, i - j - 1] -= share * reach[d, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(factor, owner, free, end, right, right_y, dv, dy):
    """Solve for the step. `right` and `right_y` are kept."""
    pivot, band, carried, pivot_y, reach = factor
    n, width = band.shape
    for t in range(n):
        dv[t] = right[t] if free[t] else 0.0
    dy[:] = right_y
    for t in range(n):
        d = owner[t]
        scaled = dv[t] / pivot[t]
        most = min(width, n - t - 1)
        for j in range(most):
            dv[t + 1 + j] -= band[t, j] * scaled
        if d >= 0:
            dy[d] -= carried[t] * scaled
            if t + 1 == end[d]:
                scaled = dy[d] / pivot_y[d]
                for j in range(most):
                    dv[t + 1 + j] -= reach[d, j] * scaled
    for t in range(n - 1, -1, -1):
        d = owner[t]
        most = min(width, n - t - 1)
        value = dv[t]
        for j in range(most):
            value -= band[t, j] * dv[t + 1 + j]
        if d >= 0:
            if t + 1 == end[d]:
                for j in range(most):
                    dy[d] -= reach[d, j] * dv[t + 1 + j]
                dy[d] /= pivot_y[d]
            value -= carried[t] * dy[d]
        dv[t] = value / pivot[t]


@njit(cache=True, nogil=True)
def _longest_step(x, dx, free):
    """The longest step up to one that keeps x nonnegative."""
    along = 1.0
    for t in range(len(x)):
        if free[t] and dx[t] < 0.0:
            along = min(along, -x[t] / dx[t])
    return along
