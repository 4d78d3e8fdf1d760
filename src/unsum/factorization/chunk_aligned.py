"""A chunk of series that are all read at the same dates: matrix products do the work."""

from __future__ import annotations

import numpy as np

from unsum.factorization.chunk import UPDATES, Chunk, Reduction, Shared
from unsum.readings import Readings


def is_aligned(part: Readings) -> bool:
    """Whether all series of a part have the same intervals (full observation is one such case)."""
    counts = np.diff(part.indptr)
    if part.n_series < 2 or (counts != counts[0]).any():
        return False
    start = part.start.reshape(part.n_series, -1)
    stop = part.stop.reshape(part.n_series, -1)
    return bool((start == start[0]).all() and (stop == stop[0]).all())


class AlignedChunk(Chunk):
    """The same state and the same iteration as `Chunk`, with tau a matrix (series, readings)."""

    def __init__(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> None:
        super().__init__(part, scale, weights)
        n_readings = int(self.indptr[1])
        self.first, self.last = self.start[:n_readings], self.stop[:n_readings]
        self.length = (self.last - self.first).astype(np.float64)
        self.no_readings = np.zeros(len(self.indptr), np.int64)

    def advance(self, shared: Shared) -> Reduction:
        from unsum.kernels.implicit import scatter, settle
        from unsum.kernels.updates import hals, nenmf

        H, W, S = self.weights, shared.W, shared.S
        n_series, rank = H.shape
        sums = shared.C[self.last] - shared.C[self.first]  # of the profiles over each reading
        tau = self.tau.reshape(n_series, -1)
        if shared.n_inner > 0:
            target = sums.T @ tau.T + shared.mixed @ H.T + self._lifts(shared)
            columns = np.ascontiguousarray(H.T)
            if UPDATES.index(shared.update) == 0:
                hals(S, target, columns, n_series, shared.n_inner)
            else:
                nenmf(S, shared.bound, target, columns, n_series, shared.n_inner)
            H[:] = columns.T
        np.dot(H, sums.T, out=tau)
        np.subtract(self.total.reshape(tau.shape), tau, out=tau)
        tau /= self.length
        suspects = self._suspects(tau, shared)
        squares = np.einsum("nm,nm->m", tau, tau)
        change, n_clipped, self.lift_at, self.lift = settle(
            self.indptr, self.start, self.stop, self.total, W, H, 0, n_series, self.tau,
            suspects, len(suspects), self.lift_ptr, self.lift_at, self.lift,
        )  # fmt: skip
        self.lift_at, self.lift = self.lift_at[: self.lift_ptr[-1]], self.lift[: self.lift_ptr[-1]]
        reduction = Reduction.zeros(len(W), rank)
        reduction.gram = H.T @ H
        by_reading = tau.T @ H
        reduction.steps[self.first] += by_reading
        reduction.steps[self.last] -= by_reading
        scatter(
            self.no_readings, self.start, self.stop, self.tau, self.lift_ptr, self.lift_at,
            self.lift, H, 0, n_series, reduction.steps, reduction.points,
        )  # fmt: skip
        pull = (sums.T @ tau.T + self._lifts(shared)).T
        reduction.sums[0, :3] = squares @ self.length + change, n_clipped, len(suspects)
        reduction.sums[1, :rank] = np.sum(np.where(H > 0, pull, 0.0) ** 2, axis=0)
        reduction.sums[2, :rank] = np.sum(np.where(H > 0, 0.0, np.maximum(pull, 0.0)) ** 2, axis=0)
        return reduction

    def _lifts(self, shared: Shared) -> np.ndarray | float:
        """The part of W'R that comes from periods held at zero."""
        from unsum.kernels.implicit import gather

        if not len(self.lift):
            return 0.0
        n_series, rank = self.weights.shape
        out = np.empty((rank, n_series))
        gather(
            self.no_readings, self.start, self.stop, self.tau, self.lift_ptr, self.lift_at,
            self.lift, shared.C, shared.W, 0, n_series, out,
        )  # fmt: skip
        return out

    def _suspects(self, tau: np.ndarray, shared: Shared) -> np.ndarray:
        """The readings that may clip: those whose model may dip below -tau."""
        if (self.length == 1).all():
            return np.empty(0, np.int64)
        edges = np.column_stack([self.first, self.last]).ravel()
        lows = np.minimum.reduceat(shared.W, edges[edges < len(shared.W)], axis=0)[::2]
        may_clip = (tau + self.weights @ lows.T < 0) & (self.length > 1)
        return np.flatnonzero(may_clip)
