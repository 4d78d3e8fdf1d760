"""Chunks of series that are all read at the same dates: matrix products do the work."""

from __future__ import annotations

import numpy as np

from unsum.factorization.chunk import UPDATES, Chunk, Reduction, Shared
from unsum.readings import Readings

CANCELLED = 1e-4  # share of the squares below which their difference has lost too many digits


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
        super().__init__(part, scale, weights)
        self.shape = (part.n_series, int(self.ptr[1]))  # series, edges
        self.share = self.share[: self.shape[1]]

    def advance(self, shared: Shared) -> Reduction:
        from unsum.kernels.implicit import meet, settle

        H = self.weights
        n_series, rank = H.shape
        C = shared.C[self.rows]
        sums = _between(C, rank)
        tau = self.tau.reshape(self.shape)
        if shared.n_inner > 0:
            self._update(shared, tau @ sums + H @ shared.mixed.T + self._lifts(shared))
        np.dot(H, sums.T, out=tau)
        suspects = np.empty(tau.size, np.int64)
        objective, n_suspects = meet(
            self.total, self.share, H @ shared.lowest[0, :rank], tau, suspects
        )
        reduction = Reduction.zeros(self.rows, rank)
        pull = tau @ sums
        by_reading = tau.T @ H
        reduction.steps[:, :rank] = by_reading
        reduction.steps[1:, :rank] -= by_reading[:-1]
        change, n_expanded, n_clipped, lift_at, lift = settle(
            self.ptr, self.row, self.edge, self.total, C, shared.W, shared.lows, shared.width, H,
            0, n_series, self.tau, reduction.steps, pull, suspects, n_suspects, self.lift_ptr,
            self.lift_at, self.lift,
        )  # fmt: skip
        n_lifts = self.lift_ptr[-1]
        self.lift_at, self.lift = lift_at[:n_lifts], lift[:n_lifts]
        self._add_lifts(reduction, len(shared.W))
        self._sum_up(reduction, pull + self._lifts(shared))
        reduction.sums[0, :3] = objective + change, n_clipped, n_expanded
        return reduction

    def _update(self, shared: Shared, target: np.ndarray) -> None:
        """`H = Update(W, H, V)` from `V'W`."""
        from unsum.kernels.updates import update_rows

        update = UPDATES.index(shared.update)
        update_rows(update, shared.S, shared.bound, target, self.weights, shared.n_inner)

    def _lifts(self, shared: Shared) -> np.ndarray:
        """The part of W'R that comes from periods held at zero."""
        from unsum.kernels.implicit import gather_lifts

        out = np.zeros(self.weights.shape if len(self.lift) else (1, 1))
        if len(self.lift):
            gather_lifts(
                self.lift_ptr, self.lift_at, self.lift, shared.W, 0, len(self.weights), out
            )
        return out

    def _sum_up(self, reduction: Reduction, pull: np.ndarray) -> None:
        from unsum.kernels.passes import sum_up

        columns, pulls = np.ascontiguousarray(self.weights.T), np.ascontiguousarray(pull.T)
        sum_up(columns, pulls, len(pull), reduction.gram, reduction.sums)


class CompleteChunk(AlignedChunk):
    """Every reading is of one period, so V is known there and nothing clips.

    R need not be formed: two products of the totals, with the profiles and with the weights, give
    all sums over it, as in plain factorization of a matrix.
    """

    def __init__(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> None:
        super().__init__(part, scale, weights)
        self.total = self.total.reshape(self.shape)
        self.squares = float(np.vdot(self.total, self.total))
        self.sums = np.zeros((self.shape[1], weights.shape[1]))

    def advance(self, shared: Shared) -> Reduction:
        H = self.weights
        rank = H.shape[1]
        sums = _between(shared.C[self.rows], rank) * self.share[:, None]
        products = self.total @ sums
        if shared.n_inner > 0:
            elsewhere = shared.mixed - sums.T @ self.sums
            self._update(shared, products + H @ elsewhere.T)
        self.sums = sums
        own = sums.T @ sums
        reduction = Reduction.zeros(self.rows, rank)
        self._sum_up(reduction, products - H @ own)
        by_reading = self.total.T @ H - sums @ reduction.gram
        reduction.steps[:, :rank] = by_reading
        reduction.steps[1:, :rank] -= by_reading[:-1]
        objective = self.squares - 2 * np.vdot(products, H) + np.vdot(own, reduction.gram)
        if objective < CANCELLED * self.squares:
            gaps = self.total - H @ sums.T
            objective = np.vdot(gaps, gaps)
        reduction.sums[0, 0] = objective
        return reduction


def _between(C: np.ndarray, rank: int) -> np.ndarray:
    """The sums of each profile between neighbouring edges, and nothing after the last."""
    sums = np.zeros((len(C), rank))
    np.subtract(C[1:, :rank], C[:-1, :rank], out=sums[:-1])
    return sums
