"""Where the iterations begin: profiles of the smoothed panel, or random ones."""

from __future__ import annotations

import numpy as np

from unsum.errors import ParameterError
from unsum.methods.denton import Denton
from unsum.methods.even import Even
from unsum.readings import Readings

MAX_VALUES = 20_000_000
MAX_SIDE = 1000


def initial_profiles(
    readings: Readings, scale: np.ndarray, rank: int, start: str | np.ndarray, seed: int
) -> np.ndarray:
    """Profiles (T x K) with mean one, or those given; random ones by seed, as the paper does."""
    if isinstance(start, np.ndarray):
        if start.shape != (readings.n_periods, rank) or not (start >= 0).all():
            raise ParameterError(
                f"start must have {readings.n_periods} periods and {rank} profiles, none of them "
                f"negative; it has the shape {start.shape}."
            )
        return start
    if start == "random":
        return np.random.default_rng(seed).random((readings.n_periods, rank)) + 1e-3
    W = np.zeros((readings.n_periods, rank))
    if scale.any():
        W = _nonnegative_svd(_sample_panel(readings, scale, start), rank)
    t = np.arange(len(W)) / len(W)
    for k in np.flatnonzero(W.sum(axis=0) <= 0):
        W[:, k] = 1 + np.cos(2 * np.pi * k * t)
    return np.ascontiguousarray(W / W.mean(axis=0))


def _sample_panel(readings: Readings, scale: np.ndarray, start: str) -> np.ndarray:
    """Scaled series, spread evenly or smoothly: all of them, or as many as fit, evenly drawn."""
    useful = np.flatnonzero(scale > 0)
    most = MAX_VALUES // readings.n_periods
    if readings.n_periods > MAX_SIDE:
        most = min(most, MAX_SIDE)
    if len(useful) > most:
        useful = useful[np.linspace(0, len(useful) - 1, most).astype(np.int64)]
    part = readings.take(useful)
    values = np.empty((part.n_series, part.n_periods))
    method = Denton() if start == "denton" else Even()
    method.fit(part).fill(0, part, values)
    values /= scale[useful, None]
    return values


def _nonnegative_svd(panel: np.ndarray, rank: int) -> np.ndarray:
    """The better nonnegative half of each leading pair of singular vectors.

    As in NNDSVD (Boutsidis and Gallopoulos): of the positive and the negative parts of a pair, keep
    those whose product is larger.
    """
    from scipy.linalg import eigh

    n, t = panel.shape
    wide = t > n
    gram = panel @ panel.T if wide else panel.T @ panel
    count = min(rank, len(gram))
    values, vectors = eigh(gram, subset_by_index=[len(gram) - count, len(gram) - 1])
    W = np.zeros((t, rank))
    for k in range(count):
        own = vectors[:, count - 1 - k]
        size = np.sqrt(max(values[count - 1 - k], 0.0))
        if size <= 1e-10 * np.sqrt(max(values[-1], 0.0)):
            break
        other = (panel.T @ own if wide else panel @ own) / size
        v, u = (other, own) if wide else (own, other)
        halves = [(np.maximum(sign * v, 0), np.maximum(sign * u, 0)) for sign in (1, -1)]
        best = max(halves, key=lambda half: np.linalg.norm(half[0]) * np.linalg.norm(half[1]))
        W[:, k] = best[0]
    return W
