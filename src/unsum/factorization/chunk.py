"""A chunk of series with its state: what a thread, or later a worker, holds and advances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsum.readings import Readings

UPDATES = ("hals", "nenmf")


@dataclass(frozen=True)
class Step:
    """What all chunks need to know to update their weights and project.

    Weights are updated with profiles `W_fit`. With `momentum` they are then carried on along the
    way they came, as W was from `W_fit`; V is projected with W. A `retreat` goes back to where the
    last step stood before it was carried on.
    """

    update: str
    n_inner: int  # zero: V step alone
    W_fit: np.ndarray
    C_fit: np.ndarray  # running sum of W_fit, with a leading row of zeros, padded to whole lanes
    S: np.ndarray  # W_fit' W_fit
    mixed: np.ndarray  # W_fit' times the W that V was projected with before
    bound: float  # the largest eigenvalue of S
    momentum: float
    retreat: bool
    dead: tuple[int, ...]  # profiles that nobody uses: weights of zero, before all else
    W: np.ndarray
    C: np.ndarray  # running sum of W, likewise
    lowest: np.ndarray  # the smallest entry of each profile, padded like C
    lows: np.ndarray  # the smallest entries of W in each stretch of `width` periods
    width: int

    @classmethod
    def of(
        cls,
        W_fit: np.ndarray,
        W: np.ndarray,
        W_before: np.ndarray,
        width: int,
        update: str,
        n_inner: int,
        momentum: float = 0.0,
        *,
        retreat: bool = False,
        dead: tuple[int, ...] = (),
    ) -> Step:
        rank = W.shape[1]
        S = W_fit.T @ W_fit
        bound = float(np.linalg.eigvalsh(S)[-1]) if update == "nenmf" else 0.0
        C = _running_sum(W)
        lows = np.minimum.reduceat(W, np.arange(0, len(W), width), axis=0)
        lowest = np.zeros((1, C.shape[1]))
        lowest[0, :rank] = lows.min(axis=0)
        return cls(
            update, n_inner, W_fit, C if W_fit is W else _running_sum(W_fit), S,
            W_fit.T @ W_before, bound, momentum, retreat, dead, W, C, lowest, lows, width,
        )  # fmt: skip


def _running_sum(W: np.ndarray) -> np.ndarray:
    from unsum.kernels.lanes import padded
    from unsum.kernels.profiles import sum_profiles

    C = padded(len(W) + 1, W.shape[1])
    sum_profiles(W, C)
    return C


@dataclass
class Reduction:
    """What a chunk contributes to the sums over all series."""

    rows: np.ndarray  # the edges of the calendar that `steps` are at
    steps: np.ndarray  # R H' as differences from period to period, padded to whole lanes
    points: np.ndarray  # R H' at single periods; empty if there are none
    gram: np.ndarray  # H H'
    sums: np.ndarray  # objective and counts; squared residuals of weights, see `pass_chunk`

    @classmethod
    def zeros(cls, rows: np.ndarray, rank: int) -> Reduction:
        from unsum.kernels.lanes import padded

        return cls(
            rows,
            padded(len(rows), rank),
            np.empty((0, rank)),
            np.zeros((rank, rank)),
            np.zeros((3, max(rank, 3))),
        )

    def add(self, other: Reduction) -> None:
        """Add what another chunk contributes; the rows here are all edges."""
        from unsum.kernels.profiles import add_rows

        add_rows(other.rows, other.steps, self.steps)
        if len(other.points):
            self.points = self.points + other.points if len(self.points) else other.points
        self.gram += other.gram
        self.sums += other.sums

    def residual(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R H' (T x K), and by profile its squares where W is positive and zero, and those of W."""
        from unsum.kernels.profiles import sum_steps

        residual, squares = np.empty(W.shape), np.zeros((3, W.shape[1]))
        sum_steps(self.steps, self.points, W, residual, squares)
        return residual, squares


def prepare(weights: np.ndarray, fitted: np.ndarray, step: Step) -> None:
    """Weights as a step finds them."""
    if step.retreat:
        weights[:] = fitted
    weights[:, list(step.dead)] = 0.0


class Keeping:
    """State that can be put aside and taken up again, with the same bits."""

    STATE: ClassVar[tuple[str, ...]]

    def keep(self) -> dict[str, np.ndarray]:
        return {name: np.array(getattr(self, name)) for name in self.STATE}

    def resume(self, state: dict[str, np.ndarray]) -> None:
        for name in self.STATE:
            if name == "weights":  # a view of those of all series
                self.weights[:] = state[name]  # type: ignore[attr-defined]
            else:
                setattr(self, name, state[name])


class Chunk(Keeping):
    """Some series: the edges between their readings, weights, and the R of their projected values.

    Series are worked through in order of their first edge, so that neighbours touch the same rows
    of the running sums. Only the rows in use are copied out of those.
    """

    STATE: ClassVar[tuple[str, ...]] = ("weights", "fitted", "tau", "lift_ptr", "lift_at", "lift")

    def __init__(
        self, part: Readings, scale: np.ndarray, weights: np.ndarray, *, accelerate: bool = False
    ) -> None:
        from unsum.kernels.implicit import lay_out

        total = part.total / np.repeat(np.where(scale > 0, scale, 1.0), np.diff(part.indptr))
        self.order = np.argsort(part.start[part.indptr[:-1]], kind="stable")
        self.ptr, self.edge, self.total, self.share = lay_out(
            part.indptr, part.start, part.stop, total, self.order
        )
        used = np.zeros(part.n_periods + 1, np.bool_)
        used[self.edge] = True
        self.rows = np.flatnonzero(used)
        self.row = (np.cumsum(used, dtype=np.int32) - 1)[self.edge]
        self.weights = weights  # a view of all weights, updated in place
        self.fitted = weights.copy() if accelerate else weights[:0]  # before they are carried on
        self.tau = np.zeros(len(self.total))
        self.lift_ptr = np.zeros(len(self.ptr), np.int64)
        self.lift_at = np.empty(0, np.int32)
        self.lift = np.empty(0)

    def advance(self, step: Step) -> Reduction:
        """One H update and V step."""
        from unsum.kernels.lanes import lanes
        from unsum.kernels.passes import pass_chunk

        rank = self.weights.shape[1]
        prepare(self.weights, self.fitted, step)
        reduction = Reduction.zeros(self.rows, rank)
        C, C_fit = self._running_sums(step)
        self.lift_ptr, self.lift_at, self.lift = pass_chunk(
            lanes(rank), self.ptr, self.row, self.edge, self.total, self.share, self.order,
            self.tau, self.lift_ptr, self.lift_at, self.lift, self.weights, self.fitted,
            step.W_fit, C_fit, step.S, step.mixed, step.bound, UPDATES.index(step.update),
            step.n_inner, step.momentum, step.W, C, step.lowest, step.lows, step.width,
            reduction.steps, reduction.gram, reduction.sums,
        )  # fmt: skip
        self._add_lifts(reduction, len(step.W))
        return reduction

    def _running_sums(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """The rows in use of both running sums."""
        C = step.C[self.rows]
        return C, C if step.C_fit is step.C else step.C_fit[self.rows]

    def _add_lifts(self, reduction: Reduction, n_periods: int) -> None:
        from unsum.kernels.implicit import scatter_lifts

        if len(self.lift):
            reduction.points = np.zeros((n_periods, self.weights.shape[1]))
            scatter_lifts(
                self.lift_ptr, self.lift_at, self.lift, self.order, self.weights, reduction.points
            )
