"""The paper's synthetic panel: mixtures of smooth random profiles."""

from __future__ import annotations

import numpy as np

from unsum.errors import ParameterError
from unsum.panel import Panel

N_SERIES, N_PERIODS, N_PROFILES = 120, 150, 20
SMOOTHNESS, LENGTH_SCALE = 1.5, 10.0
JITTER = 1e-10  # added to the variances: smooth covariances are nearly singular


def simulate_mixtures(
    n_series: int = N_SERIES,
    n_periods: int = N_PERIODS,
    n_profiles: int = N_PROFILES,
    *,
    smoothness: float = SMOOTHNESS,
    length_scale: float = LENGTH_SCALE,
    seed: int = 0,
) -> Panel:
    """Random mixtures of independent Gaussian processes with Matern covariance.

    Every process is shifted so that its smallest value is zero, and mixed with weights drawn
    uniformly between zero and one; so the panel is nonnegative and of rank `n_profiles`, exactly.

    Parameters
    ----------
    smoothness, length_scale
        The Matern covariance's; the paper does not give its own. The length scale is in periods.
    """
    if smoothness <= 0 or length_scale <= 0:
        raise ParameterError("smoothness and length scale must be positive.")
    rng = np.random.default_rng(seed)
    covariance = matern(np.arange(n_periods), smoothness, length_scale)
    root = np.linalg.cholesky(covariance + JITTER * np.eye(n_periods))
    profiles = root @ rng.standard_normal((n_periods, n_profiles))
    profiles -= profiles.min(axis=0)
    return Panel.from_values(rng.random((n_series, n_profiles)) @ profiles.T)


def matern(times: np.ndarray, smoothness: float, length_scale: float) -> np.ndarray:
    """The Matern covariance between times, with variance one."""
    from scipy.special import gamma, kv

    distance = np.abs(np.subtract.outer(times, times)) / length_scale
    scaled = np.sqrt(2 * smoothness) * np.where(distance > 0, distance, 1.0)
    value = 2 ** (1 - smoothness) / gamma(smoothness) * scaled**smoothness * kv(smoothness, scaled)
    return np.where(distance > 0, value, 1.0)
