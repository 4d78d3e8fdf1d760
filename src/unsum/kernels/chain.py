"""Quadratic programs over a chain of periods, in time proportional to the chain.

Minimise `v'Qv / 2 - f'v` subject to the readings `A v = b` and `v >= 0`, with Q symmetric,
tridiagonal, and positive definite where `A v = 0`. A primal-dual interior point method
(Mehrotra's predictor and corrector); every step solves the system

    [Q + theta   -A'] [dv]
    [  -A         0 ] [dy]

by elimination along the chain. The multiplier of a reading is eliminated right after its last
period, so each period carries one extra entry, its coupling to that multiplier, and no pivoting
is needed: pivots of periods stay positive, those of multipliers negative.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-13  # totals this far below the largest are zero to the program
MAX_STEPS = 80
MAX_SWITCHES = 25


@njit(cache=True, nogil=True)
def make_workspace(n):
    """Room for `solve_nonnegative` on chains of n periods, to be used again and again."""
    return np.empty((2, n)), np.empty(n, np.int64), np.empty(n, np.bool_)


@njit(cache=True, nogil=True)
def solve_nonnegative(diagonal, coupling, linear, begin, end, total, v, zero, workspace):
    """Write the minimiser into `v`; return the steps taken (negative: by interior points).

    An active set method: the periods in `zero` are held at zero, the rest is solved exactly;
    periods that come out negative join the set, those held against their will leave it. `zero` is
    where it begins and receives the final set, so a nearby problem is solved in a step or two. It
    almost always ends; where it cycles, interior points take over.
    """
    n, m = len(v), len(begin)
    pivots, owner, free = workspace
    pivot, carried = pivots[0], pivots[1]
    owner[:] = -1
    pivot_y, coupling_y, multiplier = np.empty(m), np.empty(m), np.empty(m)
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
        _factor(diagonal, coupling, owner, free, pivot, carried, pivot_y, coupling_y)
        _solve(
            coupling, owner, free, pivot, carried, pivot_y, coupling_y, linear, -total, v,
            multiplier,
        )  # fmt: skip
        changed = False
        for t in range(n):
            if free[t]:
                negative = v[t] < -tolerance
                changed |= negative
                zero[t] = negative
            elif owner[t] != -2:
                pull = -linear[t]
                if t > 0:
                    pull += coupling[t - 1] * v[t - 1]
                if t < n - 1:
                    pull += coupling[t] * v[t + 1]
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

    `coupling[t]` is the entry of Q between periods t and t + 1. Rates `total / length` should be
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
    pivot, carried = np.empty(n), np.empty(n)
    pivot_y, coupling_y = np.empty(m), np.zeros(m)
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
        _factor(matrix, coupling, owner, free, pivot, carried, pivot_y, coupling_y)

        # Predictor: aim at complementarity zero, and see how far that goes.
        for t in range(n):
            right[t] = -dual[t] - z[t]
        _solve(coupling, owner, free, pivot, carried, pivot_y, coupling_y, right, right_y, dv, dy)
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
        _solve(coupling, owner, free, pivot, carried, pivot_y, coupling_y, right, right_y, dv, dy)
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
    pivot, carried = np.empty(n), np.empty(n)
    pivot_y, coupling_y, multiplier = np.empty(m), np.empty(m), np.empty(m)
    _factor(diagonal, coupling, owner, free, pivot, carried, pivot_y, coupling_y)
    _solve(
        coupling, owner, free, pivot, carried, pivot_y, coupling_y, linear, -total, x, multiplier
    )


@njit(cache=True, nogil=True)
def _residuals(
    diagonal,
    coupling,
    linear,
    owner,
    free,
    total,
    v,
    y,
    z,
    dual,
    right_y,
):
    """`dual = Q v - f - A'y - z`, `right_y = A v - b`, and their largest entries."""
    n = len(v)
    right_y[:] = -total
    dual_gap = 0.0
    for t in range(n):
        if not free[t]:
            dual[t] = 0.0
            continue
        gradient = diagonal[t] * v[t] - linear[t] - z[t]
        if t > 0:
            gradient += coupling[t - 1] * v[t - 1]
        if t < n - 1:
            gradient += coupling[t] * v[t + 1]
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
def _factor(matrix, coupling, owner, free, pivot, carried, pivot_y, coupling_y):
    """Eliminate along the chain: periods in order, each multiplier after its last period."""
    n = len(matrix)
    pivot[:] = matrix
    pivot_y[:] = 0.0
    coupling_y[:] = 0.0
    carried[:] = 0.0
    for t in range(n):
        if free[t] and owner[t] >= 0:
            carried[t] = -1.0
    for t in range(n):
        if not free[t]:
            continue
        d = owner[t]
        if d >= 0:
            pivot_y[d] -= carried[t] * carried[t] / pivot[t]
        if t + 1 < n and free[t + 1]:
            factor = coupling[t] / pivot[t]
            pivot[t + 1] -= factor * coupling[t]
            if d >= 0:
                if owner[t + 1] == d:
                    carried[t + 1] -= factor * carried[t]
                else:
                    coupling_y[d] = -factor * carried[t]
                    pivot[t + 1] -= coupling_y[d] * coupling_y[d] / pivot_y[d]


@njit(cache=True, nogil=True)
def _solve(
    coupling,
    owner,
    free,
    pivot,
    carried,
    pivot_y,
    coupling_y,
    right,
    right_y,
    dv,
    dy,
):
    """Solve for the step. `right` and `right_y` are kept."""
    n = len(right)
    dv[:] = right
    dy[:] = right_y
    for t in range(n):
        if not free[t]:
            dv[t] = 0.0
            continue
        d = owner[t]
        scaled = dv[t] / pivot[t]
        if d >= 0:
            dy[d] -= carried[t] * scaled
        if t + 1 < n and free[t + 1]:
            dv[t + 1] -= coupling[t] * scaled
            if d >= 0 and owner[t + 1] != d:
                dv[t + 1] -= coupling_y[d] * dy[d] / pivot_y[d]
    for t in range(n - 1, -1, -1):
        d = owner[t]
        following = dv[t + 1] if t + 1 < n and free[t + 1] else 0.0
        if d >= 0 and (t + 1 == n or owner[t + 1] != d):
            dy[d] = (dy[d] - coupling_y[d] * following) / pivot_y[d]
        if not free[t]:
            continue
        value = dv[t] - coupling[t] * following
        if d >= 0:
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
