"""Chunks of series that are all read at the same dates: matrix products do the work."""

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


def make_chunk(part: Readings, scale: np.ndarray, weights: np.ndarray) -> Chunk:
    """The kind of chunk that suits these series."""
    if not is_aligned(part):
        return Chunk(part, scale, weights)
    complete = bool((part.stop - part.start == 1).all())
    return (CompleteChunk if complete else AlignedChunk)(part, scale, weights)


class AlignedChunk(Chunk):
    """The same state and the same iteration as `Chunk`, with totals and tau as matrices."""

    def __init__(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> None:
        import scipy.linalg.cython_blas  # noqa: F401 (compiled products use it; it must be there
        # before threads of BLAS are limited)

        super().__init__(part, scale, weights)
        n_edges = int(self.ptr[1])
        self.share = self.share[:n_edges]
        self.total, self.tau = self.total.reshape(-1, n_edges), self.tau.reshape(-1, n_edges)

    def advance(self, shared: Shared) -> Reduction:
        from unsum.kernels.aligned import pass_aligned

        reduction = Reduction.zeros(self.rows, self.weights.shape[1])
        self.lift_ptr, self.lift_at, self.lift = pass_aligned(
            self.ptr, self.row, self.edge, self.total, self.share, self.tau, self.lift_ptr,
            self.lift_at, self.lift, self.weights, shared.W, shared.C[self.rows], shared.S,
            shared.mixed, shared.bound, shared.lowest, shared.lows, shared.width,
            UPDATES.index(shared.update), shared.n_inner, reduction.steps, reduction.gram,
            reduction.sums,
        )  # fmt: skip
        self._add_lifts(reduction, len(shared.W))
        return reduction


class CompleteChunk(AlignedChunk):
    """Every reading is of one period, so that V is known there and nothing clips."""

    def __init__(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> None:
        super().__init__(part, scale, weights)
        self.squares = float(np.vdot(self.total, self.total))
        self.between = np.zeros((len(self.share), weights.shape[1]))

    def advance(self, shared: Shared) -> Reduction:
        from unsum.kernels.aligned import pass_complete

        reduction = Reduction.zeros(self.rows, self.weights.shape[1])
        self.between = pass_complete(
            self.total, self.squares, self.share, self.between, self.weights, shared.C[self.rows],
            shared.S, shared.mixed, shared.bound, UPDATES.index(shared.update), shared.n_inner,
            reduction.steps, reduction.gram, reduction.sums,
        )  # fmt: skip
        return reduction
