"""A chunk of series with its state: what a thread, or later a worker, holds and advances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.readings import Readings

UPDATES = ("hals", "nenmf")


@dataclass(frozen=True)
class Shared:
    """What all chunks need to know of the profiles in one iteration."""

    W: np.ndarray
    C: np.ndarray  # running sum of W, with a leading row of zeros
    S: np.ndarray  # W'W
    mixed: np.ndarray  # W' of these profiles times W of those that V was projected with
    bound: float  # the largest eigenvalue of S
    lows: np.ndarray  # the smallest entries of W in each stretch of `width` periods
    width: int
    update: str
    n_inner: int

    @classmethod
    def of(cls, W: np.ndarray, W_old: np.ndarray, width: int, update: str, n_inner: int) -> Shared:
        C = np.zeros((len(W) + 1, W.shape[1]))
        np.cumsum(W, axis=0, out=C[1:])
        S = W.T @ W
        edges = np.arange(0, len(W), width)
        bound = float(np.linalg.eigvalsh(S)[-1]) if update == "nenmf" else 0.0
        lows = np.minimum.reduceat(W, edges, axis=0)
        return cls(W, C, S, W.T @ W_old, bound, lows, width, update, n_inner)


@dataclass
class Reduction:
    """What a chunk contributes to the sums over all series."""

    steps: np.ndarray  # R H' as differences between periods
    points: np.ndarray  # R H' at single periods
    gram: np.ndarray  # H H'
    sums: np.ndarray  # objective and counts; squared residuals of weights, see `pass_chunk`

    @classmethod
    def zeros(cls, n_periods: int, rank: int) -> Reduction:
        return cls(
            np.zeros((n_periods + 1, rank)),
            np.zeros((n_periods, rank)),
            np.zeros((rank, rank)),
            np.zeros((3, max(rank, 3))),
        )

    def add(self, other: Reduction) -> None:
        self.steps += other.steps
        self.points += other.points
        self.gram += other.gram
        self.sums += other.sums

    @property
    def residual(self) -> np.ndarray:
        """R H' (T x K)."""
        residual: np.ndarray = np.cumsum(self.steps[:-1], axis=0) + self.points
        return residual


class Chunk:
    """Some series: their scaled readings, weights, and the R of their projected values."""

    def __init__(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> None:
        self.indptr, self.start, self.stop = part.indptr, part.start, part.stop
        self.total = part.total / np.repeat(np.where(scale > 0, scale, 1.0), np.diff(part.indptr))
        self.weights = weights  # a view of all weights, updated in place
        self.tau = np.zeros(len(self.total))
        self.lift_ptr = np.zeros(len(part.indptr), np.int64)
        self.lift_at = np.empty(0, np.int32)
        self.lift = np.empty(0)

    def advance(self, shared: Shared) -> Reduction:
        """One H update and V step (with `n_inner` zero, the V step alone)."""
        from unsum.kernels.passes import pass_chunk

        rank = self.weights.shape[1]
        reduction = Reduction.zeros(len(shared.W), rank)
        self.lift_ptr, self.lift_at, self.lift = pass_chunk(
            self.indptr, self.start, self.stop, self.total, self.tau,
            self.lift_ptr, self.lift_at, self.lift, self.weights,
            shared.W, shared.C, shared.S, shared.mixed, shared.bound,
            shared.lows.min(axis=0), shared.lows, shared.width,
            UPDATES.index(shared.update), shared.n_inner,
            reduction.steps, reduction.points, reduction.gram, reduction.sums,
        )  # fmt: skip
        return reduction
