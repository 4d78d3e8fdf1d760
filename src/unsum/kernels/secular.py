"""Roots of Theorem 1's secular equation, one series after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

MAX_STEPS = 100


@njit(cache=True, nogil=True, error_model="numpy")
def solve_secular(z, cosines, rho, strength, shift):
    """The multiplier `lambda` of every series, and what to add to its leading component.

    With `delta_t = 2 cosines_t - 2 rho`, lambda is zero where the constraint holds already, and
    else the root in (0, 1 / delta_1) of

        sum_t delta_t z_t^2 / (1 - lambda delta_t)^2 = P(lambda) - Q(lambda),

    P the sum over positive and -Q over negative delta. The function solved is
    `1 / sqrt(P) - 1 / sqrt(Q)`, which is nearly straight; Newton's steps are kept inside a bracket,
    and the end at which the constraint holds is returned. Where the leading component vanishes and
    no root exists, lambda is 1 / delta_1 and `shift` is the leading component that meets the
    constraint. Without a positive delta only zero is feasible, and lambda is infinite.
    """
    n_series, n_periods = z.shape
    for n in range(n_series):
        strength[n], shift[n] = 0.0, 0.0
        top = 2.0 * cosines[0] - 2.0 * rho[n]
        size, value = 0.0, 0.0
        for t in range(n_periods):
            size += z[n, t] * z[n, t]
            value += (2.0 * cosines[t] - 2.0 * rho[n]) * z[n, t] * z[n, t]
        if value >= 0.0:
            continue
        if top <= 0.0:
            strength[n] = np.inf
            continue
        low, high = 0.0, 1.0 / top
        guess = 0.5 * high
        if z[n, 0] * z[n, 0] <= 1e-30 * size:
            rest = 0.0
            for t in range(1, n_periods):
                delta = 2.0 * cosines[t] - 2.0 * rho[n]
                term = z[n, t] / (1.0 - high * delta)
                rest += delta * term * term
            if rest < 0.0:
                strength[n] = high
                shift[n] = np.sqrt(-rest / top)
                continue
        for _ in range(MAX_STEPS):
            above, below, above_slope, below_slope = 0.0, 0.0, 0.0, 0.0
            for t in range(n_periods):
                delta = 2.0 * cosines[t] - 2.0 * rho[n]
                factor = 1.0 / (1.0 - guess * delta)
                term = delta * z[n, t] * z[n, t] * factor * factor
                if delta > 0.0:
                    above += term
                    above_slope += 2.0 * delta * term * factor
                else:
                    below -= term
                    below_slope -= 2.0 * delta * term * factor
            if above >= below:
                high = guess
            else:
                low = guess
            if high - low <= 4e-16 * high:
                break
            bend = above ** (-1.5) * above_slope - below ** (-1.5) * below_slope
            step = 2.0 * (above ** (-0.5) - below ** (-0.5)) / bend if bend != 0.0 else 0.0
            following = guess + step
            if not (low < following < high):
                following = 0.5 * (low + high)
            if abs(following - guess) <= 1e-16 * high:
                # Newton stands still on one side: look just across the root.
                following = guess + 2e-16 * high if above < below else guess - 2e-16 * high
                if not (low < following < high):
                    break
            guess = following
        strength[n] = high
