"""Stationary covariances, by lag, that others are made of: noise, memories and rhythms."""

from __future__ import annotations

import numpy as np

GROWTH = 2.5  # from one length of memory to the next
UNSEEN = 1e-6  # of the most that any weight matters: no reading shows what matters less


def memory_lengths(n_periods: int) -> np.ndarray:
    count = 1 + int(np.log(max(n_periods, 1)) / np.log(GROWTH))
    return np.asarray(GROWTH ** np.arange(count))


def simple_covariances(n_periods: int) -> np.ndarray:
    """White noise, then by length of memory a rough one (exponential) and a smooth one (Matern)."""
    lags = np.arange(n_periods)
    rows = [(lags == 0).astype(float)]
    for length in memory_lengths(n_periods):
        rows.append(np.exp(-lags / length))
        far = np.sqrt(5.0) * lags / length
        rows.append((1 + far + far**2 / 3) * np.exp(-far))
    return np.array(rows)


def rhythms(n_periods: int, season: int) -> np.ndarray:
    """Covariances of what repeats after a season, has no sum over it, and fades no faster.

    From unrelated phases, by length of memory around the season, to a single wave.
    """
    lags, phases = np.arange(n_periods), np.arange(season)
    around = np.minimum(phases, season - phases)
    rows = [(phases == 0).astype(float)]
    rows += [np.exp(-around / length) for length in memory_lengths(season // 2)]
    rows.append(np.cos(2 * np.pi * phases / season))
    rows = [(row - row.mean()) / (1 - row.mean()) for row in rows]
    return np.array(
        [
            np.exp(-lags / length) * row[lags % season]
            for length in memory_lengths(n_periods)
            if length >= season
            for row in rows
        ]
    )


def misdating(n_periods: int) -> np.ndarray:
    """What a reading has too much and its neighbour too little: read late, or estimated."""
    row = np.zeros(n_periods)
    row[:2] = (2.0, -1.0)[:n_periods]
    return row


def variances_of_sums(covariance: np.ndarray) -> np.ndarray:
    """Of sums over 0, 1, 2, ... periods, from covariances by lag (along the last axis)."""
    ahead = np.cumsum(covariance, axis=-1)
    growth = 2 * ahead - covariance[..., :1]  # what the next period adds
    sums: np.ndarray = np.cumsum(growth, axis=-1)
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)


def raise_weights(weights: np.ndarray, fitted: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """A multiplicative step that raises a likelihood with the slopes `fitted - expected`.

    What is not shown stays as it is.
    """
    shown = expected * weights > UNSEEN * np.max(expected * weights)
    rise = np.maximum(fitted, 0.0) / np.where(shown, expected, 1.0)
    return np.asarray(weights * np.where(shown, np.sqrt(rise), 1.0))
