"""Chunks of series that are all read at the same dates: matrix products do the work."""

from __future__ import annotations

import numpy as np

from unsum.factorization.chunk import UPDATES, Chunk, Reduction, Step, prepare
from unsum.readings import Readings


def is_aligned(part: Readings) -> bool:
    """Whether all series of a part have the same intervals (full observation is one such case)."""
    counts = np.diff(part.indptr)
    if part.n_series < 2 or (counts != counts[0]).any():
        return False
    start = part.start.reshape(part.n_series, -1)
    stop = part.stop.reshape(part.n_series, -1)
    return bool((start == start[0]).all() and (stop == stop[0]).all())


def make_chunk(
    part: Readings, scale: np.ndarray, weights: np.ndarray, *, accelerate: bool = False
) -> Chunk:
    """The kind of chunk that suits these series."""
    kind = Chunk
    if is_aligned(part):
        complete = bool((part.stop - part.start == 1).all())
        kind = CompleteChunk if complete else AlignedChunk
    return kind(part, scale, weights, accelerate=accelerate)


class AlignedChunk(Chunk):
    """The same state and the same iteration as `Chunk`, with totals and tau as matrices."""

    def __init__(
        self, part: Readings, scale: np.ndarray, weights: np.ndarray, *, accelerate: bool = False
    ) -> None:
        import scipy.linalg.cython_blas  # noqa: F401 (compiled products use it; it must be there
        # before threads of BLAS are limited)

        super().__init__(part, scale, weights, accelerate=accelerate)
        shape = (part.n_series, int(self.ptr[1]))
        self.share = self.share[: shape[1]]
        self.total: np.ndarray = self.total.reshape(shape)
        self.tau: np.ndarray = self.tau.reshape(shape)

    def advance(self, step: Step) -> Reduction:
        from unsum.kernels.aligned import pass_aligned

        prepare(self.weights, self.fitted, step)
        C, C_fit = self._running_sums(step)
        reduction = Reduction.zeros(self.rows, self.weights.shape[1])
        self.lift_ptr, self.lift_at, self.lift = pass_aligned(
            self.ptr, self.row, self.edge, self.total, self.share, self.tau, self.lift_ptr,
            self.lift_at, self.lift, self.weights, self.fitted, step.W_fit, C_fit, step.S,
            step.mixed, step.bound, UPDATES.index(step.update), step.n_inner, step.momentum,
            step.W, C, step.lowest, step.lows, step.width, reduction.steps, reduction.gram,
            reduction.sums,
        )  # fmt: skip
        self._add_lifts(reduction, len(step.W))
        return reduction


class CompleteChunk(AlignedChunk):
    """Every reading is of one period, so that V is known there and nothing clips."""

    STATE = ("weights", "fitted", "between")

    def __init__(
        self, part: Readings, scale: np.ndarray, weights: np.ndarray, *, accelerate: bool = False
    ) -> None:
        super().__init__(part, scale, weights, accelerate=accelerate)
        self.squares = float(np.vdot(self.total, self.total))
        self.between = np.zeros((len(self.share), weights.shape[1]))

    def advance(self, step: Step) -> Reduction:
        from unsum.kernels.aligned import pass_complete

        prepare(self.weights, self.fitted, step)
        C, C_fit = self._running_sums(step)
        reduction = Reduction.zeros(self.rows, self.weights.shape[1])
        self.between = pass_complete(
            self.total, self.squares, self.share, self.between, self.weights, self.fitted, C_fit,
            step.S, step.mixed, step.bound, UPDATES.index(step.update), step.n_inner,
            step.momentum, C, reduction.steps, reduction.gram, reduction.sums,
        )  # fmt: skip
        return reduction
