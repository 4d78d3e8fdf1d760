"""Autocorrelation of single series: the constraint of the paper, and its two theorems.

The constraint is `sum_t v[t+1] v[t] >= rho sum_t v[t]^2`, that is `v' Delta_rho v >= 0` with
`Delta_rho = Delta + Delta' - 2 rho I`. Its eigenvectors are sines, its eigenvalues
`delta_t = 2 cos(t pi / (T + 1)) - 2 rho`. With several lags, each with a share, Delta is the
weighted sum of the shifts; the theorems are for lag 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unsum.errors import ParameterError

LAG_1 = {1: 1.0}


def share_lags(given: Any, n_periods: int) -> dict[int, float]:
    """The share of each lag, adding up to one: equal for a list, or as a mapping has them."""
    shares = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, 1.0)
    for lag, share in shares.items():
        if not isinstance(lag, int | np.integer) or lag < 1:
            raise ParameterError(f"lags must be whole numbers of at least 1; got {lag!r}.")
        if not isinstance(share, int | float | np.number) or not 0 < share < np.inf:
            raise ParameterError(f"the weight of lag {lag} must be positive; got {share!r}.")
        if lag > max(1, n_periods - 1):
            raise ParameterError(f"lag {lag} does not fit into a window of {n_periods} periods.")
    if not shares:
        raise ParameterError("lags must name at least one lag.")
    total = float(sum(shares.values()))
    return {int(lag): float(share) / total for lag, share in sorted(shares.items())}


def largest_autocorrelation(n_periods: int, lags: Mapping[int, float] = LAG_1) -> float:
    """No nonzero series of this length has a larger (uncentred) autocorrelation.

    For a single lag the periods fall apart into chains, of which the longest counts. Otherwise it
    is the largest eigenvalue of a banded matrix, found from one, which bounds it.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    if len(lags) == 1 or n_periods <= 2:
        (lag,) = lags if len(lags) == 1 else (1,)
        return float(np.cos(np.pi / (-(-n_periods // lag) + 1)))
    shares = [share / 2 for share in lags.values()]
    matrix = diags_array(
        shares + shares, offsets=[*lags, *(-lag for lag in lags)], shape=(n_periods, n_periods)
    )
    value = eigsh(matrix.tocsc(), k=1, sigma=1.0, v0=np.ones(n_periods), return_eigenvectors=False)
    return float(value[0])


def autocorrelation(values: np.ndarray, lags: Mapping[int, float] = LAG_1) -> np.ndarray:
    """The uncentred autocorrelation along the last axis: T - lag products over T squares, weighted
    over lags.
    """
    values = np.asarray(values, np.float64)
    squares = np.sum(values**2, axis=-1)
    products = np.zeros_like(squares)
    for lag, share in lags.items():
        products += share * np.sum(values[..., lag:] * values[..., :-lag], axis=-1)
    ratio: np.ndarray = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    return ratio


def project_autocorrelation(x0: Any, rho: Any) -> tuple[np.ndarray, np.ndarray]:
    """Theorem 1, exactly: the nearest series to x0 with autocorrelation at least rho.

    Solves `minimise ||x - x0||^2 subject to x' Delta_rho x >= 0`, a program that is not convex and
    yet has its global optimum at `x = (I - lambda Delta_rho)^{-1} x0`.

    Parameters
    ----------
    x0
        Series (n_series, n_periods), or one series.
    rho
        The autocorrelation of each, between -1 and 1.

    Returns
    -------
    The nearest series, and the multiplier lambda of each: zero where x0 is feasible.

    Notes
    -----
    lambda is the root of an increasing function on (0, 1 / delta_1); all roots are found in the
    basis of sines. Two cases are outside the theorem's assumptions. When x0 has no component along
    the smoothest sine (never so for a nonnegative series), the optimum may need one, with either
    sign; the positive one is taken. When rho is at least cos(pi / (T + 1)), no eigenvalue is
    positive: only the zero series is feasible (its multiplier is infinite).
    """
    from scipy.fft import dst

    from unsum.kernels.secular import solve_secular

    single = np.ndim(x0) == 1
    x = np.atleast_2d(np.asarray(x0, np.float64))
    n_series, n_periods = x.shape
    bounds = np.broadcast_to(np.asarray(rho, np.float64), (n_series,)).copy()
    if not np.isfinite(x).all():
        raise ParameterError("x0 must be finite.")
    if not ((bounds >= -1) & (bounds <= 1)).all():
        raise ParameterError("rho must lie between -1 and 1.")
    unit = np.abs(x).max(axis=1)
    unit[unit == 0] = 1.0
    z = dst(x / unit[:, None], type=1, norm="ortho", axis=1)
    cosines = np.cos(np.arange(1, n_periods + 1) * np.pi / (n_periods + 1))
    strength, shift = np.empty(n_series), np.empty(n_series)
    solve_secular(z, cosines, bounds, strength, shift)
    finite = np.isfinite(strength)
    multiplier = np.where(finite, strength, 0.0)
    factor = 1.0 - multiplier[:, None] * (2 * cosines - 2 * bounds[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = z / factor
    z[:, 0] = np.where(shift > 0, shift, z[:, 0])
    nearest = np.where(
        strength[:, None] > 0, dst(z, type=1, norm="ortho", axis=1) * unit[:, None], x
    )
    nearest[~finite] = 0.0
    return (nearest[0], strength[0]) if single else (nearest, strength)


def solve_printed(
    x0: np.ndarray,
    strength: float,
    rho: float,
    start: np.ndarray,
    stop: np.ndarray,
    total: np.ndarray,
) -> np.ndarray:
    """Theorem 2 as printed: `minimise ||x - x0||^2 - lambda x' Delta_rho x` on the readings.

    `I - lambda Delta_rho` is tridiagonal, so this takes time in proportion to the periods. The
    result meets the readings but may be negative: it is the reference, not what `recover` returns.
    """
    from unsum.kernels.chain import solve_equality

    n = len(x0)
    limit = 2 * largest_autocorrelation(n) - 2 * rho
    if strength < 0 or (limit > 0 and strength >= 1 / limit):
        raise ParameterError(
            f"strength must lie between 0 and 1 / delta_1 = {1 / limit:g}; got {strength:g}."
        )
    x = np.empty(n)
    solve_equality(
        np.full(n, 1 + 2 * strength * rho), np.full((n, 1), -strength), np.asarray(x0, np.float64),
        np.asarray(start), np.asarray(stop), np.asarray(total, np.float64), x,
    )  # fmt: skip
    return x
