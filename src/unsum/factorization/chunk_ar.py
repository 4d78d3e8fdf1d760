"""A chunk of series for Algorithm 2, where V has no compact form and is held."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsum.factorization.chunk import UPDATES, Keeping, Reduction, Step, prepare
from unsum.readings import Readings


@dataclass(frozen=True)
class Pulled:
    """How chunks of Algorithm 2 are made."""

    lags: dict[int, float]
    rho: np.ndarray
    strength: np.ndarray
    switch: bool = False
    accelerate: bool = False

    def of(self, own: slice) -> Pulled:
        return replace(self, rho=self.rho[own], strength=self.strength[own])

    def make(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> AutocorrelatedChunk:
        return AutocorrelatedChunk(
            part, scale, weights, self.lags, self.rho, self.strength, switch=self.switch,
            accelerate=self.accelerate,
        )  # fmt: skip


class AutocorrelatedChunk(Keeping):
    """Some series with their V; W, H and V are updated as in Algorithm 2.

    `strength` is lambda of every series. With `switch`, the paper's rule, a series is only pulled
    in the iterations in which its model W h misses its autocorrelation.
    """

    STATE = ("weights", "fitted", "V", "zero")

    def __init__(
        self,
        part: Readings,
        scale: np.ndarray,
        weights: np.ndarray,
        lags: dict[int, float],
        rho: np.ndarray,
        strength: np.ndarray,
        *,
        switch: bool,
        accelerate: bool = False,
    ) -> None:
        self.indptr, self.start, self.stop = part.indptr, part.start, part.stop
        self.total = part.total / np.repeat(np.where(scale > 0, scale, 1.0), np.diff(part.indptr))
        self.weights = weights
        self.fitted = weights.copy() if accelerate else weights[:0]
        self.lags, self.rho, self.strength, self.switch = lags, rho, strength, switch
        self.V = np.zeros((part.n_series, part.n_periods))
        self.zero = np.zeros(self.V.shape, np.bool_)

    def advance(self, step: Step) -> Reduction:
        """One H update and V step."""
        from unsum.kernels.aligned import carry_on
        from unsum.kernels.autocorrelated import smooth_rows
        from unsum.kernels.updates import update_rows

        H, W, rank = self.weights, step.W, self.weights.shape[1]
        prepare(H, self.fitted, step)
        if step.n_inner > 0:
            update = UPDATES.index(step.update)
            update_rows(update, step.S, step.bound, self.V @ step.W_fit, H, step.n_inner)
            carry_on(H, self.fitted, step.momentum)
        S = W.T @ W
        strength = (
            np.where(self._misses(W, S), self.strength, 0.0) if self.switch else self.strength
        )
        objective, n_clipped = smooth_rows(
            self.indptr, self.start, self.stop, self.total, H @ W.T, np.array(list(self.lags)),
            np.array(list(self.lags.values())), self.rho, strength, self.V, self.zero,
        )  # fmt: skip
        reduction = Reduction.zeros(np.empty(0, np.int64), rank)
        reduction.gram = H.T @ H
        reduction.points = self.V.T @ H - W @ reduction.gram
        pull = self.V @ W - H @ S  # the negative gradient
        reduction.sums[0, :2] = objective, n_clipped
        reduction.sums[1, :rank] = np.sum(np.where(H > 0, pull, 0.0) ** 2, axis=0)
        reduction.sums[2, :rank] = np.sum(np.where(H > 0, 0.0, np.maximum(pull, 0.0)) ** 2, axis=0)
        return reduction

    def _misses(self, W: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Whether `h' W' Delta_rho W h < 0`, a form of size K x K."""
        lagged = sum(share * W[lag:].T @ W[:-lag] for lag, share in self.lags.items())
        form = lagged + lagged.T
        H = self.weights
        value = np.sum((H @ form) * H, axis=1) - 2 * self.rho * np.sum((H @ S) * H, axis=1)
        return np.asarray(value < 0)
